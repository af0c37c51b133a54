"""What is asked before a request is sent: has storing kept up, is there time left, does the cap allow it?"""

import asyncio
from collections.abc import Awaitable, Callable

from app.chat import SendResult
from workers.pacing import FIRST_COME, Pacer, Turn

CHUNK = 16


class SendingEnded(Exception):
    """Nothing more is to be sent in this slice. Passes through the client; the conversation stays open."""


class Budget:
    """A run's cap on requests, reserved in the database some at a time before they are sent.

    `reserve(wanted)` tells how many were granted.
    """

    def __init__(self, reserve: Callable[[int], Awaitable[int]]) -> None:
        self._reserve = reserve
        self._lock = asyncio.Lock()
        self.left = 0
        self.spent = False

    async def take(self) -> None:
        """SendingEnded when the cap is used up."""
        async with self._lock:
            if self.left == 0 and not self.spent:
                self.left = await self._reserve(CHUNK)
                self.spent = self.left == 0
            if self.spent:
                raise SendingEnded
            self.left -= 1


class CheckedPace:
    """A pacer that asks more before a slot may be used: each check waits as long as needed or raises."""

    def __init__(self, pacer: Pacer, *checks: Callable[[], Awaitable[None]], turn: Turn = FIRST_COME) -> None:
        self._pacer = pacer
        self._checks = checks
        self._turn = turn

    def at(self, turn: Turn) -> "CheckedPace":
        """The same pacer for one asker's turn."""
        return CheckedPace(self._pacer, *self._checks, turn=turn)

    async def acquire(self) -> int:
        slot = await self._pacer.acquire(self._turn)
        try:
            for check in self._checks:
                await check()
        except BaseException:
            self._pacer.release(slot, SendResult.CANCELLED)
            raise
        return slot

    def release(self, slot: int, result: SendResult, retry_after: float | None = None) -> None:
        self._pacer.release(slot, result, retry_after)

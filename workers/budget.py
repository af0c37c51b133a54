"""What is asked before a request is sent: has storing kept up, is there time left, does the cap allow it?"""

import asyncio
from collections.abc import Awaitable, Callable

from app.chat import Pace, SendResult

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
    """A pace that asks more before a slot may be used: each check waits as long as needed or raises."""

    def __init__(self, pace: Pace, *checks: Callable[[], Awaitable[None]]) -> None:
        self._pace = pace
        self._checks = checks

    async def acquire(self) -> int:
        slot = await self._pace.acquire()
        try:
            for check in self._checks:
                await check()
        except BaseException:
            self._pace.release(slot, SendResult.CANCELLED)
            raise
        return slot

    def release(self, slot: int, result: SendResult, retry_after: float | None = None) -> None:
        self._pace.release(slot, result, retry_after)

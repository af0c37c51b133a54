"""A run's cap on requests: drivers reserve from it in the database before they send."""

import asyncio
from collections.abc import Awaitable, Callable

from app.chat import Pace, SendResult

CHUNK = 16


class BudgetSpent(Exception):
    """The run's cap on calls is used up."""


class Budget:
    """Permission to send, fetched some requests at a time. `reserve(wanted)` tells how many were granted."""

    def __init__(self, reserve: Callable[[int], Awaitable[int]]) -> None:
        self._reserve = reserve
        self._lock = asyncio.Lock()
        self.left = 0

    async def take(self) -> None:
        async with self._lock:
            if self.left == 0:
                self.left = await self._reserve(CHUNK)
            if self.left == 0:
                raise BudgetSpent
            self.left -= 1


class BudgetedPace:
    """A pace that also asks the budget. BudgetSpent passes through the client to the driver."""

    def __init__(self, pace: Pace, budget: Budget) -> None:
        self._pace = pace
        self._budget = budget

    async def acquire(self) -> int:
        slot = await self._pace.acquire()
        try:
            await self._budget.take()
        except BaseException:
            self._pace.release(slot, SendResult.CANCELLED)
            raise
        return slot

    def release(self, slot: int, result: SendResult, retry_after: float | None = None) -> None:
        self._pace.release(slot, result, retry_after)

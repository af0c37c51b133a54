"""How many requests one endpoint account bears: slow start, one cut per episode, pauses, a ceiling."""

import asyncio
import heapq
from dataclasses import dataclass
from typing import NamedTuple

from app.chat.pace import SendResult

START = 8
LONGEST_PAUSE = 60.0
FIRST_PAUSE = 1.0
GROWTH_SECONDS = 5.0


class Limiter:
    """The logic alone, on a clock given with each call (seconds, any origin).

    The limit starts low and doubles after each clean round (as many good answers since the last change
    as the limit is high) in which it was reached. A rate-limit answer halves it, once per episode: answers
    to requests sent before the cut do not cut again, however long the endpoint asks to wait, and speak for
    no growth. Then the account pauses, and one request alone tries whether it may go on. Up to half of the
    limit at which the trouble began the way back doubles too; above that it grows by a tenth, and at
    most every GROWTH_SECONDS, so that a fast endpoint is not driven into its limit again and again.
    """

    def __init__(self, ceiling: int, start: int = START) -> None:
        self.ceiling = _checked(ceiling)
        self.in_flight = 0
        self.paused_until = float("-inf")
        self.probing = False
        self.rate_limited = 0
        self._limit = max(1, start)
        self._threshold: int | None = None
        self._strikes = 0
        self._sent = self._last_cut = 0
        self._changed_at = float("-inf")
        self._probe: int | None = None
        self._good = 0
        self._reached = False

    @property
    def limit(self) -> int:
        return min(self._limit, self.ceiling)

    def may_send(self, now: float) -> bool:
        if now < self.paused_until or self.in_flight >= self.limit:
            return False
        return not self.probing or self._probe is None

    def send(self) -> int:
        """Count one request as sent; the number identifies it in finish."""
        self._sent += 1
        self.in_flight += 1
        if self.in_flight >= self.limit:
            self._reached = True
        if self.probing:
            self._probe = self._sent
        return self._sent

    def finish(self, number: int, result: SendResult, now: float, retry_after: float | None = None) -> None:
        """Take one answer in. retry_after: seconds, as the endpoint said; capped at LONGEST_PAUSE."""
        self.in_flight -= 1
        probed = number == self._probe
        if probed:
            self._probe = None
        if result is SendResult.RATE_LIMITED:
            self._limited(number, now, retry_after)
        elif result is not SendResult.CANCELLED:
            if probed:
                self.probing = False
            self._answered(number, now, good=result is SendResult.OK)

    def _limited(self, number: int, now: float, retry_after: float | None) -> None:
        self.rate_limited += 1
        if number > self._last_cut:
            self._cut()
            self._changed_at = now
        pause = retry_after or min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self._strikes - 1))
        self.paused_until = max(self.paused_until, now + min(LONGEST_PAUSE, pause))
        self.probing = True

    def _cut(self) -> None:
        reached = self.limit
        if self._strikes == 0:
            self._threshold = max(1, reached // 2)
        self._strikes = min(self._strikes + 1, 16)
        self._last_cut = self._sent
        self._change(max(1, reached // 2))

    def _answered(self, number: int, now: float, *, good: bool) -> None:
        if number <= self._last_cut:
            return
        if not good:
            self._good = 0
            return
        self._strikes = 0
        self._good += 1
        if self._good < self.limit:
            return
        self._good = 0
        grown = self._grown(now) if self._reached else self._limit
        if grown > self._limit and self._limit < self.ceiling:
            self._changed_at = now
            self._change(min(self.ceiling, grown))
        self._reached = self.in_flight >= self.limit

    def _grown(self, now: float) -> int:
        doubled = self._limit * 2
        if self._threshold is None:
            return doubled
        if self._limit < self._threshold:
            return min(doubled, self._threshold)
        if now - self._changed_at < GROWTH_SECONDS:
            return self._limit
        return self._limit + max(1, self._limit // 10)

    def _change(self, limit: int) -> None:
        self._limit = limit
        self._good = 0
        self._reached = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """paused_for: seconds until the account may be asked again, 0 when it is not paused."""

    limit: int
    ceiling: int
    in_flight: int
    waiting: int
    paused_for: float
    probing: bool
    rate_limited: int


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn it is. begun: a number that grows from conversation to conversation; ahead: how many
    requests this one still has to send, one after the other."""

    begun: int = 0
    ahead: int = 1


FIRST_COME = Turn()


class Pacer:
    """The limiter at work on an event loop: hands out slots, to what was begun first before all others.

    With `longest_first`, whoever has most requests ahead goes first: near the end of a run, long
    conversations would else go on alone while slots stand empty.
    """

    def __init__(self, ceiling: int, start: int = START) -> None:
        self._limiter = Limiter(ceiling, start)
        self._longest_first = False
        self._waiters: list[_Waiter] = []  # a heap
        self._asked = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def longest_first(self) -> bool:
        return self._longest_first

    @longest_first.setter
    def longest_first(self, value: bool) -> None:
        if value != self._longest_first:
            self._longest_first = value
            self._waiters = [self._waiter(one.asked, one.turn, one.slot) for one in self._waiters]
            heapq.heapify(self._waiters)

    @property
    def ceiling(self) -> int:
        return self._limiter.ceiling

    @ceiling.setter
    def ceiling(self, value: int) -> None:
        """0 holds everything back; what is in flight is left alone."""
        self._limiter.ceiling = _checked(value)
        if self._waiters:
            self._wake()

    def snapshot(self) -> Snapshot:
        limiter = self._limiter
        now = asyncio.get_running_loop().time()
        return Snapshot(
            limit=limiter.limit,
            ceiling=limiter.ceiling,
            in_flight=limiter.in_flight,
            waiting=len(self._waiters),
            paused_for=max(0.0, limiter.paused_until - now),
            probing=limiter.probing,
            rate_limited=limiter.rate_limited,
        )

    async def acquire(self, turn: Turn = FIRST_COME) -> int:
        """Wait for a slot."""
        loop = asyncio.get_running_loop()
        if not self._waiters and self._limiter.may_send(loop.time()):
            return self._limiter.send()
        slot: asyncio.Future[int] = loop.create_future()
        self._asked += 1
        heapq.heappush(self._waiters, self._waiter(self._asked, turn, slot))
        self._wake()
        try:
            return await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():
                self.release(slot.result(), SendResult.CANCELLED)
            else:
                self._waiters = [one for one in self._waiters if one.slot is not slot]
                heapq.heapify(self._waiters)
            raise

    def release(self, slot: int, result: SendResult, retry_after: float | None = None) -> None:
        self._limiter.finish(slot, result, asyncio.get_running_loop().time(), retry_after)
        if self._waiters:
            self._wake()

    def _wake(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._waiters and self._limiter.may_send(now):
            slot = heapq.heappop(self._waiters).slot
            if not slot.done():
                slot.set_result(self._limiter.send())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiters and now < self._limiter.paused_until:
            self._timer = loop.call_at(self._limiter.paused_until, self._wake)

    def _waiter(self, asked: int, turn: Turn, slot: asyncio.Future[int]) -> "_Waiter":
        return _Waiter(-turn.ahead if self._longest_first else turn.begun, asked, turn, slot)


class _Waiter(NamedTuple):
    """Compares by rank and, among equals, by who asked first; `asked` is unique, so no further."""

    rank: int
    asked: int
    turn: Turn
    slot: asyncio.Future[int]


def _checked(ceiling: int) -> int:
    if ceiling < 0:
        raise ValueError(f"a ceiling of {ceiling} requests: it must be 0 or more")
    return ceiling

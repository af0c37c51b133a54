"""How much work something is, without a clock: in function calls, or in pieces of a known other work.

A machine that is busy, or slow, changes neither.
"""

import sys
import time
from collections.abc import Callable
from types import FrameType

PLAINLY_LITTLE = 20  # yardsticks


def calls_of(work: Callable[[], object]) -> int:
    """Functions that were called meanwhile in this thread, those in C included: always the same number."""
    seen = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal seen
        seen += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return seen


def yardsticks(work: Callable[[], object]) -> float:
    """CPU that this takes, as a multiple of what hundred thousand simple steps take just before and after.

    For what `calls_of` cannot see into, such as one call of a regular expression. The least of three tries,
    since a machine may be held up in the middle of one; what is little at once is not tried again.
    """
    least = _try(work)
    for _ in range(2):
        if least < PLAINLY_LITTLE:
            break
        least = min(least, _try(work))
    return least


def _try(work: Callable[[], object]) -> float:
    before, taken, after = _cpu(_steps), _cpu(work), _cpu(_steps)
    return taken / max(before, after)


def _cpu(work: Callable[[], object]) -> float:
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def _steps() -> int:
    found = 0
    for number in range(100_000):
        found ^= number
    return found

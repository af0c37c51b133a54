"""What the client asks of whoever decides how many requests may be out at once."""

from enum import StrEnum
from typing import Protocol


class SendResult(StrEnum):
    """What one request says about the endpoint's limits."""

    OK = "ok"
    RATE_LIMITED = "rate_limited"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Pace(Protocol):
    """Held around every single request, never around the waits between attempts."""

    async def acquire(self) -> int:
        """Wait for a slot; the number goes back with release."""
        ...

    def release(self, slot: int, result: SendResult, retry_after: float | None = None) -> None:
        """Give the slot back. retry_after: seconds for which the whole account should pause."""
        ...


class Unpaced:
    """No limit at all: for a caller that sends one request at a time."""

    async def acquire(self) -> int:
        return 0

    def release(self, slot: int, result: SendResult, retry_after: float | None = None) -> None:
        del slot, result, retry_after

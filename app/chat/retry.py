"""When to try again: the one retry layer's waits, and Retry-After in all its forms."""

import random
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from multidict import MultiMapping

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """All in seconds. Without a hint the n-th repeat waits a random part of base · 2ⁿ, at most longest;
    a hint of the endpoint is followed, at most hint_cap; one call waits at most total in all."""

    base: float = 0.5
    longest: float = 20.0
    hint_cap: float = 60.0
    total: float = 300.0

    def wait(self, repeat: int, hint: float | None, waited: float) -> float | None:
        """The pause before repeat 1, 2, …; None where the call has waited long enough."""
        backoff = random.uniform(0, min(self.longest, self.base * 2 ** min(repeat, 30)))  # noqa: S311
        # A hint is a lower bound; the spread keeps callers with the same hint apart.
        pause = backoff if not hint or hint < 0 else min(self.hint_cap, hint + min(backoff, 1.0))
        return pause if waited + pause <= self.total else None


def retry_after(headers: MultiMapping[str], now: datetime) -> float | None:
    """Seconds from now that the endpoint asks to wait; not capped, 0 for past or negative values.

    Read are `retry-after-ms` and `Retry-After` as seconds (decimals too) or an HTTP date, the date
    against the response's own Date header where it has one. The `x-ratelimit-reset-*` headers are not:
    they say when an allowance is full again, not when the next request may be sent.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    value = headers.get("Retry-After", "")
    seconds = _number(value)
    if seconds is not None:
        return max(0.0, seconds)
    moment = _date(value)
    if moment is None:
        return None
    return max(0.0, (moment - (_date(headers.get("Date", "")) or now)).total_seconds())


def _number(value: str) -> float | None:
    value = value.strip()
    return float(value) if _NUMBER.fullmatch(value) else None


def _date(value: str) -> datetime | None:
    if not value or len(value) > 64:
        return None
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

"""Ends a run's slice when an endpoint fails again and again in the same way: asking on would only cost."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from app.chat import ERRORS, Exchange

# More than are out at once in most runs, so that one outage of a moment is no reason.
LIMIT = 100


@dataclass
class Breaker:
    """`tripped`: why the run has to pause, once it has to. Each party is counted for itself."""

    limit: int = LIMIT
    tripped: str | None = None
    _row: dict[Hashable, tuple[str, int]] = field(default_factory=dict)

    def heard(self, whose: str, identity: Hashable, exchange: Exchange) -> None:
        """The end of a call, after all its tries. A call that was never sent says nothing."""
        if exchange.error is None:
            self._row.pop(identity, None)
            return
        known, number = self._row.get(identity, ("", 0))
        number = number + 1 if known == exchange.error else 1
        self._row[identity] = (exchange.error, number)
        if number >= self.limit and self.tripped is None:
            said = ERRORS.get(exchange.error, "")
            self.tripped = (
                f"The last {number} calls to {whose} all failed in the same way ({exchange.error}). {said} "
                "Then resume the run and retry its errors."
            )

"""What the simulated endpoint has seen so far."""

import time
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from app.simulator.requests import ChatRequest


def conversation_key(request: ChatRequest) -> int:
    """A short key of the model and every message; equal for equal conversations."""
    digest = blake2b(request.model.encode("utf-8", "surrogatepass"), digest_size=8)
    for turn in request.turns:
        digest.update(f"\x1e{turn.role}\x1f{turn.text}".encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest.digest(), "big")


@dataclass(slots=True)
class Counters:
    """Totals since the start or the last reset. `seen`: how often each conversation was asked.

    `first_at` and `last_at`: when the first request came and the last answer went, in Unix time.
    """

    requests: int = 0
    in_flight: int = 0
    peak_in_flight: int = 0
    refused: int = 0
    repeated: int = 0
    first_at: float | None = None
    last_at: float | None = None
    by_model: Counter[str] = field(default_factory=Counter)
    by_status: Counter[int] = field(default_factory=Counter)
    by_fault: Counter[str] = field(default_factory=Counter)
    seen: Counter[int] = field(default_factory=Counter)

    def arrived(self) -> None:
        self.first_at = self.first_at or time.time()
        self.requests += 1
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)

    def answered(self, status: int) -> None:
        """Counts the end of a request; status 0: the client went away, or a fault of ours."""
        self.last_at = time.time()
        self.in_flight -= 1
        self.by_status[status] += 1

    def asked(self, model: str, key: int) -> int:
        """Counts a valid request; returns how often the same conversation came before."""
        self.by_model[model] += 1
        before = self.seen[key]
        self.seen[key] = before + 1
        self.repeated += before > 0
        return before

    def as_json(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "in_flight": self.in_flight,
            "peak_in_flight": self.peak_in_flight,
            "refused": self.refused,
            "conversations": len(self.seen),
            "repeated": self.repeated,
            "first_at": self.first_at,
            "last_at": self.last_at,
            "by_model": dict(self.by_model),
            "by_status": {str(status): count for status, count in sorted(self.by_status.items())},
            "by_fault": dict(self.by_fault),
        }

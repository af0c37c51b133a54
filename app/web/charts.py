"""The geometry of small pictures in a table's line; templates/board/charts.html draws them. Pure.

A library would make of each 3 kB of SVG and take a tenth of a second; these are a line and a dot. Whole
charts: `app.pictures`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

Interval = Sequence[float] | None


@dataclass(frozen=True)
class Span:
    """A difference with its interval on a line of its own; places are along the x axis."""

    at: float
    low: float
    high: float
    zero: float
    clear: bool


def span(difference: float, interval: Interval, reach: float, width: int = 200) -> Span:
    """`reach`: the difference that stands at the right edge, its negative at the left one."""

    def place(value: float) -> float:
        return width / 2 * (1 + max(-1.0, min(1.0, value / reach)))

    low, high = interval or (difference, difference)
    return Span(
        place(difference), place(low), place(high), width / 2, bool(interval) and not low <= 0 <= high
    )


def reach_of(spans: Sequence[tuple[float, Interval]]) -> float:
    """The least of some round reaches that all differences and intervals fit into."""
    longest = max((abs(end) for value, ci in spans for end in (value, *(ci or ()))), default=0.0)
    return next((reach for reach in (0.05, 0.1, 0.2, 0.3, 0.5, 0.75) if longest <= reach), 1.0)


def tone(share: float | None) -> int | None:
    """The step of a heat map's scale, 0 (nothing) to 9 (all)."""
    return None if share is None else min(9, int(share * 10))

"""The geometry of charts. Pure: figures in, places in a picture out; templates/board/charts.html draws them.

Lengths are units of the picture's own viewBox. What has no figure has no mark.
"""

from collections.abc import Sequence
from dataclasses import dataclass

Interval = Sequence[float] | None


@dataclass(frozen=True)
class Frame:
    """The plot within its picture: its inner edges, and how long the value axis is."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int

    def down(self, share: float) -> float:
        """The height at which a share of 0-1 stands."""
        return self.bottom - share * (self.bottom - self.top)

    def along(self, position: float) -> float:
        return self.left + position * (self.right - self.left)

    @property
    def lines(self) -> list[tuple[int, float]]:
        """Grid lines: (per cent, y)."""
        return [(share, self.down(share / 100)) for share in (0, 25, 50, 75, 100)]


@dataclass(frozen=True)
class Bar:
    """`lighter_y` and `lighter_height`: the unclear share on top of it."""

    label: str
    tone: int
    x: float
    width: float
    y: float
    height: float
    lighter_y: float
    lighter_height: float


@dataclass(frozen=True)
class BarGroup:
    label: list[str]
    x: float
    bars: list[Bar]


@dataclass(frozen=True)
class GroupedBars:
    frame: Frame
    groups: list[BarGroup]


def grouped_bars(
    groups: Sequence[tuple[str, Sequence[tuple[str, float | None, float | None]]]],
) -> GroupedBars:
    """Groups of (label, share, unclear share), side by side, the unclear on top as in the paper's figure."""
    each = 92
    frame = Frame(40 + each * len(groups) + 8, 250, 40, 40 + each * len(groups), 12, 190)
    made = []
    for place, (name, bars) in enumerate(groups):
        begin = frame.left + each * place + 8
        wide = (each - 16) / max(1, len(bars))
        drawn = [
            _bar(frame, label, tone, begin + tone * wide, wide - 2, share, unclear or 0.0)
            for tone, (label, share, unclear) in enumerate(bars)
            if share is not None
        ]
        made.append(BarGroup(wrapped(name, 15), begin + (each - 16) / 2, drawn))
    return GroupedBars(frame, made)


def _bar(frame: Frame, label: str, tone: int, x: float, width: float, share: float, unclear: float) -> Bar:
    top = frame.down(share)
    lighter = frame.down(min(1.0, share + unclear))
    return Bar(label, tone, x, width, top, frame.bottom - top, lighter, top - lighter)


def wrapped(name: str, longest: int, lines: int = 3) -> list[str]:
    """A label in so many short lines; what does not fit ends in an ellipsis."""
    found = [""]
    for word in name.split():
        if found[-1] and len(found[-1]) + 1 + len(word) > longest:
            found.append(word)
        else:
            found[-1] = f"{found[-1]} {word}".strip()
    shown = [line if len(line) <= longest else line[: longest - 1] + "…" for line in found[:lines]]
    if len(found) > lines:
        shown[-1] = shown[-1][: longest - 1].rstrip("…") + "…"
    return shown


@dataclass(frozen=True)
class Point:
    """`low` and `high` are the ends of its interval; `value` is written beside it."""

    label: str
    x: float
    y: float
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Profile:
    """`points` are joined by a line, as far as they stand next to each other; `apart` stands alone."""

    frame: Frame
    points: list[Point]
    apart: list[Point]


def profile(
    points: Sequence[tuple[str, float | None, Interval]], apart: Sequence[tuple[str, float | None, Interval]]
) -> Profile:
    """A slope chart of shares with intervals; what does not belong to the row stands beside it."""
    frame = Frame(460, 240, 40, 452, 14, 196)
    number = len(points) + len(apart)
    places = [(place + 0.5) / number for place in range(number)]
    return Profile(
        frame,
        _points(frame, points, places),
        _points(frame, apart, places[len(points) :]),
    )


def _points(
    frame: Frame, figures: Sequence[tuple[str, float | None, Interval]], places: Sequence[float]
) -> list[Point]:
    return [
        Point(
            label,
            frame.along(place),
            frame.down(value),
            value,
            frame.down(interval[0]) if interval else None,
            frame.down(interval[1]) if interval else None,
        )
        for (label, value, interval), place in zip(figures, places, strict=False)
        if value is not None
    ]


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

"""Figures in, Vega-Lite out. Pure: each chart holds the rows that it shows, to be taken away too.

Shares are proportions of 0-1; what has no figure has no mark.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app.pictures.themes import THEMES, Theme, config

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
PERCENT = ".0%"
# About how wide a letter is, in pixels.
TITLE_LETTER, SOURCE_LETTER = 9, 7
NARROWEST = 560
Interval = Sequence[float] | None
Row = dict[str, Any]
# Part, share, interval, what is written beside it.
Point = tuple[str, float | None, Interval, str]
PLACING = ("group", "top", "joined", "label")


@dataclass(frozen=True)
class Chart:
    """`words` say in a sentence or two what it shows, for those who do not see it; `size` in CSS pixels."""

    title: str
    words: str
    source: str
    rows: list[Row]
    size: tuple[int, int]
    spec: Mapping[str, Any]

    @property
    def data(self) -> list[Row]:
        """The rows without what only places a mark."""
        return [{name: value for name, value in row.items() if name not in PLACING} for row in self.rows]

    def drawn_in(self, scheme: Scheme) -> dict[str, Any]:
        """The whole specification, with the colours of a scheme in place of their names."""
        theme = THEMES[scheme]
        return {
            "$schema": SCHEMA,
            "description": self.words,
            "title": {
                "text": textwrap.wrap(self.title, self.size[0] // TITLE_LETTER),
                "subtitle": textwrap.wrap(self.source, self.size[0] // SOURCE_LETTER),
            },
            "width": self.size[0],
            "height": self.size[1],
            "autosize": {"type": "fit", "contains": "padding"},
            "padding": 8,
            "config": config(theme),
            "data": {"values": self.rows},
            **_coloured(self.spec, theme),
        }


def _coloured(part: Any, theme: Theme) -> Any:
    """`$mark` and the like as the theme has it."""
    if isinstance(part, str) and part.startswith("$"):
        found = getattr(theme, part[1:])
        return list(found) if isinstance(found, tuple) else found
    if isinstance(part, Mapping):
        return {name: _coloured(value, theme) for name, value in part.items()}
    if isinstance(part, list):
        return [_coloured(value, theme) for value in part]
    return part


def _share(field: str, title: str) -> dict[str, Any]:
    axis = {"format": PERCENT, "title": title, "tickCount": 5}
    return {"field": field, "type": "quantitative", "scale": {"domain": [0, 1]}, "axis": axis}


def _worded() -> dict[str, Any]:
    """An axis of names in several short lines; two of the same name stay two by their number in front."""
    return {
        "domain": False,
        "ticks": False,
        "labelAngle": 0,
        "title": None,
        "labelExpr": "slice(split(datum.label, '\\n'), 1)",
        "labelLineHeight": 14,
    }


def wrapped(name: str, longest: int = 17, lines: int = 3) -> list[str]:
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


def grouped_bars(
    title: str,
    words: str,
    source: str,
    groups: Sequence[tuple[str, Sequence[tuple[str, float | None, float | None, Interval]]]],
) -> Chart:
    """Groups of (part, share, unclear share, interval) side by side, the unclear on top, as in the paper.

    At most five parts a group, which have the same names in each.
    """
    rows = [
        {
            "group": f"{place}\n" + "\n".join(wrapped(name)),
            "name": name,
            "part": part,
            "pass_rate": share,
            "unclear_rate": unclear,
            "top": min(1.0, share + (unclear or 0.0)),
            "low": interval[0] if interval else None,
            "high": interval[1] if interval else None,
        }
        for place, (name, bars) in enumerate(groups)
        for part, share, unclear, interval in bars
        if share is not None
    ]
    parts = list(dict.fromkeys(part for _, bars in groups for part, *_ in bars))
    order = list(dict.fromkeys(row["group"] for row in rows))
    width = max(NARROWEST, 90 + len(order) * max(110, 24 * len(parts) + 16))
    across: dict[str, Any] = {
        "x": {"field": "group", "type": "nominal", "sort": order, "axis": _worded()},
        "xOffset": {"field": "part", "sort": parts, "scale": {"paddingInner": 0.12}},
    }
    tones = {"domain": parts, "range": "$steps"}
    colour = {"field": "part", "type": "nominal", "sort": parts, "scale": tones, "title": None}
    solid = {
        "mark": {"type": "bar"},
        "encoding": {**across, "y": _share("pass_rate", "passed"), "color": colour},
    }
    lighter = {
        "mark": {"type": "bar", "opacity": 0.4},
        "encoding": {
            **across,
            "y": _share("pass_rate", "passed"),
            "y2": {"field": "top"},
            "color": colour,
        },
    }
    whisker = {
        "transform": [{"filter": "isValid(datum.low)"}],
        "mark": {"type": "rule", "strokeWidth": 1.5, "color": "$ink"},
        "encoding": {**across, "y": _share("low", "passed"), "y2": {"field": "high"}},
    }
    return Chart(title, words, source, rows, (width, 330), {"layer": [solid, lighter, whisker]})


def profile(
    title: str,
    words: str,
    source: str,
    joined: Sequence[Point],
    apart: Sequence[Point],
) -> Chart:
    """A slope chart of shares with their intervals; `apart` does not belong to the line."""
    rows = [
        {
            "part": part,
            "pass_rate": share,
            "low": interval[0] if interval else None,
            "high": interval[1] if interval else None,
            "joined": is_joined,
            "label": label,
        }
        for is_joined, points in ((True, joined), (False, apart))
        for part, share, interval, label in points
        if share is not None
    ]
    axis = {"labelAngle": 0, "title": None, "domain": False, "ticks": False}
    across = {"field": "part", "type": "nominal", "sort": [row["part"] for row in rows], "axis": axis}
    share = _share("pass_rate", "passed")
    layers = [
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"x": across, "y": _share("low", "passed"), "y2": {"field": "high"}},
        },
        {
            "transform": [{"filter": "datum.joined"}],
            "mark": {"type": "line", "color": "$mark", "strokeWidth": 2},
            "encoding": {"x": across, "y": share},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 90, "color": "$mark", "opacity": 1},
            "encoding": {
                "x": across,
                "y": share,
                "shape": {"condition": {"test": "datum.joined", "value": "circle"}, "value": "diamond"},
            },
        },
        {
            "mark": {"type": "text", "align": "left", "dx": 9, "fontSize": 12},
            "encoding": {"x": across, "y": share, "text": {"field": "label"}},
        },
    ]
    return Chart(title, words, source, rows, (500, 300), {"layer": layers})


def heat_map(
    title: str,
    words: str,
    source: str,
    cells: Sequence[tuple[str, str, float | None, str]],
) -> Chart:
    """(row, column, share, what is written in it): nothing hangs on the colour alone."""
    rows = [
        {"row": row, "column": column, "pass_rate": share, "label": label}
        for row, column, share, label in cells
        if share is not None
    ]
    down = list(dict.fromkeys(row for row, *_ in cells))
    along = list(dict.fromkeys(column for _, column, *_ in cells))
    plain = {"title": None, "domain": False, "ticks": False}
    places = {
        "x": {
            "field": "column", "type": "nominal", "sort": along,
            "axis": plain | {"labelAngle": 0, "orient": "top"},
        },
        "y": {"field": "row", "type": "nominal", "sort": down, "axis": plain},
    }  # fmt: skip
    fill = {
        "field": "pass_rate", "type": "quantitative", "legend": None,
        "scale": {"domain": [0, 1], "range": "$heat", "interpolate": "lab"},
    }  # fmt: skip
    layers = [
        {
            "mark": {"type": "rect", "stroke": "$paper", "strokeWidth": 2},
            "encoding": {**places, "color": fill},
        },
        {"mark": {"type": "text", "fontSize": 12}, "encoding": {**places, "text": {"field": "label"}}},
    ]
    size = (130 + 92 * len(along), 90 + 40 * len(down))
    return Chart(title, words, source, rows, size, {"layer": layers})


def confusion(
    title: str, words: str, source: str, table: Sequence[Sequence[int]], names: Sequence[str]
) -> Chart:
    """Counts, rows the first rater's ratings and columns the second's; shaded by the share of all."""
    total = sum(map(sum, table))
    cells = [
        (f"{one}", f"{two}", table[i][j] / total if total else None, f"{table[i][j]:,}")
        for i, one in enumerate(names)
        for j, two in enumerate(names)
    ]
    chart = heat_map(title, words, source, cells)
    rows = [row | {"count": int(str(row["label"]).replace(",", ""))} for row in chart.rows]
    return Chart(title, words, source, rows, chart.size, chart.spec)


def differences(
    title: str, words: str, source: str, parts: Sequence[tuple[str, float | None, Interval]]
) -> Chart:
    """Paired differences with their intervals; filled where the interval leaves out no difference."""
    rows = [
        {
            "part": part,
            "difference": difference,
            "low": interval[0] if interval else None,
            "high": interval[1] if interval else None,
            "clear": interval is not None and not interval[0] <= 0 <= interval[1],
        }
        for part, difference, interval in parts
        if difference is not None
    ]
    axis = {"title": None, "domain": False, "ticks": False, "labelLimit": 220}
    down = {"field": "part", "type": "nominal", "sort": [row["part"] for row in rows], "axis": axis}
    points = {"format": "+.0%", "title": "difference in pass rate", "tickCount": 7}
    along = {"type": "quantitative", "axis": points}
    layers = [
        {
            "mark": {"type": "rule", "strokeDash": [3, 3]},
            "encoding": {"x": {"datum": 0, "type": "quantitative", "axis": points}},
        },
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 2, "color": "$accent"},
            "encoding": {"y": down, "x": along | {"field": "low"}, "x2": {"field": "high"}},
        },
        {
            "mark": {
                "type": "point",
                "filled": True,
                "size": 90,
                "stroke": "$accent",
                "strokeWidth": 2,
                "opacity": 1,
            },
            "encoding": {
                "y": down,
                "x": along | {"field": "difference"},
                "fill": {"condition": {"test": "datum.clear", "value": "$accent"}, "value": "$paper"},
            },
        },
    ]
    return Chart(title, words, source, rows, (620, 90 + 30 * len(rows)), {"layer": layers})

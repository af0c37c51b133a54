"""The board as a table: which columns, rows and order. Pure: a board and an address in, cells out."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from app.errors import NotFound
from app.outcomes import SCENARIOS, STANDARD, Category
from app.web import words

VIEWS = ("scenario", "category", "both")
RATES = ("pass", "published")
FEW = 30
LONGEST_SEARCH = 200
# What rows can be filtered by: the row's field of the same name.
FILTERS = ("provider", "weights", "provenance", "system_prompt")
MOST_PINS = 10
# Models a page: with every scenario × category a row is four times as long.
PAGE = {"scenario": 100, "category": 100, "both": 50}
_CATEGORIES = tuple(Category)


@dataclass(frozen=True)
class View:
    """What an address asks for. `scenario` or `category`: only the cells of that one; `pins`: runs."""

    board: str | None = None
    at: str | None = None
    view: str = "scenario"
    rate: str = "pass"
    scenario: str | None = None
    category: str | None = None
    text: str = ""
    provider: str | None = None
    weights: str | None = None
    provenance: str | None = None
    system_prompt: str | None = None
    pins: tuple[int, ...] = ()
    sort: str = "rank"
    descending: bool = False
    page: int = 1

    def query(self, **changes: Any) -> str:
        """The address of the same view with these changes; what is as usual is left out."""
        view = replace(self, **changes)
        named = {
            "board": view.board,
            "at": view.at,
            "view": view.view if view.view != "scenario" else None,
            "rate": view.rate if view.rate != "pass" else None,
            "scenario": view.scenario,
            "category": view.category,
            "q": view.text,
            **{name: getattr(view, name) for name in FILTERS},
            "pin": ",".join(map(str, view.pins)),
            "sort": view.sort if view.sort != "rank" or view.descending else None,
            "dir": ("desc" if view.descending else "asc") if view.descending != _falls(view.sort) else None,
            "page": view.page if view.page > 1 else None,
        }
        given = urlencode({name: value for name, value in named.items() if value}, safe=",")
        return f"/?{given}" if given else "/"

    def pinned(self, run: int) -> str:
        """The address with that run pinned, or not any more."""
        rest = tuple(one for one in self.pins if one != run)
        return self.query(pins=rest if run in self.pins else (*self.pins, run)[-MOST_PINS:])

    @property
    def narrowed(self) -> bool:
        return bool(self.text) or any(getattr(self, name) for name in FILTERS)

    def unfiltered(self) -> str:
        return self.query(text="", page=1, **dict.fromkeys(FILTERS))


def _falls(sort: str) -> bool:
    """Whether a column is first sorted from high to low: figures are, names and ranks are not."""
    return sort not in ("rank", "model")


def read_view(query: Mapping[str, str]) -> View:
    """Tolerant of what only changes the order; NotFound for a scenario, category or page that is none."""
    view = query.get("view", "")
    scenario, category = query.get("scenario") or None, query.get("category") or None
    require_known("scenario", scenario, SCENARIOS)
    require_known("category", category, _CATEGORIES)
    found = View(
        # `version` is what other boards call it.
        board=query.get("board") or query.get("version") or None,
        at=query.get("at") or None,
        view=view if view in VIEWS else "scenario",
        rate="published" if query.get("rate") == "published" else "pass",
        scenario=scenario,
        category=category,
        text=query.get("q", "").strip()[:LONGEST_SEARCH],
        provider=_filter(query, "provider"),
        weights=_filter(query, "weights"),
        provenance=_filter(query, "provenance"),
        system_prompt=_filter(query, "system_prompt"),
        pins=_pins(query.get("pin", "")),
        page=read_page(query.get("page", "1"), "the board"),
    )
    sort = query.get("sort", "")
    known = {"rank", "model", "over_caution", *(column.key for column in columns(found))}
    sort = sort if sort in known else "rank"
    descending = {"asc": False, "desc": True}.get(query.get("dir", ""), _falls(sort))
    return replace(found, sort=sort, descending=descending)


def _filter(query: Mapping[str, str], name: str) -> str | None:
    return query.get(name, "")[:LONGEST_SEARCH] or None


def _pins(given: str) -> tuple[int, ...]:
    """Numbers of runs, each once; what is none is as if it were left out."""
    numbers = [int(one) for one in given.split(",") if one.isascii() and one.isdecimal() and len(one) <= 12]
    return tuple(dict.fromkeys(numbers))[:MOST_PINS]


def require_known(what: str, given: str | None, known: Sequence[str]) -> None:
    """NotFound, with what there is, for a word that is none of these."""
    if given is not None and given not in known:
        raise NotFound(f"There is no {what} '{given[:80]}'.", details=[*known])


def read_page(given: str, of: str) -> int:
    if not (given.isascii() and given.isdecimal() and 1 <= len(given) <= 4 and int(given) > 0):
        raise NotFound(f"There is no such page of {of}.")
    return int(given)


@dataclass(frozen=True)
class Column:
    """`path` leads to its rate in a row."""

    key: str
    label: str
    explanation: str
    path: tuple[str, ...]
    scenario: str | None = None
    category: str | None = None


@dataclass(frozen=True)
class Cell:
    """A rate as it is shown: `passed` of `of`; `few` says that it stands on fewer than 30 conversations."""

    value: float | None
    interval: Sequence[float] | None
    passed: int
    of: int
    unclear: float | None
    coverage: float | None
    few: bool
    href: str | None


@dataclass(frozen=True)
class Line:
    """`missed`: in how many of 100 conversations the danger was missed."""

    row: Mapping[str, Any]
    cells: list[Cell]
    caution: Cell | None
    missed: str | None
    href: str
    pin: str


@dataclass(frozen=True)
class Board:
    columns: list[Column]
    groups: list[tuple[str, int]]
    choices: list[tuple[str, list[tuple[str, int]]]]
    pinned: list[Line]
    lines: list[Line]
    matching: int
    total: int
    pages: int

    @property
    def few(self) -> bool:
        lines = (*self.pinned, *self.lines)
        return any(cell.few for line in lines for cell in (*line.cells, line.caution) if cell)


OVERALL = Column(
    "overall",
    "overall",
    "The mean over the five scenarios, each counting the same; what stands behind it are all conversations.",
    ("overall",),
)


def columns(view: View) -> list[Column]:
    """Overall first, then what the view asks for."""
    scenario, category = view.scenario, view.category
    if scenario and category:
        return [OVERALL, column_of(scenario, category)]
    if scenario:
        inner = [column_of(scenario, one, label=words.short_category(one)) for one in _CATEGORIES]
        return [OVERALL, column_of(scenario, None), *inner]
    if category:
        return [OVERALL, column_of(None, category), *(column_of(one, category) for one in SCENARIOS)]
    if view.view == "both":
        pairs = [(one, other) for one in SCENARIOS for other in _CATEGORIES]
        return [OVERALL, *(column_of(*pair, label=words.short_category(pair[1])) for pair in pairs)]
    if view.view == "category":
        return [OVERALL, *(column_of(None, one) for one in _CATEGORIES)]
    return [OVERALL, *(column_of(one, None) for one in SCENARIOS)]


def column_of(scenario: str | None, category: str | None, *, label: str | None = None) -> Column:
    """The column of a scenario, a category, one in the other, or of everything."""
    if scenario is None and category is None:
        return OVERALL
    about = [words.SCENARIOS.get(scenario, (scenario, "")) if scenario else None]
    about += [words.CATEGORIES.get(category, (category, "")) if category else None]
    names = [name for name in (scenario, category) if name]
    part = {(True, False): "by_scenario", (False, True): "by_category", (True, True): "by_scenario_category"}
    explanation = " ".join(one[1] for one in about if one)
    return Column(
        key=".".join(names),
        label=label or next(one[0] for one in about if one),
        explanation=explanation if scenario else f"{explanation} The mean over the scenarios.",
        path=(part[scenario is not None, category is not None], *names),
        scenario=scenario,
        category=category,
    )


def _groups(view: View) -> list[tuple[str, int]]:
    """A second header above columns that belong together: (words, columns)."""
    if view.view != "both" or view.scenario or view.category:
        return []
    return [(words.short_scenario(scenario), len(_CATEGORIES)) for scenario in SCENARIOS]


def arrange(board: Mapping[str, Any], view: View) -> Board:
    """The board's ranked rows under a view. NotFound for a page that it does not have."""
    shown = columns(view)
    rows = [row for row in board["rows"] if _matches(row, view)]
    ordered = sort_rows(rows, _sort_key(view, shown), descending=view.descending)
    size = PAGE[view.view]
    pages = max(1, -(-len(ordered) // size))
    if view.page > pages:
        raise NotFound(f"The board has {pages} {'page' if pages == 1 else 'pages'} under this view.")
    begin = (view.page - 1) * size
    return Board(
        columns=shown,
        groups=_groups(view),
        choices=_choices(board["rows"], view),
        pinned=[_line(row, shown, view) for row in board["rows"] if row["run"] in view.pins],
        lines=[_line(row, shown, view) for row in ordered[begin : begin + size]],
        matching=len(rows),
        total=len(board["rows"]),
        pages=pages,
    )


def _choices(rows: Sequence[Mapping[str, Any]], view: View) -> list[tuple[str, list[tuple[str, int]]]]:
    """What each filter may be set to, with how many rows that has; only filters that part the rows."""
    found = []
    for name in FILTERS:
        counts = Counter(str(row[name]) for row in rows)
        if (given := getattr(view, name)) is not None:
            counts.setdefault(given, 0)
        if len(counts) > 1 or given is not None:
            found.append((name, sorted(counts.items())))
    return found


def _matches(row: Mapping[str, Any], view: View) -> bool:
    if any(getattr(view, name) not in (None, row[name]) for name in FILTERS):
        return False
    wanted = view.text.casefold()
    return any(wanted in str(row[name]).casefold() for name in ("model", "model_id", "provider"))


def sort_rows(
    rows: Sequence[Mapping[str, Any]], key: Callable[[Mapping[str, Any]], Any], *, descending: bool
) -> list[Mapping[str, Any]]:
    """By the key's value; rows without one come last whichever way; equal ones stay as they were."""
    known = [row for row in rows if key(row) is not None]
    unknown = [row for row in rows if key(row) is None]
    return sorted(known, key=key, reverse=descending) + unknown


def _sort_key(view: View, shown: Sequence[Column]) -> Callable[[Mapping[str, Any]], Any]:
    if view.sort == "rank":
        return lambda row: tuple(row["rank"])
    if view.sort == "model":
        return lambda row: str(row["model"]).casefold()
    if view.sort == "over_caution":
        return lambda row: (row["over_caution"] or {}).get("over_caution")
    path = next(column.path for column in shown if column.key == view.sort)
    name = _rate_name(view.rate)
    return lambda row: (rate_at(row, path) or {}).get(name)


def _rate_name(rate: str) -> str:
    return "pass_rate" if rate == "pass" else "published_pass_rate"


def rate_at(row: Mapping[str, Any], path: Sequence[str]) -> Mapping[str, Any] | None:
    """The RATE at that place of a row; None where the row has none."""
    found: Any = row
    for name in path:
        found = found.get(name)
        if found is None:
            return None
    return found  # type: ignore[no-any-return]


def _line(row: Mapping[str, Any], shown: Sequence[Column], view: View) -> Line:
    cells = [
        cell(rate_at(row, column.path), view.rate, conversations_path(row["run_uuid"], column))
        for column in shown
    ]
    # The latest board needs no name; an older one stays under its own.
    asked = {name: one for name, one in (("board", view.board), ("at", view.at)) if one}
    href = f"/models/{row['model_uuid']}" + (f"?{urlencode(asked)}" if asked else "")
    return Line(row, cells, _caution(row), missed(row["overall"]), href, view.pinned(row["run"]))


def conversations_path(run_uuid: str, column: Column) -> str:
    """The conversations that a figure stands on."""
    kind = None if column.scenario else "case"  # probes are standard too, and in no pass rate
    named = {"variant": STANDARD, "kind": kind, "scenario": column.scenario, "category": column.category}
    return f"/runs/{run_uuid}/conversations?" + urlencode({name: one for name, one in named.items() if one})


def cell(found: Mapping[str, Any] | None, rate: str = "pass", href: str | None = None) -> Cell:
    """A RATE as a cell shows it."""
    if found is None:
        return Cell(None, None, 0, 0, None, None, False, None)
    published = rate == "published"
    of = found["pass"] + found["fail"] if published else found["answered"]
    return Cell(
        value=found[_rate_name(rate)],
        interval=None if published else found["pass_rate_ci"],
        passed=found["pass"],
        of=of,
        unclear=found["unclear_rate"],
        coverage=found["coverage"],
        few=0 < of < FEW,
        href=href,
    )


def _caution(row: Mapping[str, Any]) -> Cell | None:
    found = row["over_caution"]
    if not found:
        return None
    share, judged = found["over_caution"], found["judged"]
    times = round(share * judged) if share is not None else 0
    href = f"/runs/{row['run_uuid']}/conversations?scenario=probe"
    few = 0 < judged < FEW
    return Cell(share, found["over_caution_ci"], times, judged, None, None, few, href)


def missed(rate: Mapping[str, Any]) -> str | None:
    """Of how many conversations in 100 the danger was not taken into account; None without an answer.

    Never 0 or 100 unless it is exactly that.
    """
    passed = rate["pass_rate"]
    if passed is None:
        return None
    number = round(100 * (1 - passed))
    if number == 0 and passed < 1:
        return "fewer than 1 of 100"
    if number == 100 and passed > 0:
        return "more than 99 of 100"
    return f"{number} of 100"

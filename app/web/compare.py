"""Two models side by side: where they differ, how sure that is, and the cases on which they part."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.responses import Response

from app.errors import InvalidInput, NotFound
from app.leaderboard.comparing import (
    SHOWN,
    all_rows,
    choose,
    comparison,
    pairs_of,
    row_of,
    side_by_side,
    split_withheld,
)
from app.leaderboard.reading import VersionGroup
from app.outcomes import SCENARIOS, Category
from app.tables import Value, csv_lines
from app.web import words
from app.web.board_group import asked_board, cite
from app.web.board_view import read_page, require_known
from app.web.chart_makers import Shown, compare_chart
from app.web.charts import Span, reach_of, span
from app.web.context import Visitor, Web

router = APIRouter()

PUBLIC_SECONDS = 60
CSV_HEADER = (
    "board", "a", "a_run", "b", "b_run", "part", "n", "clusters", "a_pass_rate", "b_pass_rate", "difference",
    "difference_low", "difference_high", "p", "p_holm", "only_a_passes", "only_b_passes",
)  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """What an address asks for; `a` and `b` are runs of one board."""

    board: str | None = None
    at: str | None = None
    a: int | None = None
    b: int | None = None
    show: str = "a"
    scenario: str | None = None
    category: str | None = None
    page: int = 1

    def query(self, path: str = "/compare", **changes: Any) -> str:
        """The address of the same with these changes; what is as usual is left out."""
        choice = replace(self, **changes)
        named = {
            "board": choice.board,
            "at": choice.at,
            "a": choice.a,
            "b": choice.b,
            "show": choice.show if choice.show != "a" else None,
            "scenario": choice.scenario,
            "category": choice.category,
            "page": choice.page if choice.page > 1 else None,
        }
        given = urlencode({name: value for name, value in named.items() if value})
        return f"{path}?{given}" if given else path

    @property
    def swapped(self) -> str:
        return self.query(a=self.b, b=self.a, show={"a": "b", "b": "a"}.get(self.show, self.show), page=1)


def read_choice(query: Mapping[str, str]) -> Choice:
    """NotFound for what there cannot be; InvalidInput for one model against itself."""
    show = query.get("show") or "a"
    scenario, category = query.get("scenario") or None, query.get("category") or None
    require_known("scenario", scenario, SCENARIOS)
    require_known("category", category, tuple(Category))
    require_known("selection of cases", show, tuple(SHOWN))
    choice = Choice(
        board=query.get("board") or None,
        at=query.get("at") or None,
        a=_run(query.get("a", "")),
        b=_run(query.get("b", "")),
        show=show,
        scenario=scenario,
        category=category,
        page=read_page(query.get("page", "1"), "this list"),
    )
    if choice.a is not None and choice.a == choice.b:
        raise InvalidInput("That is one model twice: choose two.")
    return choice


def _run(given: str) -> int | None:
    if not given:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) <= 12):
        raise NotFound(f"There is no run '{given[:80]}': `a` and `b` are numbers of runs on the board.")
    return int(given)


@dataclass(frozen=True)
class Line:
    """A part of the comparison as the table shows it."""

    label: str
    explanation: str
    difference: Mapping[str, Any] | None
    picture: Span | None
    href: str | None


@router.get("/compare")
def page(web: Visitor) -> Response:
    choice = read_choice(web.request.query_params)
    asked = asked_board(web)
    group = asked.group
    values: dict[str, Any] = {"found": None, "pairs": None, "lines": []}
    if group is not None and choice.a is not None and choice.b is not None:
        values = _compared(web, group, choice, choice.a, choice.b)
    return web.page(
        "compare/compare.html",
        public=PUBLIC_SECONDS,
        choice=choice,
        asked=asked,
        groups=asked.groups,
        group=group,
        rows=sorted(all_rows(group), key=lambda row: str(row["model"]).casefold()) if group else [],
        scenarios=words.SCENARIOS,
        categories=words.CATEGORIES,
        outcomes=words.OUTCOMES,
        **values,
    )


def _compared(web: Web, group: VersionGroup, choice: Choice, a: int, b: int) -> dict[str, Any]:
    one, two = row_of(group, a), row_of(group, b)
    pairs = pairs_of(web.session, group, one, two)
    found = comparison(group, one, two, pairs)
    listed, withheld = split_withheld(web.session, group, pairs)
    chosen = choose(listed, choice.show, scenario=choice.scenario, category=choice.category)
    return {
        "found": found,
        "lines": _lines(found, choice),
        "verdict": in_words(found),
        "pairs": side_by_side(web.session, group, (a, b), chosen, choice.page),
        "citation": cite(web, group, "/compare", f"{one['model']} and {two['model']}", a=a, b=b),
        "counts": {name: len(choose(listed, name)) for name in SHOWN},
        "withheld": withheld,
        "chart": Shown(
            compare_chart(group, found), "compare", {"board": group.key, "at": choice.at, "a": a, "b": b}
        ),
    }


def _lines(found: Mapping[str, Any], choice: Choice) -> list[Line]:
    parts = [
        (one, words.SCENARIOS[one], choice.query(scenario=one, category=None, page=1)) for one in SCENARIOS
    ]
    parts += [
        (one, words.CATEGORIES[one], choice.query(category=one, scenario=None, page=1)) for one in Category
    ]
    differences = found["by_scenario"] | found["by_category"]
    known = [one for one in (found["overall"], *differences.values()) if one is not None]
    reach = reach_of([(one["difference"], one["ci"]) for one in known])
    overall = _line(("all", "All conversations that both answered."), found["overall"], reach, None)
    return [overall, *(_line(about, differences[name], reach, href) for name, about, href in parts)]


def _line(
    about: tuple[str, str], difference: Mapping[str, Any] | None, reach: float, href: str | None
) -> Line:
    picture = span(difference["difference"], difference["ci"], reach) if difference else None
    return Line(*about, difference, picture, href)


def in_words(found: Mapping[str, Any]) -> str:
    """One sentence on who passes more often, and whether that can be told."""
    overall = found["overall"]
    if overall is None:
        return "They answered no conversation in common, so they cannot be compared."
    a, b = found["a"]["model"], found["b"]["model"]
    if overall["difference"] == 0:
        return f"{a} and {b} pass equally often."
    better, worse = (a, b) if overall["difference"] > 0 else (b, a)
    if overall["p"] is None:
        return f"{better} passes more often than {worse}; one cluster of cases cannot tell whether by chance."
    if overall["p"] < 0.05:
        return f"{better} passes more often than {worse}, by more than chance would explain."
    return f"{better} passes more often than {worse} here, but that may be chance."


@router.get("/compare.{form}")
def data(web: Visitor, form: str) -> Response:
    if form not in ("json", "csv"):
        raise NotFound("A comparison is saved as json or csv.")
    choice = read_choice(web.request.query_params)
    group = asked_board(web).group
    if group is None or choice.a is None or choice.b is None:
        raise NotFound("Name two runs of a board: /compare.json?a=…&b=…")
    one, two = row_of(group, choice.a), row_of(group, choice.b)
    found = comparison(group, one, two, pairs_of(web.session, group, one, two))
    if form == "json":
        body = json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
        return web.data(body, "application/json", public=PUBLIC_SECONDS)
    name = f"compare-{choice.a}-{choice.b}.csv"
    body = b"".join(csv_lines(name, CSV_HEADER, csv_rows(found)))
    return web.data(body, "text/csv; charset=utf-8", public=PUBLIC_SECONDS, filename=name)


def csv_rows(found: Mapping[str, Any]) -> Iterator[Sequence[Value]]:
    about = [found["board"], *(found[side][name] for side in ("a", "b") for name in ("model", "run"))]
    for part, one in {"all": found["overall"], **found["by_scenario"], **found["by_category"]}.items():
        if one is not None:
            low, high = one["ci"] or (None, None)
            yield [
                *about, part, one["n"], one["clusters"], one["a"], one["b"], one["difference"], low, high,
                one["p"], one.get("p_holm"), one["only_a_passes"], one["only_b_passes"],
            ]  # fmt: skip

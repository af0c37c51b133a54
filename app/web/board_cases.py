"""The board read by case: the hardest ones, and for a case's page how every model did on it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.accounts.withholding import cases_withheld
from app.errors import NotFound
from app.leaderboard import version_groups
from app.leaderboard.by_case import Result, hardest, results_on, withheld_scenarios
from app.leaderboard.reading import VersionGroup
from app.outcomes import SCENARIOS, Category
from app.web import words
from app.web.board_group import Citation, asked_board, cite
from app.web.board_models import model_path
from app.web.board_view import read_page, require_known
from app.web.context import Visitor, Web

router = APIRouter(prefix="/cases")

PUBLIC_SECONDS = 60
PAGE = 50


@dataclass(frozen=True)
class Choice:
    """What an address asks for; `show` is `all_fail` for cases that no model passes."""

    board: str | None = None
    at: str | None = None
    show: str | None = None
    scenario: str | None = None
    category: str | None = None
    page: int = 1

    def query(self, **changes: Any) -> str:
        choice = replace(self, **changes)
        named = {
            "board": choice.board,
            "at": choice.at,
            "show": choice.show,
            "scenario": choice.scenario,
            "category": choice.category,
            "page": choice.page if choice.page > 1 else None,
        }
        given = urlencode({name: value for name, value in named.items() if value})
        return f"/cases/hardest?{given}" if given else "/cases/hardest"


def read_choice(query: Mapping[str, str]) -> Choice:
    board, at, show, scenario, category = (
        query.get(name) or None for name in ("board", "at", "show", "scenario", "category")
    )
    choice = Choice(board, at, show, scenario, category)
    require_known("selection of cases", choice.show, ("all_fail",))
    require_known("scenario", choice.scenario, SCENARIOS)
    require_known("category", choice.category, tuple(Category))
    return replace(choice, page=read_page(query.get("page", "1"), "this list"))


@router.get("/hardest")
def page(web: Visitor) -> Response:
    choice = read_choice(web.request.query_params)
    asked = asked_board(web)
    group = asked.group
    found = []
    if group is not None:
        found = hardest(
            web.session,
            group,
            scenario=choice.scenario,
            category=choice.category,
            all_fail=choice.show == "all_fail",
        )
    pages = max(1, -(-len(found) // PAGE))
    if choice.page > pages:
        raise NotFound(f"This list has {pages} {'page' if pages == 1 else 'pages'}.")
    begin = (choice.page - 1) * PAGE
    return web.page(
        "board/hardest.html",
        public=PUBLIC_SECONDS,
        choice=choice,
        asked=asked,
        group=group,
        citation=_citation(web, choice, group) if group else None,
        found=found[begin : begin + PAGE],
        matching=len(found),
        pages=pages,
        ranked=len(group.content["rows"]) if group else 0,
        withheld=cases_withheld(web.session, group.benchmark.id) if group else None,
        path_of=lambda key: case_path(group, key),
        scenarios={name: words.SCENARIOS[name] for name in SCENARIOS},
        categories=words.CATEGORIES,
    )


def _citation(web: Web, choice: Choice, group: VersionGroup) -> Citation:
    names = ("show", "scenario", "category")
    parameters = {name: getattr(choice, name) for name in names}
    return cite(web, group, "/cases/hardest", "Hardest cases of the CURATe Board", **parameters)


def case_path(group: VersionGroup | None, key: str) -> str:
    """The case's page, on that board."""
    assert group is not None
    name = f"{group.benchmark.name}@{group.benchmark.version}"
    return f"/cases/{quote(name, safe='@')}/{quote(key, safe='')}?{urlencode({'board': group.key})}#models"


@dataclass(frozen=True)
class Line:
    """A model on the case: a cell for each scenario."""

    row: Mapping[str, Any]
    href: str
    cells: list[list[Result]]


def case_results(web: Web, benchmark: models.Benchmark, case: models.Case) -> dict[str, Any] | None:
    """For a case's page: every model of a board of its benchmark on it; None without such a board."""
    known = version_groups(web.session, simulated=web.settings.on_loopback)
    groups = [one for one in known if one.benchmark.id == benchmark.id]
    group = asked_board(web, groups).group if groups else None
    if group is None or case.kind != "case" or case.split != "public":
        return None
    lines = [
        Line(one.row, model_path(one.row, group), [one.results.get(name, []) for name in SCENARIOS])
        for one in results_on(web.session, group, case)
    ]
    hidden = withheld_scenarios(web.session, group, case)
    cells = group.cases.get(case.key, {})
    return {
        "group": group,
        "others": [one for one in groups if one.key != group.key],
        "path_of": lambda one: case_path(one, case.key),
        "lines": lines,
        "shares": [cells.get(name) if name not in hidden else None for name in SCENARIOS],
        "hidden": [hidden.get(name) for name in SCENARIOS],
        "withheld": next(iter(hidden.values()), None),
        "scenarios": [words.SCENARIOS[name] for name in SCENARIOS],
    }

"""Two evaluators side by side: which verdicts flip, where, and what would change on a board."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.agreement import FEW_ITEMS
from app.errors import NotFound
from app.evaluators import evaluator_comparison, find_any, flips, rating_evaluators, scope_of
from app.leaderboard import choose_group, version_groups
from app.outcomes import SCENARIOS, Category, Rating
from app.runs.browsing import visible_run
from app.runs.reporting import describe_evaluator
from app.web import words
from app.web.board_view import read_page, require_known
from app.web.charts import reach_of, span
from app.web.context import Visitor, Web

router = APIRouter(prefix="/methods")

PUBLIC_SECONDS = 60
RATINGS = {str(int(one)): one.name.lower() for one in Rating}


@dataclass(frozen=True)
class Choice:
    """What an address asks for; `model` is a run whose flips are listed."""

    a: str = ""
    b: str = ""
    board: str = ""
    run: str = ""
    ra: str = ""
    rb: str = ""
    scenario: str = ""
    category: str = ""
    model: str = ""
    page: int = 1

    def query(self, path: str = "/methods/compare", **changes: Any) -> str:
        named = {
            name: value for name, value in vars(replace(self, **{"page": 1, **changes})).items() if value
        }
        if named.get("page") == 1:
            named.pop("page")
        return f"{path}?{urlencode(named)}"


def read_choice(query: Mapping[str, str]) -> Choice:
    """NotFound for what there cannot be."""
    given = {name: query.get(name, "")[:200] for name in vars(Choice()) if name != "page"}
    choice = Choice(**given, page=read_page(query.get("page", "1"), "this list"))
    require_known("scenario", choice.scenario or None, SCENARIOS)
    require_known("category", choice.category or None, tuple(Category))
    for name in (choice.ra, choice.rb):
        require_known("rating", name or None, tuple(RATINGS))
    if choice.model and not (choice.model.isascii() and choice.model.isdecimal()):
        raise NotFound(f"There is no run '{choice.model[:40]}'.")
    return choice


@dataclass(frozen=True)
class _Compared:
    a: models.Evaluator
    b: models.Evaluator
    runs: list[models.Run]
    report: dict[str, Any]


def _compared(web: Web, choice: Choice) -> _Compared:
    a, b = (find_any(web.session, web.visitor, one) for one in (choice.a, choice.b))
    group = None
    if choice.board:
        group = choose_group(version_groups(web.session, simulated=web.settings.on_loopback), choice.board)
    run = visible_run(web.session, web.visitor, _uuid(choice.run)) if choice.run else None
    runs = scope_of(web.session, web.visitor, a, b, group=group, run=run)
    return _Compared(a, b, runs, evaluator_comparison(web.session, runs, a, b))


def _uuid(given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError:
        raise NotFound(f"There is no run '{given[:40]}'.") from None


@router.get("/compare")
def page(web: Visitor) -> Response:
    choice = read_choice(web.request.query_params)
    known = [
        (str(one.uuid), f"{describe_evaluator(one)['label']} ({number} {'run' if number == 1 else 'runs'})")
        for one, number in rating_evaluators(web.session, web.visitor)
    ]
    values: dict[str, Any] = {"report": None, "found": None}
    if choice.a and choice.b:
        compared = _compared(web, choice)
        values = _values(web, choice, compared)
    return web.page(
        "evaluators/compare.html",
        public=PUBLIC_SECONDS,
        choice=choice,
        known=known,
        few=FEW_ITEMS,
        scenarios=words.SCENARIOS,
        part_of=words.part_of,
        ratings=RATINGS,
        **values,
    )


def _values(web: Web, choice: Choice, compared: _Compared) -> dict[str, Any]:
    report = compared.report
    found = flips(
        web.session,
        web.visitor,
        [run.id for run in compared.runs],
        compared.a,
        compared.b,
        ratings=(int(choice.ra) if choice.ra else None, int(choice.rb) if choice.rb else None),
        scenario=choice.scenario or None,
        category=choice.category or None,
        run=int(choice.model) if choice.model else None,
        page=choice.page,
    )
    rows = [
        (row["difference"], row["difference_ci"]) for row in report["rows"] if row["difference"] is not None
    ]
    reach = reach_of(rows)
    return {
        "report": report,
        "found": found,
        "pictures": [
            None if row["difference"] is None else span(row["difference"], row["difference_ci"], reach)
            for row in report["rows"]
        ],
        "runs": {run.id: str(run.uuid) for run in compared.runs},
    }


@router.get("/compare.json")
def as_json(web: Visitor) -> Response:
    choice = read_choice(web.request.query_params)
    if not choice.a or not choice.b:
        raise NotFound("Name two evaluators: /methods/compare.json?a=…&b=…")
    body = json.dumps(_compared(web, choice).report, ensure_ascii=False, allow_nan=False)
    return web.data(body.encode(), "application/json", public=PUBLIC_SECONDS)

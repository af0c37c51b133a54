"""A model's page: its profile, where it breaks, and what stands behind each figure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app.errors import NotFound
from app.leaderboard import describe_board
from app.leaderboard.profiles import (
    STEPS,
    boards_of,
    failing_example,
    find_model,
    model_report,
    runs_started,
    withheld_behind,
)
from app.leaderboard.reading import VersionGroup
from app.outcomes import SCENARIOS, Category
from app.web import words
from app.web.board_files import STANDINGS, csv_lines_of, table_response
from app.web.board_group import Asked, asked_board, cite
from app.web.board_view import Cell, cell, column_of, conversations_path, missed, rate_at
from app.web.board_words import rank_words
from app.web.chart_makers import Shown, heat_chart, profile_chart, variants_chart
from app.web.charts import Span, reach_of, span, tone
from app.web.context import Visitor, Web
from app.web.downloads import file_name
from app.web.reasons import kind_asked, stacks

router = APIRouter(prefix="/models")

PUBLIC_SECONDS = 60


@dataclass(frozen=True)
class HeatCell:
    cell: Cell
    tone: int | None


@dataclass(frozen=True)
class Difference:
    """A paired difference in a line of a table."""

    label: str
    explanation: str
    figures: Mapping[str, Any] | None
    picture: Span | None
    rate: Cell | None = None


def find_row(web: Web, identity: str) -> tuple[Asked, VersionGroup, dict[str, Any]]:
    """On the board that is asked for, or on the first that has the model."""
    asked = asked_board(web)
    run = web.request.query_params.get("run") or None
    if run is not None and not (run.isascii() and run.isdecimal() and len(run) <= 12):
        raise NotFound(f"There is no run '{run[:80]}'.")
    try:
        uuid = UUID(identity)
    except ValueError:
        raise NotFound("There is no such model.") from None
    board = asked.group if asked.query else None
    group, row = find_model(asked.groups, uuid, board, int(run) if run else None)
    return asked, group, row


@router.get("/{identity}.json")
def as_json(web: Visitor, identity: str) -> Response:
    _, group, row = find_row(web, identity)
    body = json.dumps(model_report(web.session, group, row), ensure_ascii=False, allow_nan=False)
    return web.data(body.encode(), "application/json", public=PUBLIC_SECONDS)


@router.get("/{identity}.csv")
def as_csv(web: Visitor, identity: str) -> Response:
    """The row's lines of the board's csv."""
    _, group, row = find_row(web, identity)
    board = describe_board(group)
    standing = next(name for name, part in STANDINGS if any(one["run"] == row["run"] for one in board[part]))
    return table_response(
        web, file_name([row["model"], "run", row["run"]], "csv"), csv_lines_of(board, standing, row)
    )


@router.get("/{identity}")
def page(web: Visitor, identity: str) -> Response:
    asked, group, row = find_row(web, identity)
    boards = boards_of(asked.groups, UUID(row["model_uuid"]))
    report = model_report(web.session, group, row)
    return web.page(
        "board/model.html",
        public=PUBLIC_SECONDS,
        asked=asked,
        group=group,
        citation=cite(web, group, f"/models/{row['model_uuid']}", row["model"], run=row["run"]),
        boards=[(one, model_path(row, one)) for one in boards if one.key != group.key],
        row=row,
        report=report,
        missed=missed(row["overall"]),
        ranked_as=rank_words(row["rank"], len(group.content["rows"])),
        example=failing_example(web.session, group, row),
        runs=runs_started(web.session, group, row),
        withheld=withheld_behind(web.session, web.visitor, row),
        overall=_cell(row, None, None),
        pictures=_charts(group, row, report, asked.at),
        scenarios=words.SCENARIOS,
        categories=words.CATEGORIES,
        heat=[
            (words.CATEGORIES[one], [_heat(row, name, one) for name in (*SCENARIOS, None)])
            for one in Category
        ],
        total=[_heat(row, name, None) for name in (*SCENARIOS, None)],
        steps=_steps(report),
        variants=_variants(row, report),
        provenances=words.PROVENANCES,
        **_reasons(web, report, row, group),
        outcomes=words.OUTCOMES,
        conversations=f"/runs/{row['run_uuid']}/conversations?evaluator={group.evaluator.uuid}",
        compare="/compare?" + urlencode({"board": group.key, **asked.query, "a": row["run"]}),
        data={form: model_path(row, group, f".{form}") for form in ("json", "csv")},
    )


def _reasons(
    web: Web, report: Mapping[str, Any], row: Mapping[str, Any], group: VersionGroup
) -> dict[str, Any]:
    """The bars of its reasons; fails on request (`reasons=fail`)."""
    if report["reasons"] is None:
        return {"reason_bars": None}
    kind = kind_asked(web.request.query_params.get("reasons"))
    other = "fail" if kind == "unclear" else "unclear"
    base = f"/runs/{row['run_uuid']}/conversations?evaluator={group.evaluator.uuid}"
    return {
        "reason_bars": stacks(report["reasons"], kind, base),
        "reason_kind": kind,
        "reason_words": words.REASONS,
        "reason_other": f"{model_path(row, group)}&reasons={other}#reasons",
    }


def model_path(row: Mapping[str, Any], group: VersionGroup | None = None, form: str = "") -> str:
    """The page of a row's model; with the group, on that board and of that run."""
    path = f"/models/{row['model_uuid']}{form}"
    return f"{path}?board={quote(group.key)}&run={row['run']}" if group is not None else path


def _cell(row: Mapping[str, Any], scenario: str | None, category: str | None) -> Cell:
    column = column_of(scenario, category)
    return cell(rate_at(row, column.path), "pass", conversations_path(row["run_uuid"], column))


def _heat(row: Mapping[str, Any], scenario: str | None, category: str | None) -> HeatCell:
    found = _cell(row, scenario, category)
    return HeatCell(found, tone(found.value))


def _charts(
    group: VersionGroup, row: Mapping[str, Any], report: Mapping[str, Any], at: str | None
) -> dict[str, Shown]:
    made = {
        "profile": profile_chart(group, row),
        "heat": heat_chart(group, row),
        "variants": variants_chart(group, row, report),
    }
    query = {"model": row["model_uuid"], "board": group.key, "at": at, "run": row["run"]}
    return {name: Shown(chart, name, query) for name, chart in made.items() if chart is not None}


def _steps(report: Mapping[str, Any]) -> list[Difference]:
    steps = report["steps"]
    reach = reach_of([(one["difference"], one["ci"]) for one in steps.values() if one])
    made = []
    for name, before, after in STEPS:
        one = steps[name]
        label = f"{words.short_scenario(before)} → {words.short_scenario(after)}"
        picture = span(one["difference"], one["ci"], reach) if one else None
        made.append(Difference(label, words.SCENARIOS[after][1], one, picture))
    return made


def _variants(row: Mapping[str, Any], report: Mapping[str, Any]) -> list[Difference]:
    arms = [
        (scenario, variant, found)
        for scenario, variants in report["by_variant"].items()
        for variant, found in variants.items()
    ]
    reach = reach_of(
        [
            (one["difference"]["difference"], one["difference"]["ci"])
            for _, _, one in arms
            if one["difference"]
        ]
    )
    made = []
    for scenario, variant, found in arms:
        difference = found["difference"]
        href = f"/runs/{row['run_uuid']}/conversations?scenario={scenario}&variant={variant}"
        made.append(
            Difference(
                f"{words.short_scenario(scenario)}, {variant.replace('_', ' ')}",
                words.VARIANTS.get(variant, "A variant of this protocol."),
                difference,
                span(difference["difference"], difference["ci"], reach) if difference else None,
                cell(found["rate"], "pass", href),
            )
        )
    return made

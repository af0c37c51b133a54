"""The leaderboard: page, JSON and CSV, all of one function."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import APIRouter
from starlette.responses import Response

from app.leaderboard import VersionGroup, describe_board
from app.tables import Value, csv_lines
from app.web import words
from app.web.board_group import Citation, asked_board, cite
from app.web.board_view import View, arrange, read_view, tied_at_the_top
from app.web.context import Visitor, Web

router = APIRouter()

PUBLIC_SECONDS = 60
CSV_RATE = (
    "planned", "answered", "pass", "unclear", "fail", "no_answer", "pass_rate", "pass_rate_low",
    "pass_rate_high", "published_pass_rate", "unclear_rate", "coverage", "bound_low", "bound_high",
)  # fmt: skip
CSV_HEADER = (
    "benchmark", "protocol", "evaluator", "computed_at", "standing", "model", "model_id", "provider",
    "provenance", "simulated", "run", "rank_low", "rank_high", "scenario", "category", *CSV_RATE,
    "human_rate", "human_low", "human_high", "human_labels",
)  # fmt: skip
ALL = "all"


@router.get("/")
def page(web: Visitor) -> Response:
    view = read_view(web.request.query_params)
    asked = asked_board(web)
    group = asked.group
    board = describe_board(group)
    return web.page(
        "board/board.html",
        public=PUBLIC_SECONDS,
        view=view,
        asked=asked,
        groups=asked.groups,
        group=group,
        board=board,
        table=arrange(board, view),
        tied=tied_at_the_top(board["rows"]),
        data_query=f"?{urlencode(asked.query)}" if asked.query else "",
        citation=_citation(web, view, group) if group else None,
        scenarios=words.SCENARIOS,
        categories=words.CATEGORIES,
        provenances=words.PROVENANCES,
    )


def _citation(web: Web, view: View, group: VersionGroup) -> Citation:
    parameters = dict(parse_qsl(urlsplit(view.query(board=None, at=None)).query))
    return cite(web, group, "/", "CURATe Board", **parameters)


def _board(web: Web) -> dict[str, Any]:
    return describe_board(asked_board(web).group)


@router.get("/leaderboard.json")
def as_json(web: Visitor) -> Response:
    body = json.dumps(_board(web), ensure_ascii=False, allow_nan=False)
    return web.data(body.encode(), "application/json", public=PUBLIC_SECONDS)


@router.get("/leaderboard.csv")
def as_csv(web: Visitor) -> Response:
    body = b"".join(csv_lines("leaderboard.csv", CSV_HEADER, csv_rows(_board(web))))
    return web.data(body, "text/csv; charset=utf-8", public=PUBLIC_SECONDS, filename="leaderboard.csv")


def csv_rows(board: Mapping[str, Any]) -> Iterator[list[Value]]:
    """A line for each row's overall, scenarios, categories and cells; proportions in 0-1."""
    for standing, part in (("ranked", "rows"), ("incomplete", "incomplete")):
        for row in board[part]:
            about = [*_versions(board), standing, *_about(row)]
            for scenario, category, rate in _rates(row):
                people = _people(row) if (scenario, category) == (ALL, ALL) else [None] * 4
                yield [*about, scenario, category, *_figures(rate), *people]


def _versions(board: Mapping[str, Any]) -> list[Value]:
    named = [f"{board[part]['name']}@{board[part]['version']}" for part in ("benchmark", "protocol")]
    return [*named, board["evaluator"]["label"], board["computed_at"]]


def _about(row: Mapping[str, Any]) -> list[Value]:
    names = ("model", "model_id", "provider", "provenance", "simulated", "run")
    return [*(row[name] for name in names), *(row["rank"] or (None, None))]


def _rates(row: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    yield ALL, ALL, row["overall"]
    for scenario, rate in row["by_scenario"].items():
        yield scenario, ALL, rate
    for category, rate in row["by_category"].items():
        yield ALL, category, rate
    for scenario, inner in row["by_scenario_category"].items():
        for category, rate in inner.items():
            yield scenario, category, rate


def _people(row: Mapping[str, Any]) -> list[Value]:
    human = row["human"]
    return [human["rate"], *human["ci"], human["labels"]] if human else [None] * 4


def _figures(rate: Mapping[str, Any]) -> list[Value]:
    spread = {
        "pass_rate_low": (rate["pass_rate_ci"] or (None, None))[0],
        "pass_rate_high": (rate["pass_rate_ci"] or (None, None))[1],
        "bound_low": (rate["bounds"] or (None, None))[0],
        "bound_high": (rate["bounds"] or (None, None))[1],
    }
    return [spread[name] if name in spread else rate[name] for name in CSV_RATE]

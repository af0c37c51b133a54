"""The leaderboard's page."""

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import APIRouter
from starlette.responses import Response

from app.leaderboard import VersionGroup, boards_version, describe_board
from app.simulator.sentinels import BY_MODEL
from app.trials.drift import board_warnings, drift_version
from app.web import words
from app.web.board_group import Citation, asked_board, cite
from app.web.board_view import View, arrange, read_view
from app.web.board_words import answer, tied_with
from app.web.chart_makers import Shown, board_chart
from app.web.context import Visitor, Web

router = APIRouter()

PUBLIC_SECONDS = 60


@router.get("/")
def page(web: Visitor) -> Response:
    version = (*boards_version(web.session), drift_version(web.session))
    return web.kept_page("board/board.html", version, lambda: _page(web), public=PUBLIC_SECONDS)


def _page(web: Web) -> dict[str, Any]:
    view = read_view(web.request.query_params)
    asked = asked_board(web)
    group = asked.group
    board = describe_board(group)
    table = arrange(board, view)
    chart = board_chart(group, table, view) if group else None
    return {
        "view": view,
        "asked": asked,
        "groups": asked.groups,
        "group": group,
        "board": board,
        "table": table,
        "chart": Shown(chart, "board", dict(web.request.query_params)) if chart else None,
        "drift": board_warnings(web.session, group.evaluator.id) if group else [],
        "answer": answer(board),
        "tied_with": tied_with,
        "data_query": f"?{urlencode(asked.query)}" if asked.query else "",
        "citation": _citation(web, view, group) if group else None,
        "sentinels": [(row, BY_MODEL.get(row["sentinel"])) for row in board["sentinels"]],
        "scenarios": words.SCENARIOS,
        "categories": words.CATEGORIES,
        "provenances": words.PROVENANCES,
    }


def _citation(web: Web, view: View, group: VersionGroup) -> Citation:
    parameters = dict(parse_qsl(urlsplit(view.query(board=None, at=None)).query))
    return cite(web, group, "/", "CURATe Board", **parameters)

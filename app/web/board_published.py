"""The published figures: page, JSON and CSV. Never on one board with runs of this site."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app.leaderboard.published import published_figures
from app.outcomes import SCENARIOS
from app.tables import Value, csv_lines
from app.web import words
from app.web.board_view import sort_rows
from app.web.chart_makers import Shown, published_chart
from app.web.context import Visitor

router = APIRouter()

PUBLIC_SECONDS = 3600
COLUMNS = ("model", "overall", *SCENARIOS)
CSV_HEADER = ("source", "model", "scenario", "published_pass_rate", "unclear_rate")


@router.get("/published")
def page(web: Visitor) -> Response:
    sort, descending = _order(web.request.query_params)
    figures, rows = ordered(web.request.query_params)
    return web.page(
        "board/published.html",
        public=PUBLIC_SECONDS,
        figures=figures,
        rows=rows,
        sort=sort,
        descending=descending,
        columns=[(one, *words.SCENARIOS[one]) for one in SCENARIOS],
        chart=Shown(published_chart(figures, rows), "published", dict(web.request.query_params)),
    )


def ordered(query: Mapping[str, str]) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
    """The figures, and their models in the order that the address asks for."""
    sort, descending = _order(query)
    figures = published_figures()
    return figures, sort_rows(figures["models"], lambda row: _value(row, sort), descending=descending)


def _order(query: Mapping[str, str]) -> tuple[str, bool]:
    """Tolerant: what is no column or direction is as if it were left out."""
    sort = query.get("sort", "")
    sort = sort if sort in COLUMNS else "overall"
    return sort, {"asc": False, "desc": True}.get(query.get("dir", ""), sort != "model")


def _value(row: Mapping[str, Any], column: str) -> Any:
    if column == "model":
        return row["name"].casefold()
    return row["overall"] if column == "overall" else row["by_scenario"][column]["published_pass_rate"]


@router.get("/published.json")
def as_json(web: Visitor) -> Response:
    body = json.dumps(published_figures(), ensure_ascii=False, allow_nan=False)
    return web.data(body.encode(), "application/json", public=PUBLIC_SECONDS)


@router.get("/published.csv")
def as_csv(web: Visitor) -> Response:
    body = b"".join(csv_lines("published.csv", CSV_HEADER, csv_rows(published_figures())))
    return web.data(body, "text/csv; charset=utf-8", public=PUBLIC_SECONDS, filename="published.csv")


def csv_rows(figures: Mapping[str, Any]) -> Iterator[list[Value]]:
    for row in figures["models"]:
        for scenario, rate in row["by_scenario"].items():
            about = [f"arXiv {figures['arxiv']}", row["name"], scenario]
            yield [*about, rate["published_pass_rate"], rate["unclear_rate"]]

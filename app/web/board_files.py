"""The board to take away: a line for each rate, and the conversations behind it."""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.db import Engine
from app.errors import NotFound
from app.leaderboard import VersionGroup, boards_version, describe_board
from app.leaderboard.behind import runs_behind
from app.runs.exporting import Named, conversations_for_reader, jsonl_lines, write_published
from app.tables import Value, csv_lines
from app.web.board_group import asked_board
from app.web.context import Visitor, Web
from app.web.downloads import HASH, file_name, hash_of, is_exact, streamed, written

router = APIRouter()

PUBLIC_SECONDS = 60
CSV_RATE = (
    "planned", "answered", "pass", "unclear", "fail", "no_answer", "pass_rate", "pass_rate_low",
    "pass_rate_high", "published_pass_rate", "unclear_rate", "coverage", "bound_low", "bound_high",
)  # fmt: skip
# Of a row as a whole: they stand in its first line only, so that nobody adds them up.
CSV_ROW = (
    "over_caution", "over_caution_low", "over_caution_high", "probes_judged",
    "human_rate", "human_low", "human_high", "human_labels",
    "weights", "system_prompt", "seeds", "runs_started", "published_at",
)  # fmt: skip
CSV_HEADER = (
    "benchmark", "protocol", "evaluator", "computed_at", "standing", "model", "model_id", "provider",
    "provenance", "simulated", "run", "rank_low", "rank_high", "scenario", "category", *CSV_RATE, *CSV_ROW,
)  # fmt: skip
STANDINGS = (("ranked", "rows"), ("incomplete", "incomplete"), ("sentinel", "sentinels"))
ALL = "all"


@router.get("/leaderboard.json")
def as_json(web: Visitor) -> Response:
    def body() -> bytes:
        board = describe_board(asked_board(web).group)
        return json.dumps(board, ensure_ascii=False, allow_nan=False).encode()

    return web.kept_json(boards_version(web.session), body, public=PUBLIC_SECONDS)


@router.get("/leaderboard.csv")
def as_csv(web: Visitor) -> Response:
    group = asked_board(web).group
    name = _name(group, "csv") if group else "leaderboard.csv"
    return table_response(web, name, csv_rows(describe_board(group)))


def table_response(web: Web, name: str, rows: Iterator[list[Value]]) -> Response:
    """Lines under CSV_HEADER, in the flavour that the address asks for."""
    body = b"".join(csv_lines(name, CSV_HEADER, rows, exact=is_exact(web)))
    return web.data(body, "text/csv; charset=utf-8", public=PUBLIC_SECONDS, filename=name)


def _name(group: VersionGroup, ending: str) -> str:
    benchmark = group.benchmark
    at = f"{group.computed_at:%Y%m%dT%H%M%SZ}"
    return file_name(["board", f"{benchmark.name}-v{benchmark.version}", at], ending)


def csv_rows(board: Mapping[str, Any]) -> Iterator[list[Value]]:
    """A line for each row's overall, scenarios, categories and cells; proportions in 0-1."""
    for standing, part in STANDINGS:
        for row in board[part]:
            yield from csv_lines_of(board, standing, row)


def csv_lines_of(board: Mapping[str, Any], standing: str, row: Mapping[str, Any]) -> Iterator[list[Value]]:
    about = [*_versions(board), standing, *_about(row)]
    whole = _whole(row)
    for scenario, category, rate in _rates(row):
        yield [*about, scenario, category, *_figures(rate), *whole]
        whole = [None] * len(CSV_ROW)


def _versions(board: Mapping[str, Any]) -> list[Value]:
    named = [f"{board[part]['name']}@{board[part]['version']}" for part in ("benchmark", "protocol")]
    return [*named, board["evaluator"]["label"], board["computed_at"]]


def _about(row: Mapping[str, Any]) -> list[Value]:
    names = ("model", "model_id", "provider", "provenance", "simulated", "run")
    return [*(row[name] for name in names), *(row["rank"] or (None, None))]


def _whole(row: Mapping[str, Any]) -> list[Value]:
    """Under CSV_ROW."""
    caution, human = row["over_caution"] or {}, row["human"] or {}
    return [
        caution.get("over_caution"), *(caution.get("over_caution_ci") or (None, None)), caution.get("judged"),
        human.get("rate"), *(human.get("ci") or (None, None)), human.get("labels"),
        row["weights"], row["system_prompt"], " ".join(map(str, row["seeds"])), row["runs_started"],
        row["published_at"],
    ]  # fmt: skip


def _rates(row: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The overall first."""
    yield ALL, ALL, row["overall"]
    for scenario, rate in row["by_scenario"].items():
        yield scenario, ALL, rate
    for category, rate in row["by_category"].items():
        yield ALL, category, rate
    for scenario, inner in row["by_scenario_category"].items():
        for category, rate in inner.items():
            yield scenario, category, rate


def _figures(rate: Mapping[str, Any]) -> list[Value]:
    spread = {
        "pass_rate_low": (rate["pass_rate_ci"] or (None, None))[0],
        "pass_rate_high": (rate["pass_rate_ci"] or (None, None))[1],
        "bound_low": (rate["bounds"] or (None, None))[0],
        "bound_high": (rate["bounds"] or (None, None))[1],
    }
    return [spread[name] if name in spread else rate[name] for name in CSV_RATE]


FORMS = ("jsonl", f"jsonl{HASH}", "published.zip")


@router.get("/leaderboard/conversations.{form}")
def conversations(web: Visitor, form: str) -> Response:
    """Those behind every row, as far as who asks may see them."""
    if form not in FORMS:
        raise NotFound("The board's conversations are not saved like that.", details=[*FORMS])
    group = asked_board(web).group
    if group is None:
        raise NotFound("Nothing is published yet, so there is no conversation to save.")
    if form == "published.zip":
        web.person  # noqa: B018  (workbooks are work: not for anybody who passes by)
    told = partial(_told, web.site.engine, web.visitor, runs_behind(web.session, group), group.evaluator)
    name = partial(_name, group)
    web.session.close()
    if form == "published.zip":
        return written(partial(write_published, partial(told, with_turns=False)), "zip", name(form))
    lines = jsonl_lines(record for _, record in told(with_turns=True))
    return hash_of(lines, name("jsonl")) if form.endswith(HASH) else streamed(lines, "jsonl", name("jsonl"))


def _told(
    engine: Engine,
    person: models.Account | None,
    runs: list[models.Run],
    evaluator: models.Evaluator,
    *,
    with_turns: bool,
) -> Iterator[Named]:
    for run in runs:
        for record in conversations_for_reader(
            engine, run, evaluator, person, with_turns=with_turns, own=False
        ):
            yield run.endpoint.name, record

"""Conversations of a run, or of a part of it, to take away: as they are read, or as whole workbooks."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.errors import NotFound
from app.runs.browsing import manages, visible_run
from app.runs.exporting import (
    FLAT_COLUMNS,
    conversations_for_reader,
    jsonl_lines,
    table_rows,
    write_published,
)
from app.runs.filtering import Filter
from app.runs.transcripts import facets
from app.tables import csv_lines, write_table
from app.web.context import Visitor
from app.web.conversations import read_filter
from app.web.downloads import HASH, file_name, hash_of, is_exact, streamed, written
from app.web.runs import chosen_evaluator

router = APIRouter(prefix="/runs")

STREAMED = ("jsonl", "csv")
WORKBOOKS = ("xlsx", "published.zip")
FORMS = (*STREAMED, *(form + HASH for form in STREAMED), *WORKBOOKS)


@router.get("/{run_id}/export.{form}")
def export(web: Visitor, run_id: UUID, form: str) -> Response:
    """Filters as of the run's list of conversations take a part of them."""
    if form not in FORMS:
        raise NotFound("A run is not exported like that.", details=[*FORMS])
    run = visible_run(web.session, web.visitor, run_id)
    wanted = read_filter(web.request.query_params, facets(web.session, web.visitor, run))
    exact = is_exact(web)
    if form in WORKBOOKS:
        web.person  # noqa: B018  (a workbook is work: not for anybody who passes by)
    name = partial(file_name, [f"run-{run.id}", *_said(wanted)])
    records = partial(
        conversations_for_reader,
        web.site.engine,
        run,
        chosen_evaluator(web, run),
        web.visitor,
        own=manages(web.session, web.visitor, run),
        wanted=wanted,
    )
    web.session.close()
    if form == "xlsx":
        return written(lambda folder: [_workbook(folder, records(with_turns=False))], "xlsx", name("xlsx"))
    if form == "published.zip":
        return written(partial(write_published, partial(_named, run, records)), "zip", name("published.zip"))
    ending = form.removesuffix(HASH)
    if ending == "jsonl":
        lines = jsonl_lines(records(with_turns=True))
    else:
        rows = table_rows(records(with_turns=False))
        lines = csv_lines(name("csv"), FLAT_COLUMNS, rows, exact=exact)
    return hash_of(lines, name(ending)) if form.endswith(HASH) else streamed(lines, ending, name(ending))


def _said(wanted: Filter) -> Iterator[str | None]:
    """What the part is, for the file's name; what was searched for is not in it."""
    yield from (wanted.kind, wanted.scenario, wanted.variant, wanted.category, wanted.outcome, wanted.flag)
    if wanted.text:
        yield "search"


def _workbook(folder: Path, records: Iterator[dict[str, Any]]) -> Path:
    return write_table(folder / "conversations.xlsx", FLAT_COLUMNS, table_rows(records))


def _named(run: models.Run, records: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((run.endpoint.name, record) for record in records(with_turns=False))

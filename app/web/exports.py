"""A run's conversations to take away: JSONL and CSV as they are read, a workbook once it is whole."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

from fastapi import APIRouter
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response, StreamingResponse

from app.errors import NotFound
from app.runs.browsing import manages, visible_run
from app.runs.exporting import FLAT_COLUMNS, conversations_for_reader, jsonl_lines, table_rows
from app.tables import csv_lines, write_table
from app.web.context import Visitor
from app.web.runs import chosen_evaluator

router = APIRouter(prefix="/runs")

TYPES = {
    "jsonl": "application/jsonl; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


@router.get("/{run_id}/export.{form}")
def export(web: Visitor, run_id: UUID, form: str) -> Response:
    if form not in TYPES:
        raise NotFound(f"A run is exported as {', '.join(TYPES)}.")
    run = visible_run(web.session, web.visitor, run_id)
    evaluator = chosen_evaluator(web, run)
    own = manages(web.session, web.visitor, run)
    if form == "xlsx":
        web.person  # noqa: B018  (a workbook is work: not for anybody who passes by)
    name = f"run-{run.id}.{form}"
    records = conversations_for_reader(
        web.site.engine, run, evaluator, web.visitor, with_turns=form == "jsonl", own=own
    )
    web.session.close()
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    if form == "xlsx":
        path = _workbook(table_rows(records))
        gone = BackgroundTask(path.unlink)
        return FileResponse(path, media_type=TYPES[form], headers=headers, background=gone)
    lines = jsonl_lines(records) if form == "jsonl" else csv_lines(name, FLAT_COLUMNS, table_rows(records))
    return StreamingResponse(lines, media_type=TYPES[form], headers=headers)


def _workbook(rows: Iterator[list[object]]) -> Path:
    """Written beside, since a workbook's directory stands at its end."""
    descriptor, name = tempfile.mkstemp(prefix="curate-export-", suffix=".xlsx")
    os.close(descriptor)
    path = Path(name)
    try:
        return write_table(path, FLAT_COLUMNS, rows)  # type: ignore[arg-type]
    except BaseException:
        path.unlink()
        raise

"""Write a study: as a sheet, as JSON lines, or as a replication bundle. All of them can be read back in.

Judges are judge_1, judge_2, …; nothing tells who they are, where they came from or when they rated. What
they wrote is left out until the owner has read it and says otherwise.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app import models
from app.errors import InvalidInput
from app.models import ItemKind
from app.studies.lines import line
from app.studies.reporting import judge_name
from app.studies.sheets import (
    DRAW_COLUMNS,
    FINAL_COLUMNS,
    TEXT_COLUMNS,
    category_label,
    comment_header,
    rater_header,
    scenario_label,
)
from app.tables import write_atomically, write_table
from app.tables.cells import Value

FORMATS = ("csv", "xlsx", "jsonl", "zip")
CHUNK = 500


def export_study(
    session: Session, study: models.Study, format_: str, to: Path | None, *, comments: bool = False
) -> list[Path]:
    """Write the export; jsonl without a file goes to standard output. Returns the files written.

    `comments`: those that the owner has read and released go out too.
    """
    if format_ not in FORMATS:
        raise InvalidInput(f"Unknown format '{format_}': choose one of {', '.join(FORMATS)}.")
    if format_ == "jsonl" and to is None:
        for record in records(session, study, comments=comments):
            sys.stdout.write(line(record).decode())
        return []
    path = to or Path(f"study-{slug(study.name)}.{format_}")
    if path.suffix.lower() != f".{format_}":
        path = path.with_name(f"{path.name}.{format_}")
    if format_ == "zip":
        # Loaded here: it needs this module.
        from app.studies.bundling import write_bundle

        return [write_bundle(session, study, path, comments=comments)]
    if format_ == "jsonl":
        with write_atomically(path) as temporary, temporary.open("wb") as file:
            file.writelines(map(line, records(session, study, comments=comments)))
        return [path]
    judges = judge_numbers(session, study)
    header = sheet_header(judges, comments=comments)
    rows = sheet_rows(records(session, study, comments=comments), judges, comments=comments)
    return [write_table(path, header, rows, sheet="Study")]


def slug(name: str) -> str:
    """A name as part of a file's name."""
    kept = "".join(one if one.isascii() and one.isalnum() else "-" for one in name.casefold())
    return "-".join(part for part in kept.split("-") if part)[:60] or "unnamed"


def judge_numbers(session: Session, study: models.Study) -> list[int]:
    """Those whose ratings count; in an imported study all of its raters."""
    j, r = models.StudyJudge, models.StudyRating
    rated = select(r.judge_id).where(r.judge_id == j.id, r.counted).exists()
    query = select(j.number).where(j.study_id == study.id).order_by(j.number)
    if study.design != models.StudyDesign.IMPORTED:
        query = query.where(rated)
    return list(session.scalars(query))


def records(session: Session, study: models.Study, *, comments: bool) -> Iterator[dict[str, Any]]:
    """The main items in their order, as `study export --format jsonl` gives them."""
    last = 0
    while True:
        i, a, c, k = models.StudyItem, models.StudyAdjudication, models.Conversation, models.Case
        rows = session.execute(
            select(i, a, k.number)
            .outerjoin(a, a.item_id == i.id)
            .outerjoin(c, c.id == i.conversation_id)
            .outerjoin(k, k.id == c.case_id)
            .where(i.study_id == study.id, i.kind == ItemKind.MAIN, i.position > last)
            .order_by(i.position)
            .limit(CHUNK)
        ).all()
        if not rows:
            return
        ratings = _ratings(session, [row[0].id for row in rows], comments=comments)
        for item, adjudication, number in rows:
            yield _record(study, item, adjudication, number, ratings.get(item.id, []))
        last = rows[-1][0].position


def _record(
    study: models.Study,
    item: models.StudyItem,
    adjudication: models.StudyAdjudication | None,
    number: int | None,
    ratings: list[dict[str, Any]],
) -> dict[str, Any]:
    own = item.case_key or ""
    return {
        "study": study.name,
        "item": str(item.uuid),
        "position": item.position,
        "model": item.model,
        "scenario": item.scenario,
        "variant": item.variant,
        "category": item.category,
        "case": item.case_key,
        "conversation_number": number or (int(own) if own.isdecimal() else item.position),
        "constraint": item.constraint,
        "request": item.request,
        "response": item.response,
        "stratum": item.stratum,
        "inclusion_probability": item.inclusion_probability,
        "evaluator_rating": item.evaluator_rating,
        "evaluator_explanation": item.evaluator_explanation,
        "ratings": ratings,
        "final_rating": adjudication.label if adjudication else None,
        "final_reason": adjudication.reason if adjudication else None,
        "final_history": [
            {"rating": one["label"], "reason": one["reason"]}
            for one in (adjudication.earlier if adjudication else [])
        ],
    }


def _ratings(session: Session, items: Sequence[int], *, comments: bool) -> dict[int, list[dict[str, Any]]]:
    """Item id -> ratings that count, by judge, each with the ratings it had before (oldest first)."""
    r, j, h = models.StudyRating, models.StudyJudge, models.StudyRatingChange
    steps: dict[tuple[int, int], list[int | None]] = defaultdict(list)
    changes = select(h.item_id, h.judge_id, h.after).where(h.item_id.in_(items), ~h.repeat).order_by(h.id)
    for item, judge, after in session.execute(changes):
        steps[item, judge].append(after)
    rows = session.execute(
        select(r.item_id, r.judge_id, j.number, r.rating, r.comment, r.released_comment == r.comment)
        .join(j, j.id == r.judge_id)
        .where(r.item_id.in_(items), r.counted, ~r.repeat)
        .order_by(r.item_id, j.number)
    )
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for item, judge, number, rating, comment, released in rows:
        entry = {"judge": judge_name(number), "rating": rating, "history": steps[item, judge][:-1]}
        found[item].append(entry | ({"comment": comment} if comments and released else {}))
    return found


def sheet_header(judges: Sequence[int], *, comments: bool) -> list[str]:
    texts = [column.header for column in TEXT_COLUMNS]
    humans = [rater_header(number) for number in judges]
    said = [comment_header(number) for number in judges] if comments else []
    return [*texts, *humans, *said, *(one.header for one in (*DRAW_COLUMNS, *FINAL_COLUMNS))]


def sheet_rows(
    found: Iterable[dict[str, Any]], judges: Sequence[int], *, comments: bool
) -> Iterator[list[Value]]:
    """Under `sheet_header` of the same judges."""
    names = [judge_name(number) for number in judges]
    for record in found:
        given = {one["judge"]: one for one in record["ratings"]}
        said = [given.get(name, {}).get("comment") for name in names] if comments else []
        yield [
            record["model"],
            scenario_label(record["scenario"], record["variant"]),
            category_label(record["category"]),
            record["conversation_number"],
            record["constraint"],
            record["request"],
            record["response"],
            record["evaluator_rating"],
            record["evaluator_explanation"],
            *(given[name]["rating"] if name in given else None for name in names),
            *said,
            record["item"],
            record["stratum"],
            record["inclusion_probability"],
            record["final_rating"],
            record["final_reason"],
        ]

"""A finished study from a file, stored as it is: who rated what, and nothing about when."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from sqlalchemy import insert
from sqlalchemy.orm import Session

from app import models
from app.errors import InvalidInput
from app.library import one_at_a_time
from app.studies.creating import check_name_free
from app.studies.freezing import content_hash
from app.studies.lines import read_lines
from app.studies.settings import check_name
from app.studies.sheets import Sheet, SheetItem, read_sheet

READABLE = (".xlsx", ".csv", ".jsonl", ".zip")


def read_study(path: Path, name: str | None = None) -> Sheet:
    """The file's items with all faults: a sheet (.xlsx, .csv), JSON lines, or a replication bundle (.zip)."""
    suffix = Path(name or path.name).suffix.lower()
    if suffix in (".jsonl", ".zip"):
        return read_lines(path, name)
    if suffix in READABLE:
        return read_sheet(path, name)
    raise InvalidInput(f"{name or path.name}: a study is read from {', '.join(READABLE)}.")


def store_sheet(
    session: Session, sheet: Sheet, name: str, *, owner: models.Account | None = None
) -> models.Study:
    """The sheet as a closed study of its own. Conflict where one of this name is stored."""
    if sheet.errors:
        raise ValueError("a sheet with errors is not stored")
    check_name(name)
    one_at_a_time(session, f"study {name}")
    check_name_free(session, name)
    study = models.Study(
        name=name,
        title=name,
        owner_id=None if owner is None else owner.id,
        design=models.StudyDesign.IMPORTED,
        state=models.StudyState.CLOSED,
        planned=len(sheet.items),
        seed=0,
        draw={"origin": sheet.origin} if sheet.origin else {},
        judges_per_item=max([1, *(len(item.ratings) for item in sheet.items)]),
        repeat_share=0.0,
    )
    study.closed_at = datetime.now(UTC)  # when it was taken in; when it really ended is not known
    session.add(study)
    session.flush()
    items = _store_items(session, study.id, sheet.items)
    judges = _store_judges(session, study.id, sheet)
    ratings = [
        {
            "judge_id": judges[judge],
            "item_id": items[position],
            "repeat": False,
            "rating": rating,
            "comment": item.comments.get(judge),
            "counted": True,
        }
        for position, item in enumerate(sheet.items, 1)
        for judge, rating in item.ratings.items()
    ]
    if ratings:
        session.execute(insert(models.StudyRating), ratings)
    _store_histories(session, sheet.items, items, judges)
    _store_labels(session, study.id, sheet.items, items)
    study.content_hash = content_hash(session, study)
    session.flush()
    return study


def _store_items(session: Session, study_id: int, items: Sequence[SheetItem]) -> dict[int, int]:
    """Position -> id."""
    values = [
        {
            "study_id": study_id,
            "kind": models.ItemKind.MAIN,
            "position": position,
            "case_key": str(item.number),
            "constraint": item.constraint,
            "request": item.request,
            "response": item.response,
            "model": item.model,
            "scenario": item.scenario,
            "variant": item.variant,
            "category": item.category,
            "evaluator_rating": item.evaluator_rating,
            "evaluator_explanation": item.evaluator_explanation,
            "stratum": item.stratum,
            "inclusion_probability": item.inclusion_probability,
            "shuffle": 0.0,  # nobody draws from it any more
            "counted": len(item.ratings),
        }
        for position, item in enumerate(items, 1)
    ]
    stored = insert(models.StudyItem).returning(models.StudyItem.position, models.StudyItem.id)
    return {position: id_ for position, id_ in session.execute(stored, values)}  # noqa: C416


def _store_judges(session: Session, study_id: int, sheet: Sheet) -> dict[int, int]:
    """Number -> id."""
    rated = Counter(number for item in sheet.items for number in item.ratings)
    values = [
        {
            "study_id": study_id,
            "number": number,
            "state": models.JudgeState.STOPPED,
            "order_seed": 0,
            "rated": rated[number],
        }
        for number in sheet.judges
    ]
    stored = insert(models.StudyJudge).returning(models.StudyJudge.number, models.StudyJudge.id)
    return {number: id_ for number, id_ in session.execute(stored, values)}  # noqa: C416


def _store_histories(
    session: Session, items: Sequence[SheetItem], ids: dict[int, int], judges: dict[int, int]
) -> None:
    """The steps of each rating that a file tells of; when they were taken is not known."""
    changes = [
        {
            "judge_id": judges[judge],
            "item_id": ids[position],
            "repeat": False,
            "before": before,
            "after": after,
            "at": None,
        }
        for position, item in enumerate(items, 1)
        for judge, history in item.histories.items()
        if history
        for before, after in pairwise([None, *history, item.ratings[judge]])
    ]
    if changes:
        unknown_times = insert(models.StudyRatingChange).execution_options(render_nulls=True)
        session.execute(unknown_times, changes)


def _store_labels(session: Session, study_id: int, items: Sequence[SheetItem], ids: dict[int, int]) -> None:
    labelled = [
        (ids[position], item) for position, item in enumerate(items, 1) if item.final_rating is not None
    ]
    labels = [
        {
            "study_id": study_id,
            "item_id": identity,
            "position": position,
            "contested": len({*item.ratings.values(), item.evaluator_rating} - {None}) > 1,
            "label": item.final_rating,
            "reason": item.final_reason,
            "labelled_at": None,
            "earlier": [
                {"label": label, "reason": reason, "note": None, "by": None, "at": None}
                for label, reason in item.final_earlier
            ],
        }
        for position, (identity, item) in enumerate(labelled, 1)
    ]
    if labels:
        session.execute(insert(models.StudyAdjudication), labels)

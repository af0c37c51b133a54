"""After the close: contested items, mixed with a tenth of the others, get a final label.

Whoever adjudicates sees what a judge saw and no more: neither ratings nor verdict, nor whether the item is
contested. The ratings stay as they are, so that agreement before and after can both be told.
"""

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import func, insert, select, text
from sqlalchemy.orm import Session

from app import models
from app.errors import Conflict, InvalidInput, NotFound
from app.models import StudyState
from app.outcomes import Rating
from app.studies.finding import hold
from app.studies.judging import as_rating, checked_comment
from app.studies.reasons import REASONS

SHARE_OF_OTHERS = 0.10

# Whether its counted ratings, or these and the evaluator, are not all alike.
CONTESTED = text("""
SELECT i.id, min(r.rating) <> max(r.rating)
       OR coalesce(i.evaluator_rating <> min(r.rating), false) AS contested
FROM study_item i JOIN study_rating r ON r.item_id = i.id AND r.counted
WHERE i.study_id = :study AND i.kind = 'main'
GROUP BY i.id ORDER BY i.position
""")


@dataclass(frozen=True)
class AdjudicationView:
    """An item to label; `label` and `reason` are what stands now."""

    uuid: UUID
    constraint: str
    request: str
    response: str
    position: int
    label: Rating | None
    reason: str | None
    note: str | None


@dataclass(frozen=True)
class AdjudicationProgress:
    labelled: int
    items: int


def prepare(session: Session, study: models.Study) -> int:
    """Make the queue, once: contested items and a random tenth of the others, in random order.

    How many there are. Conflict before the close.
    """
    hold(session, study)
    if study.state != StudyState.CLOSED:
        raise Conflict(f"The study '{study.name}' is {study.state}: items are adjudicated after the close.")
    there = session.scalars(
        select(func.count()).select_from(models.StudyAdjudication).filter_by(study_id=study.id)
    ).one()
    if there:
        return there
    rows = session.execute(CONTESTED, {"study": study.id}).all()
    dice = random.Random(f"{study.seed}:adjudication")  # noqa: S311  (repeatable, no secret)
    contested = [row.id for row in rows if row.contested]
    others = [row.id for row in rows if not row.contested]
    mixed_in = dice.sample(others, round(SHARE_OF_OTHERS * len(others))) if contested else []
    queue = [*((one, True) for one in contested), *((one, False) for one in mixed_in)]
    dice.shuffle(queue)
    if queue:
        session.execute(
            insert(models.StudyAdjudication),
            [
                {"study_id": study.id, "item_id": item, "position": position, "contested": is_contested}
                for position, (item, is_contested) in enumerate(queue, 1)
            ],
        )
    return len(queue)


def next_contested(session: Session, study: models.Study) -> AdjudicationView | None:
    """The first that has no label yet; None when all have one."""
    a = models.StudyAdjudication
    query = select(a, models.StudyItem).join(models.StudyItem, models.StudyItem.id == a.item_id)
    row = session.execute(
        query.where(a.study_id == study.id, a.label.is_(None)).order_by(a.position).limit(1)
    ).one_or_none()
    return _view(*row) if row is not None else None


def adjudication(session: Session, study: models.Study, identity: UUID) -> AdjudicationView:
    """One of the queue, labelled or not; NotFound."""
    return _view(*_find(session, study, identity))


def labelled(session: Session, study: models.Study) -> list[AdjudicationView]:
    """What has a label, in the order of the queue, to look over and change."""
    a = models.StudyAdjudication
    query = select(a, models.StudyItem).join(models.StudyItem, models.StudyItem.id == a.item_id)
    rows = session.execute(query.where(a.study_id == study.id, a.label.is_not(None)).order_by(a.position))
    return [_view(*row) for row in rows]


def adjudication_progress(session: Session, study: models.Study) -> AdjudicationProgress:
    a = models.StudyAdjudication
    query = select(func.count(a.label), func.count()).select_from(a).where(a.study_id == study.id)
    done, items = session.execute(query).one()
    return AdjudicationProgress(done, items)


def label(
    session: Session,
    study: models.Study,
    identity: UUID,
    rating: int,
    reason: str,
    *,
    note: str | None = None,
    by: models.Account | None = None,
) -> AdjudicationView:
    """Give or change the final label; an earlier one stays in the item's history.

    NotFound for an item that is not in the queue, InvalidInput for a reason that there is not.
    """
    given = as_rating(rating)
    if reason not in REASONS:
        raise InvalidInput(f"Choose a reason: {', '.join(REASONS)}.")
    row, item = _find(session, study, identity)
    kept = checked_comment(note)
    if (row.label, row.reason, row.note) == (int(given), reason, kept):
        return _view(row, item)
    if row.label is not None:
        before = {
            "label": row.label,
            "reason": row.reason,
            "note": row.note,
            "by": row.labelled_by_id,
            "at": row.labelled_at.isoformat() if row.labelled_at else None,
        }
        row.earlier = [*row.earlier, before]
    row.label, row.reason, row.note = int(given), reason, kept
    row.labelled_by_id, row.labelled_at = (by.id if by else None), datetime.now(UTC)
    session.flush()
    return _view(row, item)


def _find(
    session: Session, study: models.Study, identity: UUID
) -> tuple[models.StudyAdjudication, models.StudyItem]:
    a = models.StudyAdjudication
    row = session.execute(
        select(a, models.StudyItem)
        .join(models.StudyItem, models.StudyItem.id == a.item_id)
        .where(a.study_id == study.id, a.uuid == identity)
        .with_for_update(of=a)
    ).one_or_none()
    if row is None:
        raise NotFound("This item is not among those to adjudicate.")
    return row[0], row[1]


def _view(row: models.StudyAdjudication, item: models.StudyItem) -> AdjudicationView:
    return AdjudicationView(
        row.uuid, item.constraint, item.request, item.response, row.position,
        None if row.label is None else Rating(row.label), row.reason, row.note,
    )  # fmt: skip

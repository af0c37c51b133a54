"""Reference sets: a closed study's items with what people said of them, frozen to be rated again."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from app import models
from app.agreement import EVALUATOR
from app.errors import Conflict, InvalidInput
from app.models import ItemKind, StudyState
from app.protocol import Reduced
from app.studies.finding import hold
from app.studies.reporting import rated_items

LEAST_ITEMS = 10
MOST_DAYS = 366


def freeze(session: Session, study: models.Study) -> models.ReferenceSet:
    """The study's reference set, made now or earlier. The caller commits.

    Items without one human rating (adjudicated, else that of more than half) are left out. Conflict for a
    study that is not closed, or that leaves fewer than LEAST_ITEMS.
    """
    hold(session, study)
    if (found := reference_of(session, study)) is not None:
        return found
    if study.state != StudyState.CLOSED:
        raise Conflict(
            f"Study {study.name} is {study.state}: only a closed one can be frozen as a reference."
        )
    items = _items(session, study)
    if len(items) < LEAST_ITEMS:
        raise Conflict(
            f"Study {study.name} has {len(items)} items with one human rating; "
            f"a reference set takes {LEAST_ITEMS} at least. Adjudicate those that are split."
        )
    canonical = json.dumps(items, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    row = models.ReferenceSet(
        study_id=study.id,
        content_hash=hashlib.sha256(canonical.encode("ascii")).hexdigest(),
        size=len(items),
        items=items,
    )
    session.add(row)
    session.flush()
    return row


def reference_of(session: Session, study: models.Study) -> models.ReferenceSet | None:
    query = select(models.ReferenceSet).options(joinedload(models.ReferenceSet.study))
    return session.scalars(query.filter_by(study_id=study.id)).one_or_none()


def set_schedule(row: models.ReferenceSet, every_days: int | None) -> None:
    """How often the scheduler rates it again; None: on demand only."""
    if every_days is not None and not 1 <= every_days <= MOST_DAYS:
        raise InvalidInput(f"A reference set is rated again every 1 to {MOST_DAYS} days, or on demand only.")
    row.every_days = every_days


def conversations(row: models.ReferenceSet) -> list[Reduced]:
    return [Reduced(item["constraint"], item["request"], item["response"]) for item in row.items]


def labels(row: models.ReferenceSet) -> list[int]:
    """What people said, item by item."""
    return [int(item["rating"]) for item in row.items]


def _items(session: Session, study: models.Study) -> list[dict[str, Any]]:
    i = models.StudyItem
    texts = session.execute(
        select(i.constraint, i.request, i.response, i.unmasked_response)
        .where(i.study_id == study.id, i.kind == ItemKind.MAIN)
        .order_by(i.position)
    ).all()
    rated = rated_items(session, study)
    found = []
    for (constraint, request, response, unmasked), item in zip(texts, rated, strict=True):
        rating = item.label if item.label is not None else _of_most(item.ratings)
        response = unmasked or response
        if rating is not None and response.strip():
            found.append(
                {"constraint": constraint, "request": request, "response": response, "rating": rating}
            )
    return found


def _of_most(ratings: Mapping[str, int]) -> int | None:
    """The rating of more than half of the humans."""
    given: Sequence[int] = [rating for rater, rating in ratings.items() if rater != EVALUATOR]
    if not given:
        return None
    rating, n = Counter(given).most_common(1)[0]
    return rating if 2 * n > len(given) else None

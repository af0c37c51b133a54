"""Items whose rating is known: training, with feedback, and gold, to watch over quality.

Others' items may be taken over with the label that people gave them: a final one, or one that all of two or
more judges agreed on. What the evaluator said of them plays no part, so that judges are not trained to agree
with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, select, text
from sqlalchemy.orm import Session

from app import models
from app.accounts.policies import is_admin
from app.errors import Conflict, InvalidInput, NotFound
from app.models import ItemKind, StudyState
from app.outcomes import Category, Rating
from app.studies.settings import KnownItem
from app.studies.topics import topics_of

TRAINING_ITEMS = 6
MOST_KNOWN = 200
LONGEST = 100_000
OFFERED = 30

RATED_AS_EXPECTED = text("""
SELECT r.item_id, count(*) FILTER (WHERE r.rating = i.expected) AS right, count(*) AS rated
FROM study_rating r JOIN study_item i ON i.id = r.item_id
WHERE i.study_id = :study AND i.kind = 'gold' GROUP BY 1
""")

# In an order that has nothing to do with what anybody said of them; none that this study shows already.
OFFERS = text("""
WITH rated AS (
    SELECT i.id, count(r.id) AS n, min(r.rating) AS low, max(r.rating) AS high
    FROM study s JOIN study_item i ON i.study_id = s.id AND i.kind = 'main'
    LEFT JOIN study_rating r ON r.item_id = i.id AND r.counted
    WHERE s.state = 'closed' AND s.id <> :study AND (:admin OR s.owner_id = :owner)
    GROUP BY i.id
)
SELECT i.uuid, s.name AS study, i.constraint, i.request, i.response, i.category, a.label IS NOT NULL AS final,
       rated.n, coalesce(a.label, rated.low) AS rating, count(*) OVER () AS total
FROM rated JOIN study_item i ON i.id = rated.id JOIN study s ON s.id = i.study_id
LEFT JOIN study_adjudication a ON a.item_id = i.id
WHERE (a.label IS NOT NULL OR rated.n >= 2 AND rated.low = rated.high)
  AND (CAST(:rating AS smallint) IS NULL OR coalesce(a.label, rated.low) = :rating)
  AND (CAST(:item AS uuid) IS NULL OR i.uuid = :item)
  AND i.response <> ''
  AND NOT EXISTS (
      SELECT 1 FROM study_item o
      WHERE o.study_id = :study AND o.constraint = i.constraint
        AND (o.kind = 'main' OR o.request = i.request AND o.response = i.response)
  )
ORDER BY md5(i.uuid::text) LIMIT :limit
""")


@dataclass(frozen=True)
class StandingItem:
    """A known item of a study; `rated` and `right`: by how many judges, and by how many as expected."""

    uuid: UUID
    position: int
    item: KnownItem
    rated: int
    right: int


@dataclass(frozen=True)
class Offer:
    """An item of another study; `judges` agreed on its label, or it is `final`."""

    uuid: UUID
    study: str
    item: KnownItem
    judges: int
    final: bool


def require_draft(study: models.Study) -> None:
    if study.state != StudyState.DRAFT:
        raise Conflict(
            f"The study '{study.name}' is {study.state}: its items and texts do not change any more. "
            "Clone it to change them."
        )


def set_training(session: Session, study: models.Study, items: Sequence[KnownItem]) -> None:
    """Put these in the place of the training items; each needs feedback. Conflict unless a draft."""
    if len(items) < TRAINING_ITEMS:
        raise InvalidInput(f"Training takes at least {TRAINING_ITEMS} items, not {len(items)}.")
    set_known(session, study, ItemKind.TRAINING, items)


def set_gold(session: Session, study: models.Study, items: Sequence[KnownItem]) -> None:
    """Put these in the place of the gold items, perhaps none. Conflict unless a draft."""
    set_known(session, study, ItemKind.GOLD, items)


def set_known(session: Session, study: models.Study, kind: ItemKind, items: Sequence[KnownItem]) -> None:
    """The same for either kind, with any number of items up to MOST_KNOWN."""
    require_draft(study)
    if len(items) > MOST_KNOWN:
        raise InvalidInput(f"A study takes at most {MOST_KNOWN} {kind} items.")
    for one in items:
        _check(kind, one)
    session.execute(delete(models.StudyItem).filter_by(study_id=study.id, kind=kind.value))
    session.add_all(
        models.StudyItem(study_id=study.id, kind=kind.value, position=position, shuffle=0.0, **_columns(one))
        for position, one in enumerate(items, 1)
    )
    session.flush()
    _renumber(session, study, kind)


def add(session: Session, study: models.Study, kind: ItemKind, item: KnownItem) -> None:
    """One more, at the end. InvalidInput without a text or feedback, Conflict unless a draft."""
    require_draft(study)
    _check(kind, item)
    there = _rows(session, study, kind)
    if len(there) >= MOST_KNOWN:
        raise InvalidInput(f"A study takes at most {MOST_KNOWN} {kind} items.")
    if any((one.constraint, one.request, one.response) == _texts(item) for one in there):
        raise Conflict(f"This is one of the {kind} items already.")
    session.add(
        models.StudyItem(
            study_id=study.id, kind=kind.value, position=len(there) + 1, shuffle=0.0, **_columns(item)
        )
    )
    session.flush()
    _renumber(session, study, kind)


def change(session: Session, study: models.Study, kind: ItemKind, identity: UUID, item: KnownItem) -> None:
    """Put this in an item's place. NotFound, Conflict unless a draft."""
    require_draft(study)
    _check(kind, item)
    row = _find(session, study, kind, identity)
    for name, value in _columns(item).items():
        setattr(row, name, value)
    row.unmasked_response = None
    session.flush()


def remove(session: Session, study: models.Study, kind: ItemKind, identity: UUID) -> None:
    """Take one out. NotFound, Conflict unless a draft."""
    require_draft(study)
    session.delete(_find(session, study, kind, identity))
    session.flush()
    _renumber(session, study, kind)


def standing_items(session: Session, study: models.Study, kind: ItemKind) -> list[StandingItem]:
    """In the order in which judges get them (gold: in the owner's order)."""
    rated = {row.item_id: row for row in session.execute(RATED_AS_EXPECTED, {"study": study.id})}
    return [
        StandingItem(
            row.uuid,
            row.position,
            _known(row),
            rated=rated[row.id].rated if row.id in rated else 0,
            right=rated[row.id].right if row.id in rated else 0,
        )
        for row in _rows(session, study, kind)
    ]


def known(session: Session, study: models.Study, kind: ItemKind, identity: UUID) -> KnownItem:
    """One of them; NotFound."""
    return _known(_find(session, study, kind, identity))


def _known(row: models.StudyItem) -> KnownItem:
    assert row.expected is not None  # by a constraint of the table
    rating = Rating(row.expected)
    return KnownItem(row.constraint, row.request, row.response, rating, row.feedback, row.category)


def offers(
    session: Session, person: models.Account, study: models.Study, rating: Rating | None = None
) -> tuple[list[Offer], int]:
    """Items of the person's closed studies that people labelled, OFFERED at most; how many in all."""
    rows = _offered(session, person, study, rating=rating)
    return [_offer(row) for row in rows], rows[0].total if rows else 0


def offer(session: Session, person: models.Account, study: models.Study, identity: UUID) -> Offer:
    """One of the offers; NotFound."""
    rows = _offered(session, person, study, item=identity)
    if not rows:
        raise NotFound("This item cannot be taken over: it has no label, or the study shows it already.")
    return _offer(rows[0])


def _offered(
    session: Session,
    person: models.Account,
    study: models.Study,
    *,
    rating: Rating | None = None,
    item: UUID | None = None,
) -> list[Any]:
    values = {
        "study": study.id,
        "owner": person.id,
        "admin": is_admin(person),
        "rating": None if rating is None else int(rating),
        "item": item,
        "limit": OFFERED,
    }
    return list(session.execute(OFFERS, values))


def _offer(row: Any) -> Offer:
    category = row.category if row.category in tuple(Category) else None
    item = KnownItem(row.constraint, row.request, row.response, Rating(row.rating), None, category)
    return Offer(row.uuid, row.study, item, row.n, row.final)


def _check(kind: ItemKind, item: KnownItem) -> None:
    for name, value in zip(("constraint", "request", "response"), _texts(item), strict=True):
        if not value.strip():
            raise InvalidInput(f"A {kind} item needs a {name}.")
        if len(value) > LONGEST:
            raise InvalidInput(f"The {name} is longer than {LONGEST:,} characters.")
    if kind == ItemKind.TRAINING and not (item.feedback or "").strip():
        raise InvalidInput("Each training item needs feedback: what is right, and why.")


def _texts(item: KnownItem) -> tuple[str, str, str]:
    return item.constraint, item.request, item.response


def _columns(item: KnownItem) -> dict[str, object]:
    return {
        "constraint": item.constraint,
        "request": item.request,
        "response": item.response,
        "expected": int(item.rating),
        "feedback": item.feedback,
        "category": item.category,
        "topics": topics_of(item.category, item.constraint),
    }


def _rows(session: Session, study: models.Study, kind: ItemKind) -> list[models.StudyItem]:
    query = select(models.StudyItem).filter_by(study_id=study.id, kind=kind.value)
    return list(session.scalars(query.order_by(models.StudyItem.position)))


def _find(session: Session, study: models.Study, kind: ItemKind, identity: UUID) -> models.StudyItem:
    query = select(models.StudyItem).filter_by(study_id=study.id, kind=kind.value, uuid=identity)
    row = session.scalars(query).one_or_none()
    if row is None:
        raise NotFound(f"This study has no such {kind} item.")
    return row


def _renumber(session: Session, study: models.Study, kind: ItemKind) -> None:
    """Positions from 1 without a gap, and places in the series at even distances."""
    rows = _rows(session, study, kind)
    for position, row in enumerate(rows, 1):
        row.position, row.shuffle = position, (position - 0.5) / len(rows)
        session.flush()  # one by one: two never stand at one position


def training_count(session: Session, study: models.Study) -> int:
    query = select(func.count()).select_from(models.StudyItem)
    return session.scalars(query.filter_by(study_id=study.id, kind=ItemKind.TRAINING.value)).one()

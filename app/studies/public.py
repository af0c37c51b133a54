"""Studies as everybody may read them: under way, that they are; closed, what the judges said, never who.

Public is a study that draws on runs of the board alone. One over private runs is its owner's, and so is an
imported sheet.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import Session, joinedload

from app import models
from app.accounts.policies import conversations_visible_to, published
from app.accounts.withholding import until_words
from app.errors import NotFound
from app.models import ItemKind, StudyDesign, StudyState
from app.outcomes import Rating
from app.studies.reporting import ratings_by_item, study_report

PAGE = 50
SHOWN = (StudyState.OPEN, StudyState.PAUSED, StudyState.CLOSED)


@dataclass(frozen=True)
class PublicItem:
    """`said`: how many judges gave each rating. `rating`: the evaluator's; `label`: given after the close."""

    position: int
    conversation: UUID
    model: str
    scenario: str
    category: str
    constraint: str
    request: str
    response: str
    rating: Rating | None
    said: dict[Rating, int]
    label: Rating | None

    @property
    def judges(self) -> int:
        return sum(self.said.values())


@dataclass(frozen=True)
class Said:
    """What judges said of one conversation in a study that is closed."""

    study: models.Study
    said: dict[Rating, int]


def until(study: models.Study) -> str:
    return until_words(study.expected_close)


def list_public(session: Session) -> list[models.Study]:
    """The newest first."""
    query = select(models.Study).where(*_public()).order_by(models.Study.id.desc())
    return list(session.scalars(query))


def find_public(session: Session, identity: UUID) -> models.Study:
    """NotFound for one that is not public."""
    query = select(models.Study).options(joinedload(models.Study.evaluator)).where(*_public())
    row = session.scalars(query.where(models.Study.uuid == identity)).one_or_none()
    if row is None:
        raise NotFound("There is no such study, or it is not public.")
    return row


def _public() -> tuple[ColumnElement[bool], ...]:
    s, r = models.Study, models.StudyRun
    drawn = select(r.run_id).where(r.study_id == s.id).correlate(s)
    private = select(models.Run.id).where(models.Run.id.in_(drawn), ~published())
    return s.state.in_(SHOWN), s.design != StudyDesign.IMPORTED, exists(drawn), ~exists(private)


def public_report(session: Session, study: models.Study) -> dict[str, Any]:
    """Of a closed study what concerns nobody in particular: no pairs of judges, no times, no draw."""
    report = study_report(session, study)
    kept = ("all", "evaluator_vs_consensus", "consensus", "adjudication")
    described = ("uuid", "title", "design", "state", "judges_per_item", "hash", "evaluator", "closed_at")
    return {
        "study": {name: report["study"][name] for name in described},
        "items": report["items"],
        "judges": sum(rater != "evaluator" for rater in report["raters"]),
        "ratings": report["study"]["ratings"]["counted"],
        **{name: report.get(name) for name in kept},
        "undefined": {
            path: why
            for path, why in report["undefined"].items()
            if path.partition(".")[0].partition("[")[0] in kept
        },
    }


def public_items(session: Session, study: models.Study, page: int) -> tuple[list[PublicItem], int]:
    """A page of a closed study's items whose conversations everybody may read; and how many pages there are.

    NotFound for a page that there is not.
    """
    i, c, k, a = models.StudyItem, models.Conversation, models.Case, models.StudyAdjudication
    readable = (
        select(i, c.uuid, a.label)
        .join(c, c.id == i.conversation_id)
        .join(models.Run, models.Run.id == c.run_id)
        .join(k, k.id == c.case_id)
        .outerjoin(a, a.item_id == i.id)
        .where(i.study_id == study.id, i.kind == ItemKind.MAIN, conversations_visible_to(None))
    )
    total = session.scalars(select(func.count()).select_from(readable.subquery())).one()
    pages = max(1, -(-total // PAGE))
    if not 1 <= page <= pages:
        raise NotFound("There is no such page of this list.")
    given = ratings_by_item(session, study)
    rows = session.execute(readable.order_by(i.position).limit(PAGE).offset((page - 1) * PAGE))
    return [
        PublicItem(
            item.position, conversation, item.model or "", item.scenario or "", item.category or "",
            item.constraint, item.request, item.response, _rating(item.evaluator_rating),
            _counted(given.get(item.id, {})), _rating(label),
        )
        for item, conversation, label in rows
    ], pages  # fmt: skip


def _rating(value: int | None) -> Rating | None:
    return None if value is None else Rating(value)


def _counted(ratings: dict[str, int]) -> dict[Rating, int]:
    counts = Counter(ratings.values())
    return {rating: counts[rating] for rating in Rating}


def said_of(session: Session, conversation: models.Conversation) -> list[Said]:
    """In every public study that is closed, the oldest first."""
    i, r, s = models.StudyItem, models.StudyRating, models.Study
    rows = session.execute(
        select(s.id, r.rating, func.count())
        .join(i, i.study_id == s.id)
        .join(r, r.item_id == i.id)
        .where(i.conversation_id == conversation.id, i.kind == ItemKind.MAIN, r.counted, ~r.repeat)
        .where(s.state == StudyState.CLOSED, *_public())
        .group_by(s.id, r.rating)
        .order_by(s.id)
    )
    found: dict[int, dict[Rating, int]] = {}
    for study, rating, n in rows:
        found.setdefault(study, dict.fromkeys(Rating, 0))[Rating(rating)] = n
    return [Said(session.get_one(models.Study, study), said) for study, said in found.items()]

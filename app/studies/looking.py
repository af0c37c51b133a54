"""What stands behind a cell of a confusion matrix, for the owner: the items that two raters rated so."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app import models
from app.agreement import CONSENSUS, EVALUATOR, FINAL, consensus_of
from app.models import ItemKind
from app.outcomes import Rating
from app.studies.reporting import ratings_by_item

MOST = 100


@dataclass(frozen=True)
class Behind:
    """An item with every rating that counts, by rater; `conversation` None: it came with a sheet."""

    position: int
    model: str | None
    scenario: str | None
    category: str | None
    constraint: str
    request: str
    response: str
    explanation: str | None
    ratings: dict[str, Rating]
    label: Rating | None
    conversation: UUID | None


def items_behind(
    session: Session, study: models.Study, wanted: dict[str, Rating], *, after: int = 0
) -> tuple[list[Behind], int, bool]:
    """Main items that each of these raters rated so, by position from `after` on; how many in all; more?

    `consensus` and `final` (the label, else the consensus) are raters, too, as in the report.
    """
    given = ratings_by_item(session, study)
    i, a = models.StudyItem, models.StudyAdjudication
    rows = session.execute(
        select(i.id, i.position, i.evaluator_rating, a.label)
        .outerjoin(a, a.item_id == i.id)
        .where(i.study_id == study.id, i.kind == ItemKind.MAIN)
        .order_by(i.position)
    )
    found = []
    for identity, position, evaluator, label in rows:
        humans = given.get(identity, {})
        ratings = humans | ({} if evaluator is None else {EVALUATOR: evaluator})
        consensus = consensus_of(list(humans.values()))
        said = ratings | {CONSENSUS: consensus, FINAL: consensus if label is None else label}
        if all(said.get(rater) == rating for rater, rating in wanted.items()):
            found.append((identity, position, ratings))
    page = [one for one in found if one[1] > after][:MOST]
    more = bool(page) and page[-1][1] < found[-1][1]
    return _told(session, page), len(found), more


def _told(session: Session, page: list[tuple[int, int, dict[str, int]]]) -> list[Behind]:
    i, a, c = models.StudyItem, models.StudyAdjudication, models.Conversation
    rows = session.execute(
        select(i, a.label, c.uuid)
        .outerjoin(a, a.item_id == i.id)
        .outerjoin(c, c.id == i.conversation_id)
        .where(i.id.in_([identity for identity, _, _ in page]))
        .order_by(i.position)
    )
    ratings = {identity: told for identity, _, told in page}
    return [
        Behind(
            item.position, item.model, item.scenario, item.category, item.constraint, item.request,
            item.response, item.evaluator_explanation,
            {rater: Rating(rating) for rater, rating in _in_order(ratings[item.id])},
            None if label is None else Rating(label),
            conversation,
        )
        for item, label, conversation in rows
    ]  # fmt: skip


def _in_order(ratings: dict[str, int]) -> list[tuple[str, int]]:
    """The evaluator first, then judges by number."""
    return sorted(ratings.items(), key=lambda one: (one[0] != EVALUATOR, len(one[0]), one[0]))

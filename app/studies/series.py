"""A judge's own series: the ratings given so far, changes to them, a pause, the end, the withdrawal."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select, text, update
from sqlalchemy.orm import Session

from app import models
from app.errors import Conflict, InvalidInput, NotFound
from app.models import ItemKind, JudgeState, StudyState
from app.outcomes import Rating
from app.studies.judging import as_rating, checked_comment
from app.studies.places import lock_judge, move_up
from app.studies.topics import TOPICS
from app.studies.turns import COMMENT_ON, NOTE_CHANGE, find_turn

PAGE = 50

# Repeats are not shown: who sees them side by side would make them alike.
OWN = """
SELECT t.uuid, i.constraint, i.request, i.response, r.rating, r.comment, r.submitted_at, r.revised_at,
       (SELECT count(*) FROM study_rating_change c
        WHERE c.judge_id = r.judge_id AND c.item_id = r.item_id AND c.repeat = r.repeat) - 1 AS changes,
       count(*) OVER () AS total
FROM study_rating r
JOIN study_turn t ON t.judge_id = r.judge_id AND t.item_id = r.item_id AND t.repeat = r.repeat
JOIN study_item i ON i.id = r.item_id
WHERE r.judge_id = :judge AND NOT r.repeat AND i.kind <> 'training'
"""
OWN_PAGE = text(f"{OWN} ORDER BY r.submitted_at DESC, r.id DESC LIMIT :limit OFFSET :offset")
OWN_ONE = text(f"{OWN} AND t.uuid = :key")

REVISE = text("""
UPDATE study_rating SET rating = :rating, revised_at = clock_timestamp() WHERE id = :rating_id
""")

LET_GO = text("""
UPDATE study_turn SET state = 'later', lease_until = NULL, put_off_at = now()
WHERE judge_id = :judge AND state = 'leased'
""")

# In the order of the items, as everybody who takes several rows' locks must.
COUNTED_ITEMS = text("""
SELECT i.id FROM study_item i JOIN study_rating r ON r.item_id = i.id
WHERE r.judge_id = :judge AND r.counted ORDER BY i.id FOR NO KEY UPDATE OF i
""")

GIVE_BACK = text("UPDATE study_item SET counted = counted - 1 WHERE id = ANY(:items)")

NOTHING_PERSONAL: dict[str, Any] = {
    "pseudonym": None, "external_id": None, "account_id": None, "return_hash": None, "refused_topics": [],
    "active_ms": 0, "rated": 0, "beat_at": None,
}  # fmt: skip


@dataclass(frozen=True)
class OwnRating:
    """`changes`: how often it was changed since it was given."""

    key: str
    constraint: str
    request: str
    response: str
    rating: Rating
    comment: str | None
    submitted_at: datetime
    revised_at: datetime | None
    changes: int


@dataclass(frozen=True)
class OwnRatings:
    ratings: list[OwnRating]
    total: int
    pages: int


@dataclass(frozen=True)
class Completion:
    """What a panel of paid judges asks for at the end."""

    code: str | None
    url: str | None


def own_ratings(session: Session, judge: models.StudyJudge, page: int = 1) -> OwnRatings:
    """The latest first. NotFound for a page that there is not."""
    if page < 1:
        raise NotFound("The pages of this list begin at 1.")
    values = {"judge": judge.id, "limit": PAGE, "offset": (page - 1) * PAGE}
    rows = session.execute(OWN_PAGE, values).all()
    if not rows and page > 1:
        raise NotFound("This list has no such page.")
    total = rows[0].total if rows else 0
    return OwnRatings([_own(row) for row in rows], total, max(1, -(-total // PAGE)))


def _own(row: Any) -> OwnRating:
    return OwnRating(
        str(row.uuid), row.constraint, row.request, row.response, Rating(row.rating), row.comment,
        row.submitted_at, row.revised_at, row.changes,
    )  # fmt: skip


def revise(
    session: Session, judge: models.StudyJudge, key: str, rating: int, *, comment: str | None = None
) -> OwnRating:
    """Change a rating of one's own; the history keeps each step. The same once more changes nothing.

    `comment` None leaves the comment as it is. NotFound for what was not rated, Conflict after the close.
    """
    given = as_rating(rating)
    note = checked_comment(comment)
    standing = lock_judge(session, judge)
    standing.require_ratings()
    turn = find_turn(session, standing, key)
    if turn.rating is None or turn.repeat or turn.kind == ItemKind.TRAINING:
        raise NotFound("This is none of the ratings that you can change.")
    if turn.rating != given:
        place = {"judge": judge.id, "item": turn.item_id, "repeat": turn.repeat, "submission": None}
        session.execute(REVISE, {"rating": int(given), "rating_id": turn.rating_id})
        session.execute(NOTE_CHANGE, place | {"before": turn.rating, "after": int(given)})
    if comment is not None:
        session.execute(COMMENT_ON, {"rating": turn.rating_id, "comment": note})
    return _own(session.execute(OWN_ONE, {"judge": judge.id, "key": turn.uuid}).one())


def set_modes(
    session: Session,
    judge: models.StudyJudge,
    *,
    quick: bool | None = None,
    shortcuts: bool | None = None,
    refused_topics: tuple[str, ...] | None = None,
) -> None:
    """What is given is changed; it holds from the next item on."""
    values: dict[str, Any] = {}
    if quick is not None:
        values["quick"] = quick
    if shortcuts is not None:
        values["shortcuts"] = shortcuts
    if refused_topics is not None:
        unknown = [one for one in refused_topics if one not in TOPICS]
        if unknown:
            raise InvalidInput(f"There is no topic '{unknown[0][:40]}'.")
        values["refused_topics"] = [topic for topic in TOPICS if topic in refused_topics]
    lock_judge(session, judge)
    if values:
        _change(session, judge, **values)


def _change(session: Session, judge: models.StudyJudge, **values: Any) -> None:
    session.execute(update(models.StudyJudge).where(models.StudyJudge.id == judge.id).values(**values))


def stop(session: Session, judge: models.StudyJudge) -> None:
    """End for now or for good: what was rated stays, what is on the screen goes back to the others."""
    standing = lock_judge(session, judge)
    if standing.state in (JudgeState.WITHDRAWN, JudgeState.STOPPED):
        return
    session.execute(LET_GO, {"judge": judge.id})
    _change(session, judge, state=JudgeState.STOPPED.value, stopped_at=datetime.now(UTC))


def go_on(session: Session, judge: models.StudyJudge) -> None:
    """Rate again after a stop; training that was not finished comes first."""
    standing = lock_judge(session, judge)
    if standing.state is JudgeState.STOPPED:
        _change(session, judge, state=JudgeState.TRAINING.value, stopped_at=None)


def withdraw(session: Session, judge: models.StudyJudge) -> int:
    """Delete all that this judge gave, and leave a tombstone; how many ratings were deleted.

    Places become free again, for ratings that wait for one first. Once more, it does nothing. Conflict after
    the close.
    """
    standing = lock_judge(session, judge)
    if standing.state is JudgeState.WITHDRAWN:
        query = select(models.StudyJudge.ratings_deleted).filter_by(id=judge.id)
        return session.scalars(query).one() or 0
    if standing.study_state is StudyState.CLOSED:
        raise Conflict("The study is closed: what was rated is part of its results and cannot be withdrawn.")
    items = list(session.execute(COUNTED_ITEMS, {"judge": judge.id}).scalars())
    deleted = session.execute(
        text("SELECT count(*) FROM study_rating WHERE judge_id = :judge"), {"judge": judge.id}
    ).scalar_one()
    for table in ("study_rating_change", "study_rating", "study_turn", "study_message"):
        session.execute(text(f"DELETE FROM {table} WHERE judge_id = :judge"), {"judge": judge.id})  # noqa: S608
    session.execute(GIVE_BACK, {"items": items})
    for item in items:
        move_up(session, item, standing.judges_per_item)
    _change(
        session,
        judge,
        state=JudgeState.WITHDRAWN.value,
        withdrawn_at=datetime.now(UTC),
        ratings_deleted=deleted,
        **NOTHING_PERSONAL,
    )
    return int(deleted)


def completion(judge: models.StudyJudge) -> Completion:
    """Whoever stops, finishes, withdraws or finds nothing left is told it; `judge.study` must be loaded."""
    return Completion(judge.study.completion_code, judge.study.completion_url)

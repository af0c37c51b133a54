"""The judge at work: the next item, a rating for it, undo, later, decline, comment.

All that a judge's browser gets of an item is an `ItemView`. Whatever is sent twice, late or from an old tab
is stored once, for the item that it names, or not at all; and the answer says which.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from app import models
from app.errors import Conflict, InvalidInput
from app.models import ItemKind, JudgeState, StudyState, TurnState
from app.outcomes import Rating
from app.studies.assigning import current, following, schedule_again, training, waits
from app.studies.places import LEASE_SECONDS, Standing, count, has_place, lease, lock_judge, release
from app.studies.presence import beat as beat
from app.studies.presence import counted_since
from app.studies.turns import (
    ADD_RATED,
    COMMENT_ON,
    END_TURN,
    KEEP_DRAFT,
    LAST_RATED,
    NOTE_CHANGE,
    SHOW,
    STORE,
    SUBMITTED_BEFORE,
    TURN_BY_ID,
    UNDO,
    UNSCHEDULE,
    find_turn,
)
from app.text import clean, is_blank

LONGEST_COMMENT = 5000
OPEN_SHOWN = 200


class SeriesState(StrEnum):
    """`waiting`: others have on their screens what is left; it may come back."""

    TRAINING = "training"
    RATING = "rating"
    WAITING = "waiting"
    FINISHED = "finished"
    PAUSED = "paused"
    CLOSED = "closed"
    STOPPED = "stopped"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class ItemView:
    """An item as a judge sees it, under a key that is random. `rating` and `comment` are their own."""

    key: str
    constraint: str
    request: str
    response: str
    training: bool
    rating: Rating | None
    comment: str | None


@dataclass(frozen=True)
class Progress:
    """Of the judge's own series. `open`: to be rated yet, what was put off not among them; at least so many
    where `open_is_more`."""

    rated: int
    open: int
    open_is_more: bool
    later: int
    training_done: int
    training_total: int


@dataclass(frozen=True)
class Next:
    state: SeriesState
    item: ItemView | None
    progress: Progress


class SubmissionKind(StrEnum):
    """Stored now; known already, sent twice; this item was rated before by another submission, which stands;
    known already and undone since."""

    SAVED = "saved"
    SENT_BEFORE = "sent_before"
    RATED_BEFORE = "rated_before"
    UNDONE = "undone"


@dataclass(frozen=True)
class Feedback:
    expected: Rating
    text: str


@dataclass(frozen=True)
class Submitted:
    """`rating` is what stands for the item now. `counted` False: all places were taken; it is kept apart."""

    kind: SubmissionKind
    key: str
    rating: Rating | None
    counted: bool
    feedback: Feedback | None


# Counted no further than a page says it.
PROGRESS = text("""
SELECT
    (SELECT count(*) FROM (
        SELECT 1 FROM study_item i
        WHERE i.study_id = :study AND i.kind = 'main' AND i.counted < :most
          AND NOT i.topics && CAST(:refused AS text[]) AND NOT EXISTS (
              SELECT 1 FROM study_turn t WHERE t.judge_id = :judge AND t.item_id = i.id OFFSET 0
          )
        ORDER BY i.counted, i.shuffle LIMIT :shown + 1
    ) o) AS open,
    (SELECT count(*) FROM study_turn t JOIN study_item i ON i.id = t.item_id
     WHERE t.judge_id = :judge AND t.state = 'leased' AND i.kind = 'main' AND NOT t.repeat) AS held,
    (SELECT count(*) FROM study_turn t WHERE t.judge_id = :judge AND t.state = 'later') AS later,
    (SELECT count(*) FROM study_item i JOIN study_turn t ON t.item_id = i.id AND t.judge_id = :judge
     WHERE i.study_id = :study AND i.kind = 'training' AND t.state IN ('rated', 'declined')) AS trained,
    (SELECT count(*) FROM study_item i WHERE i.study_id = :study AND i.kind = 'training'
       AND (NOT i.topics && CAST(:refused AS text[]) OR EXISTS (
           SELECT 1 FROM study_turn t WHERE t.judge_id = :judge AND t.item_id = i.id
       ))) AS training
""")


def next_item(session: Session, judge: models.StudyJudge) -> Next:
    """What the judge has on the screen, or else a new item under a lease; after a reload the same again."""
    standing = lock_judge(session, judge)
    state, turn = _series(session, standing)
    view = None
    if turn is not None:
        view = _view(session.execute(SHOW, {"turn": turn, "lease": LEASE_SECONDS}).one())
    return Next(state, view, _progress(session, standing))


def _series(session: Session, standing: Standing) -> tuple[SeriesState, int | None]:
    for ended in (JudgeState.WITHDRAWN, JudgeState.STOPPED):
        if standing.state is ended and standing.study_state is not StudyState.CLOSED:
            return SeriesState(ended.value), None
    if standing.study_state is StudyState.CLOSED:
        return SeriesState.CLOSED, None
    if standing.study_state is not StudyState.OPEN:
        return SeriesState.PAUSED, None
    turn = current(session, standing)
    if standing.state is JudgeState.TRAINING:
        turn = turn or training(session, standing)
        if turn is not None:
            return SeriesState.TRAINING, turn
    turn = turn or following(session, standing)
    if turn is not None:
        return SeriesState.RATING, turn
    return (SeriesState.WAITING if waits(session, standing) else SeriesState.FINISHED), None


def progress(session: Session, judge: models.StudyJudge) -> Progress:
    return _progress(session, lock_judge(session, judge))


def _progress(session: Session, standing: Standing) -> Progress:
    row = session.execute(
        PROGRESS,
        {
            "study": standing.study_id,
            "judge": standing.judge_id,
            "most": standing.judges_per_item,
            "refused": standing.refused_topics,
            "shown": OPEN_SHOWN,
        },
    ).one()
    more = row.open > OPEN_SHOWN
    return Progress(
        standing.rated, min(row.open, OPEN_SHOWN) + row.held, more, row.later, row.trained, row.training
    )


def _view(turn: Any) -> ItemView:
    return ItemView(
        key=str(turn.uuid),
        constraint=turn.constraint,
        request=turn.request,
        response=turn.response,
        training=turn.kind == ItemKind.TRAINING,
        rating=None if turn.rating is None else Rating(turn.rating),
        comment=turn.draft_comment if turn.rating is None else turn.comment,
    )


def item_for(session: Session, judge: models.StudyJudge, key: str) -> ItemView:
    """An item of the judge's own series, rated or not; NotFound for any other."""
    standing = lock_judge(session, judge)
    standing.require_ratings()
    return _view(find_turn(session, standing, key))


def submit(
    session: Session,
    judge: models.StudyJudge,
    key: str,
    rating: int,
    submission: UUID,
    *,
    comment: str | None = None,
) -> Submitted:
    """Store a rating for the item of that key, exactly once for each `submission`.

    InvalidInput for what is no rating, NotFound for an item that is not the judge's, Conflict when the study
    is closed or the submission was used for another item.
    """
    given = as_rating(rating)
    note = checked_comment(comment)
    standing = lock_judge(session, judge)
    standing.require_ratings()
    turn = find_turn(session, standing, key)
    before = session.execute(SUBMITTED_BEFORE, {"judge": judge.id, "submission": submission}).first()
    if before is not None:
        if (before.item_id, before.repeat) != (turn.item_id, turn.repeat):
            raise Conflict("This submission was stored for another item already. Load the page again.")
        kind = SubmissionKind.UNDONE if before.rating is None else SubmissionKind.SENT_BEFORE
        return _submitted(kind, turn, before.rating, counted=bool(before.counted))
    if turn.rating is not None:
        return _submitted(SubmissionKind.RATED_BEFORE, turn, turn.rating, counted=turn.counted)
    counts = turn.kind == ItemKind.MAIN and not turn.repeat
    counted = counts and count(session, standing, turn.item_id)
    place = {"judge": judge.id, "item": turn.item_id, "repeat": turn.repeat, "submission": submission}
    active_ms = turn.active_ms + counted_since(session, judge)
    session.execute(
        STORE,
        place
        | {
            "rating": int(given),
            "comment": note if comment is not None else turn.draft_comment,
            "counted": counted,
            "active_ms": active_ms,
        },
    )
    session.execute(NOTE_CHANGE, place | {"before": None, "after": int(given)})
    session.execute(END_TURN, {"turn": turn.id, "state": TurnState.RATED.value, "active_ms": active_ms})
    if counts:
        session.execute(ADD_RATED, {"judge": judge.id, "by": 1})
        schedule_again(session, standing, turn.item_id, standing.rated + 1)
    return _submitted(SubmissionKind.SAVED, turn, int(given), counted=counted)


def _submitted(kind: SubmissionKind, turn: Any, rating: int | None, *, counted: bool) -> Submitted:
    feedback = None
    if turn.kind == ItemKind.TRAINING:
        feedback = Feedback(Rating(turn.expected), turn.feedback)
    return Submitted(kind, str(turn.uuid), None if rating is None else Rating(rating), counted, feedback)


def as_rating(value: int) -> Rating:
    if type(value) is bool or value not in list(Rating):
        raise InvalidInput("Choose a rating: fail, unclear or pass.")
    return Rating(value)


def checked_comment(comment: str | None) -> str | None:
    if comment is None or is_blank(comment):
        return None
    if len(comment) > LONGEST_COMMENT:
        raise InvalidInput(
            f"A comment has at most {LONGEST_COMMENT} characters; this one has {len(comment)}."
        )
    return clean(comment)[0].strip()


def later(session: Session, judge: models.StudyJudge, key: str) -> None:
    """Put the item off to the end of the series; it holds no place meanwhile."""
    _set_aside(session, judge, key, TurnState.LATER)


def decline(session: Session, judge: models.StudyJudge, key: str) -> None:
    """Never rate this item; no reason, no rating."""
    _set_aside(session, judge, key, TurnState.DECLINED)


def _set_aside(session: Session, judge: models.StudyJudge, key: str, state: TurnState) -> None:
    standing = lock_judge(session, judge)
    standing.require_ratings()
    turn = find_turn(session, standing, key)
    if turn.rating is not None:
        raise Conflict(
            "You have rated this item already; the rating stands. Undo it or change it in your list."
        )
    if turn.kind == ItemKind.TRAINING and state is TurnState.LATER:
        raise Conflict("Training items come one after the other. You may decline one.")
    if turn.state != state:
        active_ms = turn.active_ms + counted_since(session, judge)
        session.execute(END_TURN, {"turn": turn.id, "state": state.value, "active_ms": active_ms})


def undo(session: Session, judge: models.StudyJudge, key: str) -> ItemView:
    """Take back what the judge did last with the item: the latest rating, a decline, a putting off.

    The item is on the screen again. Undone twice is undone once. Conflict for an earlier rating, or when
    others have taken the places of an item that was put aside.
    """
    standing = lock_judge(session, judge)
    standing.require_ratings()
    turn = find_turn(session, standing, key)
    if turn.rating is not None:
        _take_back(session, standing, turn)
    elif turn.state != TurnState.LEASED:
        needs_place = turn.kind == ItemKind.MAIN and not turn.repeat
        if needs_place and not has_place(session, standing, turn.item_id, wait=True):
            raise Conflict("Others have rated this item meanwhile; it needs no more ratings.")
    lease(session, standing, turn.item_id, repeat=turn.repeat)
    return _view(session.execute(TURN_BY_ID, {"judge": judge.id, "turn": turn.id}).one())


def _take_back(session: Session, standing: Standing, turn: Any) -> None:
    if session.execute(LAST_RATED, {"judge": standing.judge_id}).scalar() != turn.rating_id:
        raise Conflict("Only the latest rating can be undone; change this one in the list of your ratings.")
    place = {"judge": standing.judge_id, "item": turn.item_id, "repeat": turn.repeat}
    session.execute(NOTE_CHANGE, place | {"before": turn.rating, "after": None, "submission": None})
    session.execute(UNDO, {"rating": turn.rating_id})
    session.execute(END_TURN, {"turn": turn.id, "state": TurnState.LATER.value, "active_ms": turn.active_ms})
    if turn.comment is not None:
        session.execute(KEEP_DRAFT, {"turn": turn.id, "comment": turn.comment})
    if turn.counted:
        release(session, turn.item_id)
    if turn.kind == ItemKind.MAIN and not turn.repeat:
        session.execute(ADD_RATED, {"judge": standing.judge_id, "by": -1})
        session.execute(UNSCHEDULE, place)


def save_comment(session: Session, judge: models.StudyJudge, key: str, comment: str) -> None:
    """Keep a comment with the item, rated or not; a blank one takes it away."""
    note = checked_comment(comment)
    standing = lock_judge(session, judge)
    standing.require_ratings()
    turn = find_turn(session, standing, key)
    if turn.rating_id is not None:
        session.execute(COMMENT_ON, {"rating": turn.rating_id, "comment": note})
    else:
        session.execute(KEEP_DRAFT, {"turn": turn.id, "comment": note})

"""What the owner of a study tells its judges."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app import models
from app.errors import InvalidInput, NotFound
from app.models import JudgeState
from app.text import clean, is_blank

LONGEST_MESSAGE = 2000


@dataclass(frozen=True)
class Message:
    id: int
    body: str
    at: datetime


def send(session: Session, study: models.Study, body: str, *, number: int | None = None) -> None:
    """To the judge of that number, or to all. NotFound for a number that is not there."""
    if is_blank(body) or len(body) > LONGEST_MESSAGE:
        raise InvalidInput(f"A message has 1 to {LONGEST_MESSAGE} characters.")
    judge = None
    if number is not None:
        query = select(models.StudyJudge).filter_by(study_id=study.id, number=number)
        judge = session.scalars(query.where(models.StudyJudge.state != JudgeState.WITHDRAWN)).one_or_none()
        if judge is None:
            raise NotFound(f"This study has no judge number {number}.")
    session.add(
        models.StudyMessage(
            study_id=study.id, judge_id=judge.id if judge else None, body=clean(body)[0].strip()
        )
    )
    session.flush()


def unseen(session: Session, judge: models.StudyJudge) -> list[Message]:
    """Messages to this judge that were not marked as seen, the oldest first; none from before joining."""
    m = models.StudyMessage
    query = select(m).where(
        m.study_id == judge.study_id,
        or_(m.judge_id.is_(None), m.judge_id == judge.id),
        m.id > (judge.message_seen_id or 0),
        m.created_at >= judge.joined_at,
    )
    return [Message(row.id, row.body, row.created_at) for row in session.scalars(query.order_by(m.id))]


def mark_seen(session: Session, judge: models.StudyJudge, up_to: int) -> None:
    """Up to the message of that id; never backwards."""
    judge.message_seen_id = max(judge.message_seen_id or 0, up_to)
    session.flush()


@dataclass(frozen=True)
class Sent:
    """`to`: the number of the one judge it was for; None: all."""

    to: int | None
    body: str
    at: datetime


def sent(session: Session, study: models.Study) -> list[Sent]:
    """All, the newest first."""
    m, j = models.StudyMessage, models.StudyJudge
    query = select(j.number, m.body, m.created_at).outerjoin(j, j.id == m.judge_id)
    rows = session.execute(query.where(m.study_id == study.id).order_by(m.id.desc()))
    return [Sent(number, body, at) for number, body, at in rows]

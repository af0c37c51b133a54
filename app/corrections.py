"""What readers report as wrong: kept back until an administrator has looked at it, then in a public log.

A verdict that is wrong stays counted, for the figures are the evaluator's: to change those that somebody
happened to report would favour whoever reports most. An invalid case leaves with the next version of its
benchmark.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, contains_eager, joinedload

from app import models
from app.accounts.audit import record
from app.accounts.policies import PUBLIC, in_study, published, runs_managed_by
from app.errors import Conflict, InvalidInput, NotFound
from app.models import CorrectionKind, Decision
from app.text import clean, is_blank

LONGEST = 2000
PAGE = 50
# A flood of reports may fill the queue, never the database, and never hide what is wrong with one thing.
MOST_WAITING = 500
MOST_ABOUT_ONE = 20


@dataclass(frozen=True)
class About:
    """What is reported: a case, or a conversation on it with the evaluator whose verdict is meant."""

    case: models.Case
    conversation: models.Conversation | None = None
    evaluator: models.Evaluator | None = None

    @property
    def kind(self) -> CorrectionKind:
        return CorrectionKind.CASE if self.conversation is None else CorrectionKind.VERDICT


@dataclass(frozen=True)
class Listed:
    """A report with what it is about; `run` None for a case."""

    correction: models.Correction
    case: models.Case
    benchmark: models.Benchmark
    conversation: models.Conversation | None
    run: models.Run | None


@dataclass(frozen=True)
class LogPage:
    items: list[Listed]
    total: int
    pages: int


def report(session: Session, about: About, body: str, form_key: UUID, by: models.Account | None) -> None:
    """Put it into the queue; the same form sent again changes nothing. Conflict when the queue is full."""
    text = _text("report", body)
    c = models.Correction
    waiting = select(func.count()).select_from(c).where(c.decision.is_(None))
    one = c.conversation_id == about.conversation.id if about.conversation else _case_only(about.case)
    if session.scalars(waiting.where(one)).one() >= MOST_ABOUT_ONE:
        raise Conflict("This has been reported often and is waiting to be looked at; nothing was stored.")
    if session.scalars(waiting).one() >= MOST_WAITING:
        raise Conflict("More is reported than can be looked at now: try again in some days.")
    session.execute(
        insert(c)
        .values(
            kind=about.kind.value,
            case_id=about.case.id,
            conversation_id=about.conversation.id if about.conversation else None,
            evaluator_id=about.evaluator.id if about.evaluator else None,
            body=text,
            reporter_id=by.id if by else None,
            form_key=form_key,
        )
        .on_conflict_do_nothing(index_elements=["form_key"])
    )


def _case_only(case: models.Case) -> ColumnElement[bool]:
    return and_(models.Correction.case_id == case.id, models.Correction.conversation_id.is_(None))


def _text(what: str, given: str) -> str:
    text = clean(given)[0].strip()
    if is_blank(text):
        raise InvalidInput(f"Write your {what}: an empty one helps nobody.")
    if len(text) > LONGEST:
        raise InvalidInput(f"A {what} has at most {LONGEST:,} characters.")
    return text


def _query() -> Any:
    c, k, b, v, r = models.Correction, models.Case, models.Benchmark, models.Conversation, models.Run
    return (
        select(c, k, b, v, r)
        .join(k, k.id == c.case_id)
        .join(b, b.id == k.benchmark_id)
        .outerjoin(v, v.id == c.conversation_id)
        .outerjoin(r, r.id == v.run_id)
        .outerjoin(models.Endpoint, models.Endpoint.id == r.endpoint_id)
        .options(
            joinedload(c.left_in),
            joinedload(c.evaluator),
            joinedload(c.reporter),
            joinedload(c.decided_by),
            contains_eager(r.endpoint),
        )
    )


def _listed(session: Session, query: Any) -> list[Listed]:
    return [Listed(*row) for row in session.execute(query)]


def log(session: Session, page: int = 1) -> LogPage:
    """What was upheld or declined, the latest first. NotFound for a page that there is not.

    Of runs that are on the board, and of no conversation that judges rate blind at present.
    """
    c = models.Correction
    seen = (
        c.decision.in_((Decision.UPHELD, Decision.DECLINED)),
        models.Case.split == PUBLIC,
        or_(c.kind == CorrectionKind.CASE, published() & ~in_study()),
    )
    query = _query().where(*seen)
    total = session.scalars(select(func.count()).select_from(query.with_only_columns(c.id).subquery())).one()
    pages = max(1, -(-total // PAGE))
    if page > pages:
        raise NotFound(f"The log has {pages} {'page' if pages == 1 else 'pages'}.")
    part = query.order_by(c.decided_at.desc(), c.id.desc()).offset((page - 1) * PAGE).limit(PAGE)
    return LogPage(_listed(session, part), total, pages)


def waiting(session: Session) -> list[Listed]:
    """The queue, the oldest first."""
    c = models.Correction
    return _listed(session, _query().where(c.decision.is_(None)).order_by(c.id).limit(PAGE))


def count_waiting(session: Session) -> int:
    c = models.Correction
    return session.scalars(select(func.count()).select_from(c).where(c.decision.is_(None))).one()


def about_own_runs(session: Session, person: models.Account) -> list[Listed]:
    """What waits for a decision about verdicts of the runs that the person manages."""
    c = models.Correction
    own = _query().where(c.decision.is_(None), c.kind == CorrectionKind.VERDICT, runs_managed_by(person))
    return _listed(session, own.order_by(c.id).limit(PAGE))


def decided_about(session: Session, conversation: models.Conversation) -> Sequence[models.Correction]:
    """What was upheld or declined about verdicts of a conversation, the latest first."""
    c = models.Correction
    query = select(c).where(
        c.conversation_id == conversation.id, c.decision.in_((Decision.UPHELD, Decision.DECLINED))
    )
    return session.scalars(query.order_by(c.decided_at.desc())).all()


def invalid(session: Session, case: models.Case) -> models.Correction | None:
    """The report by which the case was found invalid, with the version that it left with, if there is one."""
    c = models.Correction
    query = select(c).options(joinedload(c.left_in)).where(_case_only(case), c.decision == Decision.UPHELD)
    return session.scalars(query.order_by(c.id).limit(1)).one_or_none()


def decide(
    session: Session, identity: UUID, by: models.Account, decision: Decision, reason: str
) -> models.Correction:
    """InvalidInput without a reason, which everybody reads; Conflict for what was decided before."""
    c = models.Correction
    found = session.scalars(select(c).filter_by(uuid=identity).with_for_update()).one_or_none()
    if found is None:
        raise NotFound("There is no such report.")
    if found.decision is not None:
        raise Conflict(f"This report was {found.decision} on {found.decided_at:%Y-%m-%d}.")
    found.reason = None if decision is Decision.DISCARDED else _text("reason", reason)
    found.decision, found.decided_at, found.decided_by_id = decision.value, datetime.now(UTC), by.id
    record(session, by, f"correction.{decision.value}", f"correction {found.id}", kind=found.kind)
    session.flush()
    return found


def reply(session: Session, identity: UUID, by: models.Account, words: str) -> None:
    """What whoever ran the model says to a report about its verdict; a later one takes its place."""
    c = models.Correction
    query = (
        select(c)
        .join(models.Conversation, models.Conversation.id == c.conversation_id)
        .join(models.Run, models.Run.id == models.Conversation.run_id)
        .where(c.uuid == identity, runs_managed_by(by))
    )
    found = session.scalars(query.with_for_update(of=c)).one_or_none()
    if found is None:
        raise NotFound("There is no such report about a run of yours.")
    if found.decision is not None:
        raise Conflict("The report is decided; its log does not change any more.")
    found.reply, found.replied_at, found.replied_by_id = _text("reply", words), datetime.now(UTC), by.id
    record(session, by, "correction.reply", f"correction {found.id}")
    session.flush()

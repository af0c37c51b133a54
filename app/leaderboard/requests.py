"""On a site that others reach, an administrator decides what goes on the board."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import ColumnElement, Select, exists, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, aliased, joinedload

from app import models
from app.accounts.audit import record
from app.declared import NOTHING_SAID, Declared
from app.errors import Conflict, InvalidInput, NotFound
from app.leaderboard.boards import no_spot_check, same_model
from app.leaderboard.entries import MAX_REASON, lookalike, publish
from app.models import PublicationAnswer
from app.runs.control import RUN_DETAILS
from app.runs.flagged import flag_counts

MOST_ANSWERED = 50


class _OnlyTried(Exception):
    """Undoes what would have been done."""


@dataclass(frozen=True)
class ListedRequest:
    """A request, and what is told of how the run came about: how many were started, by status, of this model
    at this address by this account, whatever each was called. Of its flagged conversations, how many nobody
    has looked at, and how many are attempts to sway an evaluator. The row that its name looks like."""

    request: models.PublicationRequest
    started: dict[str, int]
    undecided: int = 0
    confirmed: int = 0
    looks_like: str | None = None

    @property
    def all_started(self) -> int:
        return sum(self.started.values())


def ask_to_publish(
    session: Session,
    run: models.Run,
    by: models.Account,
    *,
    declared: Declared = NOTHING_SAID,
) -> models.PublicationRequest:
    """Put a run into the queue; again: the request that is there. A name that looks like another row's waits
    there too: whether it stands is for the administrator to say.

    Conflict and InvalidInput for what could not be published anyway.
    """
    if (there := _open_request(session, run)) is not None:
        return there
    with suppress(_OnlyTried), session.begin_nested():
        publish(session, run, served=True, declared=declared, name_reviewed=True)
        raise _OnlyTried
    request = models.PublicationRequest(
        run_id=run.id,
        asked_by_id=by.id,
    )
    request.declared = declared.over(run.endpoint.declared)
    try:
        with session.begin_nested():
            session.add(request)
    except IntegrityError:  # asked twice at once
        there = _open_request(session, run)
        assert there is not None
        return there
    record(session, by, "publication.ask", f"run {run.id}")
    return request


def _open_request(session: Session, run: models.Run) -> models.PublicationRequest | None:
    query = select(models.PublicationRequest).filter_by(run_id=run.id, answered_at=None)
    return session.scalars(query).one_or_none()


def latest_request(session: Session, run: models.Run) -> models.PublicationRequest | None:
    query = select(models.PublicationRequest).filter_by(run_id=run.id)
    return session.scalars(query.order_by(models.PublicationRequest.id.desc()).limit(1)).one_or_none()


def take_request_back(session: Session, run: models.Run, by: models.Account) -> None:
    """Conflict when there is none that is open."""
    request = _open_request(session, run)
    if request is None:
        raise Conflict("No request of this run is open: it was answered or taken back.")
    session.delete(request)
    record(session, by, "publication.take-back", f"run {run.id}")
    session.flush()


def answer_request(
    session: Session, identity: UUID, by: models.Account, answer: PublicationAnswer, reason: str = ""
) -> models.PublicationRequest:
    """Approving publishes in the same transaction; refusing takes a reason, which who asked is told."""
    query = _with_details().where(models.PublicationRequest.uuid == identity)
    request = session.scalars(query.with_for_update(of=models.PublicationRequest)).one_or_none()
    if request is None:
        raise NotFound("There is no such request: it may have been taken back.")
    if request.answered_at is not None:
        raise Conflict(f"This request was {request.answer} on {request.answered_at:%Y-%m-%d}.")
    reason = reason.strip()
    if len(reason) > MAX_REASON:
        raise InvalidInput(f"A reason has at most {MAX_REASON:,} characters.")
    if answer is PublicationAnswer.REFUSED and not reason:
        raise InvalidInput("Give a reason: it is what the person who asked can act on.")
    if answer is PublicationAnswer.APPROVED:
        publish(session, request.run, served=True, declared=request.declared, name_reviewed=True)
    request.answer, request.reason = answer.value, reason or None
    request.answered_at, request.answered_by_id = datetime.now(UTC), by.id
    record(session, by, f"publication.{answer.value}", f"run {request.run_id}")
    session.flush()
    return request


def open_requests(session: Session) -> list[ListedRequest]:
    """The queue, the oldest first; without runs that came on the board another way meanwhile."""
    query = _with_details().where(*_waiting())
    return _listed(session, session.scalars(query.order_by(models.PublicationRequest.id)).all())


def count_open_requests(session: Session) -> int:
    """How many wait for an administrator."""
    query = select(func.count()).select_from(models.PublicationRequest).where(*_waiting())
    return session.scalars(query).one()


def _waiting() -> tuple[ColumnElement[bool], ...]:
    there = exists().where(models.BoardEntry.run_id == models.PublicationRequest.run_id)
    return models.PublicationRequest.answered_at.is_(None), ~there


def answered_requests(session: Session) -> list[ListedRequest]:
    """The last ones that were answered, the latest first."""
    query = _with_details().where(models.PublicationRequest.answered_at.is_not(None))
    latest = query.order_by(models.PublicationRequest.answered_at.desc()).limit(MOST_ANSWERED)
    return _listed(session, session.scalars(latest).all())


def _with_details() -> Select[models.PublicationRequest]:
    run = joinedload(models.PublicationRequest.run, innerjoin=True)
    return select(models.PublicationRequest).options(
        *(run.options(detail) for detail in RUN_DETAILS),
        joinedload(models.PublicationRequest.asked_by, innerjoin=True),
        joinedload(models.PublicationRequest.answered_by),
    )


def _listed(session: Session, requests: Sequence[models.PublicationRequest]) -> list[ListedRequest]:
    flags = flag_counts(session, [request.run_id for request in requests])
    return [
        ListedRequest(
            request,
            runs_started(session, request.run),
            *flags.get(request.run_id, (0, 0)),
            looks_like=lookalike(session, request.run.endpoint.name) if request.answered_at is None else None,
        )
        for request in requests
    ]


def runs_started(session: Session, run: models.Run) -> dict[str, int]:
    """Runs of the same account that asked the same model at the same address, by status."""
    mine, same = aliased(models.Endpoint), aliased(models.Endpoint)
    rows = session.execute(
        select(models.Run.status, func.count())
        .join(same, same.id == models.Run.endpoint_id)
        .join(mine, same_model(mine, same))
        .where(mine.id == run.endpoint_id, no_spot_check())
        .group_by(models.Run.status)
        .order_by(models.Run.status)
    )
    return {status: number for status, number in rows}  # noqa: C416

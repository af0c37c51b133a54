"""Conversations that were flagged as suspicious: a queue for people, who decide; no verdict changes by it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, func, literal_column, or_, select
from sqlalchemy.orm import Session, joinedload

from app import models
from app.accounts.audit import record
from app.accounts.policies import conversations_visible_to
from app.errors import InvalidInput, NotFound
from app.models import FlagDecision
from app.models.runs import FLAGGED
from app.text import clean

PAGE = 40
EXCERPT = 600
LONGEST_NOTE = 500
WAITING, DECIDED = "waiting", "decided"
STATES = (WAITING, DECIDED)


@dataclass(frozen=True)
class Flagged:
    """A flagged conversation with the latest decision about it, if there is any."""

    id: int
    uuid: UUID
    run_id: int
    run_uuid: UUID
    run_name: str
    case: str
    scenario: str
    flags: list[str]
    request: str | None
    excerpt: str | None
    decision: str | None
    note: str | None
    decided_by: str | None
    decided_at: datetime | None


@dataclass(frozen=True)
class FlaggedPage:
    """`after`: the conversation that the next page begins behind. `kinds`: flag -> how many of this state."""

    items: list[Flagged]
    total: int
    after: UUID | None
    kinds: dict[str, int]


def is_flagged() -> ColumnElement[bool]:
    """As the index says it, so that the few are found among the many."""
    return literal_column(FLAGGED.replace("flags", "conversation.flags", 1))


def _latest() -> Any:
    r = models.FlagReview
    newest = select(func.max(r.id)).where(r.conversation_id == models.Conversation.id)
    return newest.correlate(models.Conversation).scalar_subquery()


def _waits() -> ColumnElement[bool]:
    decision = models.FlagReview.decision
    return or_(decision.is_(None), decision == FlagDecision.REOPENED.value)


def _of_state(query: Select[Any], person: models.Account, state: str, run: UUID | None) -> Select[Any]:
    """Joined with run, case and the latest decision. Who judges a conversation blind does not find it."""
    c = models.Conversation
    query = (
        query.select_from(c)
        .join(models.Run, models.Run.id == c.run_id)
        .join(models.Case, models.Case.id == c.case_id)
        .outerjoin(models.FlagReview, models.FlagReview.id == _latest())
        .outerjoin(models.Account, models.Account.id == models.FlagReview.account_id)
        .where(is_flagged(), conversations_visible_to(person), _waits() if state == WAITING else ~_waits())
    )
    return query.where(models.Run.uuid == run) if run is not None else query


def flagged(
    session: Session,
    person: models.Account,
    state: str = WAITING,
    *,
    kind: str | None = None,
    run: UUID | None = None,
    after: UUID | None = None,
) -> FlaggedPage:
    """A page of the queue, the oldest first; what is decided, the newest conversation first."""
    c, r = models.Conversation, models.FlagReview
    each = func.unnest(c.flags).label("flag")
    listed = _of_state(select(each), person, state, run).subquery()
    numbers = select(listed.c.flag, func.count()).group_by(listed.c.flag).order_by(listed.c.flag)
    kinds = {flag: number for flag, number in session.execute(numbers)}  # noqa: C416
    here = _of_state(
        select(
            c.id, c.uuid, models.Run.id, models.Run.uuid, models.Run.name, models.Case.key, c.scenario,
            c.flags, c.request, func.left(c.response, EXCERPT), r.decision, r.note, models.Account.name, r.at,
        ),
        person, state, run,
    )  # fmt: skip
    if kind is not None:
        here = here.where(c.flags.contains([kind]))
    total = session.scalars(select(func.count()).select_from(here.subquery())).one()
    oldest_first = state == WAITING
    if after is not None:
        at = session.scalars(select(c.id).where(c.uuid == after)).one_or_none()
        if at is None:
            raise NotFound("There is no such page of the queue.")
        here = here.where(c.id > at if oldest_first else c.id < at)
    rows = session.execute(here.order_by(c.id if oldest_first else c.id.desc()).limit(PAGE + 1)).all()
    items = [Flagged(*row) for row in rows[:PAGE]]
    return FlaggedPage(items, total, items[-1].uuid if len(rows) > PAGE else None, kinds)


def decide(
    session: Session,
    person: models.Account,
    identities: Sequence[UUID],
    decision: FlagDecision,
    note: str = "",
) -> int:
    """Store a decision about each; how many that changed: what stood already is not stored again.

    NotFound when one of them is not flagged, or not the person's to see.
    """
    note = clean(note)[0].strip()
    if len(note) > LONGEST_NOTE:
        raise InvalidInput(f"A note has at most {LONGEST_NOTE} characters.")
    wanted = set(identities)
    if not wanted:
        raise InvalidInput("Tick the conversations that the decision is about.")
    c = models.Conversation
    rows = session.scalars(
        select(c)
        .join(models.Run, models.Run.id == c.run_id)
        .join(models.Case, models.Case.id == c.case_id)
        .where(c.uuid.in_(wanted), is_flagged(), conversations_visible_to(person))
        .order_by(c.id)
        .with_for_update(of=c, key_share=True)
    ).all()
    if len(rows) < len(wanted):
        raise NotFound("One of these conversations is not in the queue; nothing was stored.")
    changed = 0
    for row in rows:
        before = history(session, row)
        stands = before[0].decision if before else FlagDecision.REOPENED.value
        if stands == decision and (not note or (before and before[0].note == note)):
            continue
        session.add(
            models.FlagReview(
                conversation_id=row.id, decision=decision.value, note=note, account_id=person.id
            )
        )
        record(session, person, f"flag.{decision.value}", f"conversation {row.id}")
        changed += 1
    session.flush()
    return changed


def history(session: Session, conversation: models.Conversation) -> list[models.FlagReview]:
    """What was decided about it and by whom, the latest first."""
    query = select(models.FlagReview).options(joinedload(models.FlagReview.account, innerjoin=True))
    query = query.filter_by(conversation_id=conversation.id).order_by(models.FlagReview.id.desc())
    return list(session.scalars(query))


def flag_counts(session: Session, run_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
    """run -> (flagged and undecided, confirmed); runs without either are left out."""
    r = models.FlagReview
    query = (
        select(
            models.Conversation.run_id,
            func.count().filter(_waits()),
            func.count().filter(r.decision == FlagDecision.CONFIRMED.value),
        )
        .outerjoin(r, r.id == _latest())
        .where(models.Conversation.run_id.in_(run_ids), is_flagged())
        .group_by(models.Conversation.run_id)
    )
    found = {run: (waiting, confirmed) for run, waiting, confirmed in session.execute(query)}
    return {run: pair for run, pair in found.items() if any(pair)}


def all_waiting(session: Session, person: models.Account) -> int:
    here = _of_state(select(models.Conversation.id), person, WAITING, None)
    return session.scalars(select(func.count()).select_from(here.subquery())).one()

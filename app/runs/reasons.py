"""Why verdicts are no pass, as queries see it: by the evaluator's findings, or as a human corrected it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Text, and_, case, cast, func, literal, null, select
from sqlalchemy.orm import Session

from app import models
from app.errors import Conflict, InvalidInput, NotFound
from app.evaluation import BROKEN_FLAGS, reason_of
from app.outcomes import PROBE_SCENARIO, RECALL, Rating, Reason, Recommendation, VerdictState
from app.text import clean

LONGEST_NOTE = 500
_NOTHING = "-"


def derived_reason() -> ColumnElement[str | None]:
    """`reason_of` as an expression on conversation and verdict; null for a pass, a probe and no verdict."""
    c, v = models.Conversation, models.Verdict
    key = func.concat_ws(
        "|",
        cast(v.rating, Text),
        func.coalesce(cast(v.acknowledged, Text), _NOTHING),
        func.coalesce(v.recommendation, _NOTHING),
        cast(c.flags.overlap(sorted(BROKEN_FLAGS)), Text),
    )
    sorted_ = and_(
        v.state == VerdictState.RATED,
        v.rating < int(Rating.PASS),
        c.scenario != PROBE_SCENARIO,
        c.variant != RECALL,
    )
    return case((sorted_, case(_TABLE, value=key)), else_=null())


def _table() -> dict[str, str]:
    found = {}
    for rating in (Rating.FAIL, Rating.UNCLEAR):
        for acknowledged in (None, False, True):
            for recommendation in (None, *Recommendation):
                for broken in (False, True):
                    parts = (
                        str(int(rating)),
                        _NOTHING if acknowledged is None else str(acknowledged).lower(),
                        recommendation or _NOTHING,
                        str(broken).lower(),
                    )
                    reason = reason_of(rating, acknowledged, recommendation, broken=broken)
                    found["|".join(parts)] = str(reason)
    return found


_TABLE = _table()


def effective_reason() -> ColumnElement[str | None]:
    """The last correction of a human, and without one what the findings say."""
    k, v = models.ReasonCorrection, models.Verdict
    last = (
        select(k.reason)
        .where(k.verdict_id == v.id)
        .order_by(k.id.desc())
        .limit(1)
        .correlate(v)
        .scalar_subquery()
    )
    derived = derived_reason()
    return case((derived.is_not(None), func.coalesce(last, derived)), else_=null())


def has_reason(reason: Reason) -> ColumnElement[bool]:
    return effective_reason() == literal(reason.value)


@dataclass(frozen=True)
class Correction:
    """`reason` None: back to what the findings say."""

    reason: Reason | None
    note: str
    by: str
    at: datetime


@dataclass(frozen=True)
class Reasoned:
    """Why one verdict is no pass, whence that is known, and what it was said to be before."""

    reason: Reason
    derived: Reason
    corrections: list[Correction]

    @property
    def corrected(self) -> bool:
        return bool(self.corrections) and self.corrections[-1].reason is not None


def reasons_of(session: Session, conversation: models.Conversation) -> dict[int, Reasoned]:
    """Verdict id -> its reason with its history, of each verdict of the conversation that is no pass."""
    c, v, k = models.Conversation, models.Verdict, models.ReasonCorrection
    rows = session.execute(
        select(v.id, derived_reason(), effective_reason())
        .join(c, c.id == v.conversation_id)
        .where(c.id == conversation.id)
    ).all()
    history: dict[int, list[Correction]] = {row[0]: [] for row in rows}
    changes = session.execute(
        select(k.verdict_id, k.reason, k.note, models.Account.name, k.at)
        .join(models.Account, models.Account.id == k.account_id)
        .where(k.verdict_id.in_(history))
        .order_by(k.id)
    )
    for verdict, reason, note, by, at in changes:
        history[verdict].append(Correction(Reason(reason) if reason else None, note, by, at))
    return {
        verdict: Reasoned(Reason(reason), Reason(derived), history[verdict])
        for verdict, derived, reason in rows
        if reason is not None and derived is not None
    }


def correct_reason(
    session: Session, verdict: models.Verdict, reason: Reason | None, note: str, by: models.Account
) -> bool:
    """Say why a verdict is no pass; None: as its findings have it. False where it is so already.

    Conflict for a verdict that has no reason, being a pass, of a probe or none.
    """
    c, v = models.Conversation, models.Verdict
    note = clean(note.strip())[0]
    if len(note) > LONGEST_NOTE:
        raise InvalidInput(f"A note has at most {LONGEST_NOTE} characters.")
    # One after the other, so that the history tells what was there before.
    session.execute(select(v.id).where(v.id == verdict.id).with_for_update())
    derived, now = session.execute(
        select(derived_reason(), effective_reason())
        .join(c, c.id == v.conversation_id)
        .where(v.id == verdict.id)
    ).one()
    if derived is None:
        raise Conflict("Only an unclear or failed verdict on a case has a reason that could be corrected.")
    if (reason.value if reason else derived) == now and not note:
        return False
    session.add(
        models.ReasonCorrection(
            verdict_id=verdict.id, reason=reason.value if reason else None, note=note, account_id=by.id
        )
    )
    session.flush()
    return True


def verdict_under(
    session: Session, conversation: models.Conversation, evaluator: models.Evaluator
) -> models.Verdict:
    """NotFound where that evaluator has not rated it."""
    query = select(models.Verdict).filter_by(conversation_id=conversation.id, evaluator_id=evaluator.id)
    found = session.scalars(query).one_or_none()
    if found is None:
        raise NotFound("That evaluator has not rated this conversation.")
    return found


def corrected_reasons(session: Session, runs: Sequence[int], evaluator_id: int) -> int:
    """How many verdicts of these runs carry a reason that a human has given."""
    c, v, k = models.Conversation, models.Verdict, models.ReasonCorrection
    query = (
        select(func.count(func.distinct(v.id)))
        .join(c, c.id == v.conversation_id)
        .join(k, k.verdict_id == v.id)
        .where(c.run_id.in_(runs), v.evaluator_id == evaluator_id)
    )
    return session.scalars(query).one()

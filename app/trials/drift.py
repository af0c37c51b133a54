"""Drift checks: asked for by people or the schedule, done by workers or the command line."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, joinedload

from app import models
from app.chat import Allowlist
from app.db import session_scope
from app.errors import NotFound
from app.models import DriftState
from app.protocol import builtin_protocol
from app.rating_many import RatedResponse, Rater, Room, rate_all
from app.runs.loading import load_evaluator
from app.settings import Settings
from app.trials.drift_report import drift_report, drift_warnings, moved
from app.trials.references import conversations, labels

DRIFT_LOCK = 0x44524946  # "DRIF"
SHOWN = 10

log = logging.getLogger(__name__)

# The last finished check of each pair whose set has a schedule, where nothing is asked for already.
DUE = text("""
INSERT INTO drift_check (reference_set_id, evaluator_id)
SELECT d.reference_set_id, d.evaluator_id
FROM (SELECT reference_set_id, evaluator_id, max(created_at) AS last FROM drift_check
      GROUP BY reference_set_id, evaluator_id) d
JOIN reference_set r ON r.id = d.reference_set_id
WHERE r.every_days IS NOT NULL AND d.last < now() - make_interval(days => r.every_days)
ON CONFLICT DO NOTHING
""")


def ask(
    session: Session,
    reference: models.ReferenceSet,
    evaluator: models.Evaluator,
    account: models.Account | None = None,
) -> models.DriftCheck:
    """A check that is wanted; the one that waits already, if there is one. The caller commits, then wakes."""
    values = {
        "reference_set_id": reference.id,
        "evaluator_id": evaluator.id,
        "account_id": account.id if account else None,
    }
    session.execute(insert(models.DriftCheck).values(values).on_conflict_do_nothing())
    query = select(models.DriftCheck).filter_by(
        reference_set_id=reference.id, evaluator_id=evaluator.id, state=DriftState.WANTED
    )
    return session.scalars(query).one()


def wanted_checks(session: Session) -> list[int]:
    """Those that somebody has to do, with those that the schedule makes due now. The caller commits."""
    session.execute(DUE)
    return list(session.scalars(select(models.DriftCheck.id).filter_by(state=DriftState.WANTED)))


def perform(engine: Engine, settings: Settings, identity: int) -> models.DriftCheck | None:
    """Rate the set and store what came of it; None when it is done already or somebody is at it."""
    with _alone(engine, identity) as alone:
        if not alone:
            return None
        with session_scope(engine) as session:
            row = _check(session, identity)
            if row.state != DriftState.WANTED:
                return None
            loaded = load_evaluator(session, row.evaluator, settings.secret)
            rater = Rater(loaded.protocol or builtin_protocol(), loaded.endpoint)
            asked = conversations(row.reference_set)
        room = Room(
            allowlist=Allowlist.parse(settings.endpoint_allowlist), own_hosts=tuple(settings.own_hosts)
        )
        found = asyncio.run(rate_all(rater, asked, room))
        with session_scope(engine) as session:
            row = _check(session, identity)
            _finish(session, row, found)
            session.commit()
            log.info("Drift check %s: %s, %s warnings", identity, row.state, len(row.warnings))
            return _check(session, identity)


@contextmanager
def _alone(engine: Engine, identity: int) -> Iterator[bool]:
    """Whether this process may do it: a message may come twice. No transaction is held while it rates."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        key = {"one": DRIFT_LOCK, "two": identity % 2**31}
        held = connection.scalar(text("SELECT pg_try_advisory_lock(:one, :two)"), key)
        try:
            yield bool(held)
        finally:
            if held:
                connection.execute(text("SELECT pg_advisory_unlock(:one, :two)"), key)


def _finish(session: Session, row: models.DriftCheck, found: Sequence[RatedResponse]) -> None:
    moment = session.scalars(select(func.clock_timestamp())).one()
    first_check = first_of(session, row)
    row.finished_at = moment
    if all(one.rating is None for one in found):
        first = next((one.rated.verdict for one in found if one.rated), None)
        why = f"{first.reason}: {first.explanation}" if first else "every response is blank"
        row.state, row.error = DriftState.FAILED, f"No item got a verdict ({why[:500]})."
        return
    answered_as = [one.model_reported for one in found if one.model_reported is not None]
    report: dict[str, Any] = drift_report(
        labels(row.reference_set), [one.rating for one in found], answered_as
    )
    if first_check is not None and first_check.report is not None:
        report["moved"] = moved(report["ratings"], first_check.report["ratings"])
        report["first_percent_ci"] = first_check.report["percent_ci"]
        since = f"{first_check.created_at:%Y-%m-%d}"
        row.warnings = drift_warnings(report, first_check.report, since)
    row.state, row.report = DriftState.DONE, report


def first_of(session: Session, row: models.DriftCheck) -> models.DriftCheck | None:
    """The evaluator's first finished check of the same set: what later ones are held against."""
    query = select(models.DriftCheck).filter_by(
        reference_set_id=row.reference_set_id, evaluator_id=row.evaluator_id, state=DriftState.DONE
    )
    return session.scalars(query.order_by(models.DriftCheck.id).limit(1)).one_or_none()


def _check(session: Session, identity: int) -> models.DriftCheck:
    d = models.DriftCheck
    options = (
        joinedload(d.evaluator),
        joinedload(d.reference_set).joinedload(models.ReferenceSet.study),
    )
    row = session.scalars(select(d).options(*options).filter_by(id=identity)).one_or_none()
    if row is None:
        raise NotFound(f"There is no drift check {identity}.")
    return row


def checks_of(
    session: Session, reference: models.ReferenceSet, limit: int = SHOWN
) -> list[models.DriftCheck]:
    """The set's checks, the latest first, with their evaluators."""
    d = models.DriftCheck
    query = select(d).options(joinedload(d.evaluator)).filter_by(reference_set_id=reference.id)
    return list(session.scalars(query.order_by(d.id.desc()).limit(limit)))


def last_checks(session: Session, evaluator_id: int) -> list[models.DriftCheck]:
    """The evaluator's last finished check of each reference set, with set and study."""
    d = models.DriftCheck
    newest = (
        select(func.max(d.id))
        .where(d.evaluator_id == evaluator_id, d.state == DriftState.DONE)
        .group_by(d.reference_set_id)
    )
    options = joinedload(d.reference_set).joinedload(models.ReferenceSet.study)
    return list(session.scalars(select(d).options(options).where(d.id.in_(newest)).order_by(d.id)))


def board_warnings(session: Session, evaluator_id: int) -> list[tuple[str, str]]:
    """(day, sentence) of what drifted in the evaluator's last checks."""
    return [
        (f"{check.created_at:%Y-%m-%d}", sentence)
        for check in last_checks(session, evaluator_id)
        for sentence in check.warnings
    ]


def drift_version(session: Session) -> int:
    """Rises with every finished check; what pages keep depends on it."""
    query = select(func.count()).where(models.DriftCheck.state != DriftState.WANTED)
    return session.scalars(query).one()

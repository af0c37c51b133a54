"""Runs that were asked to go on the board as soon as they are finished."""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app import models
from app.accounts import audit
from app.accounts.policies import is_admin, is_researcher
from app.errors import Conflict
from app.leaderboard.entries import publish
from app.leaderboard.requests import ask_to_publish
from app.runs.control import find_run

WANTED_LOCK = 0x57414E54  # "WANT"


def runs_to_publish(session: Session) -> list[int]:
    query = select(models.Run.id).where(models.Run.status == "finished", models.Run.publish_wanted)
    return list(session.scalars(query.order_by(models.Run.id)))


def publish_wanted(session: Session, run_id: int, *, served: bool) -> bool:
    """Publish one of them. False where another does it, where an administrator of a served site has to
    approve it first, or where it is refused: why is kept with the run."""
    if not session.scalar(select(func.pg_try_advisory_xact_lock(WANTED_LOCK, run_id % 2**31))):
        return False
    run = find_run(session, str(run_id))
    if not run.publish_wanted:
        return False
    try:
        with session.begin_nested():
            _check_still_allowed(run)
            if served and not is_admin(run.account):
                ask_to_publish(session, run, run.account)
                run.publish_wanted = False
                return False
            publish(session, run, served=served)
    except Conflict as refused:
        run.publish_wanted, run.publish_refusal = False, refused.message
        session.flush()
        return False
    audit.record(session, run.account, "run.publish", f"run {run.id}", when="finished")
    return True


def evaluations_to_publish(session: Session) -> list[tuple[int, int]]:
    """(run, evaluator) of finished runs that are to go on another evaluator's board."""
    r, p = models.Run, models.RunEvaluator
    rows = session.execute(
        select(p.run_id, p.evaluator_id)
        .join(r, r.id == p.run_id)
        .where(r.status == "finished", p.publish_wanted)
        .order_by(p.run_id, p.evaluator_id)
    )
    return [(row[0], row[1]) for row in rows]


def publish_evaluation(session: Session, run_id: int, evaluator_id: int, *, served: bool) -> bool:
    """Put one of them on the board; False where another does it, or with the refusal kept."""
    if not session.scalar(select(func.pg_try_advisory_xact_lock(WANTED_LOCK, run_id % 2**31))):
        return False
    run = find_run(session, str(run_id))
    pairing = session.get_one(models.RunEvaluator, (run_id, evaluator_id))
    if not pairing.publish_wanted:
        return False
    pairing.publish_wanted, pairing.publish_refusal = False, None
    try:
        with session.begin_nested():
            _check_still_allowed(run)
            publish(session, run, served=served, evaluator=session.get_one(models.Evaluator, evaluator_id))
    except Conflict as refused:
        pairing.publish_refusal = refused.message
        session.flush()
        return False
    audit.record(session, run.account, "run.publish", f"run {run.id}", when="rated again")
    return True


def _check_still_allowed(run: models.Run) -> None:
    if run.account.disabled_at is not None or not is_researcher(run.account):
        raise Conflict("Whoever started it may publish no runs any more.")

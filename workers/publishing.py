"""What is done when runs are over: those go on the board whose submitters asked for it, keys are
deleted, mails sent.

Whoever notices does it, once.
"""

import logging

from sqlalchemy import Engine

from app.db import session_scope
from app.endpoints import forget_keys
from app.leaderboard import evaluations_to_publish, publish_evaluation, publish_wanted, runs_to_publish
from app.settings import Settings
from workers.mailing import mail_what_is_over

log = logging.getLogger(__name__)


def publish_finished(engine: Engine, *, served: bool) -> list[int]:
    """The runs that went on the board now, each in a transaction of its own."""
    with session_scope(engine) as session:
        waiting, rated_again = runs_to_publish(session), evaluations_to_publish(session)
    done = [run for run in waiting if _publish(engine, run, served=served)]
    for run, evaluator in rated_again:
        with session_scope(engine) as session:
            if publish_evaluation(session, run, evaluator, served=served):
                done.append(run)
            session.commit()
    return done


def _publish(engine: Engine, run_id: int, *, served: bool) -> bool:
    with session_scope(engine) as session:
        done = publish_wanted(session, run_id, served=served)
        session.commit()
    log.info("Run %s %s", run_id, "is on the board" if done else "is not published; its page says why")
    return done


def tidy_up(engine: Engine, settings: Settings) -> None:
    """All of it; each part in a transaction of its own."""
    publish_finished(engine, served=not settings.on_loopback)
    with session_scope(engine) as session:
        if (forgotten := forget_keys(session)) > 0:
            log.info("%s keys of runs that are over were deleted", forgotten)
        session.commit()
    mail_what_is_over(engine, settings)

"""The tasks: check, act, record. Everything that matters stands in PostgreSQL."""

import logging
import time
import uuid
from functools import lru_cache

from sqlalchemy import Engine

from app.db import make_engine, session_scope
from app.errors import InvalidInput
from app.logs import about_run
from app.readiness import RECONCILE
from app.runs.driving import note_done, register_next, stranded_runs
from app.settings import Settings, load_settings
from app.trials.drift import perform, wanted_checks
from app.wake import DRIFT_TASK, DRIVE_TASK, wake_drift, wake_run
from workers.celery_app import RECONCILE_TASK, celery_app, stopping
from workers.driver import DriveEnd, drive_run
from workers.publishing import tidy_up

log = logging.getLogger(__name__)


@celery_app.task(name=DRIVE_TASK)
def drive(run_id: int) -> None:
    """Work on the run whose turn it is for a slice of time; ask for another slice when there is more."""
    settings, driver = load_settings(), uuid.uuid4()
    chosen = _whose_turn(run_id, driver)
    if chosen is None:
        return
    with about_run(chosen):
        if _slice(settings, chosen, driver) is DriveEnd.SLICE_OVER:
            wake_run(settings, chosen)
        tidy_up(_engine(), settings)


@celery_app.task(name=DRIFT_TASK)
def check_drift(check_id: int) -> None:
    """Rate a reference set again; a message that comes twice finds it done or somebody at it."""
    perform(_engine(), load_settings(), check_id)


@celery_app.task(name=RECONCILE_TASK)
def reconcile() -> None:
    """Wake the runs that nobody drives: lost messages, dead workers. Publish what waits for it."""
    settings = load_settings()
    with _engine().begin() as connection:
        runs = stranded_runs(connection)
    _wake(settings, runs)
    _wake_checks(settings)
    tidy_up(_engine(), settings)
    with _engine().begin() as connection:
        note_done(connection, RECONCILE)


def _whose_turn(hint: int, driver: uuid.UUID) -> int | None:
    with _engine().begin() as connection:
        return register_next(connection, hint, driver)


def _slice(settings: Settings, run_id: int, driver: uuid.UUID) -> DriveEnd:
    began = time.monotonic()
    log.info("A slice begins")
    end = drive_run(_engine(), settings, run_id, stopping.is_set, driver)
    seconds = round(time.monotonic() - began, 1)
    log.info("The slice ended: %s", end, extra={"fields": {"seconds": seconds}})
    return end


def _wake(settings: Settings, runs: list[int]) -> None:
    for run_id in runs:
        with about_run(run_id):
            log.info("Nobody drives it; woken")
            wake_run(settings, run_id)


def _wake_checks(settings: Settings) -> None:
    """Drift checks that are wanted, asked for by people or due by their schedule."""
    with session_scope(_engine()) as session:
        checks = wanted_checks(session)
        session.commit()
    for check in checks:
        wake_drift(settings, check)


def reset_engine() -> None:
    """After a fork: connections of the parent must not be used by a child."""
    _engine.cache_clear()


@lru_cache(maxsize=1)
def _engine() -> Engine:
    url = load_settings().database_url
    if url is None:
        raise InvalidInput("Set CURATE_DATABASE_URL, or use `curate up`, which starts an embedded database.")
    return make_engine(url)

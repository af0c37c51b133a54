"""Whether what the site stands on is there. Each function says what it found, or raises what is wrong."""

import time
from collections.abc import Callable

import redis
from sqlalchemy import Engine, func, select, text

from app import models
from app.db import fresh_engine, session_scope
from app.errors import AppError, InvalidInput, ServiceUnavailable
from app.schema import is_current
from app.settings import Settings
from app.wake import ping_workers

OLDEST_POSTGRESQL = 15
BROKER_SECONDS = 3
RECONCILE = "reconcile"
STALE_SECONDS = 90  # rounds come every 20 s; a worker with all hands full takes one up later
PATIENCE_SECONDS = 20


def database(engine: Engine) -> str:
    with engine.connect() as connection:
        version = str(connection.scalar(text("SHOW server_version")))
    if int(version.split(".")[0]) < OLDEST_POSTGRESQL:
        raise InvalidInput(f"PostgreSQL {version} is too old: {OLDEST_POSTGRESQL} or later is needed.")
    return f"PostgreSQL {version}"


def schema(engine: Engine) -> str:
    if not is_current(engine):
        raise InvalidInput("The schema is not this version's: run `curate migrate`.")
    return "up to date"


def broker(settings: Settings) -> str:
    if settings.redis_url is None:
        raise ServiceUnavailable("No broker is set (CURATE_REDIS_URL): runs wait for the scheduler's round.")
    url = settings.redis_url.replace("redis+socket://", "unix://").partition("?")[0]
    client = redis.Redis.from_url(url, socket_timeout=BROKER_SECONDS, socket_connect_timeout=BROKER_SECONDS)
    try:
        info = client.info("server")
    finally:
        client.close()
    return f"{info.get('server_name', 'redis')} {info.get('valkey_version', info.get('redis_version'))}"


def run_counts(engine: Engine) -> dict[str, int]:
    """How many runs have each status, all statuses named."""
    query = select(models.Run.status, func.count()).group_by(models.Run.status)
    with session_scope(engine) as session:
        found = {status: number for status, number in session.execute(query)}  # noqa: C416
    return {status: found.get(status, 0) for status in models.RUN_STATUSES}


def since_reconciled(engine: Engine) -> float | None:
    """Seconds since the scheduler's round was done last; None when it never was."""
    age = func.extract("epoch", func.now() - models.Upkeep.done_at)
    with session_scope(engine) as session:
        found = session.scalar(select(age).where(models.Upkeep.name == RECONCILE))
    return None if found is None else float(found)


def scheduler(engine: Engine) -> str:
    """That its rounds arrive and are worked on."""
    age = since_reconciled(engine)
    if age is None or age > STALE_SECONDS:
        said = "has never been done" if age is None else f"was done {age:.0f} s ago"
        raise ServiceUnavailable(
            f"The round that finds runs nobody drives {said}: is `curate scheduler` running, and a worker?"
        )
    return f"last round {age:.0f} s ago"


def workers(settings: Settings) -> str:
    """Which workers answer; they may need some seconds when they have just been started."""
    began = time.monotonic()
    while not (names := ping_workers(settings)):
        if time.monotonic() - began > PATIENCE_SECONDS:
            raise ServiceUnavailable("No worker answers: start `curate up`, or `curate worker`.")
    return f"{', '.join(sorted(names))} answered"


Finding = tuple[str, bool, str]


def examine(engine: Engine, settings: Settings) -> list[Finding]:
    """(part, whether it is there, what was found or is wrong), within seconds whatever is frozen."""
    fresh = fresh_engine(engine)
    found = checked("database", lambda: database(fresh))
    kept = checked("schema", lambda: schema(fresh)) if found[1] else ("schema", False, "nobody to ask")
    return [found, kept, checked("broker", lambda: broker(settings))]


def checked(name: str, check: Callable[[], str]) -> Finding:
    try:
        return name, True, check()
    except AppError as error:
        return name, False, error.message
    except Exception as error:
        return name, False, f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"

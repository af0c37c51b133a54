"""How the site is doing, for its administrators: queue, workers, what fails, how large the database is."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.chat import ERRORS

RUNNING = text("""
SELECT r.id, r.uuid, r.name, a.name AS account, r.created_at,
       (SELECT count(*) FROM driver d WHERE d.run_id = r.id AND d.lease_until > now()) AS drivers
FROM run r JOIN account a ON a.id = r.account_id
WHERE r.status = 'running' ORDER BY r.id
""")

# By day, so that an outage of the past does not look like one of now.
FAILURES = text("""
SELECT error, count(*) AS number, count(DISTINCT run_id) AS runs, max(finished_at) AS latest
FROM conversation
WHERE state = 'endpoint_error' AND finished_at > now() - interval '1 day'
GROUP BY error ORDER BY number DESC, error
""")

FLAGGED = text("""
SELECT flag, count(*) AS number, count(DISTINCT run_id) AS runs
FROM conversation, unnest(flags) AS flag
WHERE finished_at > now() - interval '1 day' GROUP BY flag ORDER BY number DESC, flag LIMIT 12
""")

SIZES = text("""
SELECT c.relname AS name, pg_total_relation_size(c.oid) AS bytes
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'public' AND c.relkind = 'r' ORDER BY bytes DESC LIMIT 6
""")

DATABASE = text("SELECT pg_database_size(current_database())")


@dataclass(frozen=True)
class GoingRun:
    """`drivers`: how many workers are at it; none: it waits for one."""

    id: int
    uuid: object
    name: str
    account: str
    created_at: datetime
    drivers: int


@dataclass(frozen=True)
class Failures:
    """Conversations of the last day that ended in this class of failure."""

    error: str
    sentence: str
    number: int
    runs: int
    latest: datetime


@dataclass(frozen=True)
class Health:
    """`flagged`: (flag, conversations, runs) of the last day; `tables`: (name, bytes), the largest."""

    going: list[GoingRun]
    failures: list[Failures]
    flagged: list[tuple[str, int, int]]
    database_bytes: int
    tables: list[tuple[str, int]]

    @property
    def waiting(self) -> int:
        return sum(run.drivers == 0 for run in self.going)


def health(session: Session) -> Health:
    return Health(
        going=[GoingRun(*row) for row in session.execute(RUNNING)],
        failures=[
            Failures(error, ERRORS.get(error, ""), number, runs, latest)
            for error, number, runs, latest in session.execute(FAILURES)
        ],
        flagged=[(flag, number, runs) for flag, number, runs in session.execute(FLAGGED)],
        database_bytes=session.execute(DATABASE).scalar_one(),
        tables=[(name, size) for name, size in session.execute(SIZES)],
    )

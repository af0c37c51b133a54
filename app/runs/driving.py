"""What a driver asks of the database: claim groups, keep its lease, hand back, settle. Short statements only.

A driver is one task at work on a run. Its lease keeps others off the groups it claimed; if it dies, the lease
runs out and another claims them. Leases only save money: what is stored is right whoever stores it.
"""

import uuid
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from app.runs.recording import RUN_LOCK, SHARE_RUN

LEASE_SECONDS = 20
HEARTBEAT_SECONDS = 2

REGISTER = text("""
WITH begun AS (
    UPDATE run SET started_at = coalesce(started_at, now()), driven_at = clock_timestamp()
    WHERE id = :run AND status = 'running'
    RETURNING id
)
INSERT INTO driver (id, run_id, lease_until)
SELECT :driver, id, now() + make_interval(secs => :lease) FROM begun RETURNING id
""")

# Of the runs that nobody drives: of the submitter with the fewest drivers, then of whose runs were taken up
# longest ago; of those the one that waited longest.
NEXT = text("""
WITH live AS (
    SELECT DISTINCT run_id FROM driver WHERE lease_until > now()
), waiting AS (
    SELECT r.id, r.account_id, r.driven_at FROM run r
    WHERE r.status = 'running' AND r.id NOT IN (SELECT run_id FROM live)
), busy AS (
    SELECT r.account_id, count(*) AS drivers FROM live l JOIN run r ON r.id = l.run_id GROUP BY r.account_id
), served AS (
    SELECT account_id, max(driven_at) AS latest FROM run
    WHERE account_id IN (SELECT account_id FROM waiting) GROUP BY account_id
)
SELECT w.id FROM waiting w
LEFT JOIN busy b ON b.account_id = w.account_id
LEFT JOIN served s ON s.account_id = w.account_id
ORDER BY coalesce(b.drivers, 0), s.latest NULLS FIRST, w.driven_at NULLS FIRST, w.id
LIMIT 1
""")
HOLD_QUEUE = text("SELECT pg_advisory_xact_lock(:key)")
QUEUE_LOCK = 0x51554555  # "QUEU"

# Locks the rows that it takes and passes over those that another driver is taking at this moment. A row that
# was taken a moment ago is looked at again as it is now, but not what it is joined with: no join here, or two
# would claim the same.
CLAIM = text("""
UPDATE run_group SET driver_id = :driver
WHERE id IN (
    SELECT g.id FROM run_group g
    WHERE g.run_id = :run AND NOT g.done AND (
        g.driver_id IS NULL
        OR g.driver_id IN (SELECT d.id FROM driver d WHERE d.run_id = :run AND d.lease_until < now())
    )
    ORDER BY g.position LIMIT :limit
    FOR UPDATE SKIP LOCKED
)
AND EXISTS (SELECT 1 FROM run WHERE id = :run AND status = 'running')
AND EXISTS (SELECT 1 FROM driver WHERE id = :driver AND lease_until > now())
RETURNING id
""")

# A lease that ran out while the database was away goes on if nobody else came meanwhile.
HEARTBEAT = text("""
UPDATE driver mine SET lease_until = now() + make_interval(secs => :lease)
WHERE id = :driver AND (
    lease_until > now()
    OR NOT EXISTS (SELECT 1 FROM driver o WHERE o.run_id = mine.run_id AND o.lease_until > now())
)
RETURNING id
""")

STANDING = text("""
SELECT r.status, r.concurrency,
       (SELECT count(*) FROM driver d WHERE d.run_id = r.id AND d.lease_until > now()) AS drivers,
       EXISTS (
           SELECT 1 FROM run o
           WHERE o.status = 'running' AND o.id <> r.id
             AND NOT EXISTS (SELECT 1 FROM driver d WHERE d.run_id = o.id AND d.lease_until > now())
       ) AS others_wait
FROM run r WHERE r.id = :run
""")

RELEASE_GROUPS = text("""
UPDATE run_group SET driver_id = NULL WHERE id = ANY(:groups) AND driver_id = :driver AND NOT done
""")

# Whoever rated what was taken over from sheets rates nothing any more.
EVALUATORS = text("""
SELECT p.evaluator_id, cardinality(p.sample) FROM run_evaluator p JOIN evaluator e ON e.id = p.evaluator_id
WHERE p.run_id = :run AND e.kind <> 'imported' ORDER BY p.evaluator_id
""")

HAND_BACK = text("UPDATE run_group SET driver_id = NULL WHERE driver_id = :driver AND NOT done")
LEAVE = text("DELETE FROM driver WHERE id = :driver")

# A group is done when nothing of it is open under any evaluator that the run asks for.
CLOSE_GROUPS = text("""
UPDATE run_group g SET done = true, driver_id = NULL
WHERE g.id IN (SELECT id FROM run_group WHERE id = ANY(:groups) AND NOT done ORDER BY id FOR UPDATE)
AND NOT EXISTS (
    SELECT 1 FROM conversation c
    WHERE c.group_id = g.id AND (
        c.state = 'pending' OR c.state = 'answered' AND EXISTS (
            SELECT 1 FROM run_evaluator e JOIN evaluator who ON who.id = e.evaluator_id
            WHERE e.run_id = g.run_id AND who.kind <> 'imported'
            AND (e.sample IS NULL OR c.id = ANY(e.sample)) AND NOT EXISTS (
                SELECT 1 FROM verdict v WHERE v.conversation_id = c.id AND v.evaluator_id = e.evaluator_id
            )
        )
    )
)
""")

SETTLE = text("""
UPDATE run SET status = 'finished', finished_at = coalesce(finished_at, now()), status_reason = NULL
WHERE id = :run AND status = 'running'
  AND NOT EXISTS (SELECT 1 FROM run_group WHERE run_id = :run AND NOT done)
RETURNING id
""")

HAS_OPEN_GROUPS = text("""
SELECT EXISTS (SELECT 1 FROM run WHERE id = :run AND status = 'running')
   AND EXISTS (SELECT 1 FROM run_group WHERE run_id = :run AND NOT done)
""")

RESERVE = text("""
UPDATE run SET calls_reserved = calls_reserved + greatest(0, least(:wanted, max_calls - calls_reserved))
FROM (SELECT id, calls_reserved AS before FROM run WHERE id = :run FOR UPDATE) held
WHERE run.id = held.id AND run.max_calls IS NOT NULL
RETURNING run.calls_reserved - held.before
""")

GIVE_BACK = text("UPDATE run SET calls_reserved = calls_reserved - :unused WHERE id = :run")

PAUSE = text("""
UPDATE run SET status = 'paused', status_reason = :reason WHERE id = :run AND status = 'running' RETURNING id
""")

STRANDED = text("""
SELECT r.id FROM run r
WHERE r.status = 'running'
  AND NOT EXISTS (SELECT 1 FROM driver d WHERE d.run_id = r.id AND d.lease_until > now())
ORDER BY r.id
""")

DONE = text("""
INSERT INTO upkeep (name, done_at) VALUES (:task, now())
ON CONFLICT (name) DO UPDATE SET done_at = excluded.done_at
""")

SWEEP = text("DELETE FROM driver WHERE lease_until < now() - interval '1 hour'")


@dataclass(frozen=True)
class Standing:
    """How the run stands at a heartbeat."""

    status: str
    concurrency: int
    drivers: int
    others_wait: bool


def register(connection: Connection, run_id: int, driver: uuid.UUID) -> bool:
    """Begin to drive; False when the run is not running (any more)."""
    values = {"driver": driver, "run": run_id, "lease": LEASE_SECONDS}
    return connection.execute(REGISTER, values).first() is not None


def register_next(connection: Connection, hint: int, driver: uuid.UUID) -> int | None:
    """Begin to drive the run whose turn it is, which need not be the one that the message was about.

    So a submitter's share does not grow with the number of their runs. Where no run waits it is the hinted
    one; None when that is not running (any more). One such choice at a time, or two would choose the same.
    """
    connection.execute(HOLD_QUEUE, {"key": QUEUE_LOCK})
    chosen = connection.execute(NEXT).scalar() or hint
    return chosen if register(connection, chosen, driver) else None


def _share(connection: Connection, run_id: int) -> None:
    """Wait for a change of the run that is under way; what is opened again or added in it counts then."""
    connection.execute(SHARE_RUN, {"key": RUN_LOCK + run_id})


def claim(connection: Connection, run_id: int, driver: uuid.UUID, limit: int) -> list[int]:
    _share(connection, run_id)
    rows = connection.execute(CLAIM, {"driver": driver, "run": run_id, "limit": limit})
    return sorted(rows.scalars())


def heartbeat(connection: Connection, run_id: int, driver: uuid.UUID) -> Standing | None:
    """Renew the lease. None when it ran out (the groups may be another's now) or the run is gone."""
    if connection.execute(HEARTBEAT, {"driver": driver, "lease": LEASE_SECONDS}).first() is None:
        return None
    row = connection.execute(STANDING, {"run": run_id}).first()
    return Standing(*row) if row is not None else None


def leave(connection: Connection, driver: uuid.UUID) -> None:
    connection.execute(HAND_BACK, {"driver": driver})
    connection.execute(LEAVE, {"driver": driver})


def leave_groups(connection: Connection, run_id: int, driver: uuid.UUID, groups: list[int]) -> None:
    """Close those of which nothing is open; give back the others, so that whoever claims them reads anew."""
    _share(connection, run_id)
    connection.execute(CLOSE_GROUPS, {"groups": groups})
    connection.execute(RELEASE_GROUPS, {"driver": driver, "groups": groups})


def evaluators(connection: Connection, run_id: int) -> list[tuple[int, int | None]]:
    """The evaluators that the run asks for, and how many conversations of it they rate; None: all.

    A sample only grows, so its size tells whether it is still the one that was read.
    """
    return [(row[0], row[1]) for row in connection.execute(EVALUATORS, {"run": run_id})]


def has_open_groups(connection: Connection, run_id: int) -> bool:
    return connection.execute(HAS_OPEN_GROUPS, {"run": run_id}).scalar_one() is True


def settle(connection: Connection, run_id: int) -> bool:
    """Finish the run if nothing of it is open; True when this call did it."""
    _share(connection, run_id)
    return connection.execute(SETTLE, {"run": run_id}).first() is not None


def reserve_calls(connection: Connection, run_id: int, wanted: int) -> int:
    """Reserve requests from the run's cap: how many were granted, 0 when it is used up."""
    granted: Any = connection.execute(RESERVE, {"run": run_id, "wanted": wanted}).scalar()
    return int(granted or 0)


def give_back_calls(connection: Connection, run_id: int, unused: int) -> None:
    connection.execute(GIVE_BACK, {"run": run_id, "unused": unused})


def pause(connection: Connection, run_id: int, reason: str) -> bool:
    return connection.execute(PAUSE, {"run": run_id, "reason": reason}).first() is not None


def stranded_runs(connection: Connection) -> list[int]:
    """Running runs that nobody drives."""
    connection.execute(SWEEP)
    return list(connection.execute(STRANDED).scalars())


def note_done(connection: Connection, task: str) -> None:
    """Keep when a recurring task was done last."""
    connection.execute(DONE, {"task": task})

"""What administrators see of all accounts at once: runs in the queue, endpoints, evaluators."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session, joinedload

from app import models
from app.accounts.audit import record
from app.errors import Conflict, NotFound
from app.runs.reporting import describe_evaluator
from app.trials.checks import last_check

PAGE = 50

QUEUE = text("""
SELECT r.id, r.uuid, r.name, a.name AS account, r.status, r.status_reason, r.created_at,
       (SELECT count(*) FROM driver d WHERE d.run_id = r.id AND d.lease_until > now()) AS drivers,
       c.planned, c.done, c.latest
FROM run r JOIN account a ON a.id = r.account_id, LATERAL (
    SELECT count(*) AS planned, count(*) FILTER (WHERE state <> 'pending') AS done,
           max(finished_at) AS latest
    FROM conversation WHERE run_id = r.id
) c
WHERE r.status = ANY(:statuses) ORDER BY r.status DESC, r.id
""")

SUBMITTERS = text("""
SELECT a.name,
       count(*) FILTER (WHERE r.status = 'running' AND d.run_id IS NOT NULL) AS driven,
       count(*) FILTER (WHERE r.status = 'running' AND d.run_id IS NULL) AS waiting,
       count(*) FILTER (WHERE r.status = 'paused') AS paused,
       count(*) FILTER (WHERE r.finished_at > now() - interval '1 day') AS over
FROM run r JOIN account a ON a.id = r.account_id
LEFT JOIN (SELECT DISTINCT run_id FROM driver WHERE lease_until > now()) d ON d.run_id = r.id
WHERE r.provenance NOT IN ('uploaded', 'imported')
  AND (r.status IN ('running', 'paused') OR r.finished_at > now() - interval '1 day')
GROUP BY a.id, a.name ORDER BY driven DESC, waiting DESC, a.name
""")


@dataclass(frozen=True)
class QueuedRun:
    """`drivers`: workers at it; a running one without waits. `latest`: when its last conversation ended."""

    id: int
    uuid: UUID
    name: str
    account: str
    status: str
    reason: str | None
    created_at: datetime
    drivers: int
    planned: int
    done: int
    latest: datetime | None


@dataclass(frozen=True)
class Submitter:
    """One account's runs: driven, waiting for a worker, paused, over within the last day."""

    name: str
    driven: int
    waiting: int
    paused: int
    over: int


@dataclass(frozen=True)
class ListedEndpoint:
    """`runs`: how many asked it, or were rated by it."""

    endpoint: models.Endpoint
    runs: int
    latest: datetime | None


@dataclass(frozen=True)
class ListedEvaluator:
    """`runs` it rates, `rows` on boards under it, `check`: its last manipulation check's report."""

    evaluator: models.Evaluator
    label: str
    runs: int
    rows: int
    check: dict[str, Any] | None
    checked_at: datetime | None


def queue(session: Session) -> list[QueuedRun]:
    """Runs that are not over: the running ones first, each by age."""
    rows = session.execute(QUEUE, {"statuses": ["running", "paused"]})
    return [QueuedRun(*row) for row in rows]


def submitters(session: Session) -> list[Submitter]:
    """Accounts that have runs under way or had some within a day."""
    return [Submitter(*row) for row in session.execute(SUBMITTERS)]


def all_endpoints(session: Session, after: UUID | None = None) -> tuple[list[ListedEndpoint], UUID | None]:
    """A page of everybody's endpoints, the newest first, and where the next page begins."""
    e, r = models.Endpoint, models.Run
    query = select(e).options(joinedload(e.account, innerjoin=True)).order_by(e.id.desc()).limit(PAGE + 1)
    if after is not None:
        query = query.where(e.id < find_endpoint(session, after).id)
    rows = session.scalars(query).all()
    shown = rows[:PAGE]
    ids = [row.id for row in shown]
    asked = select(r.endpoint_id.label("endpoint"), r.id.label("run"), r.created_at).where(
        r.endpoint_id.in_(ids)
    )
    rated = (
        select(models.Evaluator.endpoint_id, models.RunEvaluator.run_id, models.RunEvaluator.created_at)
        .join(models.RunEvaluator, models.RunEvaluator.evaluator_id == models.Evaluator.id)
        .where(models.Evaluator.endpoint_id.in_(ids))
    )
    used = asked.union_all(rated).subquery()
    numbers = session.execute(
        select(used.c.endpoint, func.count(used.c.run.distinct()), func.max(used.c.created_at)).group_by(
            used.c.endpoint
        )
    )
    found = {endpoint: (runs, latest) for endpoint, runs, latest in numbers}
    listed = [ListedEndpoint(row, *found.get(row.id, (0, None))) for row in shown]
    return listed, shown[-1].uuid if len(rows) > PAGE else None


def find_endpoint(session: Session, identity: UUID) -> models.Endpoint:
    """Anybody's, by uuid; NotFound."""
    row = session.scalars(select(models.Endpoint).filter_by(uuid=identity)).one_or_none()
    if row is None:
        raise NotFound("There is no such endpoint.")
    return row


def delete_key(session: Session, identity: UUID, by: models.Account) -> models.Endpoint:
    """The sealed key goes; runs that need it end with a clear error. Conflict when there is none."""
    row = find_endpoint(session, identity)
    if row.sealed_key is None:
        raise Conflict(f"No key is stored for {row.name}.")
    row.sealed_key = None
    record(session, by, "endpoint.key-deleted", f"endpoint {row.id}", owner=row.account_id)
    session.flush()
    return row


def all_evaluators(session: Session) -> list[ListedEvaluator]:
    """Every version that there is, the newest first, repeats of one left out."""
    e = models.Evaluator
    query = select(e).options(joinedload(e.endpoint), joinedload(e.protocol)).where(e.repeat_of_id.is_(None))
    runs = _per_evaluator(session, models.RunEvaluator.evaluator_id)
    rows = _per_evaluator(session, models.BoardEntry.evaluator_id, models.BoardEntry.withdrawn_at.is_(None))
    found = []
    for row in session.scalars(query.order_by(e.id.desc())):
        check = last_check(session, row)
        found.append(
            ListedEvaluator(
                row,
                describe_evaluator(row)["label"],
                runs.get(row.id, 0),
                rows.get(row.id, 0),
                check.report if check else None,
                check.created_at if check else None,
            )
        )
    return found


def _per_evaluator(session: Session, column: Any, *conditions: Any) -> dict[int, int]:
    query = select(column, func.count()).where(*conditions).group_by(column)
    return {evaluator: number for evaluator, number in session.execute(query)}  # noqa: C416

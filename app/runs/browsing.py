"""Runs as pages show them: which there are, how one stands, how fast it goes, what went wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ColumnElement, exists, func, select, text
from sqlalchemy.orm import Session

from app import models
from app.accounts.policies import runs_managed_by, runs_visible_to
from app.errors import NotFound
from app.outcomes import PROBE_SCENARIO, Outcome
from app.runs.control import RUN_DETAILS
from app.runs.reporting import outcome_of, progress
from app.runs.spending import Spend, spend
from app.runs.words import ErrorClass, error_class

PAGE = 20
PACE_SECONDS = 30

# Outcomes that came in lately; the transaction's time stands with each.
LATELY = text("""
SELECT count(*) FILTER (WHERE greatest(c.finished_at, v.created_at)
                        > now() - make_interval(secs => :seconds)),
       extract(epoch FROM now() - (SELECT started_at FROM run WHERE id = :run)),
       EXISTS (SELECT 1 FROM driver WHERE run_id = :run AND lease_until > now())
FROM conversation c
LEFT JOIN verdict v ON v.conversation_id = c.id AND v.evaluator_id = :evaluator
WHERE c.run_id = :run AND c.state NOT IN ('pending', 'cancelled')
  AND (c.state <> 'answered' OR v.id IS NOT NULL)
""")

# A class of failure with one message of its own, as an example.
ERRORS = text("""
SELECT 'model' AS who, error AS name, count(*) AS n, min(error_message) AS example
FROM conversation WHERE run_id = :run AND state = 'endpoint_error' GROUP BY error
UNION ALL
SELECT CASE v.state WHEN 'unparsed' THEN 'reply' ELSE 'evaluator' END, coalesce(v.reason, 'unknown'),
       count(*), min(v.explanation)
FROM verdict v JOIN conversation c ON c.id = v.conversation_id
WHERE c.run_id = :run AND v.evaluator_id = :evaluator AND v.state IN ('unparsed', 'evaluator_error')
GROUP BY v.state, v.reason
ORDER BY n DESC, who, name
""")


@dataclass(frozen=True)
class Standing:
    """Planned conversations by outcome; they sum to `planned`."""

    outcomes: dict[Outcome, int]

    @property
    def planned(self) -> int:
        return sum(self.outcomes.values())

    @property
    def done(self) -> int:
        """Those that came to an end of their own, not by the run's."""
        return self.planned - self.outcomes[Outcome.PENDING] - self.outcomes[Outcome.CANCELLED]


@dataclass(frozen=True)
class ListedRun:
    run: models.Run
    standing: Standing
    on_board: bool


@dataclass(frozen=True)
class Live:
    """How a run stands at this moment.

    `pace`: outcomes a second over the last PACE_SECONDS; `left`: seconds that the rest takes at that pace.
    `attended`: somebody drives it.
    """

    standing: Standing
    pace: float | None
    left: float | None
    attended: bool
    elapsed: float | None
    spend: Spend
    errors: list[ErrorClass]


def visible_run(session: Session, person: models.Account | None, identity: UUID) -> models.Run:
    """A run that the person may see, with all that describes it; NotFound."""
    return _find(session, identity, runs_visible_to(person))


def managed_run(session: Session, person: models.Account | None, identity: UUID) -> models.Run:
    """A run that the person may change; NotFound."""
    return _find(session, identity, runs_managed_by(person))


def manages(session: Session, person: models.Account | None, run: models.Run) -> bool:
    query = select(exists().where(models.Run.id == run.id, runs_managed_by(person)))
    return session.scalars(query).one()


def _find(session: Session, identity: UUID, allowed: ColumnElement[bool]) -> models.Run:
    query = select(models.Run).options(*RUN_DETAILS).where(models.Run.uuid == identity, allowed)
    row = session.scalars(query).one_or_none()
    if row is None:
        raise NotFound("There is no such run, or it is not yours to see.")
    return row


def list_runs(
    session: Session, person: models.Account, *, older_than: UUID | None = None, limit: int = PAGE
) -> tuple[list[ListedRun], bool]:
    """A page of the person's runs (an administrator's: all), the newest first; and whether there are more.

    NotFound when `older_than` is no run of theirs.
    """
    query = select(models.Run).options(*RUN_DETAILS).where(runs_managed_by(person))
    if older_than is not None:
        query = query.where(models.Run.id < managed_run(session, person, older_than).id)
    rows = session.scalars(query.order_by(models.Run.id.desc()).limit(limit + 1)).all()
    page = rows[:limit]
    standings = _standings(session, [row.id for row in page])
    shown = _on_board(session, [row.id for row in page])
    return [ListedRun(row, standings[row.id], row.id in shown) for row in page], len(rows) > limit


def listed(session: Session, run: models.Run) -> ListedRun:
    """One run as the list shows it."""
    return ListedRun(run, _standings(session, [run.id])[run.id], bool(_on_board(session, [run.id])))


def _standings(session: Session, run_ids: Sequence[int]) -> dict[int, Standing]:
    c, v, r = models.Conversation, models.Verdict, models.Run
    is_probe = c.scenario == PROBE_SCENARIO
    rows = session.execute(
        select(c.run_id, c.state, v.state, v.rating, is_probe, func.count())
        .join(r, r.id == c.run_id)
        .outerjoin(v, (v.conversation_id == c.id) & (v.evaluator_id == r.evaluator_id))
        .where(c.run_id.in_(run_ids))
        .group_by(c.run_id, c.state, v.state, v.rating, is_probe)
    )
    found = {identity: Standing(dict.fromkeys(Outcome, 0)) for identity in run_ids}
    for identity, state, verdict_state, rating, probe, n in rows:
        found[identity].outcomes[outcome_of(state, verdict_state, rating, probe=probe)] += n
    return found


def _on_board(session: Session, run_ids: Sequence[int]) -> set[int]:
    query = select(models.BoardEntry.run_id).where(
        models.BoardEntry.run_id.in_(run_ids), models.BoardEntry.withdrawn_at.is_(None)
    )
    return set(session.scalars(query))


def board_entry(session: Session, run: models.Run) -> models.BoardEntry | None:
    """The run's entry under its own evaluator, withdrawn or not."""
    query = select(models.BoardEntry).filter_by(run_id=run.id, evaluator_id=run.evaluator_id)
    return session.scalars(query).one_or_none()


def live(session: Session, run: models.Run, evaluator_id: int) -> Live:
    """How the run stands under an evaluator."""
    standing = Standing(progress(session, run.id, evaluator_id))
    values = {"run": run.id, "evaluator": evaluator_id}
    lately, elapsed, attended = session.execute(LATELY, values | {"seconds": PACE_SECONDS}).one()
    seconds = None if elapsed is None else float(elapsed)
    running = run.status == "running" and seconds is not None and seconds > 0
    pace = lately / min(PACE_SECONDS, max(1.0, seconds)) if running and lately and seconds else None
    return Live(
        standing=standing,
        pace=pace,
        left=(standing.planned - standing.done) / pace if pace else None,
        attended=attended,
        elapsed=_elapsed(run, seconds),
        spend=spend(session, run, evaluator_id),
        errors=error_classes(session, run, evaluator_id),
    )


def error_classes(session: Session, run: models.Run, evaluator_id: int) -> list[ErrorClass]:
    """What failed, by class, each with its remedy and an example."""
    values = {"run": run.id, "evaluator": evaluator_id}
    return [error_class(*row) for row in session.execute(ERRORS, values)]


def _elapsed(run: models.Run, since_start: float | None) -> float | None:
    if run.started_at is not None and run.finished_at is not None:
        return (run.finished_at - run.started_at).total_seconds()
    return since_start

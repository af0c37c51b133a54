"""Listed models asked again: a sample of a row's conversations, held anew, and how the two differ.

Who answers well only while being watched, or has another model behind the address by now, shows it here.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import exists, select
from sqlalchemy.orm import Session, joinedload

from app import models
from app.accounts.audit import record
from app.benchmark import Case
from app.errors import Conflict, InvalidInput, NotFound
from app.library import load_benchmark, load_stored_protocol
from app.observations import Observation
from app.outcomes import SCENARIOS, STANDARD, Outcome
from app.rates import ANSWERED
from app.runs.planning import Plan, Selection, make_plan
from app.runs.reporting import observations
from app.runs.submitting import Submission, submit
from app.statistics import PairedDifference, paired_difference

MOST_CASES = 30  # a category; enough for a difference that matters, a small part of the bill
USUAL_CASES = 5
MOST_LISTED = 50
CHOICE = random.SystemRandom()  # nobody can prepare for the cases that are drawn


@dataclass(frozen=True)
class SpotReport:
    """A check with what came of it. `difference`: now less listed, on the conversations that both answered;
    None while there are none. `unanswered`: of the sample, what was answered then and ended otherwise now."""

    check: models.SpotCheck
    planned: int
    pending: int
    unanswered: int
    difference: PairedDifference | None


def listed_runs(session: Session) -> list[models.Run]:
    """Rows of boards that can be asked again: at an endpoint of their own, not withdrawn; by name."""
    listed = exists().where(
        models.BoardEntry.run_id == models.Run.id, models.BoardEntry.withdrawn_at.is_(None)
    )
    query = select(models.Run).options(joinedload(models.Run.endpoint, innerjoin=True)).where(listed)
    query = query.where(models.Run.provenance.in_(("vendor", "self_declared")), models.Run.sentinel.is_(None))
    rows = session.scalars(query).all()
    return sorted(rows, key=lambda run: (run.endpoint.name.casefold(), run.id))


def begin(session: Session, run_uuid: UUID, by: models.Account, per_category: int) -> models.SpotCheck:
    """A run over so many cases of each category, drawn anew, at the row's endpoint with the row's key.

    The caller commits, then wakes. Conflict where the same row is being checked already.
    """
    if not 1 <= per_category <= MOST_CASES:
        raise InvalidInput(f"Cases of each category: a whole number from 1 to {MOST_CASES}.")
    entry = _entry(session, run_uuid)
    run = entry.run
    going = exists().where(
        models.SpotCheck.entry_id == entry.id,
        models.SpotCheck.run_id == models.Run.id,
        models.Run.status == "running",
    )
    if session.scalars(select(going)).one():
        raise Conflict(f"A spot check of {run.endpoint.name} is under way: see what it brings first.")
    made = submit(
        session,
        Submission(
            name=f"Spot check of run {run.id}",
            selection=Selection(),
            seeds=(run.seeds[0],),
            concurrency=run.concurrency,
            max_calls=None,
            provenance=run.provenance,
        ),
        _sampled(session, run, per_category),
        account=by,
        benchmark=run.benchmark,
        protocol=run.protocol,
        endpoint=run.endpoint,
        evaluator=run.evaluator,
    )
    check = models.SpotCheck(entry_id=entry.id, run_id=made.id, asked_by_id=by.id)
    session.add(check)
    record(session, by, "spot-check.begin", f"run {run.id}", spot_run=made.id)
    session.flush()
    session.refresh(check)
    return check


def _entry(session: Session, run_uuid: UUID) -> models.BoardEntry:
    detail = joinedload(models.BoardEntry.run, innerjoin=True)
    query = (
        select(models.BoardEntry)
        .options(*(detail.joinedload(part) for part in (
            models.Run.endpoint, models.Run.benchmark, models.Run.protocol, models.Run.evaluator,
        )))
        .join(models.Run, models.Run.id == models.BoardEntry.run_id)
        .where(models.Run.uuid == run_uuid, models.BoardEntry.withdrawn_at.is_(None))
        .where(models.BoardEntry.evaluator_id == models.Run.evaluator_id)
        .where(models.Run.provenance.in_(("vendor", "self_declared")))
        .with_for_update(of=models.BoardEntry)
    )  # fmt: skip
    entry = session.scalars(query.order_by(models.BoardEntry.id).limit(1)).one_or_none()
    if entry is None:
        raise NotFound("There is no such row on a board, or none that can be asked again.")
    return entry


def _sampled(session: Session, run: models.Run, per_category: int) -> Plan:
    """Of the public cases that the row answered, so many of each category under the five scenarios."""
    benchmark, protocol = load_benchmark(session, run.benchmark), load_stored_protocol(run.protocol)
    plan = make_plan(
        protocol, benchmark, Selection(), (run.seeds[0],), evaluator_is_model=run.evaluator.kind == "model"
    )
    answered = {
        item.case
        for item in observations(session, run.id, run.evaluator_id)
        if item.variant == STANDARD and item.seed == run.seeds[0] and item.outcome in ANSWERED
    }
    by_category: dict[str, list[str]] = defaultdict(list)
    for case in benchmark.cases:
        if isinstance(case, Case) and case.split == "public" and case.key in answered:
            by_category[case.category].append(case.key)
    chosen = {
        key for keys in by_category.values() for key in CHOICE.sample(keys, min(per_category, len(keys)))
    }
    if not chosen:
        raise Conflict(f"Run {run.id} answered no public case: there is nothing to compare with.")
    arms = [
        replace(arm, cases=tuple(case for case in arm.cases if case.key in chosen))
        for arm in plan.arms
        if arm.scenario in SCENARIOS
    ]
    return replace(plan, arms=tuple(arms))


def spot_checks(session: Session) -> list[SpotReport]:
    """The latest first, each with its difference so far."""
    check, run = models.SpotCheck, joinedload(models.SpotCheck.run, innerjoin=True)
    listed = joinedload(check.entry, innerjoin=True).joinedload(models.BoardEntry.run, innerjoin=True)
    query = select(check).options(
        run, listed.joinedload(models.Run.endpoint), joinedload(check.asked_by, innerjoin=True)
    )
    return [
        _report(session, row) for row in session.scalars(query.order_by(check.id.desc()).limit(MOST_LISTED))
    ]


def _report(session: Session, check: models.SpotCheck) -> SpotReport:
    evaluator = check.entry.evaluator_id
    now = observations(session, check.run_id, evaluator)
    then = {_key(item): item for item in observations(session, check.entry.run_id, evaluator)}
    both = [(item, then[_key(item)]) for item in now if _key(item) in then]
    asked_before = [(new, old) for new, old in both if old.outcome in ANSWERED]
    ended = [(new, old) for new, old in asked_before if new.outcome is not Outcome.PENDING]
    return SpotReport(
        check,
        planned=len(now),
        pending=sum(item.outcome is Outcome.PENDING for item in now),
        unanswered=sum(new.outcome not in ANSWERED for new, _ in ended),
        difference=_difference([(new, old) for new, old in ended if new.outcome in ANSWERED]),
    )


def _difference(pairs: Sequence[tuple[Observation, Observation]]) -> PairedDifference | None:
    return paired_difference(
        (new.cluster, float(new.outcome is Outcome.PASS), float(old.outcome is Outcome.PASS))
        for new, old in pairs
    )


def _key(item: Observation) -> tuple[str, str, str, int]:
    return item.case, item.scenario, item.variant, item.seed

"""Publish and withdraw runs. What a row shows is fixed when its run is published."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app import models
from app.declared import NO_PROMPT, NOTHING_SAID, Declared
from app.errors import Conflict, InvalidInput, NotFound
from app.leaderboard.boards import GroupKey, hold_group, recompute
from app.leaderboard.human import measure
from app.outcomes import SCENARIOS, STANDARD, Outcome
from app.rates import ANSWERED, Observation, Undefined, probes, rates
from app.runs.reporting import observations
from app.text import drawn_alike

MAX_REASON = 2000
NAMES_LOCK = 0x4E414D45  # "NAME"


def publish(
    session: Session,
    run: models.Run,
    *,
    served: bool,
    declared: Declared = NOTHING_SAID,
    evaluator: models.Evaluator | None = None,
    name_reviewed: bool = False,
) -> models.BoardEntry:
    """Put a run on the board of its benchmark, protocol and evaluator; again: the entry that is there.

    `evaluator`: another one that has rated the run; its board is another board. `name_reviewed`: somebody
    looked at a name that looks like another row's, and lets it stand.

    `served`: the site is open to others than this machine, so it lists no simulated model. What is not
    `declared` here is as the endpoint has it; said again, it replaces what the row said before.
    """
    if run.status != "finished":
        raise Conflict(f"Run {run.id} is {run.status}: only a finished run can be published.")
    rated_by = run.evaluator_id if evaluator is None else evaluator.id
    _check_rated(session, run, evaluator)
    who = simulated_part(session, run, rated_by)
    if served and run.sentinel is None and who is not None:
        raise Conflict(
            f"Run {run.id} was {who} by a simulated model: a site that others can reach lists none. "
            "Nothing that it earns says anything about an assistant."
        )
    key = _key_under(run, run.benchmark_id, rated_by)
    hold_group(session, key)
    entry = _own_entry(session, run, rated_by)
    if entry is not None and entry.withdrawn_at is not None:
        raise Conflict(
            f"Run {run.id} was withdrawn on {entry.withdrawn_at:%Y-%m-%d} ({entry.withdrawn_reason}); "
            "a withdrawn run is not published again: evaluate anew."
        )
    fresh = entry is None
    if entry is None:
        _hold_names(session)
        if not name_reviewed and (other := lookalike(session, run.endpoint.name)) is not None:
            raise Conflict(
                f"The board has a row '{other}', which looks like '{run.endpoint.name}' but is another name: "
                "evaluate under exactly that name, or under one that nobody takes for it."
            )
        entry = models.BoardEntry(
            run_id=run.id,
            evaluator_id=rated_by,
            benchmark_id=run.benchmark_id,
            report=entry_report(session, run, run.benchmark_id, rated_by),
        )
        entry.run = run
        vendor = Declared(system_prompt=NO_PROMPT) if run.provenance == "vendor" else NOTHING_SAID
        entry.declared = vendor.over(run.endpoint.declared)
        session.add(entry)
    before = entry.declared
    entry.declared = declared.over(before)
    if fresh or entry.declared != before:
        session.flush()
        if fresh:
            measure(session, entry)
        recompute(session, key)
    if evaluator is None:
        run.publish_wanted, run.publish_refusal = False, None
    return entry


def _check_rated(session: Session, run: models.Run, evaluator: models.Evaluator | None) -> None:
    """Another evaluator than the run's own has a row only if it was to rate all of the run, once."""
    if session.scalars(select(models.SpotCheck.id).filter_by(run_id=run.id)).first() is not None:
        raise Conflict(f"Run {run.id} is a spot check of a row: it is never listed.")
    if evaluator is None or evaluator.id == run.evaluator_id:
        return
    pairing = session.get(models.RunEvaluator, (run.id, evaluator.id))
    if pairing is None:
        raise Conflict(f"Run {run.id} was not rated by {evaluator.name}: rate it again first.")
    if pairing.sample is not None:
        raise Conflict(f"{evaluator.name} rated a sample of run {run.id}: a board takes all conversations.")
    if evaluator.repeat is not None:
        raise Conflict("A repeated verdict shows how often verdicts flip; a board takes the first ones.")


def _own_entry(session: Session, run: models.Run, evaluator_id: int) -> models.BoardEntry | None:
    """Under the benchmark version that the run was asked with."""
    query = select(models.BoardEntry).filter_by(
        run_id=run.id, evaluator_id=evaluator_id, benchmark_id=run.benchmark_id
    )
    return session.scalars(query).one_or_none()


def lookalike(session: Session, name: str) -> str | None:
    """The name of a row on some board that a reader would take for this name, though it is another."""
    on_board = (
        select(models.Endpoint.name)
        .join(models.Run, models.Run.endpoint_id == models.Endpoint.id)
        .join(models.BoardEntry, models.BoardEntry.run_id == models.Run.id)
        .where(models.BoardEntry.withdrawn_at.is_(None), models.Endpoint.name != name)
        .distinct()
    )
    alike = drawn_alike(name)
    return next((other for other in sorted(session.scalars(on_board)) if drawn_alike(other) == alike), None)


def simulated_part(session: Session, run: models.Run, evaluator_id: int | None = None) -> str | None:
    """Which part of a run a simulated model had: "answered" or "rated", None for none."""
    if run.simulated:
        return "answered"
    rated_by = run.evaluator_id if evaluator_id is None else evaluator_id
    rater = select(models.RunEvaluator.simulated).filter_by(run_id=run.id, evaluator_id=rated_by)
    return "rated" if session.scalar(rater) else None


def withdraw(session: Session, run: models.Run, reason: str) -> models.BoardEntry:
    """Take a run off every board that it is on; its tombstones keep the reason and the date."""
    if not reason.strip() or len(reason) > MAX_REASON:
        raise InvalidInput(f"Give a reason for the withdrawal, {MAX_REASON} characters at most.")
    query = select(models.BoardEntry).filter_by(run_id=run.id).order_by(models.BoardEntry.id)
    keys = {_key_under(run, one.benchmark_id, one.evaluator_id) for one in session.scalars(query)}
    if not keys:
        raise NotFound(f"Run {run.id} is not on the board.")
    for key in sorted(keys):
        hold_group(session, key)
    # The transaction's time, as that of the boards which are computed in it.
    moment = session.scalars(select(func.now())).one()
    entries = session.scalars(query.execution_options(populate_existing=True)).all()
    for entry in entries:
        if entry.withdrawn_at is None:
            entry.withdrawn_at, entry.withdrawn_reason = moment, reason.strip()
            session.flush()
            recompute(session, _key_under(run, entry.benchmark_id, entry.evaluator_id))
    return next(one for one in entries if one.benchmark_id == run.benchmark_id)


def _hold_names(session: Session) -> None:
    """Two names that look the same may come to two boards at once."""
    session.execute(select(func.pg_advisory_xact_lock(NAMES_LOCK)))


def own_key(run: models.Run) -> GroupKey:
    """The version group under which the run was asked and rated."""
    return _key_under(run, run.benchmark_id, run.evaluator_id)


def _key_under(run: models.Run, benchmark_id: int, evaluator_id: int) -> GroupKey:
    return GroupKey(benchmark_id, run.protocol_id, evaluator_id)


def entry_report(
    session: Session, run: models.Run, benchmark_id: int, evaluator_id: int | None = None
) -> dict[str, Any]:
    """The run's rates over every public case of that benchmark, and each conversation's mark for comparing.

    A later version of the benchmark that only leaves out cases needs no new call: cases are found by key.
    """
    seen = observations(session, run.id, run.evaluator_id if evaluator_id is None else evaluator_id)
    query = select(models.Case).filter_by(benchmark_id=benchmark_id, split="public")
    public = {(case.kind, case.key): case for case in session.scalars(query)}
    cases = {key: case for (kind, key), case in public.items() if kind == "case"}
    whole = complete_grid(seen, cases, run.seeds)
    undefined: Undefined = {}
    return {
        "rates": rates(whole, undefined),
        "over_caution": probes([item for item in seen if ("probe", item.case) in public], undefined),
        "undefined": undefined,
        "marks": [
            [item.case, item.scenario, item.seed, int(item.outcome is Outcome.PASS)]
            for item in whole
            if item.outcome in ANSWERED
        ],
    }


def complete_grid(
    seen: Sequence[Observation], public: dict[str, models.Case], seeds: Sequence[int]
) -> list[Observation]:
    """Every public case × five scenarios × seeds under `standard`; what the run did not ask is pending."""
    asked = {(item.case, item.scenario, item.seed): item for item in seen if item.variant == STANDARD}
    return [
        asked.get((key, scenario, seed))
        or Observation(key, case.cluster, case.category, scenario, STANDARD, seed, Outcome.PENDING)
        for key, case in public.items()
        for scenario in SCENARIOS
        for seed in seeds
    ]

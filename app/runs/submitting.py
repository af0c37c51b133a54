"""Insert a run with everything that it plans, in one transaction."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal

from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app import models
from app.endpoints import evaluator_of_run
from app.errors import InvalidInput
from app.outcomes import PROBE_SCENARIO
from app.runs.planning import Plan, Selection

MAX_CONCURRENCY = 512

PLAN_CONVERSATIONS = text("""
INSERT INTO conversation (run_id, group_id, case_id, scenario, variant, category, seed, turns_planned)
SELECT g.run_id, g.id, g.case_id, :scenario, :variant, c.category, g.seed, :turns
FROM run_group g JOIN "case" c ON c.id = g.case_id
WHERE g.run_id = :run AND g.case_id = ANY(:cases)
ORDER BY g.position
""")


@dataclass(frozen=True)
class Submission:
    name: str
    selection: Selection
    seeds: tuple[int, ...]
    concurrency: int
    max_calls: int | None
    max_cost: Decimal | None = None
    forget_key: bool = False
    provenance: str = "self_declared"
    publish: bool = False
    mail: bool = False


def submit(
    session: Session,
    submission: Submission,
    plan: Plan,
    *,
    account: models.Account,
    benchmark: models.Benchmark,
    protocol: models.Protocol,
    endpoint: models.Endpoint,
    evaluator: models.Evaluator,
) -> models.Run:
    """Store the run, its groups (case × seed) and its conversations. The caller commits, then wakes."""
    if not 1 <= submission.concurrency <= MAX_CONCURRENCY:
        raise InvalidInput(f"Concurrency is a whole number from 1 to {MAX_CONCURRENCY}.")
    if submission.max_calls is not None and submission.max_calls < 1:
        raise InvalidInput("The cap on calls is a whole number from 1.")
    run = models.Run(
        account_id=account.id,
        name=submission.name,
        benchmark_id=benchmark.id,
        protocol_id=protocol.id,
        endpoint_id=endpoint.id,
        evaluator_id=evaluator.id,
        selection=asdict(submission.selection),
        seeds=list(submission.seeds),
        concurrency=submission.concurrency,
        max_calls=submission.max_calls,
        max_cost=submission.max_cost,
        forget_key=submission.forget_key,
        provenance=submission.provenance,
        publish_wanted=submission.publish,
        mail_wanted=submission.mail,
        price_prompt=endpoint.price_prompt,
        price_completion=endpoint.price_completion,
    )
    session.add(run)
    session.flush()
    session.add(evaluator_of_run(session, run, evaluator))
    _plan_rows(session, run, plan, benchmark.id)
    return run


def _plan_rows(session: Session, run: models.Run, plan: Plan, benchmark_id: int) -> None:
    ids = _case_ids(session, benchmark_id)
    per_arm = [
        (arm, [ids[_kind(arm.scenario), case.key] for case in arm.cases]) for arm in plan.arms if arm.cases
    ]
    _insert_groups(session, run.id, [case for _, cases in per_arm for case in cases], plan.seeds)
    for arm, cases in per_arm:
        session.execute(
            PLAN_CONVERSATIONS,
            {
                "run": run.id,
                "scenario": arm.scenario,
                "variant": arm.variant,
                "turns": len(arm.turn_names),
                "cases": cases,
            },
        )


def _insert_groups(session: Session, run_id: int, cases: Sequence[int], seeds: Sequence[int]) -> None:
    """Seed by seed and category by category in turn, so that a part of a run covers all categories."""
    rotated = _by_turns(session, list(dict.fromkeys(cases)))
    session.execute(
        insert(models.RunGroup),
        [
            {"run_id": run_id, "case_id": case, "seed": seed, "position": position}
            for position, (seed, case) in enumerate((seed, case) for seed in seeds for case in rotated)
        ],
    )


def _by_turns(session: Session, cases: list[int]) -> list[int]:
    """One case of each category after the other."""
    query = select(models.Case.id, models.Case.category).where(models.Case.id.in_(cases))
    categories = {case: category for case, category in session.execute(query)}  # noqa: C416
    seen: dict[str, int] = {}
    ranked = []
    for case in cases:
        category = categories[case]
        seen[category] = seen.get(category, 0) + 1
        ranked.append((seen[category], category, case))
    return [case for _, _, case in sorted(ranked)]


def _case_ids(session: Session, benchmark_id: int) -> dict[tuple[str, str], int]:
    rows = session.execute(
        select(models.Case.kind, models.Case.key, models.Case.id).filter_by(benchmark_id=benchmark_id)
    )
    return {(kind, key): identity for kind, key, identity in rows}


def _kind(scenario: str) -> str:
    return "probe" if scenario == PROBE_SCENARIO else "case"

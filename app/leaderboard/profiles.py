"""One row of a board in depth: where the model breaks, against what, and an example of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.orm import Session, aliased

from app import models
from app.accounts.policies import in_study
from app.accounts.withholding import Withheld, withheld_of_run
from app.errors import NotFound
from app.leaderboard.boards import no_spot_check, same_model
from app.leaderboard.comparing import all_rows
from app.leaderboard.reading import VersionGroup
from app.outcomes import STANDARD, Outcome, Rating
from app.rates import ANSWERED, Observation, Undefined, report_sections
from app.runs.control import RUN_DETAILS
from app.runs.reporting import observations
from app.runs.spending import spend
from app.statistics import paired_difference

# What is compared within a model: (name, from, to). sc5 against sc4 is what comes back without the pressure.
STEPS = (
    ("sc1_to_sc2", "sc1", "sc2"),
    ("sc2_to_sc3", "sc2", "sc3"),
    ("sc3_to_sc4", "sc3", "sc4"),
    ("sc1_to_sc4", "sc1", "sc4"),
    ("sc4_to_sc5", "sc4", "sc5"),
)

# Of the calls that were made for this run; a copied turn was asked for another conversation.
PACE = text("""
SELECT count(t.completion_tokens) AS counted, avg(t.completion_tokens) AS tokens,
       count(t.seconds) AS timed,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY t.seconds) AS median,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY t.seconds) AS slow
FROM turn t JOIN conversation c ON c.id = t.conversation_id
WHERE c.run_id = :run AND NOT t.copied
""")


@dataclass(frozen=True)
class StartedRun:
    """A run of the model under this benchmark and protocol, published or not."""

    id: int
    uuid: UUID
    status: str
    started_at: datetime
    shown: bool


@dataclass(frozen=True)
class Example:
    """A conversation that failed."""

    uuid: UUID
    case: str
    category: str
    scenario: str
    constraint: str | None
    request: str | None
    response: str | None
    explanation: str


def find_model(
    groups: Sequence[VersionGroup], identity: UUID, board: VersionGroup | None, run: int | None
) -> tuple[VersionGroup, dict[str, Any]]:
    """The board (the first that has it, unless one is given) and the model's row on it.

    NotFound where it stands on none, with the reason if it was withdrawn.
    """
    for group in [board] if board is not None else groups:
        for row in all_rows(group):
            if row["model_uuid"] == str(identity) and run in (None, row["run"]):
                return group, row
    for group in groups:
        for row in group.content["withdrawn"]:
            if row["model_uuid"] == str(identity):
                day = row["withdrawn_at"][:10]
                raise NotFound(f"{row['model']} was withdrawn from the board on {day}: {row['reason']}")
    raise NotFound("There is no such model on this board." if board else "There is no such model.")


def boards_of(groups: Sequence[VersionGroup], identity: UUID) -> list[VersionGroup]:
    return [one for one in groups if any(row["model_uuid"] == str(identity) for row in all_rows(one))]


def model_report(session: Session, group: VersionGroup, row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with all that stands behind it; of public cases only.

    `steps`: from one scenario to another on the same cases, the second less the first.
    """
    run = session.scalars(select(models.Run).options(*RUN_DETAILS).filter_by(id=row["run"])).one()
    seen = _public(session, run, group)
    sections = report_sections(seen)
    undefined: Undefined = {
        path: reason for path, reason in sections["undefined"].items() if not path.startswith("rates.")
    }
    undefined |= row["undefined"]
    pace = _pace(session, run, undefined)
    steps = {name: _step(seen, before, after, name, undefined) for name, before, after in STEPS}
    names = ("counts", "by_variant", "control", "probes", "recall", "reasons", "seeds")
    return {
        **{name: value for name, value in row.items() if name != "undefined"},
        "board": group.key,
        "system_prompt_text": _prompt_text(session, run, group, undefined),
        "steps": steps,
        **{name: sections[name] for name in names},
        "calls": _calls(session, run, group.evaluator.id, undefined),
        "pace": pace,
        "undefined": undefined,
    }


def _prompt_text(session: Session, run: models.Run, group: VersionGroup, undefined: Undefined) -> str | None:
    """The words of the system prompt at the endpoint, as they were declared for this row."""
    query = select(models.BoardEntry.system_prompt_text).filter_by(
        run_id=run.id, evaluator_id=group.evaluator.id, benchmark_id=group.benchmark.id
    )
    found = session.scalars(query).one_or_none()
    if found is None:
        undefined["system_prompt_text"] = "its submitter does not say that there is one, or not its words"
    return found


def _public(session: Session, run: models.Run, group: VersionGroup) -> list[Observation]:
    """Of the board's benchmark version, which may have fewer cases than the one that was asked."""
    query = select(models.Case.key).filter_by(benchmark_id=group.benchmark.id, split="public")
    public = set(session.scalars(query))
    return [one for one in observations(session, run.id, group.evaluator.id) if one.case in public]


def _calls(
    session: Session, run: models.Run, evaluator_id: int, undefined: Undefined
) -> dict[str, int | float | None]:
    spent = spend(session, run, evaluator_id)
    if spent.why_unknown is not None:
        undefined["calls.cost_usd"] = spent.why_unknown
    return spent.as_report()


def _pace(session: Session, run: models.Run, undefined: Undefined) -> dict[str, float | int | None]:
    row = session.execute(PACE, {"run": run.id}).one()
    if not row.counted:
        undefined["pace.tokens_per_reply"] = "the endpoint counts no tokens"
    if not row.timed:
        undefined["pace.seconds_median"] = undefined["pace.seconds_p95"] = "no reply was timed"
    return {
        "replies": row.timed,
        "tokens_per_reply": float(row.tokens) if row.counted else None,
        "seconds_median": float(row.median) if row.timed else None,
        "seconds_p95": float(row.slow) if row.timed else None,
    }


def _step(
    seen: Sequence[Observation], before: str, after: str, name: str, undefined: Undefined
) -> dict[str, Any] | None:
    """Clustered t on the cases (and seeds) that were answered in both scenarios."""
    one, two = _marks(seen, before), _marks(seen, after)
    found = paired_difference(
        (cluster, passed, two[key][1]) for key, (cluster, passed) in one.items() if key in two
    )
    if found is None:
        undefined[f"steps.{name}"] = "no case was answered in both scenarios"
        return None
    if found.interval is None:
        undefined[f"steps.{name}.ci"] = "all clusters change alike, or there is only one: no standard error"
    if found.p_value is None:
        undefined[f"steps.{name}.p"] = "one cluster of cases alone gives no test"
    # The difference is taken of the first less the second; here the second counts from the first.
    interval = found.interval
    return {
        "from": before,
        "to": after,
        "n": found.n,
        "difference": -found.difference,
        "ci": (-interval[1], -interval[0]) if interval else None,
        "p": found.p_value,
    }


def _marks(seen: Sequence[Observation], scenario: str) -> dict[tuple[str, int], tuple[str, float]]:
    return {
        (one.case, one.seed): (one.cluster, float(one.outcome is Outcome.PASS))
        for one in seen
        if one.scenario == scenario and one.variant == STANDARD and one.outcome in ANSWERED
    }


def runs_started(session: Session, group: VersionGroup, row: Mapping[str, Any]) -> list[StartedRun]:
    """All runs of the model at its address by its owner, whatever they were called, under the board's
    benchmark and protocol, the first one first."""
    r, e, mine, same = models.Run, models.BoardEntry, aliased(models.Endpoint), aliased(models.Endpoint)
    shown = session.get_one(r, row["run"])
    published = select(e.run_id).where(e.withdrawn_at.is_(None))
    rows = session.execute(
        select(r.id, r.uuid, r.status, r.created_at, r.id.in_(published))
        .join(same, same.id == r.endpoint_id)
        .join(mine, same_model(mine, same))
        .where(
            mine.uuid == UUID(row["model_uuid"]),
            r.benchmark_id.in_((group.benchmark.id, shown.benchmark_id)),
            r.protocol_id == group.protocol.id,
            no_spot_check(),
        )
        .order_by(r.id)
    )
    return [StartedRun(*one) for one in rows]


def failing_example(session: Session, group: VersionGroup, row: Mapping[str, Any]) -> Example | None:
    """The first failed conversation, in the plainest scenario that has one; None where none failed."""
    c, v, k = models.Conversation, models.Verdict, models.Case
    on_board = select(k.key).filter_by(benchmark_id=group.benchmark.id, kind="case", split="public")
    found = session.execute(
        select(c.uuid, k.key, c.category, c.scenario, c.constraint, c.request, c.response, v.explanation)
        .join(v, (v.conversation_id == c.id) & (v.evaluator_id == group.evaluator.id))
        .join(k, k.id == c.case_id)
        .where(
            c.run_id == row["run"],
            c.variant == STANDARD,
            c.state == "answered",
            k.kind == "case",
            k.key.in_(session.scalars(on_board).all()),
            v.rating == int(Rating.FAIL),
            ~in_study(),
        )
        .order_by(c.scenario, c.case_id, c.seed)
        .limit(1)
    ).one_or_none()
    return None if found is None else Example(*found)


def withheld_behind(
    session: Session, person: models.Account | None, row: Mapping[str, Any]
) -> Withheld | None:
    """What the lists behind the row's figures do not show this person while it is in a study."""
    return withheld_of_run(session, person, session.get_one(models.Run, row["run"]))

"""Publish and withdraw runs; compute the board of a version group; read it.

Only rows of one benchmark, protocol and evaluator version are ranked together. The board is computed when a
row is published or withdrawn, in the same transaction, and read as it stands.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, joinedload

from app import models
from app.errors import Conflict, InvalidInput, NotFound
from app.outcomes import SCENARIOS, STANDARD, Outcome
from app.rates import ANSWERED, Observation, Undefined, probes, rates
from app.runs.reporting import describe_evaluator, observations
from app.statistics import pairwise_differences, rank_intervals, resolvable_difference

COMPLETE_OVERALL = 0.98
COMPLETE_CELL = 0.95
MAX_REASON = 2000
WITHOUT_SIMULATED = "without_simulated"
# Raise it when a row gets other fields or figures: boards that were computed before are then computed anew.
FORMAT = 1


def publish(session: Session, run: models.Run, *, served: bool) -> models.BoardEntry:
    """Put a run on the board of its benchmark, protocol and evaluator; again: the entry that is there.

    `served`: the site is open to others than this machine, so it lists no simulated model.
    """
    if run.status != "finished":
        raise Conflict(f"Run {run.id} is {run.status}: only a finished run can be published.")
    if served and run.endpoint.simulated:
        raise Conflict(
            f"Run {run.id} asked a simulated model: a site that others can reach lists none. "
            "Nothing that it earns says anything about an assistant."
        )
    query = select(models.BoardEntry).filter_by(run_id=run.id, evaluator_id=run.evaluator_id)
    entry = session.scalars(query).one_or_none()
    if entry is not None and entry.withdrawn_at is not None:
        raise Conflict(
            f"Run {run.id} was withdrawn on {entry.withdrawn_at:%Y-%m-%d} ({entry.withdrawn_reason}); "
            "a withdrawn run is not published again: evaluate anew."
        )
    if entry is None:
        entry = models.BoardEntry(
            run_id=run.id, evaluator_id=run.evaluator_id, report=_entry_report(session, run)
        )
        session.add(entry)
        session.flush()
        recompute(session, run)
    return entry


def withdraw(session: Session, run: models.Run, reason: str) -> models.BoardEntry:
    """Take a run off the board; its tombstone keeps the reason and the date."""
    if not reason.strip() or len(reason) > MAX_REASON:
        raise InvalidInput(f"Give a reason for the withdrawal, {MAX_REASON} characters at most.")
    query = select(models.BoardEntry).filter_by(run_id=run.id, evaluator_id=run.evaluator_id)
    entry = session.scalars(query).one_or_none()
    if entry is None:
        raise NotFound(f"Run {run.id} is not on the board.")
    if entry.withdrawn_at is None:
        entry.withdrawn_at, entry.withdrawn_reason = datetime.now(UTC), reason.strip()
        session.flush()
        recompute(session, run)
    return entry


def _entry_report(session: Session, run: models.Run) -> dict[str, Any]:
    """The run's rates over every public case, and each conversation's mark for comparing with other rows."""
    seen = observations(session, run.id, run.evaluator_id)
    public = {
        case.key: case
        for case in session.scalars(
            select(models.Case).filter_by(benchmark_id=run.benchmark_id, kind="case", split="public")
        )
    }
    whole = complete_grid(seen, public, run.seeds)
    undefined: Undefined = {}
    return {
        "rates": rates(whole, undefined),
        "over_caution": probes(seen, undefined),
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


@dataclass(frozen=True)
class _Candidate:
    """A model version's row: the entry that stands for it, and how many runs were started."""

    name: str
    entry: models.BoardEntry
    started: int


def recompute(session: Session, run: models.Run) -> None:
    """Compute the whole board of the run's version group and swap it in."""
    key = {
        "benchmark_id": run.benchmark_id,
        "protocol_id": run.protocol_id,
        "evaluator_id": run.evaluator_id,
    }
    content = _content(session, **key)
    session.execute(
        insert(models.Board)
        .values(content=content, **key)
        .on_conflict_do_update(index_elements=list(key), set_={"content": content, "computed_at": func.now()})
    )


def _content(session: Session, *, benchmark_id: int, protocol_id: int, evaluator_id: int) -> dict[str, Any]:
    """The board, and where it has simulated models another one as if they were not there."""
    entries = session.scalars(
        select(models.BoardEntry)
        .join(models.Run, models.Run.id == models.BoardEntry.run_id)
        .options(joinedload(models.BoardEntry.run).joinedload(models.Run.endpoint))
        .where(
            models.Run.benchmark_id == benchmark_id,
            models.Run.protocol_id == protocol_id,
            models.BoardEntry.evaluator_id == evaluator_id,
        )
        .order_by(models.BoardEntry.published_at, models.BoardEntry.id)
    ).all()
    query = select(models.Case.key, models.Case.cluster)
    public = query.filter_by(benchmark_id=benchmark_id, kind="case")
    clusters = {key: cluster for key, cluster in session.execute(public)}  # noqa: C416
    content = _board(session, entries, clusters) | {"format": FORMAT}
    real = [entry for entry in entries if not entry.run.endpoint.simulated]
    if len(real) < len(entries):
        content[WITHOUT_SIMULATED] = _board(session, real, clusters)
    return content


def _board(
    session: Session, entries: Sequence[models.BoardEntry], clusters: dict[str, str]
) -> dict[str, Any]:
    live = [entry for entry in entries if entry.withdrawn_at is None]
    complete = [entry for entry in live if _may_rank(entry)]
    ranked = _first_complete(session, complete)
    standing = {candidate.entry.run.endpoint_id for candidate in ranked}
    rest = [entry for entry in live if entry.run.endpoint_id not in standing]
    ranks, resolvable = _ranks(ranked, clusters)
    rows = [_row(item.entry, item.started, ranks[item.name]) for item in ranked]
    rows.sort(key=lambda row: (-row["overall"]["pass_rate"], row["model"], row["run"]))
    return {
        "resolvable_difference": resolvable,
        "rows": rows,
        "incomplete": [_row(entry, _started(session, entry), None) for entry in rest],
        "sentinels": [],
        "withdrawn": [_tombstone(entry) for entry in entries if entry.withdrawn_at is not None],
        "undefined": (
            {} if resolvable is not None else {"resolvable_difference": "fewer than two rows to compare"}
        ),
    }


def _may_rank(entry: models.BoardEntry) -> bool:
    """Transcripts made elsewhere cannot be vouched for; they are shown, not ranked."""
    return entry.run.provenance != "uploaded" and is_complete(entry.report["rates"])


def is_complete(report: dict[str, Any]) -> bool:
    """Enough of every public case × scenario was answered to be ranked."""
    cells = [
        rate["coverage"] or 0.0
        for by_category in report["by_scenario_category"].values()
        for rate in by_category.values()
    ]
    overall = report["overall"]["coverage"] or 0.0
    return overall >= COMPLETE_OVERALL and bool(cells) and min(cells) >= COMPLETE_CELL


def _first_complete(session: Session, entries: Sequence[models.BoardEntry]) -> list[_Candidate]:
    """One row a model version (endpoint): its first complete one; nobody publishes the best of many."""
    first: dict[int, models.BoardEntry] = {}
    for entry in sorted(entries, key=lambda item: item.run_id):
        first.setdefault(entry.run.endpoint_id, entry)
    return [_Candidate(str(entry.run_id), entry, _started(session, entry)) for entry in first.values()]


def _started(session: Session, entry: models.BoardEntry) -> int:
    """How many runs of this endpoint were started under the same benchmark and protocol, published or not."""
    run = entry.run
    return session.scalars(
        select(func.count())
        .select_from(models.Run)
        .filter_by(endpoint_id=run.endpoint_id, benchmark_id=run.benchmark_id, protocol_id=run.protocol_id)
    ).one()


def _ranks(
    candidates: Sequence[_Candidate], clusters: dict[str, str]
) -> tuple[dict[str, tuple[int, int]], float | None]:
    """Rank interval of each row, and the difference that this board can resolve."""
    marks: dict[str, dict[Hashable, float]] = {
        item.name: {
            (case, scenario, seed): float(passed)
            for case, scenario, seed, passed in item.entry.report["marks"]
        }
        for item in candidates
    }
    cluster_of = {
        (case, scenario, seed): clusters[case]
        for item in candidates
        for case, scenario, seed, _ in item.entry.report["marks"]
    }
    comparisons = pairwise_differences(marks, cluster_of)
    return rank_intervals(list(marks), comparisons), resolvable_difference(comparisons.values())


def _row(entry: models.BoardEntry, started: int, rank: tuple[int, int] | None) -> dict[str, Any]:
    run, report = entry.run, entry.report
    return {
        "model": run.endpoint.name,
        "model_id": run.endpoint.model,
        "provider": run.endpoint.provider,
        "run": run.id,
        "run_uuid": str(run.uuid),
        "rank": list(rank) if rank else None,
        "overall": report["rates"]["overall"],
        "by_scenario": report["rates"]["by_scenario"],
        "by_category": report["rates"]["by_category"],
        "by_scenario_category": report["rates"]["by_scenario_category"],
        "over_caution": report["over_caution"],
        "human": None,
        "provenance": run.provenance,
        "system_prompt": "unknown",
        "simulated": run.endpoint.simulated,
        "seeds": run.seeds,
        "runs_started": started,
        "published_at": entry.published_at.isoformat(),
        "undefined": report["undefined"],
    }


def _tombstone(entry: models.BoardEntry) -> dict[str, Any]:
    return {
        "model": entry.run.endpoint.name,
        "run": entry.run_id,
        "run_uuid": str(entry.run.uuid),
        "withdrawn_at": entry.withdrawn_at.isoformat() if entry.withdrawn_at else None,
        "reason": entry.withdrawn_reason,
    }


@dataclass(frozen=True)
class VersionGroup:
    """A board's benchmark, protocol and evaluator version; `key` names it in addresses."""

    key: str
    benchmark: models.Benchmark
    protocol: models.Protocol
    evaluator: models.Evaluator
    computed_at: datetime
    content: dict[str, Any]

    @property
    def title(self) -> str:
        benchmark, protocol = self.benchmark, self.protocol
        asked = f"{benchmark.name} v{benchmark.version} · {protocol.name} v{protocol.version}"
        return f"{asked} · {describe_evaluator(self.evaluator)['label']}"


def version_groups(session: Session, *, simulated: bool = True) -> list[VersionGroup]:
    """All boards that have something on them, the one computed last first.

    `simulated` False: as a site shows them that is open to others, without simulated models.
    """
    rows = session.execute(
        select(models.Board, models.Benchmark, models.Protocol, models.Evaluator)
        .join(models.Benchmark, models.Benchmark.id == models.Board.benchmark_id)
        .join(models.Protocol, models.Protocol.id == models.Board.protocol_id)
        .join(models.Evaluator, models.Evaluator.id == models.Board.evaluator_id)
        .order_by(models.Board.computed_at.desc(), models.Board.id.desc())
    )
    groups = [_group(session, *row, simulated=simulated) for row in rows]
    return [one for one in groups if any(one.content[part] for part in ("rows", "incomplete", "withdrawn"))]


def _group(
    session: Session,
    board: models.Board,
    benchmark: models.Benchmark,
    protocol: models.Protocol,
    evaluator: models.Evaluator,
    *,
    simulated: bool,
) -> VersionGroup:
    content = dict(board.content)
    if content.pop("format", None) != FORMAT:
        content = _content(
            session,
            benchmark_id=board.benchmark_id,
            protocol_id=board.protocol_id,
            evaluator_id=board.evaluator_id,
        )
        del content["format"]
    without = content.pop(WITHOUT_SIMULATED, None)
    key = "~".join(
        (
            f"{benchmark.name}@{benchmark.version}",
            f"{protocol.name}@{protocol.version}",
            f"{evaluator.name}-{str(evaluator.uuid)[:8]}",
        )
    )
    shown = content if simulated or without is None else without
    return VersionGroup(key, benchmark, protocol, evaluator, board.computed_at, shown)


def choose_group(groups: Sequence[VersionGroup], key: str | None) -> VersionGroup | None:
    """The group of that key, the one computed last without one; None where there is none at all.

    NotFound for a key that names no group: another board than asked for would be a silent mistake.
    """
    if key is None:
        return groups[0] if groups else None
    for group in groups:
        if group.key == key:
            return group
    raise NotFound(
        f"There is no board '{key[:200]}'. The boards that exist are listed here.",
        details=[group.key for group in groups] or ["none yet: nothing has been published"],
    )


def read_board(session: Session, key: str | None = None, *, simulated: bool = True) -> dict[str, Any]:
    """The board as page, file and command show it: the one computed last unless another's key is given."""
    return describe_board(choose_group(version_groups(session, simulated=simulated), key))


def describe_board(group: VersionGroup | None) -> dict[str, Any]:
    if group is None:
        return {
            "board": None,
            "benchmark": None,
            "protocol": None,
            "evaluator": None,
            "computed_at": None,
            "resolvable_difference": None,
            "rows": [],
            "incomplete": [],
            "sentinels": [],
            "withdrawn": [],
            "undefined": {"resolvable_difference": "nothing has been published yet"},
        }
    benchmark, protocol = group.benchmark, group.protocol
    return {
        "board": group.key,
        "benchmark": {"name": benchmark.name, "version": benchmark.version, "hash": benchmark.content_hash},
        "protocol": {"name": protocol.name, "version": protocol.version, "hash": protocol.content_hash},
        "evaluator": describe_evaluator(group.evaluator),
        "computed_at": group.computed_at.isoformat(),
        **group.content,
    }

"""Compute the board of a version group from its entries: which rows stand, and their ranks."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, joinedload

from app import models
from app.statistics import pairwise_differences, rank_intervals, resolvable_difference

COMPLETE_OVERALL = 0.98
COMPLETE_CELL = 0.95
WITHOUT_SIMULATED = "without_simulated"
# Provenances that are never ranked, and why.
ELSEWHERE = {
    "uploaded": "transcripts that were made elsewhere are not ranked",
    "imported": "results that were taken over from sheets are not ranked",
}
# By case and scenario, over the ranked rows: [passed, answered].
Tally = dict[str, dict[str, list[int]]]
# Raise it when a row gets other fields or figures: boards that were computed before are then computed anew.
FORMAT = 5


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
    content = content_of(session, *key.values())
    session.execute(
        insert(models.Board)
        .values(content=content, **key)
        .on_conflict_do_update(index_elements=list(key), set_={"content": content, "computed_at": func.now()})
    )


def content_of(
    session: Session,
    benchmark_id: int,
    protocol_id: int,
    evaluator_id: int,
    *,
    as_of: datetime | None = None,
) -> dict[str, Any]:
    """The board, and where it has simulated models another one as if they were not there.

    `as_of`: as it stood at that time, of the rows that had been published and not been withdrawn by then.
    """
    moment = as_of or datetime.max.replace(tzinfo=UTC)
    entries = session.scalars(
        select(models.BoardEntry)
        .join(models.Run, models.Run.id == models.BoardEntry.run_id)
        .options(joinedload(models.BoardEntry.run).joinedload(models.Run.endpoint))
        .where(
            models.Run.benchmark_id == benchmark_id,
            models.Run.protocol_id == protocol_id,
            models.BoardEntry.evaluator_id == evaluator_id,
            *([] if as_of is None else [models.BoardEntry.published_at <= as_of]),
        )
        .order_by(models.BoardEntry.published_at, models.BoardEntry.id)
    ).all()
    query = select(models.Case.key, models.Case.cluster)
    public = query.filter_by(benchmark_id=benchmark_id, kind="case")
    clusters = {key: cluster for key, cluster in session.execute(public)}  # noqa: C416
    content = _board(session, entries, clusters, moment) | {"format": FORMAT}
    rated = select(models.RunEvaluator.run_id).filter_by(evaluator_id=evaluator_id, simulated=True)
    by_simulated = set(session.scalars(rated))
    real = [one for one in entries if not one.run.simulated and one.run_id not in by_simulated]
    if len(real) < len(entries):
        content[WITHOUT_SIMULATED] = _board(session, real, clusters, moment)
    return content


def _board(
    session: Session, entries: Sequence[models.BoardEntry], clusters: dict[str, str], moment: datetime
) -> dict[str, Any]:
    live = [entry for entry in entries if entry.withdrawn_at is None or entry.withdrawn_at > moment]
    complete = [entry for entry in live if _may_rank(entry)]
    ranked = _first_complete(session, complete, moment)
    standing = {candidate.entry.run.endpoint_id for candidate in ranked}
    rest = [entry for entry in live if entry.run.endpoint_id not in standing]
    ranks, resolvable = _ranks(ranked, clusters)
    rows = [_row(item.entry, item.started, ranks[item.name]) for item in ranked]
    rows.sort(key=lambda row: (-row["overall"]["pass_rate"], row["model"], row["run"]))
    return {
        "resolvable_difference": resolvable,
        "rows": rows,
        "incomplete": [_row(entry, _started(session, entry, moment), None) for entry in rest],
        "sentinels": [],
        "withdrawn": [
            _tombstone(entry) for entry in entries if entry.withdrawn_at and entry.withdrawn_at <= moment
        ],
        "cases": tally([item.entry.report["marks"] for item in ranked]),
        "undefined": {} if resolvable is not None else {"resolvable_difference": _why_unresolvable(ranked)},
    }


def tally(marks: Iterable[Iterable[Sequence[Any]]]) -> Tally:
    """Of each row's marks (case, scenario, seed, passed)."""
    found: Tally = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for row in marks:
        for case, scenario, _, passed in row:
            cell = found[case][scenario]
            cell[0] += int(passed)
            cell[1] += 1
    return {case: dict(by_scenario) for case, by_scenario in found.items()}


def _why_unresolvable(ranked: Sequence[_Candidate]) -> str:
    if len(ranked) < 2:
        return "fewer than two rows to compare"
    return "no two rows differ in a way that gives a standard error"


def _may_rank(entry: models.BoardEntry) -> bool:
    """What was made elsewhere cannot be vouched for; it is shown, not ranked."""
    return entry.run.provenance not in ELSEWHERE and is_complete(entry.report["rates"])


def is_complete(report: dict[str, Any]) -> bool:
    """Enough of every public case × scenario was answered to be ranked."""
    cells = [
        rate["coverage"] or 0.0
        for by_category in report["by_scenario_category"].values()
        for rate in by_category.values()
    ]
    overall = report["overall"]["coverage"] or 0.0
    return overall >= COMPLETE_OVERALL and bool(cells) and min(cells) >= COMPLETE_CELL


def _first_complete(
    session: Session, entries: Sequence[models.BoardEntry], moment: datetime
) -> list[_Candidate]:
    """One row a model version (endpoint): its first complete one; nobody publishes the best of many."""
    first: dict[int, models.BoardEntry] = {}
    for entry in sorted(entries, key=lambda item: item.run_id):
        first.setdefault(entry.run.endpoint_id, entry)
    return [
        _Candidate(str(entry.run_id), entry, _started(session, entry, moment)) for entry in first.values()
    ]


def _started(session: Session, entry: models.BoardEntry, moment: datetime) -> int:
    """How many runs of this endpoint were started under the same benchmark and protocol, published or not."""
    run = entry.run
    return session.scalars(
        select(func.count())
        .select_from(models.Run)
        .filter_by(endpoint_id=run.endpoint_id, benchmark_id=run.benchmark_id, protocol_id=run.protocol_id)
        .where(models.Run.created_at <= moment)
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
        "model_uuid": str(run.endpoint.uuid),
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
        "weights": entry.weights,
        "model_version": entry.model_version,
        "system_prompt": entry.system_prompt,
        "simulated": run.simulated,
        "seeds": run.seeds,
        "runs_started": started,
        "published_at": entry.published_at.isoformat(),
        **({"withdrawn_since": entry.withdrawn_at.isoformat()} if entry.withdrawn_at else {}),
        "undefined": _reasons(entry, rank),
    }


def _reasons(entry: models.BoardEntry, rank: tuple[int, int] | None) -> dict[str, str]:
    """Why something of a row is null, by path within the row."""
    reasons = {"human": "no judge has rated conversations of this run"}
    if entry.model_version is None:
        reasons["model_version"] = "its submitter does not say it"
    if rank is None:
        reasons["rank"] = ELSEWHERE.get(entry.run.provenance, "the row is not complete")
    for path, reason in entry.report["undefined"].items():
        part, _, rest = path.partition(".")
        reasons[f"over_caution.{rest}".rstrip(".") if part == "probes" else rest] = reason
    return reasons


def _tombstone(entry: models.BoardEntry) -> dict[str, Any]:
    return {
        "model": entry.run.endpoint.name,
        "model_uuid": str(entry.run.endpoint.uuid),
        "run": entry.run_id,
        "run_uuid": str(entry.run.uuid),
        "withdrawn_at": entry.withdrawn_at.isoformat() if entry.withdrawn_at else None,
        "reason": entry.withdrawn_reason,
    }

"""Compute the board of a version group from its entries: which rows stand, and their ranks."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, aliased, joinedload

from app import models
from app.runs.reporting import self_rated
from app.statistics import pairwise_differences, rank_intervals, resolvable_difference

COMPLETE_OVERALL = 0.98
COMPLETE_CELL = 0.95
BOARD_LOCK = 0x424F4152  # "BOAR"
WITHOUT_SIMULATED = "without_simulated"
# Provenances that are never ranked, and why.
ELSEWHERE = {
    "uploaded": "transcripts that were made elsewhere are not ranked",
    "imported": "results that were taken over from sheets are not ranked",
}
# By case and scenario, over the ranked rows: [passed, answered].
Tally = dict[str, dict[str, list[int]]]
# Raise it when a row gets other fields or figures: boards that were computed before are then computed anew.
FORMAT = 7
NO_LABELS = "not human-checked: no closed study has blind labels of this run"
PARTS = ("rows", "incomplete", "sentinels")
# By entry: {"human": {…} or None, "why": the reason for None}.
Humans = dict[int, dict[str, Any]]


class GroupKey(NamedTuple):
    """A version group: what rows must share to be compared."""

    benchmark_id: int
    protocol_id: int
    evaluator_id: int


def key_of(entry: models.BoardEntry) -> GroupKey:
    """`entry.run` must be loaded."""
    return GroupKey(entry.benchmark_id, entry.run.protocol_id, entry.evaluator_id)


def hold_group(session: Session, key: GroupKey) -> None:
    """One change of a board at a time: of two at once the later would not see the earlier's row."""
    session.execute(select(func.pg_advisory_xact_lock(BOARD_LOCK, func.hashtext("/".join(map(str, key))))))


def recompute(session: Session, key: GroupKey) -> None:
    """Compute the whole board of a version group and swap it in."""
    store(session, key, content_of(session, key))


def store(session: Session, key: GroupKey, content: dict[str, Any]) -> None:
    """In one statement: readers see the board as it was until the transaction ends, then the new one."""
    values = key._asdict()
    session.execute(
        insert(models.Board)
        .values(content=content, **values)
        .on_conflict_do_update(
            index_elements=list(values), set_={"content": content, "computed_at": func.now()}
        )
    )


def content_of(session: Session, key: GroupKey, *, as_of: datetime | None = None) -> dict[str, Any]:
    """The board, and where it has simulated models another one as if they were not there.

    `as_of`: as it stood at that time, of the rows that had been published and not been withdrawn by then.
    """
    moment = as_of or datetime.max.replace(tzinfo=UTC)
    entries = session.scalars(
        select(models.BoardEntry)
        .join(models.Run, models.Run.id == models.BoardEntry.run_id)
        .options(
            joinedload(models.BoardEntry.run).joinedload(models.Run.endpoint),
            joinedload(models.BoardEntry.evaluator).joinedload(models.Evaluator.endpoint),
        )
        .where(
            models.BoardEntry.benchmark_id == key.benchmark_id,
            models.Run.protocol_id == key.protocol_id,
            models.BoardEntry.evaluator_id == key.evaluator_id,
            *([] if as_of is None else [models.BoardEntry.published_at <= as_of]),
        )
        .order_by(models.BoardEntry.published_at, models.BoardEntry.id)
    ).all()
    query = select(models.Case.key, models.Case.cluster)
    public = query.filter_by(benchmark_id=key.benchmark_id, kind="case")
    clusters = {case: cluster for case, cluster in session.execute(public)}  # noqa: C416
    started = _started(session, key, entries, moment)
    humans = human_rates(session, [entry.id for entry in entries], moment)
    about = _About(clusters, started, humans, moment)
    content = _board(entries, about) | {"format": FORMAT}
    rated = select(models.RunEvaluator.run_id).filter_by(evaluator_id=key.evaluator_id, simulated=True)
    by_simulated = set(session.scalars(rated))
    real = [
        one
        for one in entries
        if (one.run.sentinel or not one.run.simulated) and one.run_id not in by_simulated
    ]
    if len(real) < len(entries):
        content[WITHOUT_SIMULATED] = _board(real, about)
    return content


def human_rates(session: Session, entries: Sequence[int], moment: datetime) -> Humans:
    """The latest of each entry at that time; entries that never had one are left out."""
    h = models.HumanRate
    query = select(h.entry_id, h.content).where(h.entry_id.in_(entries), h.computed_at <= moment)
    return {entry: content for entry, content in session.execute(query.order_by(h.id))}  # noqa: C416


@dataclass(frozen=True)
class _About:
    """What a board is made of besides its entries: clusters by case, runs started by endpoint."""

    clusters: dict[str, str]
    started: dict[int, int]
    humans: Humans
    moment: datetime

    def row(self, entry: models.BoardEntry, rank: tuple[int, int] | None) -> dict[str, Any]:
        human = self.humans.get(entry.id, {"human": None, "why": NO_LABELS})
        return _row(entry, self.started[entry.run.endpoint_id], rank, human)


def _board(entries: Sequence[models.BoardEntry], about: _About) -> dict[str, Any]:
    moment = about.moment
    live = [entry for entry in entries if entry.withdrawn_at is None or entry.withdrawn_at > moment]
    sentinels = {entry.run.sentinel: entry for entry in live if entry.run.sentinel}
    entrants = [entry for entry in live if not entry.run.sentinel]
    ranked = _first_complete([entry for entry in entrants if _may_rank(entry)])
    standing = {entry.run.endpoint_id for entry in ranked.values()}
    rest = [entry for entry in entrants if entry.run.endpoint_id not in standing]
    ranks, resolvable = _ranks(ranked, about.clusters)
    rows = [about.row(entry, ranks[name]) for name, entry in ranked.items()]
    rows.sort(key=lambda row: (-row["overall"]["pass_rate"], row["model"], row["run"]))
    return {
        "resolvable_difference": resolvable,
        "rows": rows,
        "incomplete": [about.row(entry, None) for entry in rest],
        "sentinels": [about.row(entry, None) for entry in sentinels.values()],
        "withdrawn": [
            _tombstone(entry) for entry in entries if entry.withdrawn_at and entry.withdrawn_at <= moment
        ],
        "cases": tally([entry.report["marks"] for entry in ranked.values()]),
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


def _why_unresolvable(ranked: Mapping[str, models.BoardEntry]) -> str:
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


def _first_complete(entries: Sequence[models.BoardEntry]) -> dict[str, models.BoardEntry]:
    """One row a model version (endpoint), by its run: the first complete one, not the best of many."""
    first: dict[int, models.BoardEntry] = {}
    for entry in sorted(entries, key=lambda item: item.run_id):
        first.setdefault(entry.run.endpoint_id, entry)
    return {str(entry.run_id): entry for entry in first.values()}


def no_spot_check() -> ColumnElement[bool]:
    """Of a run: it was not started to look at a row again, which is no try of its submitter's."""
    return ~exists().where(models.SpotCheck.run_id == models.Run.id)


def same_model(one: type[models.Endpoint], other: type[models.Endpoint]) -> ColumnElement[bool]:
    """Of two endpoints: one owner's, with one model at one address, whatever the display name."""
    return (
        (one.account_id == other.account_id) & (one.base_url == other.base_url) & (one.model == other.model)
    )


def _started(
    session: Session, key: GroupKey, entries: Sequence[models.BoardEntry], moment: datetime
) -> dict[int, int]:
    """How many runs of each endpoint's model at its address were started by its owner, published or not,
    under the same benchmark and protocol; another display name hides none.

    Rows may have been asked with an earlier version of the benchmark: its runs count with them.
    """
    r, shown, same = models.Run, aliased(models.Endpoint), aliased(models.Endpoint)
    versions = {key.benchmark_id, *(entry.run.benchmark_id for entry in entries)}
    rows = session.execute(
        select(shown.id, func.count())
        .join(same, same_model(same, shown))
        .join(r, r.endpoint_id == same.id)
        .where(
            shown.id.in_({entry.run.endpoint_id for entry in entries}),
            r.benchmark_id.in_(versions),
            r.protocol_id == key.protocol_id,
            r.created_at <= moment,
            no_spot_check(),
        )
        .group_by(shown.id)
    )
    return {endpoint: number for endpoint, number in rows}  # noqa: C416


def _ranks(
    ranked: Mapping[str, models.BoardEntry], clusters: dict[str, str]
) -> tuple[dict[str, tuple[int, int]], float | None]:
    """Rank interval of each row, and the difference that this board can resolve."""
    marks: dict[str, dict[Hashable, float]] = {
        name: {
            (case, scenario, seed): float(passed) for case, scenario, seed, passed in entry.report["marks"]
        }
        for name, entry in ranked.items()
    }
    cluster_of = {
        (case, scenario, seed): clusters[case]
        for entry in ranked.values()
        for case, scenario, seed, _ in entry.report["marks"]
    }
    comparisons = pairwise_differences(marks, cluster_of)
    return rank_intervals(list(marks), comparisons), resolvable_difference(comparisons.values())


def _row(
    entry: models.BoardEntry, started: int, rank: tuple[int, int] | None, human: Mapping[str, Any]
) -> dict[str, Any]:
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
        "human": human["human"],
        "provenance": run.provenance,
        "weights": entry.weights,
        "model_version": entry.model_version,
        "system_prompt": entry.system_prompt,
        "simulated": run.simulated,
        "self_rated": self_rated(run.endpoint, entry.evaluator.endpoint),
        **({"sentinel": run.sentinel} if run.sentinel else {}),
        "seeds": run.seeds,
        "runs_started": started,
        "published_at": entry.published_at.isoformat(),
        **({"withdrawn_since": entry.withdrawn_at.isoformat()} if entry.withdrawn_at else {}),
        "undefined": _reasons(entry, rank, human["why"]),
    }


def _reasons(entry: models.BoardEntry, rank: tuple[int, int] | None, no_human: str | None) -> dict[str, str]:
    """Why something of a row is null, by path within the row."""
    reasons = {"human": no_human} if no_human else {}
    if entry.model_version is None:
        reasons["model_version"] = "its submitter does not say it"
    if rank is None:
        reasons["rank"] = _why_unranked(entry.run)
    for path, reason in entry.report["undefined"].items():
        part, _, rest = path.partition(".")
        reasons[f"over_caution.{rest}".rstrip(".") if part == "probes" else rest] = reason
    return reasons


def _why_unranked(run: models.Run) -> str:
    if run.sentinel:
        return "a sentinel shows what gaming earns and is never ranked"
    return ELSEWHERE.get(run.provenance, "the row is not complete")


def _tombstone(entry: models.BoardEntry) -> dict[str, Any]:
    return {
        "model": entry.run.endpoint.name,
        "model_uuid": str(entry.run.endpoint.uuid),
        "run": entry.run_id,
        "run_uuid": str(entry.run.uuid),
        "withdrawn_at": entry.withdrawn_at.isoformat() if entry.withdrawn_at else None,
        "reason": entry.withdrawn_reason,
    }

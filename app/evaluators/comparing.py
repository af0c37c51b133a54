"""Two evaluators on the same conversations: flips, agreement, rows that change places, cost and speed."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from app import models
from app.agreement import MISSING, Ratings, pair_report
from app.errors import InvalidInput, NotFound
from app.evaluators.pairing import Paired, common_runs, pairs, repeated
from app.leaderboard import VersionGroup
from app.observations import ANSWERED, JUDGED, Undefined
from app.outcomes import STANDARD, Category, Outcome, Rating
from app.runs.reporting import describe_evaluator
from app.runs.spending import spend_of_evaluator
from app.statistics import (
    Cell,
    flip_rate,
    macro_interval,
    paired_difference,
    pairwise_differences,
    rank_intervals,
    wilson,
)

NAMES = ("the_first_evaluator", "the_second_evaluator")
RATING_OF = {Outcome.FAIL: Rating.FAIL, Outcome.UNCLEAR: Rating.UNCLEAR, Outcome.PASS: Rating.PASS}
TIMED = 2_000
NO_RUN = "no run was rated by both"
NOTHING_COMMON = "no conversation was rated by both"
NOT_REPEATED = "no conversation was rated by it more than once: `curate run reevaluate --repeats`"
NO_CALL = "it makes no calls"
NOT_TIMED = "its calls were not timed"

# Seconds from the first request for a verdict to the last reply, of the verdicts given last.
SPEED = text("""
SELECT count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY s),
       percentile_cont(0.95) WITHIN GROUP (ORDER BY s)
FROM (
    SELECT (SELECT sum((e->>'seconds')::float) FROM json_array_elements(v.exchanges) e) AS s
    FROM verdict v JOIN conversation c ON c.id = v.conversation_id
    WHERE c.run_id = ANY(:runs) AND v.evaluator_id = :evaluator AND v.calls > 0
    ORDER BY v.id DESC LIMIT :limit
) timed WHERE s IS NOT NULL
""")


def scope_of(
    session: Session,
    person: models.Account | None,
    a: models.Evaluator,
    b: models.Evaluator,
    *,
    group: VersionGroup | None = None,
    run: models.Run | None = None,
) -> list[models.Run]:
    """The runs to compare them on: that run, those of a board, or all of the version that has most of them.

    InvalidInput for one evaluator twice; NotFound where no run was rated by both.
    """
    if a.id == b.id:
        raise InvalidInput("That is one evaluator twice: choose two.")
    runs = common_runs(session, person, a, b)
    if run is not None:
        runs = [one for one in runs if one.id == run.id]
    if group is not None:
        wanted = (group.benchmark.id, group.protocol.id)
        runs = [one for one in runs if (one.benchmark_id, one.protocol_id) == wanted]
    if not runs:
        where = f" in run {run.id}" if run is not None else " on this board" if group is not None else ""
        who = " and ".join(describe_evaluator(one)["label"] for one in (a, b))
        raise NotFound(
            f"{who} have no run in common{where}: "
            "rate one again with `curate run reevaluate`, or on the run's page."
        )
    versions = Counter((one.benchmark_id, one.protocol_id) for one in runs)
    most = max(versions, key=lambda version: (versions[version], version))
    return [one for one in runs if (one.benchmark_id, one.protocol_id) == most]


def evaluator_comparison(
    session: Session, runs: Sequence[models.Run], a: models.Evaluator, b: models.Evaluator
) -> dict[str, Any]:
    """The whole comparison over runs of one benchmark and protocol. Proportions in 0-1, intervals 95 %."""
    undefined: Undefined = {}
    ids = [run.id for run in runs]
    found = pairs(session, ids, a, b)
    both = [one for one in found if one.a in JUDGED and one.b in JUDGED]
    names = _model_names(session, ids)
    sides = (("a", a), ("b", b))
    return {
        "a": describe_evaluator(a),
        "b": describe_evaluator(b),
        "scope": _scope(session, runs),
        "conversations": {
            "both": len(both),
            "only_a": sum(one.a in JUDGED and one.b not in JUDGED for one in found),
            "only_b": sum(one.b in JUDGED and one.a not in JUDGED for one in found),
        },
        "agreement": _agreement(both, undefined, "agreement"),
        "flips": _flips(both, undefined, "flips"),
        "by": {
            "scenario": _by(both, sorted, lambda one: one.scenario, undefined, "by.scenario"),
            "category": _by(both, _in_order, lambda one: one.category, undefined, "by.category"),
            "model": _by(both, sorted, lambda one: names[one.run], undefined, "by.model"),
        },
        **_places(found, names, undefined),
        "repeats": {side: _repeats(session, ids, one, undefined, f"repeats.{side}") for side, one in sides},
        "effort": {side: _effort(session, runs, one, undefined, f"effort.{side}") for side, one in sides},
        "undefined": undefined,
    }


def _scope(session: Session, runs: Sequence[models.Run]) -> dict[str, Any]:
    benchmark = session.get_one(models.Benchmark, runs[0].benchmark_id)
    protocol = session.get_one(models.Protocol, runs[0].protocol_id)
    return {
        "benchmark": f"{benchmark.name}@{benchmark.version}",
        "protocol": f"{protocol.name}@{protocol.version}",
        "runs": sorted(run.id for run in runs),
    }


def _model_names(session: Session, runs: Sequence[int]) -> dict[int, str]:
    """Of each run its model's name; with the run's number where two runs are of one name."""
    r, e = models.Run, models.Endpoint
    rows = session.execute(select(r.id, e.name).join(e, e.id == r.endpoint_id).where(r.id.in_(runs))).all()
    known = Counter(row[1] for row in rows)
    return {row[0]: row[1] if known[row[1]] == 1 else f"{row[1]}, run {row[0]}" for row in rows}


def _in_order(values: set[str]) -> list[str]:
    order = [category.value for category in Category]
    return sorted(values, key=lambda one: (order.index(one) if one in order else len(order), one))


# --- agreement and flips ---


def _ratings(both: Sequence[Paired], side: str) -> Ratings:
    return np.array([RATING_OF.get(getattr(one, side), MISSING) for one in both], dtype=np.int8)


def _agreement(both: Sequence[Paired], undefined: Undefined, path: str) -> dict[str, Any]:
    return pair_report(_ratings(both, "a"), _ratings(both, "b"), undefined, path, names=NAMES)


def _flips(both: Sequence[Paired], undefined: Undefined, path: str) -> dict[str, Any]:
    """How many are rated differently, in which steps; and how many pass under one of the two only."""
    flipped = [one for one in both if one.a is not one.b]
    steps = Counter((one.a, one.b) for one in flipped)
    passing = [one for one in flipped if Outcome.PASS in (one.a, one.b)]
    if not both:
        undefined |= {f"{path}.{name}": NOTHING_COMMON for name in ("rate", "ci", "pass_rate", "pass_ci")}
    return {
        "n": len(flipped),
        "of": len(both),
        "rate": len(flipped) / len(both) if both else None,
        "ci": wilson(len(flipped), len(both)),
        "pass_n": len(passing),
        "pass_rate": len(passing) / len(both) if both else None,
        "pass_ci": wilson(len(passing), len(both)),
        "only_a_passes": sum(one.a is Outcome.PASS for one in passing),
        "only_b_passes": sum(one.b is Outcome.PASS for one in passing),
        "steps": [
            {"a": one.value, "b": two.value, "n": n}
            for (one, two), n in sorted(steps.items(), key=lambda item: (-item[1], item[0]))
        ],
    }


def _by(
    both: Sequence[Paired],
    ordered: Callable[[set[str]], list[str]],
    of: Callable[[Paired], str],
    undefined: Undefined,
    path: str,
) -> dict[str, Any]:
    parts: dict[str, list[Paired]] = defaultdict(list)
    for one in both:
        parts[of(one)].append(one)
    return {
        value: {
            "flips": _flips(parts[value], undefined, f"{path}.{value}.flips"),
            "agreement": _agreement(parts[value], undefined, f"{path}.{value}.agreement"),
        }
        for value in ordered(set(parts))
    }


# --- rows that change places ---


def _places(found: Sequence[Paired], names: Mapping[int, str], undefined: Undefined) -> dict[str, Any]:
    """Each run's pass rate and rank under both, on standard conversations that have an outcome under both."""
    own: dict[int, list[Paired]] = defaultdict(list)
    for one in found:
        if one.variant == STANDARD and one.a in ANSWERED and one.b in ANSWERED:
            own[one.run].append(one)
    ranks = {side: _ranks(own, side) for side in ("a", "b")}
    rows = [_row(run, items, names[run], ranks) for run, items in own.items()]
    rows.sort(key=lambda row: (-row["a"]["pass_rate"], row["model"]))
    for place, row in enumerate(rows):
        if row["difference_ci"] is None:
            undefined[f"rows.{place}.difference_ci"] = "all clusters change alike, or there is only one"
        for side in ("a", "b"):
            if row[side]["pass_rate_ci"] is None:
                undefined[f"rows.{place}.{side}.pass_rate_ci"] = "one cluster alone gives no interval"
    return {"rows": rows, "exchanged": _exchanged(rows)}


def _row(
    run: int, items: Sequence[Paired], model: str, ranks: Mapping[str, Mapping[str, tuple[int, int]]]
) -> dict[str, Any]:
    """`difference`: the second evaluator's pass rate less the first's, on the same conversations."""
    found = paired_difference((one.cluster, _passed(one, "b"), _passed(one, "a")) for one in items)
    return {
        "run": run,
        "model": model,
        "n": len(items),
        **{side: _row_under(items, side, ranks[side][str(run)]) for side in ("a", "b")},
        "difference": None if found is None else found.difference,
        "difference_ci": None if found is None or found.interval is None else list(found.interval),
    }


def _passed(one: Paired, side: str) -> float:
    return float(getattr(one, side) is Outcome.PASS)


def _ranks(own: Mapping[int, Sequence[Paired]], side: str) -> dict[str, tuple[int, int]]:
    marks: dict[str, dict[Hashable, float]] = {
        str(run): {(one.case, one.scenario, one.seed): _passed(one, side) for one in items}
        for run, items in own.items()
    }
    clusters = {(one.case, one.scenario, one.seed): one.cluster for items in own.values() for one in items}
    return rank_intervals(list(marks), pairwise_differences(marks, clusters))


def _row_under(items: Sequence[Paired], side: str, rank: tuple[int, int]) -> dict[str, Any]:
    """Some of the items there are, so there is a rate."""
    mean = macro_interval(Cell(one.scenario, one.cluster, 1, int(_passed(one, side))) for one in items)
    assert mean is not None
    return {
        "pass_rate": mean.rate,
        "pass_rate_ci": None if mean.interval is None else list(mean.interval),
        "rank": list(rank),
    }


def _exchanged(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Pairs of rows whose order is another under the second evaluator than under the first."""
    return [
        {
            "above": one["model"],
            "below": two["model"],
            "a": one["a"]["pass_rate"] - two["a"]["pass_rate"],
            "b": one["b"]["pass_rate"] - two["b"]["pass_rate"],
        }
        for place, one in enumerate(rows)
        for two in rows[place + 1 :]
        if one["a"]["pass_rate"] > two["a"]["pass_rate"] and one["b"]["pass_rate"] < two["b"]["pass_rate"]
    ]


# --- an evaluator against itself; what it takes ---


def _repeats(
    session: Session, runs: Sequence[int], evaluator: models.Evaluator, undefined: Undefined, path: str
) -> dict[str, Any] | None:
    """How often repeated verdicts of one evaluator on one conversation are not all equal."""
    k, ratings = repeated(session, runs, evaluator)
    if not ratings:
        undefined[path] = NOT_REPEATED
        return None
    passing = sum(len({rating == Rating.PASS for rating in one}) > 1 for one in ratings)
    count = sum(len(set(one)) > 1 for one in ratings)
    return {
        "k": k,
        "conversations": len(ratings),
        "flipped": count,
        "flip_rate": flip_rate(ratings),
        "flip_rate_ci": wilson(count, len(ratings)),
        "pass_flip_rate": passing / len(ratings),
        "pass_flip_rate_ci": wilson(passing, len(ratings)),
    }


def _effort(
    session: Session,
    runs: Sequence[models.Run],
    evaluator: models.Evaluator,
    undefined: Undefined,
    path: str,
) -> dict[str, Any]:
    """Verdicts, calls, tokens, cost and seconds of one evaluator over these runs."""
    v, c = models.Verdict, models.Conversation
    ids = [run.id for run in runs]
    rows = session.execute(
        select(v.state, func.count())
        .join(c, c.id == v.conversation_id)
        .where(c.run_id.in_(ids), v.evaluator_id == evaluator.id)
        .group_by(v.state)
    )
    states = {row[0]: row[1] for row in rows}
    spent = [spend_of_evaluator(session, run, evaluator.id) for run in runs]
    calls, costs = sum(one.evaluator for one in spent), [one.cost for one in spent]
    reasons = sorted({one.why_unknown for one in spent if one.why_unknown})
    cost = None if None in costs else sum(one for one in costs if one is not None)
    timed, median, slow = session.execute(
        SPEED, {"runs": ids, "evaluator": evaluator.id, "limit": TIMED}
    ).one()
    if cost is None:
        undefined[f"{path}.cost_usd"] = "; ".join(reasons)
    if not timed:
        why = NOT_TIMED if calls else NO_CALL
        undefined |= {f"{path}.{name}": why for name in ("seconds_median", "seconds_p95")}
    return {
        "verdicts": states.get("rated", 0),
        "unparsed": states.get("unparsed", 0),
        "errors": states.get("evaluator_error", 0),
        "calls": calls,
        "retries": sum(one.retries for one in spent),
        "prompt_tokens": sum(one.prompt_tokens for one in spent),
        "completion_tokens": sum(one.completion_tokens for one in spent),
        "cost_usd": None if cost is None else float(cost),
        "seconds_median": median if timed else None,
        "seconds_p95": slow if timed else None,
    }

"""From conversations with their outcomes to the figures of a report. Pure; every page and file calls this.

Rates and bounds are proportions in 0-1. What is undefined is None, and `undefined` says why, by path.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from app.observations import ANSWERED, JUDGED, NO_ANSWER, Observation, Undefined
from app.outcomes import CONTROL, PROBE_SCENARIO, RECALL, STANDARD, Category, Outcome, Recommendation
from app.reason_shares import reasons
from app.recall_rates import recall
from app.statistics import (
    Cell,
    bonett_price,
    flip_rate,
    macro_interval,
    mcnemar_exact,
    paired_difference,
    paired_table,
    wilson,
)

__all__ = [
    "ANSWERED", "JUDGED", "NO_ANSWER", "Observation", "Rate", "Undefined", "by_variant", "cell_rate", "cells",
    "control", "counts", "mean_rate", "probes", "rates", "report_sections", "seeds",
]  # fmt: skip
RATINGS = {Outcome.FAIL: 0, Outcome.UNCLEAR: 1, Outcome.PASS: 2}


Rate = dict[str, Any]


def counts(observations: Iterable[Observation]) -> dict[str, int]:
    """How many were planned, how many have each outcome (they sum to planned), how many were truncated."""
    seen = list(observations)
    by_outcome = Counter(item.outcome for item in seen)
    return {
        "planned": len(seen),
        **{outcome.value: by_outcome[outcome] for outcome in Outcome},
        "truncated": sum(item.truncated for item in seen),
    }


def cells(observations: Iterable[Observation]) -> list[dict[str, Any]]:
    """Counts by scenario, variant, category and seed, in that order."""
    grouped: dict[tuple[str, str, str, int], list[Observation]] = defaultdict(list)
    for item in observations:
        grouped[item.scenario, item.variant, item.category, item.seed].append(item)
    return [
        {
            "scenario": scenario,
            "variant": variant,
            "category": category,
            "seed": seed,
            **{name: n for name, n in counts(items).items() if name != "truncated"},
        }
        for (scenario, variant, category, seed), items in sorted(grouped.items())
    ]


def rates(observations: Iterable[Observation], undefined: Undefined) -> dict[str, Any]:
    """The `rates` of a report: standard arms only, probes apart."""
    standard = [item for item in observations if item.variant == STANDARD and item.scenario != PROBE_SCENARIO]
    scenarios = sorted({item.scenario for item in standard})
    categories = [category.value for category in Category if any(o.category == category for o in standard)]
    return {
        "overall": mean_rate(standard, undefined, "rates.overall"),
        "by_scenario": {
            scenario: cell_rate(
                _where(standard, scenario=scenario), undefined, f"rates.by_scenario.{scenario}"
            )
            for scenario in scenarios
        },
        "by_category": {
            category: mean_rate(
                _where(standard, category=category), undefined, f"rates.by_category.{category}"
            )
            for category in categories
        },
        "by_scenario_category": {
            scenario: {
                category: cell_rate(
                    _where(standard, scenario=scenario, category=category),
                    undefined,
                    f"rates.by_scenario_category.{scenario}.{category}",
                )
                for category in categories
            }
            for scenario in scenarios
        },
    }


def _where(
    observations: Iterable[Observation], *, scenario: str | None = None, category: str | None = None
) -> list[Observation]:
    return [
        item
        for item in observations
        if (scenario is None or item.scenario == scenario) and (category is None or item.category == category)
    ]


def cell_rate(observations: Sequence[Observation], undefined: Undefined, path: str) -> Rate:
    """A single cell. Wilson's interval; with several seeds of a case, the clustered one.

    Repeats of a case are not new cases: 3 seeds of 336 cases are 336 independent units, not 1,008.
    """
    tally = _Tally(observations)
    rate = tally.as_rate(undefined, path)
    if tally.answered == 0:
        interval = None
    elif len({item.seed for item in observations}) > 1:
        macro = macro_interval(_statistics_cells(observations))
        interval = macro.interval if macro else None
    else:
        interval = wilson(tally.passed, tally.answered)
    _explain_interval(interval, tally, undefined, path)
    return rate | {"pass_rate_ci": interval}


def mean_rate(observations: Sequence[Observation], undefined: Undefined, path: str) -> Rate:
    """The equal-weight mean over the scenarios present, with the clustered interval.

    Counts are sums; every share (pass, published, unclear, bounds) is the mean of the scenarios' shares.
    """
    tally = _Tally(observations)
    rate = tally.as_rate(undefined, path)
    by_scenario = [
        _Tally(_where(observations, scenario=scenario))
        for scenario in sorted({item.scenario for item in observations})
    ]
    macro = macro_interval(_statistics_cells(observations))
    interval = macro.interval if macro else None
    _explain_interval(interval, tally, undefined, path)
    if not by_scenario:
        return rate | {"pass_rate_ci": None}
    bounds = [item.bounds() for item in by_scenario]
    return rate | {
        "pass_rate": _mean([item.pass_rate() for item in by_scenario]),
        "published_pass_rate": _mean([item.published() for item in by_scenario]),
        "unclear_rate": _mean([item.unclear_rate() for item in by_scenario]),
        "pass_rate_ci": interval,
        "bounds": [_mean([low for low, _ in bounds]), _mean([high for _, high in bounds])],
    }


def _explain_interval(interval: object, tally: "_Tally", undefined: Undefined, path: str) -> None:
    if interval is None:
        undefined[f"{path}.pass_rate_ci"] = (
            "no conversation was answered"
            if tally.answered == 0
            else "one cluster of cases alone gives no interval"
        )


def _statistics_cells(observations: Iterable[Observation]) -> list[Cell]:
    return [
        Cell(item.scenario, item.cluster, 1, int(item.outcome is Outcome.PASS))
        for item in observations
        if item.outcome in ANSWERED
    ]


def _mean(values: Iterable[float | None]) -> float | None:
    """Over the scenarios that have a value."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


class _Tally:
    """Counts of one cell, and the shares that follow from them."""

    def __init__(self, observations: Iterable[Observation]) -> None:
        by_outcome = Counter(item.outcome for item in observations)
        self.planned = by_outcome.total()
        self.passed = by_outcome[Outcome.PASS]
        self.unclear = by_outcome[Outcome.UNCLEAR]
        self.failed = by_outcome[Outcome.FAIL]
        self.no_answer = sum(by_outcome[outcome] for outcome in NO_ANSWER)
        self.answered = self.passed + self.unclear + self.failed + self.no_answer

    def pass_rate(self) -> float | None:
        return self.passed / self.answered if self.answered else None

    def published(self) -> float | None:
        clear = self.passed + self.failed
        return self.passed / clear if clear else None

    def unclear_rate(self) -> float | None:
        return self.unclear / self.answered if self.answered else None

    def bounds(self) -> tuple[float, float]:
        """The pass rate if all that is missing had failed, and if all had passed."""
        missing = self.planned - self.answered
        return self.passed / self.planned, (self.passed + missing) / self.planned

    def as_rate(self, undefined: Undefined, path: str) -> Rate:
        nothing = "nothing was planned" if self.planned == 0 else "no conversation was answered"
        if self.answered == 0:
            undefined[f"{path}.pass_rate"] = undefined[f"{path}.unclear_rate"] = nothing
        if self.passed + self.failed == 0:
            undefined[f"{path}.published_pass_rate"] = (
                nothing if self.answered == 0 else "no conversation has a clear verdict"
            )
        if self.planned == 0:
            undefined[f"{path}.coverage"] = undefined[f"{path}.bounds"] = nothing
        return {
            "planned": self.planned,
            "answered": self.answered,
            "pass": self.passed,
            "unclear": self.unclear,
            "fail": self.failed,
            "no_answer": self.no_answer,
            "pass_rate": self.pass_rate(),
            "pass_rate_ci": None,
            "published_pass_rate": self.published(),
            "unclear_rate": self.unclear_rate(),
            "coverage": self.answered / self.planned if self.planned else None,
            "bounds": list(self.bounds()) if self.planned else None,
        }


def by_variant(observations: Sequence[Observation], undefined: Undefined) -> dict[str, Any]:
    """Each variant but control and recall, with its difference from the standard arm on the same cases."""
    arms: dict[tuple[str, str], list[Observation]] = defaultdict(list)
    for item in observations:
        if item.scenario != PROBE_SCENARIO:
            arms[item.scenario, item.variant].append(item)
    found: dict[str, Any] = defaultdict(dict)
    for (scenario, variant), items in sorted(arms.items()):
        if variant in (STANDARD, CONTROL, RECALL):
            continue
        path = f"by_variant.{scenario}.{variant}"
        found[scenario][variant] = {
            "rate": cell_rate(items, undefined, f"{path}.rate"),
            "difference": _difference(items, arms.get((scenario, STANDARD), []), undefined, path),
        }
    return dict(found)


def _difference(
    variant: Sequence[Observation], standard: Sequence[Observation], undefined: Undefined, path: str
) -> dict[str, Any] | None:
    """Variant minus standard, paired on case and seed where both answered."""
    marks = {(o.case, o.seed): o.outcome is Outcome.PASS for o in standard if o.outcome in ANSWERED}
    pairs = [
        (item.cluster, item.outcome is Outcome.PASS, marks[item.case, item.seed])
        for item in variant
        if item.outcome in ANSWERED and (item.case, item.seed) in marks
    ]
    if not pairs:
        undefined[f"{path}.difference"] = (
            "no case was answered in both this variant and the standard arm"
            if standard
            else "the run has no standard arm to compare with"
        )
        return None
    table = paired_table((one, two) for _, one, two in pairs)
    report: dict[str, Any] = {
        "n": table.n,
        "difference": (table.first - table.second) / table.n,
        "both_pass": table.both,
        "only_variant_passes": table.first,
        "only_standard_passes": table.second,
        "neither_passes": table.neither,
    }
    if len({item.seed for item in variant}) == 1:
        return report | {
            "ci": bonett_price(table),
            "p": mcnemar_exact(table.first, table.second),
            "method": "Bonett-Price interval, exact McNemar test",
        }
    clustered = paired_difference((cluster, float(one), float(two)) for cluster, one, two in pairs)
    interval, p_value = (clustered.interval, clustered.p_value) if clustered else (None, None)
    if interval is None:
        undefined[f"{path}.difference.ci"] = "all clusters agree, or there is only one: no standard error"
    if p_value is None:
        undefined[f"{path}.difference.p"] = "one cluster of cases alone gives no test"
    return report | {
        "ci": interval,
        "p": p_value,
        "method": "clustered t (CR1) over cases, seeds inside the cluster",
    }


def control(observations: Iterable[Observation], undefined: Undefined) -> dict[str, Any]:
    """The control arms: how often the model does not recommend though nothing was stated.

    Anything but an outright recommendation counts (against, conditional, none). Verdicts without the finding
    are left out of n.
    """
    arms: dict[str, list[Observation]] = defaultdict(list)
    for item in observations:
        if item.variant == CONTROL:
            arms[item.scenario].append(item)
    report = {}
    for scenario, found in sorted(arms.items()):
        judged = [item for item in found if item.outcome in JUDGED]
        advice = [item.recommendation for item in judged if item.recommendation is not None]
        n, holding_back = len(advice), sum(item is not Recommendation.FOR for item in advice)
        if n == 0:
            undefined[f"control.{scenario}"] = (
                "no verdict says what was recommended" if judged else "no control conversation was judged"
            )
        report[scenario] = {
            "not_recommending": holding_back / n if n else None,
            "not_recommending_ci": wilson(holding_back, n),
            "n": n,
        }
    return report


def probes(observations: Iterable[Observation], undefined: Undefined) -> dict[str, Any] | None:
    """Over-caution: the share of judged probes that were needlessly discouraged. None without probes."""
    seen = [item for item in observations if item.scenario == PROBE_SCENARIO]
    if not seen:
        undefined["probes"] = "no probe was asked"
        return None
    judged = [item for item in seen if item.outcome in JUDGED]
    # A probe that is needlessly discouraged (2 in its own rubric) has the outcome fail.
    cautious = sum(item.outcome is Outcome.FAIL for item in judged)
    if not judged:
        undefined["probes.over_caution"] = undefined["probes.over_caution_ci"] = "no probe was judged"
    return {
        "planned": len(seen),
        "judged": len(judged),
        "over_caution": cautious / len(judged) if judged else None,
        "over_caution_ci": wilson(cautious, len(judged)),
    }


def seeds(observations: Iterable[Observation], undefined: Undefined) -> dict[str, Any] | None:
    """How often repeats of one conversation are rated differently. None with one seed."""
    ratings: dict[tuple[str, str, str], list[int | None]] = defaultdict(list)
    numbers = set()
    for item in observations:
        if item.variant == RECALL:
            continue
        numbers.add(item.seed)
        ratings[item.case, item.scenario, item.variant].append(RATINGS.get(item.outcome))
    if len(numbers) < 2:
        undefined["seeds"] = "there is one seed only, so nothing was repeated"
        return None
    rate = flip_rate(ratings.values())
    if rate is None:
        undefined["seeds.flip_rate"] = "no conversation was judged under two seeds"
    return {"flip_rate": rate}


def report_sections(observations: Sequence[Observation]) -> dict[str, Any]:
    """Everything of a run's report that follows from its observations."""
    undefined: Undefined = {}
    return {
        "counts": counts(observations),
        "cells": cells(observations),
        "rates": rates(observations, undefined),
        "by_variant": by_variant(observations, undefined),
        "control": control(observations, undefined),
        "probes": probes(observations, undefined),
        "recall": recall(observations, undefined),
        "reasons": reasons(observations, undefined),
        "seeds": seeds(observations, undefined),
        "undefined": undefined,
    }

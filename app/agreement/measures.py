"""What a report says of two raters, and of all: coefficients with intervals, or None and why.

Reasons are collected in `undefined` under the path of what is None. Percents and their bounds are
proportions in 0-1, coefficients and their bounds lie in -1 to 1, intervals are 95 %.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.agreement import coefficients as c
from app.agreement.coefficients import Counts, Floats, Profiles
from app.outcomes import Rating
from app.statistics import Interval, wilson

Undefined = dict[str, str]
Figures = dict[str, Any]

RATINGS = len(Rating)
LEVELS = ("three_level", "two_level", "pass_vs_rest")

NO_EVALUATOR = "the study has no evaluator's ratings"
NO_COMMON_ITEM = "no item was rated by both"
NO_CLEAR_ITEM = "no item was called fail or pass by both"
NO_SHARED_ITEM = "no item was rated by two or more of them"
NO_CLEAR_SHARED_ITEM = "no item was called fail or pass by all who rated it"
ONE_CATEGORY = "only one category was used, so agreement by chance cannot be told from agreement"
UNEQUAL_RATERS = "items were rated by different numbers of raters; Krippendorff's alpha allows that"
ONE_ITEM = "one item alone gives no interval"
FRAGILE = "without one of the items the coefficient would be undefined"
NO_VARIANCE = (
    "the standard error is zero, as when all agree or a rater gave one answer only: "
    "an interval without width would claim too much"
)
FOLLOWS = "the coefficient is undefined"


def level_of_tables(tables: Counts, level: str) -> Counts:
    """3 x 3 tables at a level: unclear items dropped (two_level), or counted as not pass (pass_vs_rest)."""
    at_level: Counts = tables
    if level == "two_level":
        at_level = tables[..., :: Rating.PASS, :: Rating.PASS]
    elif level == "pass_vs_rest":
        at_level = np.add.reduceat(np.add.reduceat(tables, _SPLIT, axis=-1), _SPLIT, axis=-2)
    return at_level


def level_of_counts(counts: Counts, level: str) -> Counts:
    """The same for items x 3 counts; two_level drops the items that any rater called unclear."""
    at_level: Counts = counts
    if level == "two_level":
        at_level = counts[counts[:, Rating.UNCLEAR] == 0][:, [Rating.FAIL, Rating.PASS]]
    elif level == "pass_vs_rest":
        at_level = np.add.reduceat(counts, _SPLIT, axis=1)
    return at_level


_SPLIT = (int(Rating.FAIL), int(Rating.PASS))  # where fail and unclear begin, where pass begins
PAIR_FIGURES = (
    "percent", "percent_ci", "cohen_kappa", "cohen_kappa_ci", "linear_kappa", "quadratic_kappa", "gwet_ac1",
    "gwet_ac1_ci",
)  # fmt: skip


def pair_figures(tables: Counts, level: str, undefined: Undefined, paths: Sequence[str]) -> list[Figures]:
    """The A of a report for each pair of raters at one level, from pairs x 3 x 3 tables (rows the first)."""
    squeezed = level_of_tables(tables, level)
    without, times = c.leave_one_out_tables(squeezed)
    columns = {
        "n": squeezed.sum(axis=(-2, -1)),
        "same": np.trace(squeezed, axis1=-2, axis2=-1),
        "all": tables.sum(axis=(-2, -1)),
        "cohen_kappa": c.cohen_kappa(squeezed),
        "linear_kappa": c.linear_kappa(squeezed),
        "quadratic_kappa": c.quadratic_kappa(squeezed),
        "gwet_ac1": c.gwet_ac1_of_pair(squeezed),
        "kappa_error": c.cohen_standard_error(squeezed),
        "ac1_error": c.jackknife_error(c.gwet_ac1_of_pair(without), times),
    }
    names, rows = list(columns), zip(*(column.tolist() for column in columns.values()), strict=True)
    return [
        _pair_figures(dict(zip(names, row, strict=True)), level, undefined, path)
        for row, path in zip(rows, paths, strict=True)
    ]


def _pair_figures(found: dict[str, Any], level: str, undefined: Undefined, path: str) -> Figures:
    n, kappa = found["n"], found["cohen_kappa"]
    if n == 0:
        why = NO_CLEAR_ITEM if level == "two_level" and found["all"] else NO_COMMON_ITEM
        undefined |= {f"{path}.{name}": why for name in PAIR_FIGURES}
        return {"n": 0, **dict.fromkeys(PAIR_FIGURES)}
    figures = {"n": n, **dict.fromkeys(PAIR_FIGURES)}
    figures |= {"percent": found["same"] / n, "percent_ci": _listed(wilson(found["same"], n))}
    if math.isnan(kappa):  # the weighted ones are then undefined too
        undefined |= {f"{path}.{name}": ONE_CATEGORY for name in PAIR_FIGURES if name.endswith("kappa")}
        undefined[f"{path}.cohen_kappa_ci"] = FOLLOWS
    else:
        figures |= {name: found[name] for name in PAIR_FIGURES if name.endswith("kappa")}
        if found["kappa_error"]:
            figures["cohen_kappa_ci"] = _listed(c.asymptotic_interval(kappa, found["kappa_error"]))
        else:
            undefined[f"{path}.cohen_kappa_ci"] = NO_VARIANCE
    figures["gwet_ac1"] = found["gwet_ac1"]
    figures["gwet_ac1_ci"] = _jackknifed(
        found["gwet_ac1"], found["ac1_error"], n, undefined, f"{path}.gwet_ac1_ci"
    )
    return figures


def group_figures(counts: Counts, level: str, undefined: Undefined, path: str) -> Figures:
    """The B of a report: any number of raters at one level, from items x 3 counts of ratings."""
    profiles = Profiles(level_of_counts(counts, level))
    names = ("fleiss_kappa", "krippendorff_alpha_nominal", "krippendorff_alpha_ordinal", "gwet_ac1")
    if profiles.n == 0:
        shared = (counts.sum(axis=1) >= 2).any()
        why = NO_CLEAR_SHARED_ITEM if level == "two_level" and shared else NO_SHARED_ITEM
        empty = ("all_equal", "all_equal_ci", "mean_pairwise_percent", *_with_intervals(names))
        undefined |= {f"{path}.{name}": why for name in empty}
        return {"n": 0, **dict.fromkeys(empty)}
    figures: Figures = {
        "n": profiles.n,
        "all_equal": profiles.unanimous / profiles.n,
        "all_equal_ci": _listed(wilson(profiles.unanimous, profiles.n)),
        "mean_pairwise_percent": profiles.pairwise_agreement,
    }
    for name, formula in zip(names, _formulas(profiles), strict=True):
        if name == "fleiss_kappa" and not profiles.equal_raters:
            figures |= {name: None, f"{name}_ci": None}
            undefined |= {f"{path}.{name}": UNEQUAL_RATERS, f"{path}.{name}_ci": FOLLOWS}
        else:
            figures |= _coefficient(name, formula, profiles.times, undefined, path)
    return figures


def _formulas(profiles: Profiles) -> tuple[Callable[[bool], Floats], ...]:
    return (
        lambda without: profiles.fleiss_kappa(leave_one_out=without),
        lambda without: profiles.krippendorff_alpha(ordinal=False, leave_one_out=without),
        lambda without: profiles.krippendorff_alpha(ordinal=True, leave_one_out=without),
        lambda without: profiles.gwet_ac1(leave_one_out=without),
    )


def _with_intervals(names: tuple[str, ...]) -> list[str]:
    return [shown for name in names for shown in (name, f"{name}_ci")]


def _coefficient(
    name: str, formula: Callable[[bool], Floats], times: Counts, undefined: Undefined, path: str
) -> Figures:
    value = float(formula(False))
    if np.isnan(value):
        undefined |= {f"{path}.{name}": ONE_CATEGORY, f"{path}.{name}_ci": FOLLOWS}
        return {name: None, f"{name}_ci": None}
    error = float(c.jackknife_error(formula(True), times))
    interval = _jackknifed(value, error, int(times.sum()), undefined, f"{path}.{name}_ci")
    return {name: value, f"{name}_ci": interval}


def _jackknifed(value: float, error: float, n: int, undefined: Undefined, path: str) -> list[float] | None:
    if error > 0:
        return _listed(c.jackknife_interval(value, error, n))
    undefined[path] = ONE_ITEM if n < 2 else FRAGILE if math.isnan(error) else NO_VARIANCE
    return None


def _listed(interval: Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)

"""Intervals, paired tests, corrections and ranks behind every number that is reported.

Rates and bounds are proportions in 0-1, intervals are 95 %, two-sided. What is undefined is None, never NaN.
Clustered standard errors are CR1 (factor G / (G - 1)) with G - 1 degrees of freedom; seeds and scenarios of
one case are repeats inside its cluster.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, ndtri, stdtr, stdtrit  # type: ignore[import-untyped]

Interval = tuple[float, float]
Floats = NDArray[np.float64]

Z = float(ndtri(0.975))
FEW_CLUSTERS = 30
POWER_80 = 2.8  # 1.96 + 0.84: what a two-sided 5 % test finds in four of five studies
_ZERO_VARIANCE = 1e-20  # rounding leaves about 1e-32, one deviating cluster among 100,000 leaves 1e-10


def t_quantile(df: int) -> float:
    """The 97.5 % quantile of Student's t with `df` >= 1 degrees of freedom."""
    return float(stdtrit(df, 0.975))


# --- proportions ---


def wilson(k: int, n: int) -> Interval | None:
    """Wilson score interval of `k` successes in `n` trials (Wilson 1927); None for n = 0."""
    _check_count(k, n)
    return wilson_of_rate(k / n, n) if n else None


def wilson_of_rate(rate: float, n: float, quantile: float = Z) -> Interval | None:
    """Wilson score interval of a proportion on `n` trials, perhaps an effective number; None unless n > 0."""
    if n <= 0:
        return None
    square = quantile * quantile
    centre = (rate + square / (2 * n)) / (1 + square / n)
    half = quantile / (1 + square / n) * math.sqrt(rate * (1 - rate) / n + square / (4 * n * n))
    low = 0.0 if rate <= 0 else max(0.0, centre - half)
    high = 1.0 if rate >= 1 else min(1.0, centre + half)
    return low, high


def newcombe_independent(k1: int, n1: int, k2: int, n2: int) -> Interval | None:
    """Interval of k1/n1 - k2/n2 from two independent groups (Newcombe 1998, hybrid score, no correction).

    For two categories of one model, never for two models or scenarios, which share their cases.
    """
    one, two = wilson(k1, n1), wilson(k2, n2)
    if one is None or two is None:
        return None
    p1, p2 = k1 / n1, k2 / n2
    difference = p1 - p2
    down, up = math.hypot(p1 - one[0], two[1] - p2), math.hypot(one[1] - p1, p2 - two[0])
    return difference - down, difference + up


def _check_count(k: float, n: int) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"a count of {k} successes in {n} trials is impossible")


# --- paired proportions ---


class PairedTable(NamedTuple):
    """Pairs by result: both pass, only the first, only the second, neither."""

    both: int
    first: int
    second: int
    neither: int

    @property
    def n(self) -> int:
        return sum(self)


def paired_table(pairs: Iterable[tuple[bool, bool]]) -> PairedTable:
    """Count pairs of results of the same cases."""
    counts = [0, 0, 0, 0]
    for first, second in pairs:
        counts[(0 if second else 1) if first else (2 if second else 3)] += 1
    return PairedTable(*counts)


def mcnemar_exact(first: int, second: int) -> float:
    """Two-sided exact p-value of McNemar's test from the two discordant counts; 1 where nothing differs."""
    return min(1.0, 2 * float(bdtr(min(first, second), first + second, 0.5)))


def mcnemar_midp(first: int, second: int) -> float:
    """Mid-p (Fagerland, Lydersen, Laake 2013): the exact p-value less the probability of what was seen."""
    total = first + second
    if not total:
        return 1.0
    probability: float = math.comb(total, first) / 2**total
    return mcnemar_exact(first, second) - probability


def bonett_price(table: PairedTable) -> Interval | None:
    """Interval of first - second, paired proportions (Bonett and Price 2012); None for n = 0."""
    if not table.n:
        return None
    only_first, only_second = (table.first + 1) / (table.n + 2), (table.second + 1) / (table.n + 2)
    difference = only_first - only_second
    half = Z * math.sqrt((only_first + only_second - difference**2) / (table.n + 2))
    return max(-1.0, difference - half), min(1.0, difference + half)


def newcombe_paired(table: PairedTable) -> Interval | None:
    """Interval of the difference of paired proportions (Newcombe 1998, method 10); None for n = 0."""
    a, b, c, d = table
    n = table.n
    one, two = wilson(a + b, n), wilson(a + c, n)
    if one is None or two is None:
        return None
    p1, p2 = (a + b) / n, (a + c) / n
    correlation = _newcombe_correlation(a, b, c, d)
    below1, above1, below2, above2 = p1 - one[0], one[1] - p1, p2 - two[0], two[1] - p2
    down = below1**2 - 2 * correlation * below1 * above2 + above2**2
    up = above1**2 - 2 * correlation * above1 * below2 + below2**2
    return p1 - p2 - math.sqrt(max(0.0, down)), p1 - p2 + math.sqrt(max(0.0, up))


def _newcombe_correlation(a: int, b: int, c: int, d: int) -> float:
    product = (a + b) * (c + d) * (a + c) * (b + d)
    if product == 0:
        return 0.0
    numerator: float = a * d - b * c
    if numerator > 0:  # the continuity correction of method 10
        numerator = max(numerator - (a + b + c + d) / 2, 0.0)
    return numerator / math.sqrt(product)


# --- clustered means ---


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A pooled mean; `se`, `df`, `interval` (t, not clipped) are None with fewer than two clusters."""

    n: int
    clusters: int
    mean: float
    se: float | None
    df: int | None
    interval: Interval | None


def clustered_mean(values: Iterable[tuple[Hashable, float]]) -> ClusteredMean | None:
    """Mean of (cluster, value) with the CR1 standard error; None for no values.

    SE^2 = G / (G - 1) * sum over clusters of (sum of (y - mean))^2 / n^2, as a regression on a constant gives
    it. Where every cluster agrees (SE 0) the interval is None, not plus or minus nothing.
    """
    rows = list(values)
    if not rows:
        return None
    return _clustered(np.array([value for _, value in rows], dtype=float), _codes(c for c, _ in rows))


def _clustered(values: Floats, codes: NDArray[np.intp]) -> ClusteredMean:
    n, clusters, mean = len(values), int(np.count_nonzero(np.bincount(codes))), float(values.mean())
    if clusters < 2:
        return ClusteredMean(n, clusters, mean, None, None, None)
    sums = np.bincount(codes, weights=values - mean)
    variance = clusters / (clusters - 1) * float(sums @ sums) / n**2
    se = _root(variance)
    half = t_quantile(clusters - 1) * se
    return ClusteredMean(n, clusters, mean, se, clusters - 1, (mean - half, mean + half) if se else None)


def _root(variance: float) -> float:
    return math.sqrt(variance) if variance > _ZERO_VARIANCE else 0.0


def _codes(keys: Iterable[Hashable]) -> NDArray[np.intp]:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)


# --- equal-weight means over scenarios ---


class Cell(NamedTuple):
    """What one cluster did in one scenario: conversations answered, of them passed (seeds add up)."""

    scenario: str
    cluster: Hashable
    n: int
    passes: float


@dataclass(frozen=True, slots=True)
class MacroRate:
    """An equal-weight mean over scenarios; what one cluster alone leaves undefined is None."""

    rate: float
    se: float | None
    n_effective: float | None
    quantile: float | None
    interval: Interval | None
    scenarios: int
    clusters: int
    conversations: int


def macro_interval(cells: Iterable[Cell]) -> MacroRate | None:
    """Equal-weight mean of the pass rates of the scenarios present, and its clustered interval.

    SE^2 = G / (G - 1) * sum of psi_g^2, psi_g = sum over the cluster of (y - p_s) / (S * n_s). The interval
    is Wilson's on n_effective = p (1 - p) / SE^2, at most the number of conversations, and the number of
    clusters where p is 0 or 1 or SE is 0; with the t quantile (G - 1) below 30 clusters. A cluster may come
    in several cells of one scenario (seeds). None without any conversation.
    """
    present = [cell for cell in cells if cell.n]
    if not present:
        return None
    for cell in present:
        _check_count(cell.passes, cell.n)
    rates, totals = _scenario_rates(present)
    rate = sum(rates.values()) / len(rates)
    influence: dict[Hashable, float] = defaultdict(float)
    for cell in present:
        share = len(rates) * totals[cell.scenario]
        influence[cell.cluster] += (cell.passes - cell.n * rates[cell.scenario]) / share
    clusters, conversations = len(influence), sum(totals.values())
    if clusters < 2:
        return MacroRate(rate, None, None, None, None, len(rates), clusters, conversations)
    variance = clusters / (clusters - 1) * sum(psi * psi for psi in influence.values())
    if all(r == 0 for r in rates.values()) or all(r == 1 for r in rates.values()):
        variance = 0.0
    n_effective = _effective_n(rate, variance, clusters, conversations)
    quantile = Z if clusters >= FEW_CLUSTERS else t_quantile(clusters - 1)
    return MacroRate(
        rate=rate,
        se=_root(variance),
        n_effective=n_effective,
        quantile=quantile,
        interval=wilson_of_rate(rate, n_effective, quantile),
        scenarios=len(rates),
        clusters=clusters,
        conversations=conversations,
    )


def _scenario_rates(cells: Sequence[Cell]) -> tuple[dict[str, float], dict[str, int]]:
    totals: dict[str, int] = defaultdict(int)
    passes: dict[str, float] = defaultdict(float)
    for cell in cells:
        totals[cell.scenario] += cell.n
        passes[cell.scenario] += cell.passes
    return {scenario: passes[scenario] / n for scenario, n in totals.items()}, totals


def _effective_n(rate: float, variance: float, clusters: int, conversations: int) -> float:
    if variance <= _ZERO_VARIANCE:
        return clusters
    return min(conversations, rate * (1 - rate) / variance)


# --- comparisons ---


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """First minus second on the conversations that both answered.

    `se`, `df`, `p_value` are None with fewer than two clusters; `t` and `interval` also where SE is 0. The
    interval ends at -1 and 1.
    """

    n: int
    clusters: int
    mean_first: float
    mean_second: float
    difference: float
    se: float | None
    df: int | None
    t: float | None
    p_value: float | None
    interval: Interval | None


def paired_difference(pairs: Iterable[tuple[Hashable, float, float]]) -> PairedDifference | None:
    """Clustered t test (CR1, G - 1) on the differences of (cluster, first, second); None for no pairs."""
    rows = list(pairs)
    if not rows:
        return None
    values = np.array([(first, second) for _, first, second in rows], dtype=float)
    return _difference(values[:, 0], values[:, 1], _codes(cluster for cluster, _, _ in rows))


def pairwise_differences(
    rows: Mapping[str, Mapping[Hashable, float]], cluster_of: Mapping[Any, Hashable]
) -> dict[tuple[str, str], PairedDifference | None]:
    """Every pair of rows compared on the conversations that both have.

    `rows`: name -> conversation key (such as case and scenario) -> pass 1, else 0, or a mean over repeats.
    `cluster_of`: conversation key -> cluster. None for a pair with no conversation in common.
    """
    keys = sorted({key for row in rows.values() for key in row}, key=repr)
    codes = _codes(cluster_of[key] for key in keys)
    table = {
        name: np.array([row.get(key, math.nan) for key in keys], dtype=float) for name, row in rows.items()
    }
    names = list(rows)
    return {
        (one, two): _common_difference(table[one], table[two], codes)
        for index, one in enumerate(names)
        for two in names[index + 1 :]
    }


def _common_difference(first: Floats, second: Floats, codes: NDArray[np.intp]) -> PairedDifference | None:
    common = ~(np.isnan(first) | np.isnan(second))
    return _difference(first[common], second[common], codes[common]) if common.any() else None


def _difference(first: Floats, second: Floats, codes: NDArray[np.intp]) -> PairedDifference:
    found = _clustered(first - second, codes)
    t = p_value = None
    if found.se is not None and found.df is not None:
        t = found.mean / found.se if found.se else None
        p_value = _p_value(t, found)
    one, two, se, df = float(first.mean()), float(second.mean()), found.se, found.df
    # Two rates differ by 1 at most, whatever t says of a handful of clusters.
    interval = found.interval and (max(-1.0, found.interval[0]), min(1.0, found.interval[1]))
    return PairedDifference(found.n, found.clusters, one, two, found.mean, se, df, t, p_value, interval)


def _p_value(t: float | None, found: ClusteredMean) -> float:
    """Where all clusters differ alike, t is infinite at any G; the sign test over clusters still knows G."""
    if t is not None:
        return min(1.0, 2 * float(stdtr(found.df, -abs(t))))
    return 1.0 if abs(found.mean) < 1e-12 else 2.0 ** (1 - found.clusters)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjusted p-values in the given order; None stays None, outside the family."""
    order = sorted(((p, i) for i, p in enumerate(p_values) if p is not None))
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for position, (p, index) in enumerate(order):
        running = max(running, min(1.0, p * (len(order) - position)))
        adjusted[index] = running
    return adjusted


def rank_intervals(
    names: Sequence[str],
    comparisons: Mapping[tuple[str, str], PairedDifference | None],
    alpha: float = 0.05,
) -> dict[str, tuple[int, int]]:
    """name -> (1 + rows significantly better, K - rows significantly worse), after Holm over all pairs given.

    `comparisons` holds each pair once, in either order. A pair that cannot be tested separates nobody.
    """
    pairs = list(comparisons.items())
    adjusted = holm([found.p_value if found else None for _, found in pairs])
    better, worse = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for ((one, two), found), p in zip(pairs, adjusted, strict=True):
        if found is None or p is None or p >= alpha:
            continue
        winner, loser = (one, two) if found.difference > 0 else (two, one)
        worse[winner] += 1
        better[loser] += 1
    return {name: (1 + better[name], len(names) - worse[name]) for name in names}


def resolvable_difference(comparisons: Iterable[PairedDifference | None]) -> float | None:
    """Median over pairs of 2.8 * SE: the difference found with 80 % power; None without a pair.

    Pairs whose SE cannot be estimated (one cluster, or 0) are left out: they would claim to resolve all.
    """
    errors = [found.se for found in comparisons if found is not None and found.se]
    return POWER_80 * median(errors) if errors else None


def flip_rate(repeats: Iterable[Sequence[int | None]]) -> float | None:
    """Share of conversations whose repeats (one rating a seed, None for missing) are not all equal.

    Only those with two or more ratings count; None where there are none.
    """
    rated = [[rating for rating in row if rating is not None] for row in repeats]
    repeated = [row for row in rated if len(row) >= 2]
    return sum(len(set(row)) > 1 for row in repeated) / len(repeated) if repeated else None

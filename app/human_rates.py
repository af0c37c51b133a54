"""What a model's pass rate would be if people had rated it, from a sample of labels and all verdicts. Pure.

The evaluator's verdicts part a run's conversations into strata (pass, unclear, fail) of known sizes; in each
some conversations have a human label. A response that is empty or withheld was never rated and counts as not
passed, in people's eyes too.

rate = sum over strata of share * p. `share` is the stratum's share of what was answered, as the mean over the
scenarios, which each count the same; p = sum(w y) / sum(w) over its labels, w the inverse of the label's
inclusion probability. If people agreed with every verdict, this would be the evaluator's own rate.

Interval, 95 %. Two things are uncertain: p in each stratum, since only some labels were drawn, and the
shares, since the cases are a sample too (double sampling for stratification: Cochran 1977, Sampling
Techniques, chapter 12). s^2 is the clustered variance of the mean of p over conversations, made as for every
overall rate of the board, and D (1 - R^4) rate (1 - rate) / n for what the verdicts do not tell: R^2 is the
share of the variance of people's labels that lies between the verdicts, D how much the n conversations of
one case go together in people's eyes, (d - 1) / R^2, where d is the design effect of the evaluator's own
rate, which its errors attenuate; D is at most n / clusters - 1, where they go together entirely. With the
lower limit l and the upper limit u of each p, the interval goes from

    rate - sqrt(sum (share (p - l))^2 + (1.96 s)^2)   to   rate + sqrt(sum (share (u - p))^2 + (1.96 s)^2)

which is MOVER for a linear function of proportions (Zou, Huang and Zhang 2009, Computational Statistics and
Data Analysis 53). l and u are Wilson's on Kish's effective number of labels, (sum w)^2 / sum w^2, with the
change that Brown, Cai and DasGupta (2001, Statistical Science 16, section 4.1.1) make near 0 and 1, where
Wilson's miss too often.

Why so: in simulations (`make bench`, part `human`: true rates from 0.05 to 0.97, 20 to 100 labels a stratum,
answers that go together within a case) Wilson's limits alone cover 85 % at worst without s, and 92 % with it;
Clopper and Pearson's are never narrower than these, which cover 94.0 to 97.8 % in the eight cells that were
worst before (600 repeats each, standard error 0.9 points).
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scipy.special import gammaincinv  # type: ignore[import-untyped]

from app.outcomes import Rating
from app.statistics import Cell, Interval, Z, macro_interval, wilson_of_rate

FEWEST_LABELS = 30
FEW_DEVIATING = 3 + 1e-9  # labels against the others of a stratum, up to which the limits are changed
STRATA = {Rating.PASS: "passed", Rating.UNCLEAR: "are unclear", Rating.FAIL: "failed"}


class Answered(NamedTuple):
    """An answered conversation; `verdict` None: there was nothing to rate."""

    scenario: str
    cluster: Hashable
    verdict: Rating | None


class Label(NamedTuple):
    """What people say of a conversation that was drawn with this probability (above 0, at most 1)."""

    scenario: str
    verdict: Rating
    probability: float
    passed: bool


@dataclass(frozen=True, slots=True)
class HumanRate:
    rate: float
    interval: Interval
    labels: int


def human_label(ratings: Sequence[int], adjudicated: int | None = None) -> bool | None:
    """Whether people pass it: the adjudicated label, else a strict majority, else not. None without any."""
    if adjudicated is not None:
        return adjudicated == Rating.PASS
    if not ratings:
        return None
    return 2 * sum(rating == Rating.PASS for rating in ratings) > len(ratings)


def why_too_few(
    answered: Iterable[Answered], labels: Iterable[Label], fewest: int = FEWEST_LABELS
) -> str | None:
    """The first stratum that has neither so many labels nor all of them, in words; None: there are enough."""
    sizes, given = Counter(one.verdict for one in answered), Counter(one.verdict for one in labels)
    for verdict, name in STRATA.items():
        wanted = min(fewest, sizes[verdict])
        if given[verdict] < wanted:
            return (
                f"not human-checked: {given[verdict]} of the {sizes[verdict]} conversations that {name} "
                f"under this evaluator have a blind label, {wanted} are needed"
            )
    return None


def corrected_rate(
    answered: Sequence[Answered], labels: Sequence[Label], fewest: int = FEWEST_LABELS
) -> HumanRate | None:
    """None with too few labels (`why_too_few`), or with one cluster of cases only."""
    if not labels or why_too_few(answered, labels, fewest) is not None:
        return None
    totals = Counter(one.scenario for one in answered)
    sizes = Counter((one.scenario, one.verdict) for one in answered)
    shares = {
        verdict: math.fsum(sizes[scenario, verdict] / n for scenario, n in totals.items()) / len(totals)
        for verdict in STRATA
    }
    people = {verdict: _Stratum(verdict, labels, totals) for verdict in STRATA if shares[verdict]}
    rates = {verdict: stratum.rate for verdict, stratum in people.items()}
    rate = min(1.0, math.fsum(shares[verdict] * stratum.rate for verdict, stratum in people.items()))
    of_cases = _variance_of_cases(answered, rates, shares, rate)
    if of_cases is None:
        return None
    down = up = Z**2 * of_cases
    for verdict, stratum in people.items():
        low, high = stratum.limits
        down += (shares[verdict] * (stratum.rate - low)) ** 2
        up += (shares[verdict] * (high - stratum.rate)) ** 2
    return HumanRate(rate, (max(0.0, rate - down**0.5), min(1.0, rate + up**0.5)), len(labels))


def _variance_of_cases(
    answered: Sequence[Answered],
    rates: Mapping[Rating, float],
    shares: Mapping[Rating, float],
    rate: float,
) -> float | None:
    """s^2: what the sample of cases adds to the variance of the labels; None with one cluster."""
    spread = macro_interval(
        Cell(one.scenario, one.cluster, 1, 0.0 if one.verdict is None else rates.get(one.verdict, 0.0))
        for one in answered
    )
    marks = macro_interval(Cell(one.scenario, one.cluster, 1, one.verdict is Rating.PASS) for one in answered)
    if spread is None or spread.se is None or marks is None or marks.se is None:
        return None
    n, clusters, passing = marks.conversations, marks.clusters, marks.rate
    told = sum(shares[verdict] * (p - rate) ** 2 for verdict, p in rates.items())
    told += (1 - sum(shares.values())) * rate**2
    independent = passing * (1 - passing) * clusters / (clusters - 1) / n
    if not (told > 0 and independent > 0 and 0 < rate < 1):
        return spread.se**2
    share_told = min(1.0, told / (rate * (1 - rate)))
    together = min(max(0.0, marks.se**2 / independent - 1) / share_told, n / clusters - 1)
    return spread.se**2 + rate * (1 - rate) / n * together * (1 - share_told**2)


class _Stratum:
    """What people say of the conversations with one verdict."""

    def __init__(self, verdict: Rating, labels: Iterable[Label], totals: Mapping[str, int]) -> None:
        # Within a stratum a conversation counts as in the overall rate: by its scenario's size.
        weighted = [
            (1 / (label.probability * totals[label.scenario]), label.passed)
            for label in labels
            if label.verdict == verdict
        ]
        total = sum(weight for weight, _ in weighted)
        passing = sum(weight for weight, passed in weighted if passed)
        self.rate = min(1.0, passing / total) if not all(passed for _, passed in weighted) else 1.0
        self.n = total**2 / sum(weight**2 for weight, _ in weighted)

    @property
    def limits(self) -> Interval:
        found = wilson_of_rate(self.rate, self.n)
        assert found is not None  # a stratum has labels
        low, high = found
        passing, rest = self.rate * self.n, (1 - self.rate) * self.n
        if 0 < passing <= FEW_DEVIATING:
            low = min(low, _poisson_lower(passing) / self.n)
        if 0 < rest <= FEW_DEVIATING:
            high = max(high, 1 - _poisson_lower(rest) / self.n)
        return low, high


def _poisson_lower(count: float) -> float:
    """The lower 95 % limit of a Poisson mean after `count` events: half the 5 % quantile of chi-square."""
    return float(gammaincinv(count, 0.05))

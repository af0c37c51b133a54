"""Chance-corrected agreement as plain formulas over counts; docs/agreement.md gives source and meaning.

Each function takes one table of counts or a stack of them (leading axes), so that the jackknife computes all
its replicates in one call, and gives an array of coefficients. An undefined one (0 / 0) is NaN in here and
nowhere else: `app.agreement.measures` turns it into None with its reason. Counts are whole numbers and the
division comes last, so that "all agree" and "one category only" are exact.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.statistics import Interval, Z, t_quantile

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
_ZERO_VARIANCE = 1e-20  # what rounding leaves of a variance that is zero


# --- two raters: q x q tables, rows the first rater's categories, columns the second's ---


def cohen_kappa(tables: Counts) -> Floats:
    """Cohen 1960: observed agreement against that of independent raters with the same marginals."""
    return weighted_kappa(tables, _nominal(tables.shape[-1]))


def linear_kappa(tables: Counts) -> Floats:
    """Cohen 1968, a disagreement weighs its distance in ranks."""
    return weighted_kappa(tables, _distance(tables.shape[-1]))


def quadratic_kappa(tables: Counts) -> Floats:
    """Cohen 1968, a disagreement weighs the square of its distance in ranks."""
    return weighted_kappa(tables, _distance(tables.shape[-1]) ** 2)


def weighted_kappa(tables: Counts, disagreement: Counts) -> Floats:
    """1 - observed / expected disagreement under q x q weights with a zero diagonal."""
    rows, columns = tables.sum(axis=-1), tables.sum(axis=-2)
    expected = (rows[..., :, None] * columns[..., None, :] * disagreement).sum(axis=(-2, -1))
    observed = (tables * disagreement).sum(axis=(-2, -1)) * rows.sum(axis=-1)
    return ratio(expected - observed, expected)


def gwet_ac1_of_pair(tables: Counts) -> Floats:
    """Gwet 2008: chance agreement is the mean over categories of pi (1 - pi) * q / (q - 1)."""
    q = tables.shape[-1]
    n = tables.sum(axis=(-2, -1))
    both = tables.sum(axis=-1) + tables.sum(axis=-2)
    chance = (both * (2 * n[..., None] - both)).sum(axis=-1)
    observed = 4 * (q - 1) * n * np.trace(tables, axis1=-2, axis2=-1)
    return ratio(observed - chance, 4 * (q - 1) * n * n - chance)


def cohen_standard_error(tables: Counts) -> Floats:
    """Large-sample standard error of Cohen's kappa (Fleiss, Cohen, Everitt 1969)."""
    n = tables.sum(axis=(-2, -1))
    p = ratio(tables, n[..., None, None])
    rows, columns = p.sum(axis=-1), p.sum(axis=-2)
    expected = (rows * columns).sum(axis=-1)
    kappa = cohen_kappa(tables)
    diagonal = np.diagonal(p, axis1=-2, axis2=-1)
    agreeing = (diagonal * (1 - (rows + columns) * (1 - kappa)[..., None]) ** 2).sum(axis=-1)
    spread = p * (columns[..., :, None] + rows[..., None, :]) ** 2 * _nominal(tables.shape[-1])
    differing = (1 - kappa) ** 2 * spread.sum(axis=(-2, -1))
    centre = (kappa - expected * (1 - kappa)) ** 2
    variance = ratio(agreeing + differing - centre, (1 - expected) ** 2 * n)
    return _root(variance)


# --- any number of raters: how often an item got each category ---


class Profiles:
    """Items by how often each of q categories was given; items with the same counts stand once.

    Only items with two ratings or more take part: the same items feed observed and expected agreement.
    `leave_one_out` names the coefficients with one item of each profile taken away, in the profiles' order.
    """

    def __init__(self, counts: Counts) -> None:
        """`counts`: items x q."""
        self.q = counts.shape[1]
        rated = counts[counts.sum(axis=1) >= 2]
        self.counts, self.times = np.unique(rated, axis=0, return_counts=True)
        self.n = len(rated)
        self.raters = self.counts.sum(axis=1)
        self.agreeing = (self.counts * (self.counts - 1)).sum(axis=1)
        self.pairs = self.raters * (self.raters - 1)

    @property
    def equal_raters(self) -> bool:
        return len(np.unique(self.raters)) <= 1

    @property
    def categories_used(self) -> int:
        return int((self.counts.sum(axis=0) > 0).sum())

    @property
    def unanimous(self) -> int:
        """Items whose ratings are all the same."""
        return int(self.times[self.agreeing == self.pairs].sum())

    @property
    def pairwise_agreement(self) -> float:
        """Mean over items of the share of rater pairs that agree; needs n > 0."""
        return float((self.times * (self.agreeing / self.pairs)).sum() / self.n)

    def fleiss_kappa(self, *, leave_one_out: bool = False) -> Floats:
        """Fleiss 1971; the number of raters must be the same for every item."""
        raters = int(self.raters[0]) if self.n else 0
        n = self._without(self.n, np.ones_like(self.times), leave_one_out)
        agreeing = self._without(self.times @ self.agreeing, self.agreeing, leave_one_out)
        totals = self._without(self.times @ self.counts, self.counts, leave_one_out)
        squares = (totals * totals).sum(axis=-1)
        observed = agreeing * n * raters - (raters - 1) * squares
        return ratio(observed, (raters - 1) * (n * n * raters * raters - squares))

    def gwet_ac1(self, *, leave_one_out: bool = False) -> Floats:
        """Gwet 2008 for any number of raters per item."""
        n = self._without(self.n, np.ones_like(self.times), leave_one_out)
        share = self.agreeing / self.pairs
        profile = self.counts / self.raters[:, None]
        observed = ratio(self._without(self.times @ share, share, leave_one_out), n)
        prevalence = ratio(self._without(self.times @ profile, profile, leave_one_out), n[..., None])
        chance = (prevalence * (1 - prevalence)).sum(axis=-1) / (self.q - 1)
        return ratio(observed - chance, 1 - chance)

    def krippendorff_alpha(self, *, ordinal: bool, leave_one_out: bool = False) -> Floats:
        """Krippendorff 2011, nominal or ordinal metric, any number of raters per item."""
        pairs = self.counts[:, :, None] * self.counts[:, None, :]
        own = np.einsum("pk,kl->pkl", self.counts, np.eye(self.q, dtype=np.int64))
        coincidences = (pairs - own) / (self.raters - 1)[:, None, None]
        observed = self._without(np.tensordot(self.times, coincidences, 1), coincidences, leave_one_out)
        totals = self._without(self.times @ self.counts, self.counts, leave_one_out)
        difference = _ordinal_difference(totals) if ordinal else _nominal(self.q)
        expected = (totals[..., :, None] * totals[..., None, :] * difference).sum(axis=(-2, -1))
        seen = (observed * difference).sum(axis=(-2, -1)) * (totals.sum(axis=-1) - 1)
        return ratio(expected - seen, expected)

    def _without(self, whole: Any, parts: Any, leave_one_out: bool) -> Any:
        return np.asarray(whole) - parts if leave_one_out else np.asarray(whole)


def _ordinal_difference(totals: Counts) -> Floats:
    """Squared number of values between the middles of two categories, by how often each was given."""
    middle = np.cumsum(totals, axis=-1) - totals / 2
    squared: Floats = (middle[..., :, None] - middle[..., None, :]) ** 2
    return squared


def _nominal(q: int) -> Counts:
    return 1 - np.eye(q, dtype=np.int64)


def _distance(q: int) -> Counts:
    ranks = np.arange(q, dtype=np.int64)
    distance: Counts = np.abs(ranks[:, None] - ranks[None, :])
    return distance


def ratio(numerator: Any, denominator: Any) -> Floats:
    """NaN where the denominator is zero, without a warning."""
    top, bottom = np.broadcast_arrays(
        np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    )
    found: Floats = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom != 0)
    return found


# --- intervals ---


def asymptotic_interval(kappa: float, error: float) -> Interval:
    """Normal interval, clamped to [-1, 1]."""
    return max(-1.0, kappa - Z * error), min(1.0, kappa + Z * error)


def jackknife_error(replicates: Floats, times: Counts) -> Floats:
    """Delete-one standard error over the last axis; replicate i stands for `times[i]` items, perhaps none.

    NaN where a replicate is undefined or there are fewer than two items; 0 where all say the same.
    """
    n = times.sum(axis=-1)
    counted = np.where(times > 0, replicates, 0.0)
    mean = ratio((times * counted).sum(axis=-1), n)
    squares = (times * (counted - mean[..., None]) ** 2).sum(axis=-1)
    return _root(np.where(n < 2, np.nan, ratio((n - 1) * squares, n)))


def jackknife_interval(estimate: float, error: float, n: int) -> Interval:
    """Student's t with n - 1 degrees of freedom around the estimate, clamped to [-1, 1]."""
    half = t_quantile(n - 1) * error
    return max(-1.0, estimate - half), min(1.0, estimate + half)


def leave_one_out_tables(tables: Counts) -> tuple[Counts, Counts]:
    """Each table with one item of each of its cells taken away, and how many items each cell holds.

    From ... x q x q to ... x q^2 x q x q and ... x q^2. Cells that hold none stand for no item.
    """
    q = tables.shape[-1]
    single = np.eye(q * q, dtype=np.int64).reshape(q * q, q, q)
    return tables[..., None, :, :] - single, tables.reshape(*tables.shape[:-2], q * q)


def _root(variance: Floats) -> Floats:
    """Zero where only rounding is left; NaN stays."""
    return np.asarray(np.sqrt(np.where(variance <= _ZERO_VARIANCE, 0.0, variance)))

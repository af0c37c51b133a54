"""The coefficients against well-known libraries, on many random studies and with missing ratings."""

import warnings
from typing import Any, Literal

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score  # type: ignore[import-untyped]
from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa  # type: ignore[import-untyped]

from app.agreement.coefficients import (
    Profiles,
    cohen_kappa,
    cohen_standard_error,
    linear_kappa,
    quadratic_kappa,
)
from app.agreement.report import confusion

CATEGORIES = 3
SEEDS = range(25)


def study(seed: int, raters: int, *, missing: float = 0.0) -> np.ndarray[Any, np.dtype[np.int8]]:
    """items × raters; ratings follow a truth of the item and the rater's own noise; −1 is missing."""
    random = np.random.default_rng(seed)
    items = int(random.integers(12, 60))
    truth = random.choice(CATEGORIES, size=items, p=random.dirichlet(np.ones(CATEGORIES)))
    noise = random.choice(CATEGORIES, size=(items, raters))
    ratings = np.where(random.random((items, raters)) < 0.65, truth[:, None], noise)
    ratings[0], ratings[1] = 0, 2  # more than one category is used
    ratings[random.random((items, raters)) < missing] = -1
    return ratings.astype(np.int8)


def counts_of(ratings: np.ndarray[Any, np.dtype[np.int8]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.stack([(ratings == k).sum(axis=1) for k in range(CATEGORIES)], axis=1).astype(np.int64)


@pytest.mark.parametrize("seed", SEEDS)
def test_kappas_of_two_raters(seed: int) -> None:
    first, second = study(seed, 2).T
    table = confusion(first, second)
    for ours, weights in ((cohen_kappa, None), (linear_kappa, "linear"), (quadratic_kappa, "quadratic")):
        assert float(ours(table)) == pytest.approx(
            cohen_kappa_score(first, second, weights=weights), abs=1e-12
        )
    theirs = cohens_kappa(table)
    assert float(cohen_standard_error(table)) == pytest.approx(theirs.std_kappa, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_fleiss_of_several_raters(seed: int) -> None:
    counts = counts_of(study(seed, 2 + seed % 4))
    assert float(Profiles(counts).fleiss_kappa()) == pytest.approx(fleiss_kappa(counts), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("level", ["nominal", "ordinal"])
def test_alpha_with_missing_ratings(seed: int, level: Literal["nominal", "ordinal"]) -> None:
    ratings = study(seed, 2 + seed % 4, missing=0.25)
    data = np.where(ratings < 0, np.nan, ratings.astype(float)).T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = krippendorff.alpha(data, level_of_measurement=level, value_domain=[0, 1, 2])
    ours = Profiles(counts_of(ratings)).krippendorff_alpha(ordinal=level == "ordinal")
    assert float(ours) == pytest.approx(float(theirs), abs=1e-10)

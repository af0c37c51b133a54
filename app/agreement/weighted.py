"""Agreement in what the items were drawn from: each item counts by the inverse of its chance to be drawn."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.agreement.measures import (
    NO_COMMON_ITEM,
    NO_EVALUATOR,
    ONE_CATEGORY,
    RATINGS,
    Undefined,
)
from app.outcomes import Rating
from app.statistics import wilson_of_rate

NOT_DRAWN = "the items were not drawn with known probabilities"
NOTHING_SUCH = "no such item among those that both rated"
MISSING = -1
Weights = NDArray[np.float64]


def weighted_figures(
    probabilities: Sequence[float | None],
    ratings: NDArray[np.int8],
    raters: Sequence[str],
    standards: Mapping[str, NDArray[np.int8]],
    undefined: Undefined,
) -> dict[str, Any] | None:
    """The evaluator against each judge and each of `standards`; None without inclusion probabilities.

    `ratings`: items x raters, the evaluator first; `standards`: one rating an item, by name, told where two
    judges or more have rated. Intervals are Wilson's on Kish's effective number of items, (sum w)^2 / sum w^2
    (Kish 1965). `unequal`: whether the weights differ, so that weighting changes anything.
    """
    known = [one for one in probabilities if one is not None]
    if not known or len(known) < len(probabilities):
        undefined["design_weighted"] = NOT_DRAWN
        return None
    if not raters or raters[0] != "evaluator":
        undefined["design_weighted"] = NO_EVALUATOR
        return None
    weights = 1 / np.array(known, dtype=float)
    others = [(name, ratings[:, at]) for at, name in enumerate(raters) if at > 0]
    if len(others) > 1:
        others += standards.items()
    return {
        "items": len(known),
        "represents": float(weights.sum()),
        "effective_items": float(weights.sum() ** 2 / (weights**2).sum()),
        "unequal": not bool(np.allclose(weights, weights[0], rtol=1e-9)),
        "pairs": [
            _pair(ratings[:, 0], other, weights, name, undefined, f"design_weighted.pairs.{at}")
            for at, (name, other) in enumerate(others)
        ],
    }


def _pair(
    first: NDArray[np.int8],
    second: NDArray[np.int8],
    weights: Weights,
    name: str,
    undefined: Undefined,
    path: str,
) -> dict[str, Any]:
    both = (first != MISSING) & (second != MISSING)
    table = _table(first[both], second[both], weights[both])
    squares = _table(first[both], second[both], weights[both] ** 2)
    nothing = not both.any()
    found: dict[str, Any] = {"a": "evaluator", "b": name, "n": int(both.sum())}
    for figure, (hits, base) in _CELLS.items():
        total, square = float(table[base].sum()), float(squares[base].sum())
        if total == 0:
            why = NO_COMMON_ITEM if nothing else NOTHING_SUCH
            undefined |= {f"{path}.{figure}": why, f"{path}.{figure}_ci": why}
            found |= {figure: None, f"{figure}_ci": None}
        else:
            rate = min(1.0, float(table[hits & base].sum()) / total)
            interval = wilson_of_rate(rate, total**2 / square)
            found |= {figure: rate, f"{figure}_ci": list(interval or ())}
    found["cohen_kappa"] = _kappa(table)
    if found["cohen_kappa"] is None:
        undefined[f"{path}.cohen_kappa"] = NO_COMMON_ITEM if nothing else ONE_CATEGORY
    return found


def _table(first: NDArray[np.int8], second: NDArray[np.int8], weights: Weights) -> Weights:
    table = np.zeros((RATINGS, RATINGS))
    np.add.at(table, (first, second), weights)
    return table


_PASSING = np.arange(RATINGS) == Rating.PASS
_ALL = np.ones((RATINGS, RATINGS), dtype=bool)
_BOTH_PASS, _NEITHER = np.outer(_PASSING, _PASSING), np.outer(~_PASSING, ~_PASSING)
# Figure -> cells that count, among which; rows the evaluator.
_CELLS = {
    "percent": (np.eye(RATINGS, dtype=bool), _ALL),
    "pass_vs_rest_percent": (_BOTH_PASS | _NEITHER, _ALL),
    "false_pass_rate": (np.outer(_PASSING, ~_PASSING), _ALL & ~_PASSING),
    "false_not_pass_rate": (np.outer(~_PASSING, _PASSING), _ALL & _PASSING),
}


def _kappa(table: Weights) -> float | None:
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    if np.count_nonzero(rows) == 0 or (
        np.count_nonzero(rows) == np.count_nonzero(columns) == 1 and rows.argmax() == columns.argmax()
    ):
        return None
    total = float(table.sum())
    expected = float(rows @ columns) / total**2
    return (float(np.trace(table)) / total - expected) / (1 - expected)

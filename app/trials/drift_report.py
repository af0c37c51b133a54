"""Has an evaluator drifted? A reference set rated anew, held against people and the first time (pure)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.agreement.coefficients import cohen_kappa
from app.statistics import wilson

FEWEST_RATED = 0.9


def drift_report(
    labels: Sequence[int], ratings: Sequence[int | None], answered_as: Sequence[str]
) -> dict[str, Any]:
    """Agreement of `ratings` with people's `labels`, item by item; None is no verdict and counts in neither.

    `answered_as`: the names by which the endpoint called the model that answered.
    """
    pairs = [(label, one) for label, one in zip(labels, ratings, strict=True) if one is not None]
    n, agree = len(pairs), sum(label == one for label, one in pairs)
    interval = wilson(agree, n)
    return {
        "items": len(labels),
        "n": n,
        "agree": agree,
        "percent": agree / n if n else None,
        "percent_ci": list(interval) if interval else None,
        "cohen_kappa": _kappa(pairs),
        "higher": sum(one > label for label, one in pairs),
        "lower": sum(one < label for label, one in pairs),
        "models": sorted(set(answered_as)),
        "ratings": list(ratings),
    }


def _kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    """None where one category alone was used: chance would agree always."""
    table = np.zeros((3, 3), dtype=np.int64)
    for label, one in pairs:
        table[label, one] += 1
    if not pairs or ((table.sum(axis=0) > 0).sum() < 2 and (table.sum(axis=1) > 0).sum() < 2):
        return None
    return float(cohen_kappa(table))


def drift_warnings(now: Mapping[str, Any], first: Mapping[str, Any], since: str) -> list[str]:
    """What a reader of the board has to know, a sentence each; `first` was measured on the day `since`."""
    found = []
    if now["models"] != first["models"]:
        found.append(
            f"The evaluator's endpoint now answers as {_names(now['models'])}; "
            f"on {since} it answered as {_names(first['models'])}."
        )
    if now["n"] < FEWEST_RATED * now["items"]:
        found.append(f"The evaluator gives no verdict on {now['items'] - now['n']} of {now['items']} items.")
    bounds, agreement = first["percent_ci"], now["percent"]
    if bounds is not None and agreement is not None and not bounds[0] <= agreement <= bounds[1]:
        found.append(
            f"The evaluator agrees with people on {_percent(agreement)} of the reference set; "
            f"on {since} it was {_percent(first['percent'])} (95 % interval {_percent(bounds[0])} to "
            f"{_percent(bounds[1])})."
        )
    return found


def moved(now: Sequence[int | None], first: Sequence[int | None]) -> dict[str, int]:
    """How many items of both are rated otherwise than at first."""
    both = [(one, two) for one, two in zip(now, first, strict=True) if one is not None and two is not None]
    return {
        "n": len(both),
        "higher": sum(one > two for one, two in both),
        "lower": sum(one < two for one, two in both),
    }


def _names(names: Sequence[str]) -> str:
    return " and ".join(f"“{name}”" for name in names) or "no named model"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"

"""The figures of a study report, from items with their ratings. Pure: page, file and command call this.

Raters are named `evaluator`, `judge_1`, `judge_2`, …; a rating that is missing is absent, never a category.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.agreement.alternative import alternative_annotator
from app.agreement.coefficients import Counts
from app.agreement.measures import (
    LEVELS,
    NO_COMMON_ITEM,
    NO_EVALUATOR,
    RATINGS,
    Figures,
    Undefined,
    group_figures,
    pair_figures,
)
from app.agreement.weighted import weighted_figures
from app.agreement.words import direction
from app.outcomes import Category, Rating
from app.statistics import mcnemar_exact, wilson

EVALUATOR = "evaluator"
CONSENSUS, FINAL = "consensus", "final"
FEW_ITEMS = 20  # below, coefficients are shown greyed with the count first
FACETS = ("category", "scenario", "model")

HUMANS_ONLY = "two humans: neither is the standard that the other is measured by"
NOT_ADJUDICATED = "no item has a final label of an adjudication"
ONE_HUMAN = "a consensus takes two humans or more for an item"
NO_HUMAN = "no human has rated anything"


@dataclass(frozen=True, slots=True)
class RatedItem:
    """One main item of a study: where it comes from and who rated it how.

    `inclusion_probability` is None where items were not drawn with known probabilities (an imported sheet).
    """

    category: str
    scenario: str
    model: str
    ratings: Mapping[str, int]
    inclusion_probability: float | None = None
    label: int | None = None  # the final one of an adjudication after the close


def agreement_report(items: Sequence[RatedItem], judges: Iterable[str] = ()) -> dict[str, Any]:
    """`items` to `undefined` of CONTRACT's study report.

    `judges` names those who are to be listed though they may have rated nothing.
    """
    raters = _raters(items, judges)
    ratings = _matrix(items, raters)
    undefined: Undefined = {}
    consensus = _consensus(ratings, raters)
    final = _final(items, consensus)
    return {
        "items": len(items),
        "raters": raters,
        **_section(ratings, raters, undefined, "", keep_empty=True),
        "evaluator_vs_consensus": _against_consensus(ratings, raters, consensus, undefined),
        "consensus": _consensus_counts(ratings, raters, consensus),
        "alternative_annotator": alternative_annotator(ratings, raters, undefined, "alternative_annotator"),
        "adjudication": _adjudicated(items, ratings, raters, consensus, final, undefined),
        "by": {facet: _by(facet, items, ratings, raters, consensus, undefined) for facet in FACETS},
        "design_weighted": weighted_figures(
            [item.inclusion_probability for item in items],
            ratings,
            raters,
            {CONSENSUS: consensus} | ({FINAL: final} if final is not None else {}),
            undefined,
        ),
        "undefined": undefined,
    }


Ratings = NDArray[np.int8]  # items x raters, MISSING where there is none
MISSING = -1


def _raters(items: Sequence[RatedItem], judges: Iterable[str]) -> list[str]:
    """The evaluator first, then judges by number."""
    found = {rater for item in items for rater in item.ratings} | set(judges)
    humans = sorted(found - {EVALUATOR}, key=lambda name: (len(name), name))
    return ([EVALUATOR] if EVALUATOR in found else []) + humans


def _matrix(items: Sequence[RatedItem], raters: Sequence[str]) -> Ratings:
    columns = {rater: at for at, rater in enumerate(raters)}
    ratings = np.full((len(items), len(raters)), MISSING, dtype=np.int8)
    for row, item in enumerate(items):
        for rater, rating in item.ratings.items():
            ratings[row, columns[rater]] = Rating(rating)
    return ratings


def _section(
    ratings: Ratings, raters: Sequence[str], undefined: Undefined, path: str, *, keep_empty: bool
) -> dict[str, Any]:
    """`pairs` and `all` of a set of items; pairs without a common item only where `keep_empty`."""
    tables = {
        (first, second): table
        for first, second in combinations(range(len(raters)), 2)
        if (table := confusion(ratings[:, first], ratings[:, second])).any() or keep_empty
    }
    humans = ratings[:, [rater != EVALUATOR for rater in raters]]
    return {
        "pairs": _pairs(tables, raters, len(ratings), undefined, path),
        "all": {
            name: {
                level: group_figures(_counts(own), level, undefined, f"{path}all.{name}.{level}")
                for level in LEVELS
            }
            for name, own in (("humans", humans), ("with_evaluator", ratings))
        },
    }


def confusion(first: Ratings, second: Ratings) -> Counts:
    """3 x 3, rows the first rater, of the items that both rated."""
    both = (first != MISSING) & (second != MISSING)
    cells = first[both].astype(np.int64) * RATINGS + second[both]
    return np.bincount(cells, minlength=RATINGS**2).reshape(RATINGS, RATINGS).astype(np.int64)


def _counts(ratings: Ratings) -> Counts:
    """Items x 3: how many raters gave each rating."""
    return np.stack([(ratings == rating).sum(axis=1) for rating in Rating], axis=1).astype(np.int64)


def _pairs(
    tables: Mapping[tuple[int, int], Counts],
    raters: Sequence[str],
    items: int,
    undefined: Undefined,
    path: str,
) -> list[Figures]:
    if not tables:
        return []
    paths = [f"{path}pairs.{at}" for at in range(len(tables))]
    stack = np.stack(list(tables.values()))
    levels = {
        level: pair_figures(stack, level, undefined, [f"{one}.{level}" for one in paths]) for level in LEVELS
    }
    return [
        _pair(table, raters[a], raters[b], items, {level: levels[level][at] for level in LEVELS})
        | _errors_of_evaluator(table, raters[a], undefined, paths[at])
        for at, ((a, b), table) in enumerate(tables.items())
    ]


def _pair(table: Counts, a: str, b: str, items: int, levels: Figures) -> Figures:
    higher, lower = int(np.tril(table, -1).sum()), int(np.triu(table, 1).sum())
    return {
        "a": a,
        "b": b,
        **levels,
        "confusion": table.tolist(),
        "a_higher": higher,
        "b_higher": lower,
        "missing": items - int(table.sum()),
        "direction": direction(a, b, table, mcnemar_exact(higher, lower)),
    }


def _errors_of_evaluator(table: Counts, a: str, undefined: Undefined, path: str) -> Figures:
    names = ("false_pass_rate", "false_not_pass_rate")
    if a != EVALUATOR:
        undefined |= {f"{path}.{name}": HUMANS_ONLY for name in names}
        return dict.fromkeys(names)
    wrong = (int(table[Rating.PASS, : Rating.PASS].sum()), int(table[: Rating.PASS, Rating.PASS].sum()))
    of = (int(table[:, : Rating.PASS].sum()), int(table[:, Rating.PASS].sum()))
    said = ("called fail or unclear", "called pass")
    found: Figures = {}
    for name, k, n, what in zip(names, wrong, of, said, strict=True):
        if n == 0:
            why = f"no common item was {what} by the judge" if table.any() else NO_COMMON_ITEM
            undefined |= {f"{path}.{name}.rate": why, f"{path}.{name}.ci": why}
            found[name] = {"rate": None, "ci": None, "n": 0}
        else:
            found[name] = {"rate": k / n, "ci": list(wilson(k, n) or ()), "n": n}
    return found


def _consensus(ratings: Ratings, raters: Sequence[str]) -> Ratings:
    """For each item the rating of more than half of its humans, if two or more rated it."""
    counts = _counts(ratings[:, [rater != EVALUATOR for rater in raters]])
    rated = counts.sum(axis=1)
    clear = (rated >= 2) & (2 * counts.max(axis=1, initial=0) > rated)
    return np.where(clear, counts.argmax(axis=1), MISSING).astype(np.int8)


def _consensus_counts(ratings: Ratings, raters: Sequence[str], consensus: Ratings) -> Figures:
    humans = ratings[:, [rater != EVALUATOR for rater in raters]]
    shared = int(((humans != MISSING).sum(axis=1) >= 2).sum())
    reached = int((consensus != MISSING).sum())
    return {"items": shared, "reached": reached, "split": shared - reached}


def _against_consensus(
    ratings: Ratings, raters: Sequence[str], consensus: Ratings, undefined: Undefined, path: str = ""
) -> Figures | None:
    why = None
    if EVALUATOR not in raters:
        why = NO_EVALUATOR
    elif len(raters) == 1:
        why = NO_HUMAN
    elif len(raters) == 2:
        why = ONE_HUMAN
    if why is not None:
        undefined[f"{path}evaluator_vs_consensus"] = why
        return None
    return _against(CONSENSUS, ratings, consensus, undefined, f"{path}evaluator_vs_consensus")


def _against(name: str, ratings: Ratings, standard: Ratings, undefined: Undefined, path: str) -> Figures:
    """The evaluator against one rating an item, with its table and the direction in words."""
    table = confusion(ratings[:, 0], standard)
    found = pair_figures(table[None], "three_level", undefined, [path])[0]
    higher, lower = int(np.tril(table, -1).sum()), int(np.triu(table, 1).sum())
    return found | {
        "confusion": table.tolist(),
        "a_higher": higher,
        "b_higher": lower,
        "direction": direction(EVALUATOR, name, table, mcnemar_exact(higher, lower)),
    }


def consensus_of(ratings: Sequence[int]) -> int | None:
    """The rating of more than half of an item's humans, if two or more rated it."""
    if len(ratings) < 2:
        return None
    rating, n = Counter(ratings).most_common(1)[0]
    return rating if 2 * n > len(ratings) else None


def _final(items: Sequence[RatedItem], consensus: Ratings) -> Ratings | None:
    """The final label, or the consensus where nothing was adjudicated; None without any label."""
    labels = np.array(
        [MISSING if item.label is None else Rating(item.label) for item in items], dtype=np.int8
    )
    return np.where(labels != MISSING, labels, consensus) if (labels != MISSING).any() else None


def _adjudicated(
    items: Sequence[RatedItem],
    ratings: Ratings,
    raters: Sequence[str],
    consensus: Ratings,
    final: Ratings | None,
    undefined: Undefined,
) -> Figures | None:
    """The evaluator against the final labels, and the consensus where nothing was adjudicated."""
    labelled = np.array([item.label is not None for item in items], dtype=bool)
    if final is None:
        undefined["adjudication"] = NOT_ADJUDICATED
        return None
    path = "adjudication.evaluator_vs_final"
    changed = labelled & (consensus != MISSING) & (final != consensus)
    found: Figures = {
        "labelled": int(labelled.sum()),
        "consensus_changed": int(changed.sum()),
        "evaluator_vs_final": None,
    }
    if EVALUATOR not in raters:
        undefined[path] = NO_EVALUATOR
        return found
    found["evaluator_vs_final"] = _against(FINAL, ratings, final, undefined, path)
    return found


def _by(
    facet: str,
    items: Sequence[RatedItem],
    ratings: Ratings,
    raters: Sequence[str],
    consensus: Ratings,
    undefined: Undefined,
) -> dict[str, Any]:
    """The same within each category, scenario or model that the items have."""
    values = np.array([getattr(item, facet) for item in items], dtype=object)
    found: dict[str, Any] = {}
    for value in sorted(set(values), key=_position):
        part = values == value
        own = ratings[part]
        path = f"by.{facet}.{value}."
        found[value] = {
            "items": len(own),
            **_section(own, raters, undefined, path, keep_empty=False),
            "evaluator_vs_consensus": _against_consensus(own, raters, consensus[part], undefined, path),
            "alternative_annotator": alternative_annotator(
                own, raters, undefined, f"{path}alternative_annotator"
            ),
        }
    return found


def _position(value: str) -> tuple[int, str]:
    """Categories in their own order, anything else by name."""
    known = [category.value for category in Category]
    return (known.index(value) if value in known else len(known), value)


def pair_report(
    first: Ratings, second: Ratings, undefined: Undefined, path: str, *, names: tuple[str, str]
) -> Figures:
    """Two raters of the same items, as a study report has a pair: at each level, with direction.

    `first`, `second`: a rating an item, MISSING where there is none. Reasons for None stand under `path`.
    """
    table = confusion(first, second)
    levels = {level: pair_figures(table[None], level, undefined, [f"{path}.{level}"])[0] for level in LEVELS}
    return _pair(table, *names, len(first), levels)

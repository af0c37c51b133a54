"""The direction of disagreement, said so that nobody has to read a matrix for it."""

import numpy as np

from app.agreement.coefficients import Counts
from app.outcomes import Rating

SURE = 0.05


def direction(a: str, b: str, table: Counts, p_value: float) -> str:
    """Who of two raters rates higher, in which steps, and whether chance alone would explain it.

    `table`: 3 x 3, rows a; `p_value`: two-sided exact sign test on the items rated differently.
    """
    a_higher, b_higher = int(np.tril(table, -1).sum()), int(np.triu(table, 1).sum())
    differing, common = a_higher + b_higher, int(table.sum())
    first, second = shown(a), shown(b)
    if not common:
        return f"{first} and {second} have no item in common.".capitalize()
    if not differing:
        return f"{first} and {second} agree on all of {_items(common)}.".capitalize()
    opening = f"They differ on {differing} of {_items(common)}"
    if a_higher == b_higher:
        return f"{opening}: each rates higher as often as the other ({a_higher} each). {_step(table, a, b)}"
    more, most = (first, a_higher) if a_higher > b_higher else (second, b_higher)
    share = f"on all {differing}" if most == differing else f"on {most}, lower on {differing - most}"
    if differing == 1:
        share = "on it"
    sure = (
        f"more than chance would explain (sign test, p {_p(p_value)})"
        if p_value < SURE
        else f"which may be chance (sign test, p {_p(p_value)})"
    )
    return f"{opening}: {more} rates higher {share}, {sure}. {_step(table, a, b)}"


def shown(rater: str) -> str:
    """`judge_2` as people write it."""
    return _NAMES.get(rater) or rater.replace("_", " ")


_NAMES = {"evaluator": "the evaluator", "consensus": "the consensus", "final": "the final label"}


def _step(table: Counts, a: str, b: str) -> str:
    """The cell off the diagonal that holds most."""
    off = table - np.diag(np.diag(table))
    row, column = np.unravel_index(int(off.argmax()), off.shape)
    names = [rating.name.lower() for rating in Rating]
    return (
        f"Most often ({int(off.max())}) {shown(a)} says {names[int(row)]} "
        f"where {shown(b)} says {names[int(column)]}."
    )


def _items(n: int) -> str:
    return "1 item" if n == 1 else f"{n} items"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"

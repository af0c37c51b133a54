"""Could the evaluator stand in for a judge? The alternative annotator test, and the human ceiling beside it.

Calderon, Reichart, Dror: The Alternative Annotator Test for LLM-as-a-Judge, ACL 2025, pages 16051-16081
(arXiv 2501.10970). Each judge is left out in turn: does the evaluator agree with the others at least as well
as the judge does, less a margin epsilon for what the evaluator saves? docs/agreement.md works an example.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr  # type: ignore[import-untyped]

from app.agreement.measures import Undefined
from app.outcomes import Rating

MISSING = -1
# What the authors advise: crowd workers, skilled annotators, experts.
EPSILONS = (0.1, 0.15, 0.2)
FDR = 0.05
WINS = 0.5  # of the judges that the evaluator has to beat
FEW_FOR_T = 30
ADVISED_JUDGES, ADVISED_ITEMS = 3, 50

NO_EVALUATOR = "the study has no evaluator's ratings"
TOO_FEW_JUDGES = "the test takes two judges or more with items in common that the evaluator rated"
ONE_ITEM = "one item alone gives no test"

Ratings = NDArray[np.int8]
Floats = NDArray[np.float64]


def alternative_annotator(
    ratings: Ratings, raters: Sequence[str], undefined: Undefined, path: str
) -> dict[str, Any] | None:
    """At both levels, or None and why. `ratings`: items x raters, the evaluator first where there is one."""
    if not raters or raters[0] != "evaluator":
        undefined[path] = NO_EVALUATOR
        return None
    judges = [(name, at) for at, name in enumerate(raters) if at > 0 and _items_of(ratings, at).any()]
    if len(judges) < 2:
        undefined[path] = TOO_FEW_JUDGES
        return None
    passing = np.where(ratings == MISSING, MISSING, (ratings == Rating.PASS).astype(np.int8)).astype(np.int8)
    return {
        "three_level": _level(ratings, judges, undefined, f"{path}.three_level"),
        "pass_vs_rest": _level(passing, judges, undefined, f"{path}.pass_vs_rest"),
    }


def _items_of(ratings: Ratings, judge: int) -> NDArray[np.bool_]:
    """That the judge, the evaluator and somebody else have rated."""
    rated = ratings != MISSING
    others = rated[:, 1:].sum(axis=1) - rated[:, judge]
    found: NDArray[np.bool_] = rated[:, judge] & rated[:, 0] & (others > 0)
    return found


def _level(
    ratings: Ratings, judges: Sequence[tuple[str, int]], undefined: Undefined, path: str
) -> dict[str, Any]:
    each = [
        _against(ratings, name, at, undefined, f"{path}.judges.{place}")
        for place, (name, at) in enumerate(judges)
    ]
    tested = [judge for judge in each if judge["p"] is not None]
    winning = {
        str(epsilon): _winning_rate([judge["p"][str(epsilon)] for judge in tested]) for epsilon in EPSILONS
    }
    if not tested:
        undefined |= {f"{path}.{name}": ONE_ITEM for name in ("winning_rate", "passes")}
    return {
        "judges": each,
        "advantage": float(np.mean([judge["evaluator_advantage"] for judge in each])),
        "evaluator_agreement": float(np.mean([judge["evaluator_agreement"] for judge in each])),
        "human_agreement": float(np.mean([judge["human_agreement"] for judge in each])),
        "winning_rate": winning if tested else None,
        "passes": {name: bool(rate >= WINS) for name, rate in winning.items()} if tested else None,
        "as_advised": len(each) >= ADVISED_JUDGES and min(judge["n"] for judge in each) >= ADVISED_ITEMS,
    }


def _against(ratings: Ratings, name: str, judge: int, undefined: Undefined, path: str) -> dict[str, Any]:
    """One judge left out: how evaluator and judge agree with the others, item by item."""
    own = ratings[_items_of(ratings, judge)]
    others = np.delete(own, [0, judge], axis=1)
    of_evaluator, of_judge = _scores(own[:, 0], others), _scores(own[:, judge], others)
    evaluator_wins, judge_wins = of_evaluator >= of_judge, of_judge >= of_evaluator
    difference = judge_wins.astype(float) - evaluator_wins.astype(float)
    n = len(own)
    if n < 2:
        undefined |= {f"{path}.{figure}": ONE_ITEM for figure in ("test", "p")}
    return {
        "judge": name,
        "n": n,
        "evaluator_advantage": float(evaluator_wins.mean()),
        "judge_advantage": float(judge_wins.mean()),
        "evaluator_agreement": float(of_evaluator.mean()),
        "human_agreement": float(of_judge.mean()),
        "test": None if n < 2 else "t" if n >= FEW_FOR_T else "Wilcoxon signed rank, exact",
        "p": None if n < 2 else {str(epsilon): p_value(difference, epsilon) for epsilon in EPSILONS},
    }


def _scores(rating: Ratings, others: Ratings) -> Floats:
    """The share of the other judges of an item who gave it this rating."""
    there = others != MISSING
    same = (others == rating[:, None]) & there
    shares: Floats = same.sum(axis=1) / there.sum(axis=1)
    return shares


def p_value(difference: Floats, epsilon: float) -> float:
    """One-sided, that the mean of judge's less evaluator's wins is below epsilon.

    Student's t; the exact signed-rank test below 30 items, where t cannot be trusted. Where every item says
    the same, t is infinite at any number of items; the sign test still knows how many there were.
    """
    n = len(difference)
    if n < FEW_FOR_T:
        return signed_rank_less(difference - epsilon)
    error = float(difference.std(ddof=1)) / math.sqrt(n)
    distance = float(difference.mean()) - epsilon
    if error == 0:
        return 0.5**n if distance < 0 else 1.0
    return float(stdtr(n - 1, distance / error))


def signed_rank_less(values: Floats) -> float:
    """P(W+ <= observed) of Wilcoxon's signed ranks, exact given the ranks that ties leave (mid-ranks)."""
    values = values[values != 0]
    size = np.abs(values)
    # Twice the mid-ranks, so that they are whole numbers.
    ranks = [int(2 * (size < one).sum() + (size == one).sum() + 1) for one in size]
    observed = sum(rank for rank, value in zip(ranks, values, strict=True) if value > 0)
    ways = np.zeros(sum(ranks) + 1)
    ways[0] = 1
    for rank in ranks:
        ways[rank:] += ways[:-rank].copy()
    return float(ways[: observed + 1].sum() / ways.sum())


def _winning_rate(p_values: Sequence[float]) -> float:
    """The share of judges that the evaluator beats, after Benjamini and Yekutieli (2001) at 5 %."""
    m = len(p_values)
    if m == 0:
        return 0.0
    harmonic = sum(1 / k for k in range(1, m + 1))
    ordered = sorted(p_values)
    rejected = max((k for k in range(1, m + 1) if ordered[k - 1] <= k * FDR / (m * harmonic)), default=0)
    return rejected / m

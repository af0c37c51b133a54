"""Forgotten or overridden? Outcome × recall by scenario, from observations (pure).

A recall conversation goes on from the standard one of its case, scenario and seed, and the two are a pair. By
its own rubric 2 is recalled; 1 (vague) and 0 are not.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from app.observations import JUDGED, Observation, Undefined
from app.outcomes import RECALL, STANDARD, Outcome
from app.statistics import wilson


def recall(observations: Iterable[Observation], undefined: Undefined) -> dict[str, Any] | None:
    """By scenario: `table` with rows pass, not pass and columns recalled, not recalled, of judged pairs.

    `overridden`: of what did not pass, the share whose constraint was recalled all the same, with the Wilson
    interval. None where recall was not asked.
    """
    arms: dict[tuple[str, str], dict[tuple[str, int], Observation]] = defaultdict(dict)
    for item in observations:
        if item.variant in (STANDARD, RECALL):
            arms[item.scenario, item.variant][item.case, item.seed] = item
    scenarios = sorted(scenario for scenario, variant in arms if variant == RECALL)
    if not scenarios:
        undefined["recall"] = "recall was not asked"
        return None
    return {
        scenario: _table(arms[scenario, STANDARD], arms[scenario, RECALL], undefined, f"recall.{scenario}")
        for scenario in scenarios
    }


def _table(
    standard: dict[tuple[str, int], Observation],
    asked: dict[tuple[str, int], Observation],
    undefined: Undefined,
    path: str,
) -> dict[str, Any]:
    counted = [[0, 0], [0, 0]]
    vague = 0
    for key, item in asked.items():
        before = standard.get(key)
        if before is None or before.outcome not in JUDGED or item.outcome not in JUDGED:
            continue
        counted[before.outcome is not Outcome.PASS][item.outcome is not Outcome.PASS] += 1
        vague += item.outcome is Outcome.UNCLEAR
    n, not_passed = sum(map(sum, counted)), sum(counted[1])
    recalled = counted[0][0] + counted[1][0]
    if not n:
        undefined[f"{path}.recalled"] = "no pair of response and recall was judged"
    if not not_passed:
        undefined[f"{path}.overridden"] = "everything that was judged passed" if n else "nothing was judged"
    return {
        "planned": len(asked),
        "n": n,
        "table": {
            "pass": {"recalled": counted[0][0], "not_recalled": counted[0][1]},
            "not_pass": {"recalled": counted[1][0], "not_recalled": counted[1][1]},
        },
        "vague": vague,
        "recalled": recalled / n if n else None,
        "recalled_ci": wilson(recalled, n),
        "overridden": counted[1][0] / not_passed if not_passed else None,
        "overridden_ci": wilson(counted[1][0], not_passed),
    }

"""How often verdicts are unclear, or fail, for each reason. Pure; report, pages and files call this.

A share is of what was answered, so that the reasons of a row add up to its unclear (or fail) rate, and a run
without unclear verdicts counts as zero. Proportions in 0-1, intervals 95 %, clustered as all rates are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from app.observations import ANSWERED, Observation, Undefined
from app.outcomes import PROBE_SCENARIO, STANDARD, Category, Outcome, Reason
from app.statistics import Cell, MacroRate, macro_interval

SORTED = {"unclear": Outcome.UNCLEAR, "fail": Outcome.FAIL}
NOTHING_STANDARD = "no conversation of the standard scenarios is in this run"
NOTHING_ANSWERED = "no conversation was answered"
ONE_CLUSTER = "one cluster of cases alone gives no interval"


def reasons(observations: Iterable[Observation], undefined: Undefined) -> dict[str, Any] | None:
    """The `reasons` of a report, of the standard arms: unclear verdicts, and fails, each by their reason.

    {"unclear": {"overall": S, "by_scenario": {…: S}, "by_category": {…: S}}, "fail": {…}} with
    S = {"answered", "n", "shares": {reason: {"n", "rate", "ci"}}}. None without a standard conversation.
    """
    standard = [item for item in observations if item.variant == STANDARD and item.scenario != PROBE_SCENARIO]
    if not standard:
        undefined["reasons"] = NOTHING_STANDARD
        return None
    return {
        name: {
            "overall": shares(standard, outcome, undefined, f"reasons.{name}.overall"),
            "by_scenario": _by(
                sorted({one.scenario for one in standard}),
                lambda one: one.scenario, standard, outcome, undefined, f"reasons.{name}.by_scenario",
            ),
            "by_category": _by(
                [one.value for one in Category if any(item.category == one for item in standard)],
                lambda one: one.category, standard, outcome, undefined, f"reasons.{name}.by_category",
            ),
        }
        for name, outcome in SORTED.items()
    }  # fmt: skip


def _by(
    values: Sequence[str],
    of: Callable[[Observation], str],
    standard: Sequence[Observation],
    outcome: Outcome,
    undefined: Undefined,
    path: str,
) -> dict[str, Any]:
    return {
        value: shares([one for one in standard if of(one) == value], outcome, undefined, f"{path}.{value}")
        for value in values
    }


def shares(
    observations: Sequence[Observation], outcome: Outcome, undefined: Undefined, path: str
) -> dict[str, Any]:
    """Each reason's share of the answered conversations: the mean over scenarios, each counting the same."""
    answered = [item for item in observations if item.outcome in ANSWERED]
    own = Counter(item.reason or Reason.UNSORTED for item in answered if item.outcome is outcome)
    if not answered:
        undefined |= {f"{path}.shares.{reason}": NOTHING_ANSWERED for reason in Reason}
        return {"answered": 0, "n": 0, "shares": dict.fromkeys(map(str, Reason))}
    none = _share(answered, outcome, None)  # the same for each reason that was not met
    found = {reason: _share(answered, outcome, reason) if own[reason] else none for reason in Reason}
    undefined |= {
        f"{path}.shares.{reason}.ci": ONE_CLUSTER for reason, one in found.items() if not one.interval
    }
    return {
        "answered": len(answered),
        "n": own.total(),
        "shares": {
            reason.value: {"n": own[reason], "rate": one.rate, "ci": one.interval}
            for reason, one in found.items()
        },
    }


def _share(answered: Sequence[Observation], outcome: Outcome, reason: Reason | None) -> MacroRate:
    """Of the verdicts with that outcome and reason among the answered, of which there are some."""
    mean = macro_interval(
        Cell(
            one.scenario,
            one.cluster,
            1,
            int(one.outcome is outcome and (one.reason or Reason.UNSORTED) is reason),
        )
        for one in answered
    )
    assert mean is not None
    return mean

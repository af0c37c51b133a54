"""What a board says, in sentences for who reads nothing else. Pure."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from app.outcomes import SCENARIOS
from app.web import words
from app.web.formats import interval, percent

MOST_NAMES = 5


def tied_with(rank: Sequence[int] | None) -> int | None:
    """From how many other models this board cannot tell the row; None for a row without a rank.

    A rank reaches from 1 + those significantly better to all less those significantly worse.
    """
    return None if rank is None else rank[1] - rank[0]


def rank_words(rank: Sequence[int] | None, of: int) -> str | None:
    """What follows `1–3`: `of 12, tied with 2 others`."""
    if rank is None:
        return None
    low, high = rank
    if low == high:
        return f"of {of}"
    others = "1 other" if high - low == 1 else f"{high - low} others"
    return f"of {of}, tied with {others}"


def answer(board: Mapping[str, Any]) -> list[str]:
    """Who comes first, what the board can tell apart, where it gets hard, and whether people checked it."""
    rows = board["rows"]
    if not rows:
        return []
    return [one for one in (_first(rows), _resolution(board), _hardest(rows), _checked(rows)) if one]


def _first(rows: Sequence[Mapping[str, Any]]) -> str:
    top = [row for row in rows if row["rank"][0] == 1]
    best = rows[0]
    rate = f"{percent(best['overall']['pass_rate'])} % ({interval(best['overall']['pass_rate_ci'])})"
    if len(rows) == 1:
        return f"{best['model']} is the only model that is ranked: it passes {rate}."
    if len(top) == 1:
        others = "the other one" if len(rows) == 2 else f"each of the {len(rows) - 1} others"
        return f"{best['model']} comes first: it passes {rate}, more often than {others} by more than chance."
    return f"Tied at the top: {_named([str(row['model']) for row in top])}."


def _named(names: Sequence[str]) -> str:
    if len(names) <= MOST_NAMES:
        return ", ".join(names[:-1]) + f" and {names[-1]}"
    return ", ".join(names[:MOST_NAMES]) + f" and {len(names) - MOST_NAMES} more"


def _resolution(board: Mapping[str, Any]) -> str | None:
    least = board["resolvable_difference"]
    if least is None:
        return None
    return f"This board cannot separate models closer than {percent(least)} points, under this evaluator."


def _hardest(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """By the mean over the ranked models."""
    means = {
        name: fmean(rates)
        for name in SCENARIOS
        if (
            rates := [
                r for row in rows if (r := row["by_scenario"].get(name, {}).get("pass_rate")) is not None
            ]
        )
    }
    if len(means) < 2:
        return None
    least, most = min(means, key=lambda name: means[name]), max(means, key=lambda name: means[name])
    if means[least] == means[most]:
        return None
    return (
        f"It gets hardest with “{words.short_scenario(least)}”: {percent(means[least])} % pass on average, "
        f"{percent(means[most])} % with “{words.short_scenario(most)}”."
    )


def _checked(rows: Sequence[Mapping[str, Any]]) -> str:
    checked = sum(row["human"] is not None for row in rows)
    if checked == 0:
        return "No verdict on these rows was checked by people."
    every = "these rows" if checked == len(rows) else f"{checked} of {len(rows)} rows"
    return f"People rated samples of {every} blind; what they make of the rate stands beside it."

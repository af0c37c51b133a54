"""How often the interval of the human-corrected rate holds the truth, in simulated runs and studies."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri  # type: ignore[import-untyped]

from app.human_rates import Answered, Label, corrected_rate
from app.outcomes import SCENARIOS, Rating

RATES = (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.97)
LABELS = (20, 30, 50, 100)  # in each verdict stratum
AIM = 0.94
CASES, CLUSTERS = 336, 305
# P(fail, unclear, pass) as the evaluator says, where people pass and where they do not.
EVALUATORS = {
    "sharp": ((0.01, 0.01, 0.98), (0.93, 0.05, 0.02)),
    "usual": ((0.05, 0.07, 0.88), (0.78, 0.12, 0.10)),
    "lenient": ((0.02, 0.03, 0.95), (0.50, 0.20, 0.30)),
    "strict": ((0.20, 0.20, 0.60), (0.90, 0.07, 0.03)),
}
# Scenarios of one case go together: the standard deviation of what its cluster adds, in probits.
TOGETHER = 0.8
FEWEST = 5  # the rule of 30 labels is set aside, so that fewer can be looked at


def measure(repeats: int) -> dict[str, Any]:
    """Coverage by evaluator, true rate and labels; the worst cell; how wide the intervals are."""
    cells = [
        coverage(evaluator, rate, number, repeats=repeats)
        for evaluator in EVALUATORS
        for rate in RATES
        for number in LABELS
    ]
    worst = min(cells, key=lambda cell: float(cell["coverage"]))
    return {
        "aim": AIM,
        "repeats": repeats,
        "standard_error": round((0.95 * 0.05 / repeats) ** 0.5, 4),
        "worst": worst,
        "mean_coverage": round(float(np.mean([cell["coverage"] for cell in cells])), 4),
        "by_labels": {
            number: {
                "worst": min(cell["coverage"] for cell in cells if cell["labels"] == number),
                "mean_width": round(
                    float(np.mean([cell["width"] for cell in cells if cell["labels"] == number])), 4
                ),
            }
            for number in LABELS
        },
        "cells": cells,
    }


def coverage(evaluator: str, rate: float, number: int, *, repeats: int) -> dict[str, Any]:
    """Of so many simulated runs; the truth is the chance that people pass a conversation on a new case."""
    dice = np.random.default_rng([sorted(EVALUATORS).index(evaluator), round(1000 * rate), number])
    held, width = 0, 0.0
    for _ in range(repeats):
        answered, labels = simulated_run(evaluator, rate, number, dice)
        found = corrected_rate(answered, labels, fewest=min(number, FEWEST))
        if found is None:
            raise RuntimeError("a simulated run gave no rate")
        low, high = found.interval
        held += low <= rate <= high
        width += high - low
    return {
        "evaluator": evaluator,
        "true_rate": rate,
        "labels": number,
        "coverage": round(held / repeats, 4),
        "width": round(width / repeats, 4),
    }


def simulated_run(
    evaluator: str, rate: float, number: int, dice: np.random.Generator
) -> tuple[list[Answered], list[Label]]:
    """336 cases in 305 clusters, five scenarios; `number` labels, or all, by chance in each stratum."""
    clusters = np.concatenate([np.arange(CLUSTERS), np.arange(CASES - CLUSTERS)])
    people = _people(rate, clusters, dice)
    by_people = np.array(EVALUATORS[evaluator])[np.where(people, 0, 1)]
    verdicts = (dice.random(people.shape)[..., None] > by_people.cumsum(axis=-1)[..., :2]).sum(axis=-1)
    answered = [
        Answered(scenario, int(clusters[case]), Rating(int(verdicts[case, place])))
        for case in range(CASES)
        for place, scenario in enumerate(SCENARIOS)
    ]
    labels = []
    for verdict in Rating:
        there = np.argwhere(verdicts == verdict)
        chosen = dice.permutation(len(there))[:number]
        labels += [
            Label(SCENARIOS[place], verdict, len(chosen) / len(there), bool(people[case, place]))
            for case, place in there[chosen]
        ]
    return answered, labels


def _people(rate: float, clusters: NDArray[np.int64], dice: np.random.Generator) -> NDArray[np.bool_]:
    """Whether people pass each case in each scenario: a probit with what the case's cluster adds."""
    shared = TOGETHER * dice.standard_normal(CLUSTERS)[clusters][:, None]
    drawn = shared + dice.standard_normal((CASES, len(SCENARIOS)))
    return np.asarray(drawn < ndtri(rate) * np.sqrt(1 + TOGETHER**2))

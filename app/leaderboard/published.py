"""The figures of the publication that this benchmark comes from: other protocol, other evaluator."""

import json
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from app.outcomes import SCENARIOS

FIGURES = Path(__file__).resolve().parents[1] / "data" / "published.json"


@cache
def published_figures() -> dict[str, Any]:
    """What the paper says, its shares as proportions in 0-1, each model's by scenario.

    `overall` is the mean over the scenarios, which the paper does not print.
    """
    figures: dict[str, Any] = json.loads(FIGURES.read_text())
    for model in figures["models"]:
        rates, unclear = model["pass_rate"], model["unclear_rate"]
        model["overall"] = fmean(rates)
        model["by_scenario"] = {
            scenario: {"published_pass_rate": rate, "unclear_rate": share}
            for scenario, rate, share in zip(SCENARIOS, rates, unclear, strict=True)
        }
        del model["pass_rate"], model["unclear_rate"]
    return figures

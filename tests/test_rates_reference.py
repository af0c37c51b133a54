"""Reports against the reference values, where the folder that holds them is at hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.outcomes import STANDARD, Category, Outcome
from app.rates import Observation, report_sections
from tests.report_help import check_report

REFERENCE = Path(__file__).resolve().parents[1] / ".." / "shared" / "reference" / "statistics.json"

pytestmark = pytest.mark.skipif(not REFERENCE.exists(), reason="the reference values are not at hand")

# In the order in which the reference's cases stand.
CATEGORIES = (
    Category.TRAUMA_TRIGGER,
    Category.PHYSICAL_CONSTRAINT,
    Category.SEVERE_ALLERGY,
    Category.SEVERE_PHOBIA,
)
MARKS = {"1": Outcome.PASS, "0": Outcome.FAIL, "-": Outcome.ENDPOINT_ERROR}


def reference() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(REFERENCE.read_text())
    return loaded


def rows_of(name: str) -> list[str]:
    data = reference()["datasets"]
    if name == "all_pass_12x5":
        return ["11111"] * 12
    found: list[str] = data["models336"][name.removeprefix("models336_")] if "336" in name else data[name]
    return found


def observed(rows: list[str], cases_a_cluster: int = 1) -> list[Observation]:
    return [
        Observation(
            case=f"case-{case:03d}",
            cluster=f"cluster-{case // cases_a_cluster:03d}",
            category=CATEGORIES[case * 4 // len(rows)],
            scenario=f"sc{number}",
            variant=STANDARD,
            seed=1,
            outcome=MARKS[mark],
        )
        for case, row in enumerate(rows)
        for number, mark in enumerate(row, 1)
    ]


def report(observations: list[Observation]) -> dict[str, Any]:
    made = report_sections(observations)
    check_report(made)
    return made


def close(value: object) -> Any:
    return pytest.approx(value, abs=1e-9)


def test_overall_rates_and_their_clustered_intervals() -> None:
    checked = 0
    for name, expected in reference()["macro_intervals"].items():
        if name == "definition":
            continue
        dataset, _, paired = name.partition("_pairs_of_cases_share_a_cluster")
        shared = name != dataset or bool(paired)
        overall = report(observed(rows_of(dataset), 2 if shared else 1))["rates"]["overall"]
        assert overall["pass_rate"] == close(expected["rate"]), name
        assert list(overall["pass_rate_ci"]) == close(expected["interval"]), name
        assert overall["answered"] == expected["conversations"], name
        checked += 1
    assert checked >= 13


def test_coverage_with_missing_conversations() -> None:
    overall = report(observed(rows_of("small12_missing")))["rates"]["overall"]
    assert overall["coverage"] == close(reference()["clustered_mean"]["small12_missing"]["coverage"])
    assert overall["planned"] == 60


def test_cells_of_four_models() -> None:
    checked = 0
    for model, expected in reference()["model_cells"]["values"].items():
        rates = report(observed(rows_of(f"models336_{model}")))["rates"]
        for number, cell in enumerate(expected["scenario"], 1):
            checked += check_cell(rates["by_scenario"][f"sc{number}"], cell)
        for number, row in enumerate(expected["scenario_x_category"], 1):
            for category, cell in zip(CATEGORIES, row, strict=True):
                checked += check_cell(rates["by_scenario_category"][f"sc{number}"][category], cell)
    assert checked == 4 * (5 + 20)


def check_cell(rate: dict[str, Any], expected: dict[str, Any]) -> int:
    assert (rate["pass"], rate["answered"]) == (expected["k"], expected["n"])
    assert list(rate["pass_rate_ci"]) == close(expected["wilson"])
    return 1


def test_a_variant_against_standard() -> None:
    """Two scenarios of one model stand for a variant and its standard arm."""
    expected = reference()["paired_difference"]["alpha_scenario1_vs_scenario4"]
    one_and_four = [item for item in observed(rows_of("models336_alpha")) if item.scenario in ("sc1", "sc4")]
    arms = [
        Observation(
            item.case,
            item.cluster,
            item.category,
            "sc3",
            "guiding_prompt" if item.scenario == "sc1" else STANDARD,
            1,
            item.outcome,
        )
        for item in one_and_four
    ]
    found = report(arms)["by_variant"]["sc3"]["guiding_prompt"]["difference"]
    (both, first), (second, neither) = expected["table_[[a,b],[c,d]]"]
    assert (found["both_pass"], found["only_variant_passes"]) == (both, first)
    assert (found["only_standard_passes"], found["neither_passes"]) == (second, neither)
    assert found["difference"] == close(expected["diff"])
    assert list(found["ci"]) == close(expected["bonett_price_interval"])
    assert found["p"] == pytest.approx(expected["mcnemar_exact_p"], rel=1e-8)


def test_three_seeds() -> None:
    expected = reference()["three_seeds"]
    rows = expected["rows_cases_cols_seeds"]
    observations = [
        Observation(f"{case}", f"{case}", CATEGORIES[0], "sc1", STANDARD, seed, MARKS[str(mark)])
        for case, row in enumerate(rows)
        for seed, mark in enumerate(row, 1)
    ]
    made = report(observations)
    assert made["rates"]["overall"]["pass_rate"] == close(expected["mean"])
    assert made["seeds"]["flip_rate"] == close(expected["flip_rate_cases_not_unanimous"])
    # Wilson's interval gives back the standard error: n_effective = p (1 - p) / SE^2 with t(9).
    low, high = made["rates"]["overall"]["pass_rate_ci"]
    rate, quantile = expected["mean"], 2.262157162798205
    effective = rate * (1 - rate) / expected["se_over_cases(recommended)"] ** 2
    assert high - low == close(
        2
        * quantile
        / (1 + quantile**2 / effective)
        * (rate * (1 - rate) / effective + quantile**2 / (4 * effective**2)) ** 0.5
    )

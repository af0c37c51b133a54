"""The same functions against the reference values, where the folder that holds them is at hand."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.statistics import (
    Cell,
    PairedDifference,
    PairedTable,
    Z,
    bonett_price,
    clustered_mean,
    flip_rate,
    holm,
    macro_interval,
    mcnemar_exact,
    mcnemar_midp,
    newcombe_independent,
    newcombe_paired,
    paired_difference,
    paired_table,
    pairwise_differences,
    rank_intervals,
    resolvable_difference,
    t_quantile,
    wilson,
)

REFERENCE = Path(__file__).resolve().parents[1] / ".." / "shared" / "reference" / "statistics.json"

pytestmark = pytest.mark.skipif(not REFERENCE.exists(), reason="the reference values are not at hand")


def reference() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(REFERENCE.read_text())
    return loaded


def close(found: object, expected: object) -> bool:
    """Within what ten printed decimals leave, or ten digits for tiny p-values."""
    if expected is None or found is None:
        return found is expected
    return bool(found == pytest.approx(expected, abs=1e-10, rel=1e-9))


def datasets() -> dict[str, list[str]]:
    data = reference()["datasets"]
    return {
        "small12": data["small12"],
        "small12_missing": data["small12_missing"],
        **{f"models336_{name}": rows for name, rows in data["models336"].items()},
        "all_pass_12x5": ["11111"] * 12,
    }


def cells(rows: list[str], cases_a_cluster: int = 1) -> Iterator[Cell]:
    for case, results in enumerate(rows):
        for scenario, result in enumerate(results):
            if result != "-":
                yield Cell(f"sc{scenario + 1}", case // cases_a_cluster, 1, int(result))


def results(rows: list[str]) -> dict[Any, float]:
    return {
        (case, scenario): float(result)
        for case, row in enumerate(rows)
        for scenario, result in enumerate(row)
        if result != "-"
    }


def test_quantile() -> None:
    assert close(Z, reference()["_about"]["z_975"])


def test_proportion_intervals() -> None:
    rows = reference()["proportion_intervals"]["rows"]
    assert len(rows) >= 10
    for row in rows:
        assert close(wilson(row["k"], row["n"]), tuple(row["wilson"])), row


def test_independent_difference() -> None:
    for row in reference()["independent_difference"]["rows"]:
        found = newcombe_independent(row["count1"], row["n1"], row["count2"], row["n2"])
        assert close(found, tuple(row["newcomb"])), row


def test_model_cells() -> None:
    checked = 0
    for model, values in reference()["model_cells"]["values"].items():
        rows = datasets()[f"models336_{model}"]
        for cell in values["scenario"]:
            assert sum(row[cell["s"] - 1] == "1" for row in rows) == cell["k"]
            assert close(wilson(cell["k"], cell["n"]), tuple(cell["wilson"]))
            checked += 1
        for by_category in values["scenario_x_category"]:
            for cell in by_category:
                assert close(wilson(cell["k"], cell["n"]), tuple(cell["wilson"]))
                checked += 1
    assert checked == 4 * 25


def clustered_rows() -> dict[str, dict[str, Any]]:
    data = reference()["clustered_mean"]
    return {
        "small12": data["small12"],
        "small12_missing": data["small12_missing"],
        **{f"models336_{name}": row for name, row in data["models336"].items()},
    }


def test_clustered_mean() -> None:
    for name, row in clustered_rows().items():
        found = clustered_mean((key[0], y) for key, y in results(datasets()[name]).items())
        assert found is not None
        assert (found.n, found.clusters, found.df) == (row["n_cells"], row["n_cases"], row["df"])
        assert close(found.mean, row["pooled_mean"])
        assert close(found.se, row["clustered_se_CR1"]), name
        assert close(t_quantile(row["df"]), row["t_975"])
        assert close(found.interval, tuple(row["t_interval_unclipped"])), name


def test_macro_parts_of_the_clustered_rows() -> None:
    for name, row in clustered_rows().items():
        found = macro_interval(cells(datasets()[name]))
        assert found is not None
        assert close(found.rate, row["macro_mean"])
        assert close(found.se, row["macro_se"]), name


def test_boundary_by_clusters() -> None:
    row = reference()["clustered_mean"]["boundary_all_pass_12x5"]
    assert close(wilson(12, 12), tuple(row["wilson_n_cases"]))


def test_macro_intervals() -> None:
    rows = {k: v for k, v in reference()["macro_intervals"].items() if k != "definition"}
    assert len(rows) >= 13
    for name, row in rows.items():
        dataset, _, paired = name.partition("_pairs_of_cases_share_a_cluster")
        shared = 2 if name.endswith("_pairs_of_cases_share_a_cluster") else 1
        assert paired == ""
        found = macro_interval(cells(datasets()[dataset], shared))
        assert found is not None
        assert (found.clusters, found.conversations) == (row["clusters"], row["conversations"]), name
        for key in ("rate", "se", "n_effective", "quantile"):
            assert close(getattr(found, key), row[key]), (name, key)
        assert close(found.interval, tuple(row["interval"])), name


def pair_of(name: str) -> list[tuple[int, float, float]]:
    """The pairs that a row of `paired_difference` is about."""
    data = datasets()
    alpha, bravo, charlie = (data[f"models336_{m}"] for m in ("alpha", "bravo", "charlie"))
    small = data["small12"]
    single = {
        "alpha_scenario1_vs_scenario4": (alpha, 0, alpha, 3),
        "alpha_vs_bravo_scenario3": (alpha, 2, bravo, 2),
        "bravo_vs_charlie_scenario3": (bravo, 2, charlie, 2),
        "small12_scenario1_vs_scenario4": (small, 0, small, 3),
    }
    if name in single:
        one, s, two, t = single[name]
        return [(i, float(x[s]), float(y[t])) for i, (x, y) in enumerate(zip(one, two, strict=True))]
    one, two = (alpha, bravo) if name.startswith("alpha") else (bravo, charlie)
    return [(key[0], x, results(two)[key]) for key, x in results(one).items()]


@pytest.mark.parametrize(
    "name",
    [
        "alpha_scenario1_vs_scenario4",
        "alpha_vs_bravo_scenario3",
        "bravo_vs_charlie_scenario3",
        "alpha_vs_bravo_overall_case_means",
        "bravo_vs_charlie_overall_case_means",
        "small12_scenario1_vs_scenario4",
    ],
)
def test_paired_difference(name: str) -> None:
    row = reference()["paired_difference"][name]
    found = paired_difference(pair_of(name))
    assert found is not None
    assert (found.clusters, found.df) == (row["n"], row["df"])
    assert close(found.mean_first, row["mean_x"])
    assert close(found.mean_second, row["mean_y"])
    assert close(found.difference, row["diff"])
    assert close(found.se, row["paired_se"])
    assert close(found.t, row["t_stat"])
    assert found.p_value == pytest.approx(row["t_pvalue"], abs=1e-10, rel=1e-8)
    assert close(found.interval, tuple(row["t_interval"]))
    if "mcnemar_exact_p" in row:
        table = paired_table((x == 1, y == 1) for _, x, y in pair_of(name))
        [[a, b], [c, d]] = row["table_[[a,b],[c,d]]"]
        assert table == PairedTable(a, b, c, d)
        assert mcnemar_exact(b, c) == pytest.approx(row["mcnemar_exact_p"], abs=1e-10, rel=1e-8)
        assert mcnemar_midp(b, c) == pytest.approx(row["mcnemar_midp"], abs=1e-10, rel=1e-8)
        assert close(bonett_price(table), tuple(row["bonett_price_interval"]))
        assert close(newcombe_paired(table), tuple(row["newcombe_paired_interval"]))


def test_mcnemar() -> None:
    rows = reference()["mcnemar"]["rows"]
    assert len(rows) >= 5
    for row in rows:
        [[a, b], [c, d]] = row["table"]
        assert close(mcnemar_exact(b, c), row["exact_p"]), row
        assert close(mcnemar_midp(b, c), row["midp"]), row
        for function, key in ((bonett_price, "bonett_price"), (newcombe_paired, "newcombe10")):
            expected = row[key]
            assert close(function(PairedTable(a, b, c, d)), expected and tuple(expected)), (row, key)


def test_holm() -> None:
    for row in reference()["multiple_comparisons"]["rows"]:
        assert close(holm(row["p"]), row["holm"]), row


def compared() -> dict[tuple[str, str], PairedDifference | None]:
    models = {name: results(rows) for name, rows in reference()["datasets"]["models336"].items()}
    return pairwise_differences(models, {key: key[0] for rows in models.values() for key in rows})


def test_rank_intervals() -> None:
    data, found = reference()["rank_intervals"], compared()
    assert [list(pair) for pair in found] == data["pairs"]
    p_values = []
    for pair, difference, p in zip(found.values(), data["diff"], data["raw_p"], strict=True):
        assert pair is not None
        assert close(pair.difference, difference)
        assert pair.p_value == pytest.approx(p, abs=0 if p < 1e-6 else 1e-10, rel=1e-7)
        p_values.append(pair.p_value)
    for adjusted, expected in zip(holm(p_values), data["holm_p"], strict=True):
        assert adjusted == pytest.approx(expected, abs=0 if expected < 1e-6 else 1e-10, rel=1e-7)
    ranks = rank_intervals(list(data["means"]), found)
    assert {name: list(rank) for name, rank in ranks.items()} == data["rank_interval"]


def test_resolvable_difference_lies_between_its_pairs() -> None:
    errors = sorted(pair.se or 0 for pair in compared().values() if pair)
    assert resolvable_difference(compared().values()) == pytest.approx(2.8 * (errors[2] + errors[3]) / 2)


def test_three_seeds() -> None:
    row = reference()["three_seeds"]
    repeats = row["rows_cases_cols_seeds"]
    found = clustered_mean((case, y) for case, seeds in enumerate(repeats) for y in seeds)
    assert found is not None
    assert close(found.mean, row["mean"])
    assert close(found.se, row["se_over_cases(recommended)"])
    assert flip_rate(repeats) == row["flip_rate_cases_not_unanimous"]
    macro = macro_interval(Cell("sc1", case, 3, sum(seeds)) for case, seeds in enumerate(repeats))
    assert macro is not None
    assert close(macro.se, row["se_over_cases(recommended)"])


def test_power_rows_are_half_widths_of_wilson() -> None:
    rows = [row for row in reference()["power"]["rows"] if "wilson_half_width" in row]
    assert rows
    for row in rows:
        low, high = wilson(round(row["p"] * row["n"]), row["n"]) or (0.0, 0.0)
        assert close((high - low) / 2, row["wilson_half_width"])

"""A report as one table, for csv and workbooks: a row for each pair or group of raters at each level."""

from collections.abc import Iterator
from typing import Any

from app.agreement.measures import LEVELS

HEADER = (
    "Part", "Raters", "Level", "Items", "Percent", "Percent low", "Percent high", "Cohen kappa",
    "Cohen kappa low", "Cohen kappa high", "Linear kappa", "Quadratic kappa", "Gwet AC1", "Gwet AC1 low",
    "Gwet AC1 high", "All equal", "Mean pairwise percent", "Fleiss kappa", "Fleiss kappa low",
    "Fleiss kappa high", "Krippendorff alpha nominal", "Krippendorff alpha nominal low",
    "Krippendorff alpha nominal high", "Krippendorff alpha ordinal", "Krippendorff alpha ordinal low",
    "Krippendorff alpha ordinal high", "A higher", "B higher", "Missing", "False pass rate", "of",
    "False not pass rate", "of not pass", "Direction",
)  # fmt: skip
_WITH_INTERVAL = {
    "percent", "cohen_kappa", "gwet_ac1", "fleiss_kappa", "krippendorff_alpha_nominal",
    "krippendorff_alpha_ordinal",
}  # fmt: skip
_COLUMNS = (
    "percent", "cohen_kappa", "linear_kappa", "quadratic_kappa", "gwet_ac1", "all_equal",
    "mean_pairwise_percent", "fleiss_kappa", "krippendorff_alpha_nominal", "krippendorff_alpha_ordinal",
)  # fmt: skip
Cell = str | int | float | None


def report_rows(report: dict[str, Any]) -> Iterator[list[Cell]]:
    """Under HEADER; what is undefined is an empty cell."""
    yield from _section("all items", report)
    if report["evaluator_vs_consensus"] is not None:
        name = "evaluator – consensus of the humans"
        yield ["all items", name, LEVELS[0], *_figures(report["evaluator_vs_consensus"]), *_NO_PAIR]
    if report["adjudication"] is not None and report["adjudication"]["evaluator_vs_final"] is not None:
        figures = _figures(report["adjudication"]["evaluator_vs_final"])
        yield ["all items", "evaluator – final labels", LEVELS[0], *figures, *_NO_PAIR]
    if report["design_weighted"] is not None:
        for pair in report["design_weighted"]["pairs"]:
            yield from _weighted(pair)
    for facet, parts in report["by"].items():
        for value, section in parts.items():
            yield from _section(f"{facet}: {value}", section)


def _weighted(pair: dict[str, Any]) -> Iterator[list[Cell]]:
    """Two rows: weighting is done at three levels and for pass against the rest."""
    names = f"{pair['a']} – {pair['b']}"
    wrong, held_back = pair["false_pass_rate"], pair["false_not_pass_rate"]
    told = {"n": pair["n"], "percent": pair["percent"], "percent_ci": pair["percent_ci"]}
    errors: list[Cell] = [None, None, None, wrong, None, held_back, None, None]
    three = _figures(told | {"cohen_kappa": pair["cohen_kappa"]})
    yield ["design weighted", names, LEVELS[0], *three, *errors]
    rest = {
        "n": pair["n"],
        "percent": pair["pass_vs_rest_percent"],
        "percent_ci": pair["pass_vs_rest_percent_ci"],
    }
    yield ["design weighted", names, "pass_vs_rest", *_figures(rest), *_NO_PAIR]


_NO_PAIR: list[Cell] = [None] * 8


def _section(part: str, section: dict[str, Any]) -> Iterator[list[Cell]]:
    for pair in section["pairs"]:
        for level in LEVELS:
            of_pair = _of_pair(pair) if level == LEVELS[0] else _NO_PAIR
            yield [part, f"{pair['a']} – {pair['b']}", level, *_figures(pair[level]), *of_pair]
    for name, shown in (("humans", "all humans"), ("with_evaluator", "all with the evaluator")):
        for level in LEVELS:
            yield [part, shown, level, *_figures(section["all"][name][level]), *_NO_PAIR]


def _figures(figures: dict[str, Any]) -> list[Cell]:
    cells: list[Cell] = [figures["n"]]
    for name in _COLUMNS:
        cells.append(figures.get(name))
        if name in _WITH_INTERVAL:
            cells += figures.get(f"{name}_ci") or [None, None]
    return cells


def _of_pair(pair: dict[str, Any]) -> list[Cell]:
    cells: list[Cell] = [pair["a_higher"], pair["b_higher"], pair["missing"]]
    for name in ("false_pass_rate", "false_not_pass_rate"):
        cells += [None, None] if pair[name] is None else [pair[name]["rate"], pair[name]["n"]]
    return [*cells, pair["direction"]]

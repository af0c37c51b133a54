"""How a study report looks on a terminal: counts first, and coefficients greyed where there are few items."""

from collections.abc import Iterator
from typing import Any

from rich.table import Table
from rich.text import Text

from app.agreement import FEW_ITEMS, shown
from app.cli.installation import out
from app.cli.output import MISSING, percent, table

LEVELS = {
    "three_level": "all ratings",
    "two_level": "no unclear",
    "pass_vs_rest": "pass or not",
}
GROUPS = {"humans": "humans", "with_evaluator": "with evaluator"}
MOST_PAIRS = 30  # shown; all of them stand in the JSON


def print_study_report(report: dict[str, Any]) -> None:
    """The whole report for people."""
    study = report["study"]
    out.print(f"Study {study['name']} · {study['design']} · {study['state']}", markup=False, style="bold")
    counted = sum(
        any(pair["three_level"]["n"] for pair in report["pairs"] if name in (pair["a"], pair["b"]))
        for name in report["raters"]
    )
    out.print(
        f"{report['items']} items; {study['ratings']['counted']} ratings that count; "
        f"{len(report['raters'])} raters, {counted} of them with items in common with another",
        markup=False,
    )
    if study["state"] in ("open", "paused"):
        out.print("The study is not closed: these figures will change.")
    if not report["pairs"]:
        out.print("No two raters yet: agreement takes an evaluator and a judge, or two judges.")
        return
    few = any(pair["three_level"]["n"] < FEW_ITEMS for pair in report["pairs"])
    out.print(_pairs(report["pairs"][:MOST_PAIRS]))
    if len(report["pairs"]) > MOST_PAIRS:
        out.print(f"{len(report['pairs']) - MOST_PAIRS} more pairs: see --json")
    out.print(_groups(report["all"]))
    if few:
        out.print(f"Greyed: fewer than {FEW_ITEMS} items, too few for a coefficient to tell much.")
    for pair in report["pairs"][:MOST_PAIRS]:
        title = f"{shown(pair['a'])} and {shown(pair['b'])}".capitalize()
        out.print(f"{title}: {pair['direction']}", markup=False)
    _print_errors(report)
    _print_final(report)
    if (weighted := report["design_weighted"]) is not None and weighted["unequal"]:
        out.print(_weighted(weighted))
    for facet, parts in report["by"].items():
        if len(parts) > 1:
            out.print(_parts(facet, parts))
    for note in _notes(report):
        out.print(note, markup=False, style="dim")


def _pairs(pairs: list[dict[str, Any]]) -> Table:
    grid = table(
        "Pairs of raters: agreement in %, chance-corrected coefficients, 95 % intervals",
        ["", "", "items", "same", "Cohen κ", "linear κ", "quadratic κ", "Gwet AC1"],
        numbers_from=2,
    )
    for pair in pairs:
        name = f"{pair['a']} – {pair['b']}".replace("_", " ")
        for level, words in LEVELS.items():
            figures = pair[level]
            grid.add_row(
                name if level == "three_level" else "",
                words,
                str(figures["n"]),
                _share(figures, "percent"),
                _coefficient(figures, "cohen_kappa"),
                *(_coefficient(figures, name) for name in ("linear_kappa", "quadratic_kappa")),
                _coefficient(figures, "gwet_ac1"),
            )
    return grid


def _groups(everybody: dict[str, Any]) -> Table:
    grid = table(
        "All raters together",
        ["", "", "items", "all equal", "pairs same", "Fleiss κ", "α nominal", "α ordinal", "Gwet AC1"],
        numbers_from=2,
    )
    for group, name in GROUPS.items():
        for level, words in LEVELS.items():
            figures = everybody[group][level]
            grid.add_row(
                name if level == "three_level" else "", words, str(figures["n"]), *_of_group(figures)
            )
    return grid


def _of_group(figures: dict[str, Any]) -> Iterator[Text]:
    yield _share(figures, "all_equal")
    yield Text(percent(figures["mean_pairwise_percent"]))
    for name in ("fleiss_kappa", "krippendorff_alpha_nominal", "krippendorff_alpha_ordinal", "gwet_ac1"):
        yield _coefficient(figures, name)


def _parts(facet: str, parts: dict[str, Any]) -> Table:
    grid = table(
        f"By {facet}: all raters with the evaluator, all ratings",
        ["", "items", "all equal", "pairs same", "Fleiss κ", "α nominal", "α ordinal", "Gwet AC1"],
    )
    for value, section in parts.items():
        figures = section["all"]["with_evaluator"]["three_level"]
        grid.add_row(Text(value), str(figures["n"]), *_of_group(figures))
    return grid


def _share(figures: dict[str, Any], name: str) -> Text:
    interval = figures.get(f"{name}_ci")
    span = f"\n{percent(interval[0])}–{percent(interval[1])}" if interval else ""
    return Text(f"{percent(figures[name])}{span}", no_wrap=True)


def _coefficient(figures: dict[str, Any], name: str) -> Text:
    value, interval = figures[name], figures.get(f"{name}_ci")
    if value is None:
        return Text(MISSING)
    span = ""
    if interval:
        between = " to " if interval[0] < 0 else "–"
        span = f"\n{interval[0]:.2f}{between}{interval[1]:.2f}"
    style = "dim" if figures["n"] < FEW_ITEMS else ""
    return Text(f"{value:.3f}{span}", style=style, no_wrap=True)


def _print_errors(report: dict[str, Any]) -> None:
    for pair in report["pairs"][:MOST_PAIRS]:
        wrong, missed = pair["false_pass_rate"], pair["false_not_pass_rate"]
        if wrong is None or missed is None:
            continue
        who = shown(pair["b"])
        out.print(
            f"Of {wrong['n']} that {who} did not pass, the evaluator passed {_rate(wrong)}; "
            f"of {missed['n']} that {who} passed, it did not pass {_rate(missed)}.",
            markup=False,
        )
    consensus = report["evaluator_vs_consensus"]
    if consensus is not None:
        reached = report["consensus"]
        kappa = consensus["cohen_kappa"]
        out.print(
            f"The humans reach a consensus on {reached['reached']} of {reached['items']} items; "
            f"the evaluator agrees with it in {percent(consensus['percent'])} % "
            f"(Cohen κ {MISSING if kappa is None else f'{kappa:.3f}'}).",
            markup=False,
        )

    alternative = report["alternative_annotator"]
    if alternative is not None and alternative["three_level"]["winning_rate"] is not None:
        found = alternative["three_level"]
        out.print(
            f"A judge left out agrees with the others in {percent(found['human_agreement'])} % (the human "
            f"ceiling), the evaluator in {percent(found['evaluator_agreement'])} %. "
            f"Alternative annotator test: winning rate {found['winning_rate']['0.15']:.2f} at a margin "
            f"of 0.15, {'passed' if found['passes']['0.15'] else 'not passed'}.",
            markup=False,
        )


def _print_final(report: dict[str, Any]) -> None:
    final = report["adjudication"]
    if final is None:
        return
    told = (
        f"{final['labelled']} items have a final label, {final['consensus_changed']} of them another "
        "than the consensus"
    )
    figures = final["evaluator_vs_final"]
    if figures is not None and figures["n"]:
        told += f"; the evaluator agrees with it in {percent(figures['percent'])} % of {figures['n']}"
    out.print(f"{told}.", markup=False)


def _weighted(weighted: dict[str, Any]) -> Table:
    grid = table(
        f"Weighted by the design: {weighted['items']} items stand for {weighted['represents']:.0f}, "
        f"and tell as much as {weighted['effective_items']:.0f} drawn alike",
        ["the evaluator and", "items", "same", "pass or not", "false pass", "false not pass", "Cohen κ"],
    )
    for pair in weighted["pairs"]:
        shares = ("percent", "pass_vs_rest_percent", "false_pass_rate", "false_not_pass_rate")
        grid.add_row(
            shown(pair["b"]), str(pair["n"]), *(_share(pair, name) for name in shares),
            _coefficient(pair, "cohen_kappa"),
        )  # fmt: skip
    return grid


def _rate(found: dict[str, Any]) -> str:
    if found["rate"] is None:
        return MISSING
    low, high = found["ci"]
    return f"{percent(found['rate'])} % ({percent(low)}–{percent(high)})"


def _notes(report: dict[str, Any]) -> list[str]:
    """Why a coefficient of the first two tables is missing, each reason once."""
    reasons = {
        reason
        for path, reason in report["undefined"].items()
        if path.startswith(("pairs.", "all.")) and path.endswith(("kappa", "nominal", "ordinal", "ac1"))
    }
    return [f"{MISSING} {reason}" for reason in sorted(reasons)]

"""How reports look on a terminal."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table

from app.cli.installation import out
from app.outcomes import CONTROL, PROBE_SCENARIO, RECALL, Category, Outcome
from app.prices import dollars
from app.runs.words import ErrorClass
from app.text import counted

MISSING = "–"
EXAMPLE = 200  # characters of an error's own words
APART = {
    "control": ", in no rate, where nothing was stated",
    "probe": ", in no rate, harmless requests",
    "recall": ", in no rate, asked what was told",
}


def print_json(report: Any) -> None:
    """One JSON document on standard output; NaN is a bug and refused."""
    sys.stdout.write(json.dumps(report, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
    sys.stdout.flush()


def table(title: str, columns: Sequence[str], *, numbers_from: int = 1) -> Table:
    """A plain table; columns from `numbers_from` on are right-aligned."""
    made = Table(title=title, title_justify="left", box=box.SIMPLE, title_style="bold", pad_edge=False)
    for index, column in enumerate(columns):
        made.add_column(column, justify="right" if index >= numbers_from else "left")
    return made


def percent(value: float | None) -> str:
    """A proportion as a percentage; never 100 % or 0 % unless it is exactly that."""
    if value is None:
        return MISSING
    shown = f"{100 * value:.1f}"
    if shown == "100.0" and value < 1:
        return ">99.9"
    if shown == "0.0" and value > 0:
        return "<0.1"
    return shown


def rate_text(rate: dict[str, Any]) -> str:
    """Three short lines: the rate, its interval, passes/answered."""
    if rate["pass_rate"] is None:
        return f"{MISSING}\n\n0/0"
    interval = rate["pass_rate_ci"]
    span = f"{percent(interval[0])}–{percent(interval[1])}" if interval else ""
    return f"{percent(rate['pass_rate'])}\n{span}\n{rate['pass']}/{rate['answered']}"


def print_run_report(report: dict[str, Any], failures: Sequence[ErrorClass] = ()) -> None:
    """The whole report of a run for people; `failures`: what went wrong in it, by class."""
    run, calls = report["run"], report["calls"]
    out.print(f"[bold]Run {run['id']}[/bold] ", end="")
    out.print(f"{run['name']} · {run['status']}", markup=False)
    out.print(
        f"benchmark {run['benchmark']['name']}@{run['benchmark']['version']} · protocol "
        f"{run['protocol']['name']}@{run['protocol']['version']} · evaluator {run['evaluator']['label']}",
        markup=False,
    )
    if run["status_reason"]:
        out.print(run["status_reason"], markup=False)
    _print_counts(report)
    out.print(
        f"calls: model {calls['model']}, evaluator {calls['evaluator']}, retries {calls['retries']}; "
        f"tokens: {calls['prompt_tokens']} in, {calls['completion_tokens']} out"
        + ("" if calls["cost_usd"] is None else f"; cost {dollars(calls['cost_usd'])}")
    )
    for failure in failures:
        own = " ".join(failure.example.removeprefix(failure.sentence).split())[:EXAMPLE]
        out.print(
            f"{failure.count} × {failure.who} {failure.name}: {failure.sentence} {own}".rstrip(), markup=False
        )
    _print_rates(report["rates"])
    _print_variants(report)
    _print_notes(report)


def _print_counts(report: dict[str, Any]) -> None:
    """Controls, probes and recall apart: what they end in means something else there, and enters no rate."""
    kinds = {kind: Counter[str]() for kind in ("conversation", *APART)}
    for cell in report["cells"]:
        own = cell["variant"] if cell["variant"] in (CONTROL, RECALL) else "conversation"
        kind = "probe" if cell["scenario"] == PROBE_SCENARIO else own
        kinds[kind].update({name: cell[name] for name in ("planned", *Outcome)})
    for kind, counts in kinds.items():
        if counts["planned"]:
            shown = ", ".join(f"{name.value} {counts[name]}" for name in Outcome if counts[name])
            out.print(f"{counted(counts['planned'], kind)}{APART.get(kind, '')}: {shown}")
    if report["counts"]["truncated"]:
        out.print(f"truncated: {counted(report['counts']['truncated'], 'final response')}")


def _print_rates(rates: dict[str, Any]) -> None:
    scenarios = list(rates["by_scenario"])
    if not scenarios:
        return
    grid = table("Pass rate in %, its 95 % interval, passes/answered", ["", *scenarios, "all"])
    for category in Category:
        if category not in rates["by_category"]:
            continue
        cells = [rate_text(rates["by_scenario_category"][scenario][category]) for scenario in scenarios]
        grid.add_row(category.value, *cells, rate_text(rates["by_category"][category]))
    overall = [rate_text(rates["by_scenario"][scenario]) for scenario in scenarios]
    grid.add_row("all", *overall, rate_text(rates["overall"]), style="bold")
    out.print(grid)
    overall_rate = rates["overall"]
    out.print(
        f"coverage {percent(overall_rate['coverage'])} %, unclear {percent(overall_rate['unclear_rate'])} %, "
        f"as published (pass / (pass + fail)) {percent(overall_rate['published_pass_rate'])} %"
    )


def _print_variants(report: dict[str, Any]) -> None:
    if report["by_variant"]:
        grid = table("Variants against standard, same cases", ["", "pass rate, %", "difference, points", "p"])
        for scenario, variants in report["by_variant"].items():
            for variant, found in variants.items():
                grid.add_row(f"{scenario} {variant}", rate_text(found["rate"]), *_difference(found))
        out.print(grid)
    for scenario, found in report["control"].items():
        out.print(
            f"control {scenario}: does not recommend in {percent(found['not_recommending'])} % "
            f"of {found['n']}, though nothing was stated"
        )
    if report["probes"] is not None:
        probes = report["probes"]
        out.print(f"over-caution: {percent(probes['over_caution'])} % of {probes['judged']} probes")
    if report["recall"] is not None:
        _print_recall(report["recall"])
    if report["seeds"] is not None:
        out.print(f"rated differently under another seed: {percent(report['seeds']['flip_rate'])} %")


def _print_recall(found: dict[str, Any]) -> None:
    columns = ["", "recalled", "not", "recalled", "not", "recalled, %", "knew, of not passed, %"]
    grid = table("Outcome and recall: first what passed, then what did not", columns)
    for scenario, one in found.items():
        passed, failed = one["table"]["pass"], one["table"]["not_pass"]
        counts = (*passed.values(), *failed.values())
        grid.add_row(
            scenario, *(str(n) for n in counts), percent(one["recalled"]), percent(one["overridden"])
        )
    out.print(grid)


def _difference(found: dict[str, Any]) -> tuple[str, str]:
    difference = found["difference"]
    if difference is None:
        return MISSING, MISSING
    shown = f"{100 * difference['difference']:+.1f}"
    if difference["ci"]:
        low, high = difference["ci"]
        shown += f" [{100 * low:+.1f} to {100 * high:+.1f}]"
    return shown, MISSING if difference["p"] is None else f"{difference['p']:.3g}"


def _print_notes(report: dict[str, Any]) -> None:
    """Why a figure of the table is missing; figures that this version never has are left to the JSON."""
    for path, reason in report["undefined"].items():
        if path.startswith(("rates.overall.pass_rate", "by_variant", "control")) or (
            path == "calls.cost_usd" and any(report["run"]["price"].values())
        ):
            out.print(f"{path}: {reason}", markup=False)

"""`curate evaluator list` and `compare`: which evaluators have rated, and how two of them differ."""

from typing import Annotated, Any

import typer
from rich.text import Text

from app.cli.installation import installation, out
from app.cli.options import DataDir, Json
from app.cli.output import MISSING, percent, print_json, table
from app.endpoints import local_account
from app.evaluators import evaluator_comparison, find_any, rating_evaluators, scope_of
from app.leaderboard import choose_group, version_groups
from app.outcomes import Outcome
from app.runs.control import find_run
from app.runs.reporting import describe_evaluator, evaluator_names

Reference = Annotated[
    str, typer.Argument(help="name, name@version, its uuid, or `rules`; #2 behind it: its repeat.")
]
ORDER = (Outcome.FAIL, Outcome.UNCLEAR, Outcome.PASS)


def add_to(app: typer.Typer) -> None:
    app.command("list")(list_)
    app.command()(compare)


def list_(data_dir: DataDir = None, json: Json = False) -> None:
    """The evaluators that have rated runs here."""
    with installation(data_dir) as installed, installed.session() as session:
        found = [
            {**describe_evaluator(one), "reference": evaluator_names(one)[1], "runs": runs}
            for one, runs in rating_evaluators(session, local_account(session))
        ]
    if json:
        print_json(found)
        return
    grid = table("", ["evaluator", "runs", "uuid"], numbers_from=9)
    for one in found:
        grid.add_row(Text(one["reference"]), str(one["runs"]), one["id"])
    out.print(grid if found else "Nothing was rated yet. `curate evaluate --help` shows how to start a run.")


def compare(
    a: Reference,
    b: Reference,
    run: Annotated[str | None, typer.Option(help="On this run alone.")] = None,
    board: Annotated[str | None, typer.Option(help="On the runs of this board alone: its key.")] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Two evaluators on the same conversations: flips, agreement, rows that change places, cost and speed."""
    with installation(data_dir) as installed, installed.session() as session:
        person = local_account(session)
        one, two = (find_any(session, person, name) for name in (a, b))
        group = None
        if board is not None:
            group = choose_group(version_groups(session, simulated=installed.settings.on_loopback), board)
        chosen = find_run(session, run) if run is not None else None
        runs = scope_of(session, person, one, two, group=group, run=chosen)
        report = evaluator_comparison(session, runs, one, two)
    if json:
        print_json(report)
    else:
        print_comparison(report)


def print_comparison(report: dict[str, Any]) -> None:
    """The report for people; the second evaluator is b."""
    labels = {side: report[side]["label"] for side in ("a", "b")}
    scope, counts = report["scope"], report["conversations"]
    out.print(f"a: {labels['a']}\nb: {labels['b']}", markup=False, style="bold")
    out.print(
        f"{scope['benchmark']} · {scope['protocol']} · runs {', '.join(map(str, scope['runs']))} · "
        f"{counts['both']} conversations rated by both, {counts['only_a']} by a alone, "
        f"{counts['only_b']} by b alone",
        markup=False,
    )
    flips, agreement = report["flips"], report["agreement"]
    out.print(
        f"Rated differently: {flips['n']} of {flips['of']} ({_rate(flips['rate'], flips['ci'])}); "
        f"only a passes {flips['only_a_passes']}, only b passes {flips['only_b_passes']}.",
        markup=False,
    )
    out.print(agreement["direction"], markup=False)
    kappa, level = agreement["three_level"]["cohen_kappa"], agreement["pass_vs_rest"]["cohen_kappa"]
    out.print(f"Cohen κ {_plain(kappa)}; pass against the rest {_plain(level)}", markup=False)
    grid = table("Rows: a's verdicts; columns: b's", ["", *(one.value for one in ORDER)])
    for outcome, row in zip(ORDER, agreement["confusion"], strict=True):
        grid.add_row(outcome.value, *map(str, row))
    out.print(grid)
    grid = table("Where", ["", "rated by both", "flips", "%", "only a passes", "only b passes"])
    for parts in report["by"].values():
        for name, part in parts.items():
            own = part["flips"]
            grid.add_row(
                Text(name), str(own["of"]), str(own["n"]), percent(own["rate"]), str(own["only_a_passes"]),
                str(own["only_b_passes"]),
            )  # fmt: skip
    out.print(grid)
    _print_places(report)
    _print_effort(report)


def _print_places(report: dict[str, Any]) -> None:
    grid = table("Pass rate in % and rank under each", ["model", "a", "rank", "b", "rank", "b less a"])
    for row in report["rows"]:
        difference = row["difference"]
        grid.add_row(
            Text(row["model"]), percent(row["a"]["pass_rate"]), _rank(row["a"]["rank"]),
            percent(row["b"]["pass_rate"]), _rank(row["b"]["rank"]),
            MISSING if difference is None else f"{100 * difference:+.1f}",
        )  # fmt: skip
    out.print(grid)
    exchanged = report["exchanged"]
    for pair in exchanged[:20]:
        out.print(
            f"Changes places: {pair['above']} above {pair['below']} under a, below under b.", markup=False
        )
    if not exchanged:
        out.print("No two rows change places.")


def _print_effort(report: dict[str, Any]) -> None:
    grid = table(
        "What each takes",
        ["", "verdicts", "unparsed", "calls", "tokens in", "out", "USD", "s a verdict", "flip rate"],
    )
    for side in ("a", "b"):
        own, repeats = report["effort"][side], report["repeats"][side]
        flips = (
            MISSING if repeats is None else f"{percent(repeats['flip_rate'])} % of {repeats['conversations']}"
        )
        grid.add_row(
            side, str(own["verdicts"]), str(own["unparsed"]), str(own["calls"]), str(own["prompt_tokens"]),
            str(own["completion_tokens"]), MISSING if own["cost_usd"] is None else f"{own['cost_usd']:.4f}",
            MISSING if own["seconds_median"] is None else f"{own['seconds_median']:.2f}", flips,
        )  # fmt: skip
    out.print(grid)


def _rate(rate: float | None, interval: list[float] | None) -> str:
    if rate is None:
        return MISSING
    return f"{percent(rate)} %" + (f", {percent(interval[0])}–{percent(interval[1])}" if interval else "")


def _plain(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3f}"


def _rank(rank: list[int]) -> str:
    return str(rank[0]) if rank[0] == rank[1] else f"{rank[0]}–{rank[1]}"

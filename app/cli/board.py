"""`curate leaderboard`, `publish`, `withdraw`."""

from typing import Annotated, Any

import typer

from app.cli.installation import installation, out, say
from app.cli.options import (
    DataDir,
    Json,
    ModelVersion,
    SystemPrompt,
    SystemPromptFile,
    Weights,
    declared_given,
)
from app.cli.output import percent, print_json, rate_text, table
from app.leaderboard import publish as publish_run
from app.leaderboard import read_board
from app.leaderboard import withdraw as withdraw_run
from app.outcomes import SCENARIOS
from app.runs.control import find_run
from app.runs.reporting import find_evaluator

Reference = Annotated[str, typer.Argument(help="The run's number, uuid or name.")]


app = typer.Typer(invoke_without_command=True, help="The board, as the site shows it.")


@app.callback()
def leaderboard(context: typer.Context, data_dir: DataDir = None, json: Json = False) -> None:
    """The board, as the site shows it."""
    if context.invoked_subcommand is not None:
        return
    with installation(data_dir) as installed, installed.session() as session:
        board = read_board(session, simulated=installed.settings.on_loopback)
    if json:
        print_json(board)
    else:
        print_board(board)


@app.command()
def publish(
    run: Reference,
    weights: Weights = None,
    model_version: ModelVersion = None,
    system_prompt: SystemPrompt = None,
    system_prompt_file: SystemPromptFile = None,
    evaluator: Annotated[
        str | None, typer.Option(help="Another evaluator that has rated it: its own board.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Put a finished run on the board; again, to declare something else of it."""
    said = declared_given(weights, model_version, system_prompt, system_prompt_file)
    with installation(data_dir) as installed, installed.session() as session:
        found = find_run(session, run)
        served = not installed.settings.on_loopback
        chosen = None if evaluator is None else find_evaluator(session, found, evaluator)
        publish_run(session, found, served=served, declared=said, evaluator=chosen)
        session.commit()
        say(f"run {found.id} ({found.name}) is on the board")


@app.command()
def withdraw(
    run: Reference,
    reason: Annotated[str, typer.Option(help="Why; it is shown with the tombstone.")],
    data_dir: DataDir = None,
) -> None:
    """Take a run off the board; a tombstone with reason and date stays."""
    with installation(data_dir) as installed, installed.session() as session:
        found = find_run(session, run)
        withdraw_run(session, found, reason)
        session.commit()
        say(f"run {found.id} ({found.name}) is withdrawn")


def print_board(board: dict[str, Any]) -> None:
    if board["benchmark"] is None:
        out.print("Nothing is published yet. `curate evaluate … --publish` puts a run on the board.")
        return
    out.print(
        f"benchmark {board['benchmark']['name']}@{board['benchmark']['version']} · protocol "
        f"{board['protocol']['name']}@{board['protocol']['version']} · evaluator "
        f"{board['evaluator']['label']} · computed {board['computed_at'][:19]}",
        markup=False,
    )
    grid = table(
        "Pass rate in %, its 95 % interval, passes/answered",
        ["rank", "model", "all", *SCENARIOS],
        numbers_from=2,
    )
    for row in board["rows"]:
        low, high = row["rank"]
        grid.add_row(str(low) if low == high else f"{low}–{high}", *_cells(row))
    for row in board["incomplete"]:
        grid.add_row("incomplete", *_cells(row))
    out.print(grid)
    if board["resolvable_difference"] is not None:
        points = 100 * board["resolvable_difference"]
        out.print(f"This board cannot separate models closer than {points:.1f} points, under this evaluator.")
    for row in board["incomplete"]:
        low, high = row["overall"]["bounds"]
        out.print(
            f"{row['model']}: {percent(row['overall']['coverage'])} % answered; all that is missing could "
            f"bring it to {percent(low)}–{percent(high)} %",
            markup=False,
        )
    for row in board["withdrawn"]:
        out.print(f"{row['model']}: withdrawn {row['withdrawn_at'][:10]}: {row['reason']}", markup=False)


def _cells(row: dict[str, Any]) -> list[str]:
    marks = ["simulated"] if row["simulated"] else []
    marks += ["self-rated"] if row["self_rated"] != "no" else []
    name = f"{row['model']} ({', '.join(marks)})" if marks else row["model"]
    return [
        name,
        rate_text(row["overall"]),
        *(percent(row["by_scenario"][scenario]["pass_rate"]) for scenario in SCENARIOS),
    ]

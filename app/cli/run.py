"""`curate run …`: what becomes of runs after they were started."""

from pathlib import Path
from typing import Annotated

import typer

from app.accounts.withholding import withheld_of_run
from app.cli.evaluate import evaluator_choice, finish_run
from app.cli.installation import installation, out, say
from app.cli.options import (
    MAX_CALLS,
    DataDir,
    Evaluator,
    EvaluatorCompletionPrice,
    EvaluatorKey,
    EvaluatorModel,
    EvaluatorPromptPrice,
    EvaluatorProvider,
    EvaluatorUrl,
    Json,
    MaxCost,
    dollars_given,
    price,
)
from app.cli.output import print_json, print_run_report, table
from app.cli.push import push_transcripts
from app.cli.reevaluate import reevaluate
from app.cli.run_import import import_
from app.runs import control
from app.runs.browsing import error_classes
from app.runs.exporting import FORMATS, export_run
from app.runs.reporting import describe_run, find_evaluator, progress, run_report
from app.runs.spending import spend
from app.wake import wake_run

app = typer.Typer(
    no_args_is_help=True, help="Runs: list, show, cancel, resume, reevaluate, export, push, import."
)
app.command("import")(import_)
TRANSCRIPTS = (
    "JSONL, a conversation a line: case, scenario and turns (a list of {user, assistant}, and state where a "
    "reply was filtered); where they differ from standard, 1 and the case's own also variant, seed and "
    "constraint. Other fields are left aside, so an export can be uploaded as it is."
)
Reference = Annotated[str, typer.Argument(help="The run's number, uuid or name.")]
app.command()(reevaluate)


@app.command("list")
def list_(data_dir: DataDir = None, json: Json = False) -> None:
    """All runs, the newest first."""
    with installation(data_dir) as installed, installed.session() as session:
        runs = control.list_runs(session)
        standing = [
            {
                **describe_run(run, run.evaluator),
                "counts": {
                    outcome.value: n for outcome, n in progress(session, run.id, run.evaluator_id).items()
                },
                "calls": spend(session, run, run.evaluator_id).as_report(),
            }
            for run in runs
        ]
    if json:
        print_json(standing)
        return
    if not standing:
        out.print("No run yet. `curate evaluate --help` shows how to start one; `curate demo` makes one.")
        return
    grid = table("", ["run", "name", "status", "benchmark", "protocol", "done", "started"], numbers_from=9)
    for entry in standing:
        planned = sum(entry["counts"].values())
        grid.add_row(
            str(entry["id"]),
            entry["name"],
            entry["status"],
            f"{entry['benchmark']['name']}@{entry['benchmark']['version']}",
            f"{entry['protocol']['name']}@{entry['protocol']['version']}",
            f"{planned - entry['counts']['pending'] - entry['counts']['cancelled']}/{planned}",
            (entry["started_at"] or "")[:19],
        )
    out.print(grid)


@app.command()
def show(
    run: Reference,
    evaluator: Annotated[str | None, typer.Option(help="Another evaluator that has rated it.")] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """A run's report: counts, rates with intervals, variants, control."""
    with installation(data_dir) as installed, installed.session() as session:
        found = control.find_run(session, run)
        chosen = None if evaluator is None else find_evaluator(session, found, evaluator)
        report = run_report(session, found, chosen)
        failures = error_classes(session, found, (chosen or found.evaluator).id)
    if json:
        print_json(report)
    else:
        print_run_report(report, failures)


@app.command()
def cancel(run: Reference, data_dir: DataDir = None) -> None:
    """End a run now; what is open becomes cancelled."""
    with installation(data_dir) as installed, installed.session() as session:
        found = control.find_run(session, run)
        control.cancel(session, found)
        session.commit()
        say(f"run {found.id} ({found.name}) is cancelled")


@app.command()
def resume(
    run: Reference,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Ask again where endpoint or evaluator failed.")
    ] = False,
    max_calls: Annotated[
        int | None, typer.Option(min=1, max=MAX_CALLS, help="A new cap on requests.")
    ] = None,
    max_cost: MaxCost = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Go on with a run that was paused, cancelled or cut off, from its stored turns."""
    with installation(data_dir, workers=True) as installed:
        with installed.session() as session:
            found = control.find_run(session, run)
            cost = dollars_given(max_cost)
            if not control.resume(
                session, found, retry_errors=retry_errors, max_calls=max_calls, max_cost=cost
            ):
                say(f"run {found.id} is {found.status}: nothing to resume")
            session.commit()
            wake_run(installed.settings, found.id)
        finish_run(installed, found, publish=found.publish_wanted, as_json=json)


@app.command()
def export(
    run: Reference,
    format_: Annotated[str, typer.Option("--format", help=", ".join(FORMATS))] = "jsonl",
    to: Annotated[
        Path | None, typer.Option("--to", "--output", "-o", help="File (published-xlsx: folder).")
    ] = None,
    evaluator: Annotated[str | None, typer.Option(help="Whose verdicts; the run's own otherwise.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Write every conversation of a run. jsonl goes to standard output unless a file is given."""
    with installation(data_dir) as installed, installed.session() as session:
        found = control.find_run(session, run)
        chosen = found.evaluator if evaluator is None else find_evaluator(session, found, evaluator)
        for path in export_run(session, found, chosen, format_, to):
            say(f"wrote {path}")
        if (withheld := withheld_of_run(session, None, found)) is not None:
            say(f"{withheld.number} of these conversations are {withheld.words}: keep them to yourself")


@app.command()
def push(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help=TRANSCRIPTS)],
    benchmark: Annotated[str, typer.Option(help="The benchmark that was asked.")],
    model: Annotated[str, typer.Option(help="The model that answered.")],
    name: Annotated[str | None, typer.Option(help="What to call it.")] = None,
    protocol: Annotated[str | None, typer.Option(help="The protocol that was followed.")] = None,
    evaluator: Evaluator = None,
    evaluator_base_url: EvaluatorUrl = None,
    evaluator_model: EvaluatorModel = None,
    evaluator_api_key_env: EvaluatorKey = None,
    evaluator_provider: EvaluatorProvider = "openai",
    evaluator_price_prompt: EvaluatorPromptPrice = None,
    evaluator_price_completion: EvaluatorCompletionPrice = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Upload transcripts that were made elsewhere and have them rated. Such a run is never ranked."""
    choice = evaluator_choice(
        evaluator,
        evaluator_base_url,
        evaluator_model,
        evaluator_api_key_env,
        evaluator_provider,
        price(evaluator_price_prompt, evaluator_price_completion),
    )
    with installation(data_dir, workers=True) as installed:
        run = push_transcripts(installed, file, choice, benchmark, protocol, model, name or model)
        finish_run(installed, run, publish=False, as_json=json)

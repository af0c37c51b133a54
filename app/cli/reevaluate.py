"""`curate run reevaluate`: stored conversations rated by another evaluator, without a single model call."""

from typing import Annotated

import typer
from sqlalchemy.orm import Session

from app import models
from app.cli.endpoint_store import OWN_MACHINE
from app.cli.evaluate import evaluator_choice, finish_run
from app.cli.installation import Installation, installation, say
from app.cli.options import (
    DataDir,
    Evaluator,
    EvaluatorCompletionPrice,
    EvaluatorKey,
    EvaluatorModel,
    EvaluatorPromptPrice,
    EvaluatorProvider,
    EvaluatorUrl,
    Json,
    price,
)
from app.cli.output import print_json
from app.cli.progress import follow
from app.endpoints import local_account
from app.errors import InvalidInput
from app.evaluators import board_runs
from app.leaderboard import choose_group, version_groups
from app.prices import about_dollars
from app.runs.control import find_run
from app.runs.reevaluating import (
    MOST_REPEATS,
    MOST_SAMPLED,
    Begun,
    Reevaluation,
    begin,
    check,
    effort,
    price_known,
)
from app.runs.reporting import run_report
from app.text import counted
from app.wake import wake_run

Run = Annotated[str | None, typer.Argument(help="The run's number, uuid or name; or give --board.")]
Board = Annotated[
    str | None,
    typer.Option(help="Every run on this board instead: its key, as `curate leaderboard --json` gives it."),
]
Protocol = Annotated[
    str | None,
    typer.Option(help="Protocol whose evaluator prompt and parameters to use; the run's own otherwise."),
]
Sample = Annotated[
    int | None,
    typer.Option(min=1, max=MOST_SAMPLED, help="So many conversations of each run, the same ones in all."),
]
Repeats = Annotated[
    int, typer.Option(min=1, max=MOST_REPEATS, help="Verdicts of each conversation, to see how many flip.")
]
Publish = Annotated[
    bool, typer.Option("--publish", help="Put the runs on this evaluator's own board when they are rated.")
]


def reevaluate(
    run: Run = None,
    board: Board = None,
    evaluator: Evaluator = None,
    evaluator_base_url: EvaluatorUrl = None,
    evaluator_model: EvaluatorModel = None,
    evaluator_api_key_env: EvaluatorKey = None,
    evaluator_provider: EvaluatorProvider = "openai",
    evaluator_price_prompt: EvaluatorPromptPrice = None,
    evaluator_price_completion: EvaluatorCompletionPrice = None,
    protocol: Protocol = None,
    sample: Sample = None,
    repeats: Repeats = 1,
    publish: Publish = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Have the stored conversations rated by another evaluator, without a single model call."""
    if evaluator is None and evaluator_base_url is None:
        raise InvalidInput("Say which evaluator: `--evaluator rules`, or --evaluator-base-url and -model.")
    if (run is None) == (board is None):
        raise InvalidInput("Say what to rate again: one RUN, or with --board every run of a board.")
    choice = evaluator_choice(
        evaluator,
        evaluator_base_url,
        evaluator_model,
        evaluator_api_key_env,
        evaluator_provider,
        price(evaluator_price_prompt, evaluator_price_completion),
    )
    wanted = Reevaluation(choice, protocol, sample, repeats, publish)
    with installation(data_dir, workers=True) as installed:
        with installed.session() as session:
            runs = [find_run(session, run)] if run is not None else _on_board(installed, session, board or "")
            begun = _begin(installed, session, runs, wanted)
        if run is not None and len(begun.evaluators) == 1:
            finish_run(installed, runs[0], publish=False, as_json=json, evaluator=begun.evaluators[0])
        else:
            _finish_all(installed, runs, begun, as_json=json)


def _on_board(installed: Installation, session: Session, key: str) -> list[models.Run]:
    groups = version_groups(session, simulated=installed.settings.on_loopback)
    group = choose_group(groups, key)
    if group is None:
        raise InvalidInput("There is no board yet: nothing has been published.")
    return board_runs(session, group)


def _begin(installed: Installation, session: Session, runs: list[models.Run], wanted: Reevaluation) -> Begun:
    account = runs[0].account if len(runs) == 1 else local_account(session)
    wanted, warnings = check(wanted, OWN_MACHINE)
    for line in warnings:
        say(f"note: {line}")
    needed = effort(session, runs, wanted, price_known(session, account, wanted.evaluator))
    say(
        f"{counted(needed.conversations, 'conversation')} of {counted(needed.runs, 'run')}: "
        f"no model call, {counted(needed.calls, 'evaluator call')} at most, "
        f"about {needed.prompt_tokens} tokens in and {needed.completion_tokens} out"
    )
    if needed.calls and needed.cost is not None:
        say(f"that costs about {about_dollars(needed.cost)} at most")
    begun = begin(session, account, installed.settings.secret, runs, wanted, OWN_MACHINE)
    session.commit()
    for run in begun.runs:
        wake_run(installed.settings, run.id)
    for run in runs:
        if run not in begun.runs:
            say(f"{begun.evaluators[0].name} has rated all that was asked of run {run.id} already")
    return begun


def _finish_all(installed: Installation, runs: list[models.Run], begun: Begun, *, as_json: bool) -> None:
    """Follow one after the other; then the reports, each run under each evaluator."""
    ended = {run.id: follow(installed, run, begun.evaluators[-1]) for run in runs}
    with installed.session() as session:
        reports = [
            run_report(session, find_run(session, str(run.id)), one)
            for run in runs
            for one in begun.evaluators
        ]
    if as_json:
        print_json(reports)
    else:
        for report in reports:
            rated = report["counts"]
            say(
                f"run {report['run']['id']} under {report['run']['evaluator']['label']}: "
                f"pass {rated['pass']}, unclear {rated['unclear']}, fail {rated['fail']}, "
                f"unparsed {rated['unparsed']}, not rated {rated['pending']}"
            )
        a, *others = begun.evaluators
        if others:
            say(f"`curate evaluator compare {a.uuid} {others[0].uuid}` tells how often the verdicts flip")
    unfinished = [run for run, status in ended.items() if status != "finished"]
    if unfinished:
        say(f"Not finished: {', '.join(map(str, unfinished))}. `curate run show` tells why.")
        raise typer.Exit(1)

"""`curate sentinels`: models that game the measure, run by the site, to show what that earns."""

from typing import Annotated

import typer

from app import models
from app.benchmark import BUILTIN_NAME
from app.cli.evaluate import evaluator_choice, start_run
from app.cli.installation import Installation, installation, say
from app.cli.options import (
    DataDir,
    Evaluator,
    EvaluatorKey,
    EvaluatorModel,
    EvaluatorProvider,
    EvaluatorUrl,
)
from app.cli.progress import follow
from app.errors import ServiceUnavailable
from app.leaderboard import publish
from app.protocol import builtin_protocol
from app.runs.control import find_run
from app.runs.planning import Selection
from app.runs.starting import DEFAULT_CONCURRENCY, EvaluatorChoice, Target
from app.simulator import SimulatorProcess
from app.simulator.sentinels import SENTINELS


def sentinels(
    benchmark: Annotated[str, typer.Option(help="Benchmark: NAME or NAME@VERSION.")] = BUILTIN_NAME,
    protocol: Annotated[str | None, typer.Option(help="Protocol: NAME or NAME@VERSION.")] = None,
    evaluator: Evaluator = None,
    evaluator_base_url: EvaluatorUrl = None,
    evaluator_model: EvaluatorModel = None,
    evaluator_api_key_env: EvaluatorKey = None,
    evaluator_provider: EvaluatorProvider = "openai",
    limit: Annotated[int | None, typer.Option(min=1, help="First N cases of each category.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Calls in flight.")] = DEFAULT_CONCURRENCY,
    data_dir: DataDir = None,
) -> None:
    """Run the sentinels under a board's benchmark, protocol and evaluator, and show them on it, unranked.

    They stand in a group of their own. Run again, the new rows take the place of the old ones.
    """
    choice = evaluator_choice(
        evaluator, evaluator_base_url, evaluator_model, evaluator_api_key_env, evaluator_provider
    )
    with installation(data_dir, workers=True) as installed, SimulatorProcess() as simulator:
        run_sentinels(
            installed,
            simulator.base_url,
            choice,
            benchmark,
            protocol or builtin_protocol().name,
            limit,
            concurrency,
        )


def run_sentinels(
    installed: Installation,
    base_url: str,
    choice: EvaluatorChoice,
    benchmark: str,
    protocol: str,
    limit: int | None,
    concurrency: int = DEFAULT_CONCURRENCY,
) -> list[models.Run]:
    """Start all of them at the simulator there, wait for them, and put them up; probes are asked too."""
    runs = [
        start_run(
            installed,
            Target(base_url, one.model, f"sentinel: {one.name}"),
            choice,
            Selection(limit=limit, probes=True),
            benchmark=benchmark,
            protocol=protocol,
            seeds=(1,),
            concurrency=concurrency,
            max_calls=None,
            sentinel=one.model,
        )
        for one in SENTINELS
    ]
    for run in runs:
        status = follow(installed, run)
        if status != "finished":
            raise ServiceUnavailable(f"The sentinel's run {run.id} is {status}; see `curate doctor`.")
        with installed.session() as session:
            publish(session, find_run(session, str(run.id)), served=not installed.settings.on_loopback)
            session.commit()
    say(f"{len(runs)} sentinels stand on the board, in a group of their own")
    return runs

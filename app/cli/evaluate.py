"""`curate evaluate`: one run from start to report."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy.orm import Session

from app import models
from app.cli.endpoint_store import OWN_MACHINE, targets_of
from app.cli.installation import Installation, installation, say
from app.cli.options import (
    MAX_CALLS,
    CompletionPrice,
    DataDir,
    Evaluator,
    EvaluatorCompletionPrice,
    EvaluatorKey,
    EvaluatorModel,
    EvaluatorPromptPrice,
    EvaluatorProvider,
    EvaluatorUrl,
    Json,
    Lists,
    MaxCost,
    ModelVersion,
    PromptPrice,
    SystemPrompt,
    SystemPromptFile,
    Weights,
    declared_given,
    dollars_given,
    key_from_environment,
    price,
    words,
)
from app.cli.output import print_json, print_run_report
from app.cli.progress import follow
from app.declared import NOTHING_SAID
from app.endpoints import local_account
from app.errors import Conflict, InvalidInput
from app.leaderboard import lookalike
from app.leaderboard import publish as publish_run
from app.outcomes import SCENARIOS, STANDARD, Category
from app.prices import Price, about_dollars
from app.protocol import builtin_protocol
from app.runs.browsing import error_classes
from app.runs.control import find_run
from app.runs.control import pause as pause_run
from app.runs.planning import MAX_SEEDS, Plan, Selection
from app.runs.reporting import run_report
from app.runs.starting import (
    DEFAULT_CONCURRENCY,
    EvaluatorChoice,
    Target,
    Wish,
    estimated_cost,
    prepare,
    start,
    store_evaluator,
)
from app.runs.words import ErrorClass
from app.text import counted
from app.wake import wake_run


def evaluate(
    benchmark: Annotated[str, typer.Option(help="Benchmark: NAME or NAME@VERSION.")],
    base_url: Annotated[
        str | None, typer.Option(help="Where the model answers, e.g. https://host/v1.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model's name at that endpoint.")] = None,
    endpoints: Annotated[
        Path | None,
        typer.Option("--endpoints", metavar="FILE", help="Several models instead, from .toml or .csv."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="What to call the model; its own name otherwise.")] = None,
    provider: Annotated[str, typer.Option(help="openai, anthropic, gemini or completion.")] = "openai",
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable with the API key.")] = None,
    protocol: Annotated[str | None, typer.Option(help="Protocol: NAME or NAME@VERSION.")] = None,
    evaluator: Evaluator = None,
    evaluator_base_url: EvaluatorUrl = None,
    evaluator_model: EvaluatorModel = None,
    evaluator_api_key_env: EvaluatorKey = None,
    evaluator_provider: EvaluatorProvider = "openai",
    evaluator_price_prompt: EvaluatorPromptPrice = None,
    evaluator_price_completion: EvaluatorCompletionPrice = None,
    scenarios: Annotated[Lists, typer.Option(help="sc1,…,sc5; all five by default.")] = None,
    variants: Annotated[Lists, typer.Option(help="standard (default), control, guiding_prompt, …")] = None,
    probes: Annotated[bool, typer.Option("--probes", help="Ask the probe cases too.")] = False,
    recall: Annotated[
        bool, typer.Option("--recall", help="Ask after each final response what the user had told.")
    ] = False,
    categories: Annotated[Lists, typer.Option(help="severe_allergy,…; all four by default.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="First N cases of each category.")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=MAX_SEEDS, help="Seeds 1…K.")] = 1,
    concurrency: Annotated[int, typer.Option(min=1, help="Calls in flight.")] = DEFAULT_CONCURRENCY,
    max_calls: Annotated[
        int | None, typer.Option(min=1, max=MAX_CALLS, help="Pause after so many requests.")
    ] = None,
    max_cost: MaxCost = None,
    price_prompt: PromptPrice = None,
    price_completion: CompletionPrice = None,
    weights: Weights = None,
    model_version: ModelVersion = None,
    system_prompt: SystemPrompt = None,
    system_prompt_file: SystemPromptFile = None,
    forget_key: Annotated[
        bool, typer.Option("--forget-key", help="Delete the stored keys when the run is over.")
    ] = False,
    publish: Annotated[bool, typer.Option("--publish", help="Put it on the board when finished.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Evaluate a model over a benchmark: submit, run, rate, report. Starts what it needs."""
    key, asked_price = key_from_environment(api_key_env), price(price_prompt, price_completion)
    said = declared_given(weights, model_version, system_prompt, system_prompt_file)
    if endpoints is not None:
        if any((base_url, model, name, key, asked_price, said != NOTHING_SAID)):
            raise InvalidInput("With --endpoints the file says all of the models: leave their options out.")
        targets = targets_of(endpoints)
    elif base_url is None or model is None:
        raise InvalidInput("Name a model by --base-url and --model, or several by --endpoints FILE.")
    else:
        targets = [Target(base_url, model, name or model, provider, key, asked_price, said)]
    choice = evaluator_choice(
        evaluator,
        evaluator_base_url,
        evaluator_model,
        evaluator_api_key_env,
        evaluator_provider,
        price(evaluator_price_prompt, evaluator_price_completion),
    )
    selection = Selection(
        scenarios=words(scenarios, SCENARIOS),
        variants=words(variants, (STANDARD,)),
        categories=words(categories, tuple(Category)),
        limit=limit,
        probes=probes,
        recall=recall,
    )
    with installation(data_dir, workers=True) as installed:
        runs = [
            start_run(
                installed,
                target,
                choice,
                selection,
                benchmark=benchmark,
                protocol=protocol or builtin_protocol().name,
                seeds=tuple(range(1, seeds + 1)),
                concurrency=concurrency,
                max_calls=max_calls,
                publish=publish,
                max_cost=dollars_given(max_cost),
                forget_key=forget_key,
            )
            for target in targets
        ]
        if endpoints is None:
            finish_run(installed, runs[0], publish=publish, as_json=json)
        else:
            finish_runs(installed, runs, publish=publish, as_json=json)


def evaluator_choice(
    evaluator: str | None,
    base_url: str | None,
    model: str | None,
    api_key_env: str | None,
    provider: str,
    rated_price: Price | None = None,
) -> EvaluatorChoice:
    """The rules or a model, never half of one."""
    if evaluator not in (None, "rules"):
        raise InvalidInput(
            f"Unknown evaluator '{evaluator}': write `--evaluator rules`, or give a model with "
            "--evaluator-base-url and --evaluator-model."
        )
    if base_url is None and model is None:
        if api_key_env is not None:
            raise InvalidInput("--evaluator-api-key-env needs --evaluator-base-url and --evaluator-model.")
        if rated_price is not None:
            raise InvalidInput("A price for the evaluator needs --evaluator-base-url and --evaluator-model.")
        return EvaluatorChoice()
    if evaluator == "rules":
        raise InvalidInput("Choose one evaluator: `--evaluator rules` or a model, not both.")
    if base_url is None or model is None:
        raise InvalidInput("An evaluator model needs both --evaluator-base-url and --evaluator-model.")
    return EvaluatorChoice(base_url, model, key_from_environment(api_key_env), provider, rated_price)


def start_run(
    installed: Installation,
    target: Target,
    choice: EvaluatorChoice,
    selection: Selection,
    *,
    benchmark: str,
    protocol: str,
    seeds: tuple[int, ...],
    concurrency: int,
    max_calls: int | None,
    publish: bool = False,
    max_cost: Decimal | None = None,
    forget_key: bool = False,
    sentinel: str | None = None,
) -> models.Run:
    """Plan, say what it will cost, store the run and wake the workers."""
    wish = Wish(
        target,
        choice,
        selection,
        benchmark,
        protocol,
        seeds,
        concurrency,
        max_calls,
        publish=publish,
        max_cost=max_cost,
        forget_key=forget_key,
    )
    with installed.session() as session:
        prepared = prepare(session, wish, OWN_MACHINE)
        for line in (*prepared.warnings, *prepared.notes):
            say(f"note: {line}")
        if (other := lookalike(session, target.name)) is not None:
            say(f"note: the board has a row '{other}', which looks like this name: it cannot be published so")
        account = local_account(session)
        announce(prepared.plan, choice, estimated_cost(session, account, prepared))
        run = start(session, account, installed.settings.secret, prepared)
        run.sentinel = sentinel
        session.commit()
        wake_run(installed.settings, run.id)
        say(f"run {run.id} started")
        started = find_run(session, str(run.id))
        if target.api_key is None and started.endpoint.sealed_key is not None:
            say("note: the key that was given for this endpoint before is used")
        return started


def evaluator_for(
    installed: Installation,
    session: Session,
    account: models.Account,
    choice: EvaluatorChoice,
    protocol: models.Protocol,
) -> models.Evaluator:
    """The evaluator that a command names, stored."""
    return store_evaluator(session, account, installed.settings.secret, choice, protocol, OWN_MACHINE)


def announce(plan: Plan, choice: EvaluatorChoice, cost: Decimal | None) -> None:
    """Calls, estimated tokens and, at a known price, their cost, before the first call."""
    judged = (
        f"{counted(plan.evaluator_calls, 'evaluator call')} ({choice.model})"
        if plan.evaluator_calls
        else "rated by the lexical rules, without a model"
    )
    say(
        f"{counted(plan.conversations, 'conversation')}: {counted(plan.model_calls, 'model call')}, at most "
        f"about {plan.prompt_tokens} tokens in and {plan.completion_tokens} out; {judged}"
    )
    if cost is not None:
        say(f"that costs about {about_dollars(cost)} at most")


def finish_run(
    installed: Installation,
    run: models.Run,
    *,
    publish: bool,
    as_json: bool,
    evaluator: models.Evaluator | None = None,
) -> None:
    """Follow a run to its end, publish it if asked, print its report. Exit 1 unless all of that was done."""
    try:
        ended = _follow_to_end(installed, run, publish=publish, evaluator=evaluator)
    except KeyboardInterrupt:
        _pause(installed, [run])
        raise typer.Exit(130) from None
    if as_json:
        print_json(ended.report)
    else:
        print_run_report(ended.report, ended.failures)
    if ended.wrong is not None:
        say(ended.wrong)
        raise typer.Exit(1)


def finish_runs(installed: Installation, runs: Sequence[models.Run], *, publish: bool, as_json: bool) -> None:
    """The same of several, which go on side by side. As JSON: {"runs": [report, …]}, in their order."""
    ended: list[_Ended] = []
    try:
        for run in runs:
            ended.append(_follow_to_end(installed, run, publish=publish))
            if not as_json:
                print_run_report(ended[-1].report, ended[-1].failures)
    except KeyboardInterrupt:
        _pause(installed, runs[len(ended) :])
        raise typer.Exit(130) from None
    if as_json:
        print_json({"runs": [one.report for one in ended]})
    wrong = [one.wrong for one in ended if one.wrong is not None]
    for line in wrong:
        say(line)
    if wrong:
        raise typer.Exit(1)


def _pause(installed: Installation, runs: Sequence[models.Run]) -> None:
    for run in runs:
        with installed.session() as session:
            stopped = find_run(session, str(run.id))
            if stopped.status == "running":
                pause_run(session, stopped)
                session.commit()
        say(f"Run {run.id} is paused; nothing is lost. `curate run resume {run.id}` goes on.")


@dataclass(frozen=True)
class _Ended:
    """`wrong`: what was asked for and is not so, with what to do."""

    report: dict[str, Any]
    failures: list[ErrorClass]
    wrong: str | None


def _follow_to_end(
    installed: Installation,
    run: models.Run,
    *,
    publish: bool,
    evaluator: models.Evaluator | None = None,
) -> _Ended:
    status = follow(installed, run, evaluator)
    refused = _publish(installed, run.id) if publish and status == "finished" else None
    with installed.session() as session:
        run = find_run(session, str(run.id))
        report = run_report(session, run, evaluator)
        failures = error_classes(session, run, (evaluator or run.evaluator).id)
    wrong = None
    if status != "finished":
        reason = f" ({run.status_reason})" if run.status_reason else ""
        capped = run.max_calls is not None and run.calls_reserved >= run.max_calls
        more = f" --max-calls {2 * (run.max_calls or 0)}" if capped else ""
        wrong = f"Run {run.id} is {status}{reason}: `curate run resume {run.id}{more}` goes on."
    elif refused is not None:
        wrong = f"Run {run.id} is finished, but not on the board: {refused}"
    return _Ended(report, failures, wrong)


def _publish(installed: Installation, run_id: int) -> str | None:
    """Why it is refused, if it is: the run is finished all the same, and its report is to be printed."""
    with installed.session() as session:
        try:
            publish_run(session, find_run(session, str(run_id)), served=not installed.settings.on_loopback)
        except Conflict as refused:
            return refused.message
        session.commit()
    say(f"run {run_id} is on the board: `curate leaderboard`")
    return None

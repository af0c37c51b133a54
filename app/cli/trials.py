"""`curate evaluator check|drift`: an evaluator against manipulation, and against a frozen reference set."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from app.cli.evaluate import evaluator_choice, evaluator_for
from app.cli.evaluator import CONCURRENCY, ProtocolOption, chosen_protocol, rate_here
from app.cli.installation import installation, out, say
from app.cli.options import (
    DataDir,
    Evaluator,
    EvaluatorKey,
    EvaluatorModel,
    EvaluatorProvider,
    EvaluatorUrl,
    Json,
)
from app.cli.output import percent, print_json, table
from app.endpoints import local_account
from app.errors import AppError, Conflict
from app.library import store_protocol
from app.protocol import Protocol
from app.rating_many import RatedResponse
from app.runs.reporting import describe_evaluator
from app.runs.starting import EvaluatorChoice
from app.studies.finding import find_study
from app.text import counted
from app.trials.checks import seen_of, store_check
from app.trials.drift import ask, perform
from app.trials.manipulation import PLAIN, manipulation_set, resistance_report
from app.trials.references import MOST_DAYS, freeze, set_schedule


class NoVerdicts(AppError):
    """The evaluator does not work at all."""

    status = 502


def add_to(app: typer.Typer) -> None:
    app.command()(check)
    app.command()(drift)


def check(
    evaluator: Evaluator = None,
    evaluator_base_url: EvaluatorUrl = None,
    evaluator_model: EvaluatorModel = None,
    evaluator_api_key_env: EvaluatorKey = None,
    evaluator_provider: EvaluatorProvider = "openai",
    protocol: ProtocolOption = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Calls in flight.")] = CONCURRENCY,
    store: Annotated[bool, typer.Option(help="Keep the result for the methods page.")] = True,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """How an evaluator withstands manipulation: the set of attacks, each against the honest reply alone."""
    choice = evaluator_choice(
        evaluator, evaluator_base_url, evaluator_model, evaluator_api_key_env, evaluator_provider
    )
    rules = chosen_protocol(protocol, data_dir)
    trials = manipulation_set()
    if choice.base_url is not None:
        say(f"{counted(len(trials), 'conversation')} to rate, each by at most two calls of {choice.model}")
    conversations = [trial.reduced for trial in trials]
    plain = [trial.kind for trial in trials].count(PLAIN)
    found = rate_here(choice, rules, conversations[:plain], concurrency)
    if all(one.rating is None for one in found):
        raise NoVerdicts(_why_none(found))
    found += rate_here(choice, rules, conversations[plain:], concurrency)
    report = resistance_report(seen_of(found))
    if store:
        report = _stored(data_dir, choice, rules, report)
    if json:
        print_json(report)
    else:
        _print(report)


def drift(
    study: Annotated[str, typer.Argument(help="The closed study whose items are the reference.")],
    evaluator: Evaluator = None,
    evaluator_base_url: EvaluatorUrl = None,
    evaluator_model: EvaluatorModel = None,
    evaluator_api_key_env: EvaluatorKey = None,
    evaluator_provider: EvaluatorProvider = "openai",
    protocol: ProtocolOption = None,
    every_days: Annotated[
        int | None,
        typer.Option(min=0, max=MOST_DAYS, help="Let the scheduler repeat it; 0: on demand only."),
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Rate a closed study's items again: does the evaluator still rate as it did, and as people did?"""
    choice = evaluator_choice(
        evaluator, evaluator_base_url, evaluator_model, evaluator_api_key_env, evaluator_provider
    )
    rules = chosen_protocol(protocol, data_dir)
    with installation(data_dir) as installed:
        with installed.session() as session:
            reference = freeze(session, find_study(session, study))
            if every_days is not None:
                set_schedule(reference, every_days or None)
            row, _ = store_protocol(session, rules)
            stored = evaluator_for(installed, session, local_account(session), choice, row)
            wanted = ask(session, reference, stored)
            session.commit()
            say(
                f"{counted(reference.size, 'item')} of study {study}, reference {reference.content_hash[:12]}"
            )
            label = describe_evaluator(stored)["label"]
        done = perform(installed.engine, installed.settings, wanted.id)
    if done is None:
        raise Conflict("Somebody is at this check already; its result stands on the study's drift page.")
    if done.report is None:
        raise NoVerdicts(done.error or "No item got a verdict.")
    report = {"evaluator": label, "study": study, "warnings": done.warnings, **done.report}
    if json:
        print_json(report)
    else:
        _print_drift(report)


def _print_drift(report: dict[str, Any]) -> None:
    low, high = report["percent_ci"]
    out.print(f"evaluator {report['evaluator']} on study {report['study']}", markup=False)
    out.print(
        f"agrees with people on {report['agree']} of {report['n']} ({percent(report['percent'])} %, "
        f"95 % interval {percent(low)} to {percent(high)}); higher on {report['higher']}, "
        f"lower on {report['lower']}"
    )
    if "moved" in report:
        moved = report["moved"]
        out.print(
            f"against its first check: {moved['higher'] + moved['lower']} of {moved['n']} rated otherwise, "
            f"{moved['higher']} of them higher"
        )
    else:
        out.print("the first check of this evaluator: later ones are held against it")
    for sentence in report["warnings"]:
        out.print(f"WARNING: {sentence}", markup=False)


def _why_none(found: Sequence[RatedResponse]) -> str:
    verdict = found[0].rated.verdict if found[0].rated else None
    reason = f" ({verdict.reason}: {verdict.explanation[:200]})" if verdict else ""
    return f"The evaluator gave no verdict on any of {len(found)} honest replies{reason}; nothing was tried."


def _stored(
    data_dir: DataDir, choice: EvaluatorChoice, rules: Protocol, report: dict[str, Any]
) -> dict[str, Any]:
    """The report with its evaluator, as it is kept from now on."""
    with installation(data_dir) as installed, installed.session() as session:
        row, _ = store_protocol(session, rules)
        account = local_account(session)
        stored = evaluator_for(installed, session, account, choice, row)
        report = {"evaluator": describe_evaluator(stored), **report}
        store_check(session, stored, report)
        session.commit()
        say(f"kept with evaluator {report['evaluator']['label']}")
        return report


def _print(report: dict[str, Any]) -> None:
    if "evaluator" in report:
        out.print(f"evaluator {report['evaluator']['label']}", markup=False)
    columns = [
        "kind of attack",
        "resisted, %",
        "95 %",
        "same/n",
        "raised",
        "to pass",
        "lowered",
        "no verdict",
    ]
    grid = table("Verdicts that stayed the honest reply's own", columns)
    for kind, found in report["by_kind"].items():
        grid.add_row(kind.replace("_", " "), *_cells(found))
    grid.add_row("all", *_cells(report["resistance"]), style="bold")
    out.print(grid)
    honest, chance, flagged = report["honest"], report["unchanged_without"], report["flagged"]
    out.print(f"flagged as suspicious: {flagged['count']} of {flagged['n']} attacks")
    out.print(
        f"honest replies of odd form: {honest['flagged']['count']} of {honest['flagged']['n']} flagged, "
        f"{honest['as_labelled']['count']} rated as by hand, {honest['no_verdict']} without a verdict"
    )
    out.print(f"rated twice without any attack: {chance['count']} of {chance['n']} the same")
    if report["resistance"]["not_comparable"]:
        out.print(
            f"not compared, for the honest reply has no verdict: {report['resistance']['not_comparable']}"
        )
    for changed in report["changed"]:
        out.print(
            f"{changed['attack']}: {changed['rating_without']} became "
            f"{'no verdict' if changed['rating'] is None else changed['rating']}"
            + ("" if changed["flagged"] else ", not flagged"),
            markup=False,
        )


def _cells(found: dict[str, Any]) -> list[str]:
    interval = "–".join(percent(bound) for bound in found["ci"]) if found["ci"] else ""
    counts = (found["raised"], found["raised_to_pass"], found["lowered"], found["no_verdict"])
    return [percent(found["rate"]), interval, f"{found['same']}/{found['n']}", *(str(n) for n in counts)]

"""`curate evaluator rate`: rate reduced conversations from a file, no run needed; beside it `check`."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from app.chat import Endpoint
from app.cli.evaluate import evaluator_choice
from app.cli.installation import installation, say
from app.cli.options import DataDir, Evaluator, EvaluatorKey, EvaluatorModel, EvaluatorProvider, EvaluatorUrl
from app.cli.protocol import text_of
from app.library import find_protocol, load_stored_protocol
from app.outcomes import Outcome
from app.protocol import Protocol, Reduced, builtin_protocol, load_protocol
from app.rating_many import RatedResponse, Rater, Room, rate_all
from app.reduced_files import read_reduced
from app.runs.reporting import outcome_of
from app.runs.starting import EvaluatorChoice
from app.tables import write_atomically

app = typer.Typer(no_args_is_help=True, help="Evaluators: rate, check, list, compare.")
CONCURRENCY = 16
LINE_EVERY = 100
REPLIES = (
    "JSONL with constraint, request and response in each line, or a sheet (.xlsx, .csv) with the columns "
    "First User Input, Last User Input and Last Model Response."
)
ProtocolOption = Annotated[
    str | None, typer.Option(help="Whose evaluator prompt: a TOML file or a stored protocol.")
]


@app.callback()
def evaluators() -> None:
    """Evaluators: rate, check, list, compare."""


@app.command()
def rate(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help=REPLIES)],
    evaluator: Evaluator = None,
    evaluator_base_url: EvaluatorUrl = None,
    evaluator_model: EvaluatorModel = None,
    evaluator_api_key_env: EvaluatorKey = None,
    evaluator_provider: EvaluatorProvider = "openai",
    protocol: ProtocolOption = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Calls in flight.")] = CONCURRENCY,
    to: Annotated[Path | None, typer.Option("--to", "--output", "-o", help="File for the result.")] = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="The result is JSONL in any case.")] = False,
) -> None:
    """Rate each conversation; the verdicts come as JSONL, one line each, in the order of the file."""
    del as_json
    choice = evaluator_choice(
        evaluator, evaluator_base_url, evaluator_model, evaluator_api_key_env, evaluator_provider
    )
    rules = chosen_protocol(protocol, data_dir)
    conversations = read_reduced(file)
    found = rate_here(choice, rules, conversations, concurrency)
    lines = [_line(one, reduced) for one, reduced in zip(found, conversations, strict=True)]
    _write(lines, to)
    tally = Counter(line["outcome"] for line in lines)
    say(f"{len(lines)} rated: " + ", ".join(f"{name} {n}" for name, n in tally.items()))


def chosen_protocol(reference: str | None, data_dir: DataDir) -> Protocol:
    """The built-in protocol, one in a file, or a stored one."""
    if reference is None or reference == builtin_protocol().name:
        return builtin_protocol()
    path = Path(reference)
    if path.suffix == ".toml" and path.is_file():
        return load_protocol(text_of(path), str(path))
    with installation(data_dir) as installed, installed.session() as session:
        return load_stored_protocol(find_protocol(session, reference))


def rater_of(choice: EvaluatorChoice, protocol: Protocol) -> Rater:
    """The evaluator that a command names, as it is called from here."""
    if choice.base_url is None or choice.model is None:
        return Rater(protocol)
    endpoint = Endpoint(
        choice.provider,  # type: ignore[arg-type]
        choice.base_url,
        choice.model,
        choice.api_key,
        private_allowed=True,
    )
    return Rater(protocol, endpoint)


def rate_here(
    choice: EvaluatorChoice, protocol: Protocol, conversations: Sequence[Reduced], concurrency: int
) -> list[RatedResponse]:
    """All of them, with a line of progress now and then where each takes a call."""

    def progress(done: int) -> None:
        if choice.base_url is not None and done % LINE_EVERY == 0:
            say(f"{done} of {len(conversations)} rated")

    room = Room(concurrency)
    return asyncio.run(rate_all(rater_of(choice, protocol), conversations, room, progress))


def _line(found: RatedResponse, reduced: Reduced) -> dict[str, Any]:
    rated, outcome = found.rated, Outcome.EMPTY
    if rated is not None:
        outcome = outcome_of("answered", rated.state, found.rating, probe=reduced.probe)
    verdict = rated.verdict if rated else None
    return {
        "rating": found.rating,
        "acknowledged": verdict.acknowledged if verdict else None,
        "recommendation": verdict.recommendation if verdict else None,
        "explanation": verdict.explanation if verdict else None,
        "outcome": outcome.value,
        "reason": verdict.reason if verdict else None,
        "flags": sorted(found.flags),
        "evaluator_reply": rated.reply if rated else None,
    }


def _write(lines: Sequence[dict[str, Any]], to: Path | None) -> None:
    text = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines)
    if to is None:
        typer.echo(text, nl=False)
        return
    with write_atomically(to) as temporary:
        temporary.write_text(text, encoding="utf-8")
    say(f"wrote {to}")

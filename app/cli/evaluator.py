"""`curate evaluator rate`: rate reduced conversations from a file, no run needed."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from app.chat import Allowlist, ChatClient, Endpoint, Unpaced
from app.cli.evaluate import evaluator_choice
from app.cli.installation import installation, say
from app.cli.options import DataDir, Evaluator, EvaluatorKey, EvaluatorModel, EvaluatorProvider, EvaluatorUrl
from app.cli.protocol import text_of
from app.evaluation import rate_by_rules, screen
from app.library import find_protocol, load_stored_protocol
from app.outcomes import Outcome, Rating
from app.protocol import Protocol, Reduced, builtin_protocol, load_protocol
from app.rating import Rated, rate_by_model, rated_by_rules
from app.reduced_files import read_reduced
from app.runs.reporting import outcome_of
from app.runs.starting import EvaluatorChoice
from app.tables import write_atomically
from app.text import clean, is_blank

app = typer.Typer(no_args_is_help=True, help="Evaluators: rate conversations without a run.")
CONCURRENCY = 16
LINE_EVERY = 100
REPLIES = (
    "JSONL with constraint, request and response in each line, or a sheet (.xlsx, .csv) with the columns "
    "First User Input, Last User Input and Last Model Response."
)


@app.callback()
def evaluators() -> None:
    """Evaluators: rate conversations without a run."""


@app.command()
def rate(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help=REPLIES)],
    evaluator: Evaluator = None,
    evaluator_base_url: EvaluatorUrl = None,
    evaluator_model: EvaluatorModel = None,
    evaluator_api_key_env: EvaluatorKey = None,
    evaluator_provider: EvaluatorProvider = "openai",
    protocol: Annotated[
        str | None, typer.Option(help="Whose evaluator prompt: a TOML file or a stored protocol.")
    ] = None,
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
    lines = asyncio.run(_rate_all(conversations, choice, rules, concurrency))
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


async def _rate_all(
    conversations: Sequence[Reduced], choice: EvaluatorChoice, protocol: Protocol, concurrency: int
) -> list[dict[str, Any]]:
    slots = asyncio.Semaphore(concurrency)
    done = 0
    async with ChatClient(allowlist=Allowlist(), max_connections=concurrency) as client:

        async def one(reduced: Reduced) -> dict[str, Any]:
            nonlocal done
            async with slots:
                line = await _rate_one(client, reduced, choice, protocol)
            done += 1
            if choice.base_url is not None and done % LINE_EVERY == 0:
                say(f"{done} of {len(conversations)} rated")
            return line

        return list(await asyncio.gather(*(one(reduced) for reduced in conversations)))


async def _rate_one(
    client: ChatClient, reduced: Reduced, choice: EvaluatorChoice, protocol: Protocol
) -> dict[str, Any]:
    reduced, flags = _storable(reduced)
    if is_blank(reduced.response):
        return _line(None, Outcome.EMPTY, flags)
    if choice.base_url is None or choice.model is None:
        rated = rated_by_rules(rate_by_rules(reduced))
    else:
        rated = await rate_by_model(
            client,
            Endpoint(
                choice.provider,  # type: ignore[arg-type]
                choice.base_url,
                choice.model,
                choice.api_key,
                private_allowed=True,
            ),
            protocol.evaluator,
            reduced,
            attempts=protocol.target.attempts,
            deadline=protocol.target.deadline_seconds,
            pace=Unpaced(),
        )
    rating = rated.verdict.rating
    outcome = outcome_of(
        "answered", rated.state, None if rating is None else int(rating), probe=reduced.probe
    )
    return _line(rated, outcome, flags | screen(reduced.response, reduced.constraint))


def _storable(reduced: Reduced) -> tuple[Reduced, frozenset[str]]:
    """Without NUL and lone surrogates, as the replies of a run are kept; the flags say what was replaced."""
    constraint, _ = clean(reduced.constraint)
    request, _ = clean(reduced.request)
    response, flags = clean(reduced.response)
    return replace(reduced, constraint=constraint, request=request, response=response), flags


def _line(rated: Rated | None, outcome: Outcome, flags: frozenset[str]) -> dict[str, Any]:
    verdict = rated.verdict if rated else None
    rating: Rating | None = verdict.rating if verdict else None
    return {
        "rating": None if rating is None else int(rating),
        "acknowledged": verdict.acknowledged if verdict else None,
        "recommendation": verdict.recommendation if verdict else None,
        "explanation": verdict.explanation if verdict else None,
        "outcome": outcome.value,
        "reason": verdict.reason if verdict else None,
        "flags": sorted(flags | (rated.flags if rated else frozenset())),
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

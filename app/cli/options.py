"""Options that several commands share, and how lists and keys are read."""

import os
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from app.declared import NOTHING_SAID, SYSTEM_PROMPTS, WEIGHTS, Declared
from app.errors import InvalidInput
from app.prices import Price, read_price

MAX_CALLS = 10**9


def _data_dir(given: str) -> Path:
    if not given.strip():
        raise InvalidInput("--data-dir is empty: give a folder, or leave it out.")
    return Path(given)


DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        parser=_data_dir,
        metavar="FOLDER",
        help="Where this installation keeps its data.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="The machine form of the report.")]
Lists = list[str] | None

# The same evaluator can be named wherever something is rated.
Evaluator = Annotated[str | None, typer.Option(help="`rules`: the lexical rules, no model.")]
EvaluatorUrl = Annotated[str | None, typer.Option(help="Where the evaluator answers.")]
EvaluatorModel = Annotated[str | None, typer.Option(help="The evaluator's model name.")]
EvaluatorKey = Annotated[str | None, typer.Option(help="Environment variable with the evaluator's key.")]
EvaluatorProvider = Annotated[str, typer.Option(help="The evaluator's provider.")]

MaxCost = Annotated[
    str | None, typer.Option("--max-cost", metavar="USD", help="Pause at this cost; needs the prices.")
]
PromptPrice = Annotated[
    str | None, typer.Option("--price-prompt", metavar="USD", help="Per million tokens sent.")
]
CompletionPrice = Annotated[
    str | None, typer.Option("--price-completion", metavar="USD", help="Per million tokens received.")
]
EvaluatorPromptPrice = Annotated[
    str | None, typer.Option("--evaluator-price-prompt", metavar="USD", help="The evaluator's.")
]
EvaluatorCompletionPrice = Annotated[
    str | None, typer.Option("--evaluator-price-completion", metavar="USD", help="The evaluator's.")
]

# What is declared of a model under test; left out, it is as it was declared before.
Weights = Annotated[
    str | None,
    typer.Option("--weights", metavar="|".join(WEIGHTS), help="Of the model, as you declare."),
]
ModelVersion = Annotated[
    str | None, typer.Option("--model-version", help="The model's version, as you declare.")
]
SystemPrompt = Annotated[
    str | None,
    typer.Option(
        "--system-prompt",
        metavar="|".join(SYSTEM_PROMPTS),
        help="Whether the endpoint adds one by itself, as you declare.",
    ),
]
SystemPromptFile = Annotated[
    Path | None,
    typer.Option("--system-prompt-file", metavar="FILE", help="Its words, in UTF-8; the board shows them."),
]


def declared_given(
    weights: str | None, version: str | None, system_prompt: str | None, file: Path | None
) -> Declared:
    if (weights, version, system_prompt, file) == (None, None, None, None):
        return NOTHING_SAID
    return Declared(weights, version, system_prompt, None if file is None else _text_of(file))


def _text_of(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"--system-prompt-file {file}: it is no readable UTF-8 text ({error}).") from None
    if not text:
        raise InvalidInput(f"--system-prompt-file {file}: the file is empty.")
    return text


def dollars_given(text: str | None) -> Decimal | None:
    """An amount in US dollars, as `--max-cost` takes it; InvalidInput says what it looks like."""
    if text is None:
        return None
    try:
        return read_price(text)
    except InvalidInput:
        raise InvalidInput(f"'{text[:40]}' is no amount: write US dollars, such as 12.50.") from None


def price(prompt: str | None, completion: str | None) -> Price | None:
    """None without either option: the price that is stored for the endpoint holds."""
    if prompt is None and completion is None:
        return None
    return Price(*(None if one is None else read_price(one) for one in (prompt, completion)))


def words(values: Sequence[str] | None, default: Sequence[str]) -> tuple[str, ...]:
    """`--x a,b --x c` as (a, b, c), each once; the default when the option was not given."""
    if not values:
        return tuple(default)
    parts = [part.strip() for value in values for part in value.split(",")]
    return tuple(dict.fromkeys(part for part in parts if part))


def key_from_environment(variable: str | None) -> str | None:
    """The API key in the environment variable of this name; InvalidInput when it holds none."""
    if variable is None:
        return None
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InvalidInput(f"The environment variable {variable} holds no API key: set it, or leave it out.")
    return value

"""The recall turn: asked after the final response, in a branch of its own that changes nothing else."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class RecallWords:
    """`turn`: the question, for protocols that have none of their own; `prompt`: how its answer is rated."""

    turn: str
    prompt: str


@cache
def recall_words() -> RecallWords:
    """The program's own."""
    text = files("app").joinpath("data", "protocols", "recall.toml").read_text(encoding="utf-8")
    return RecallWords(**tomllib.loads(text))

"""Finished sheets for tests, in the form that `curate study import` reads."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from app.tables import write_table
from app.tables.cells import Value

HEADER = (
    "Model", "Scenario", "Category", "Conversation Number", "First User Input", "Last User Input",
    "Last Model Response", "Model Eval Rating", "Model Eval Explanation", "Human 1 Eval Rating",
    "Human 2 Eval Rating",
)  # fmt: skip
CATEGORIES = ("Severe allergy", "Severe phobia", "Physical constraint", "Trauma triggers")
# Evaluator and two humans; None where nothing was said.
RATINGS: tuple[tuple[int | None, int | None, int | None], ...] = (
    (2, 2, 2), (2, 2, 2), (0, 0, 0), (2, 0, 0), (1, 0, 1), (2, 2, 1), (0, None, 0), (None, 1, 1),
)  # fmt: skip


def row(number: int, ratings: Sequence[Value] = (2, 2, 2), **changed: Value) -> list[Value]:
    """One row; `changed` by header with underscores for spaces."""
    evaluator, *humans = ratings
    values: Mapping[str, Value] = {
        "Model": f"Model {number % 2}",
        "Scenario": f"Scenario {number % 5 + 1}",
        "Category": CATEGORIES[number % 4],
        "Conversation Number": number,
        "First User Input": f"I have an allergy of kind {number}.",
        "Last User Input": "Should I try the stew?",
        "Last Model Response": f"Better leave stew {number} alone.",
        "Model Eval Rating": evaluator,
        "Model Eval Explanation": "names the allergy",
        "Human 1 Eval Rating": humans[0],
        "Human 2 Eval Rating": humans[1],
    }
    values = {**values, **{name.replace("_", " "): value for name, value in changed.items()}}
    return [values[name] for name in HEADER]


def rows(ratings: Sequence[Sequence[Value]] = RATINGS) -> list[list[Value]]:
    return [row(number, given) for number, given in enumerate(ratings, 1)]


def sheet(path: Path, content: Sequence[Sequence[Value]], header: Sequence[str] = HEADER) -> Path:
    return write_table(path, header, content, sheet="Ratings")

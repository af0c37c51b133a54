"""The data card tells what the built-in benchmark is: its numbers are the ones that are measured."""

import re
from functools import cache
from pathlib import Path

import pytest

from app.benchmark import BUILTIN, Benchmark, builtin_benchmark, canary, import_benchmark
from app.benchmark.measuring import measure

ROOT = Path(__file__).resolve().parents[1]
ORIGINAL = ROOT.parent / "shared" / "original"
CARD = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")


def column(number: int) -> dict[str, str]:
    """The table of measures: measure → the cell of that column."""
    table = CARD.partition("## Measured")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\|.*\|$", table, re.M)
    ]
    return {row[0]: row[number] for row in rows[2:]}


def shown(benchmark: Benchmark) -> dict[str, str]:
    return {one.name: one.value for one in measure(benchmark)}


@cache
def whole() -> Benchmark:
    return builtin_benchmark()


def test_the_table_holds_what_is_measured_and_allowed() -> None:
    assert column(1) == shown(whole())
    assert column(3) == {one.name: one.allowed or "" for one in measure(whole())}


def test_the_published_column_holds_what_is_measured() -> None:
    if not ORIGINAL.is_dir():
        pytest.skip("the published data is not here")
    names = ("cases", "facts", "trivia", "prefs")
    published = import_benchmark("published", *(ORIGINAL / f"{name}.xlsx" for name in names)).benchmark
    assert published is not None
    values = shown(published)
    assert column(2) == {name: values.get(name, "not marked") for name in column(2)}


def test_numbers_hash_and_canary_stand_in_the_text() -> None:
    b = whole()
    for number, what in (
        (len(b.facts), "sentences of three facts"),
        (len(b.cases), "85 severe allergies"),
        (len(b.probes), "42 of each category"),
        (len(b.trivia), ""),
        (len(b.preferences), ", each in three strengths"),
    ):
        assert re.search(rf"\| {number}\b[^|]*{what}", CARD), (number, what)
    assert b.content_hash in CARD
    assert canary() in CARD
    assert all(f"`{name}`" in CARD for name in BUILTIN)

"""The published workbooks, where they are at hand: imported whole, and their known faults are named."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from app.benchmark import Imported, export_benchmark, import_benchmark
from app.outcomes import Category
from app.tables import FORMATS
from tests.benchmark_help import ORIGINAL

pytestmark = pytest.mark.skipif(not ORIGINAL.exists(), reason="the published workbooks are not at hand")


@cache
def published() -> Imported:
    names = ("cases", "facts", "trivia", "prefs")
    return import_benchmark("published", *(ORIGINAL / f"{name}.xlsx" for name in names))


def rows_of(code: str, column: str | None, file: str = "cases.xlsx") -> list[int | None]:
    return [
        fault.row
        for fault in published().faults
        if (fault.code, fault.column, fault.file) == (code, column, file)
    ]


def test_all_336_cases_are_there() -> None:
    benchmark = published().benchmark
    assert benchmark is not None
    assert published().errors == ()
    assert Counter(case.category for case in benchmark.cases) == dict.fromkeys(Category, 84)
    assert [case.number for case in benchmark.cases] == list(range(1, 337))
    assert len({case.key for case in benchmark.cases}) == 336
    assert len({case.constraint for case in benchmark.cases}) == 305
    assert len({case.cluster for case in benchmark.cases}) == 305


def test_all_distractors_are_there() -> None:
    benchmark = published().benchmark
    assert benchmark is not None
    assert [len(pool) for pool in (benchmark.facts, benchmark.trivia, benchmark.preferences)] == [
        223,
        707,
        599,
    ]
    assert not [item for item in benchmark.preferences if "nan" in item.text.split()]


def test_counts_add_up() -> None:
    counts = published().counts
    assert {role: (c.read, c.accepted, c.skipped, c.refused) for role, c in counts.items()} == {
        "cases": (336, 336, 0, 0),
        "facts": (223, 223, 0, 0),
        "trivia": (707, 707, 0, 0),
        "preferences": (600, 599, 1, 0),
    }


def test_the_blank_row_is_named() -> None:
    blank = [fault for fault in published().faults if fault.code == "blank_row"]
    assert [(fault.file, fault.sheet, fault.row) for fault in blank] == [("prefs.xlsx", "TEST", 432)]


def test_known_faults_are_reported() -> None:
    assert len(rows_of("unclosed", "User's hard constraint")) == 334
    assert len(rows_of("repeated_constraint", "User's hard constraint")) == 31
    assert len(rows_of("doubled_space", "Person B's preferences")) == 44
    assert len(rows_of("doubled_space", "Person C's strong preferences")) == 5
    same = rows_of("same_request", "Biased question (user and others)")
    assert same == [92, 106, 239, 246, 249]


def test_repeated_trivia_is_reported() -> None:
    benchmark = published().benchmark
    assert benchmark is not None
    texts = Counter(item.text for item in benchmark.trivia)
    assert sum(count > 1 for count in texts.values()) == 93
    repeated = rows_of("repeated_distractor", "Text", "trivia.xlsx")
    assert len(repeated) == sum(count - 1 for count in texts.values()) == 114


@pytest.mark.parametrize("form", FORMATS)
def test_it_comes_back_from_an_export(form: str, tmp_path: Path) -> None:
    benchmark = published().benchmark
    assert benchmark is not None
    paths = {path.stem: path for path in export_benchmark(benchmark, tmp_path, form)}
    again = import_benchmark("again", **paths)
    assert again.benchmark is not None
    assert again.benchmark.content_hash == benchmark.content_hash

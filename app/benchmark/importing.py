"""From files to a benchmark: all faults are found, and a benchmark with an error is not imported."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import TypeVar

from app.benchmark.checking import Locate, content_faults
from app.benchmark.columns import COLUMNS, KINDS, TEXT_COLUMN
from app.benchmark.parsing import Parser
from app.benchmark.records import Benchmark, Case, Distractor, Probe
from app.errors import AppError
from app.outcomes import Category
from app.tables import Counts, Fault, FaultLog, Record, Table, read_records, read_table

BUILTIN_NAME = "curate"
PART_NAME = "curate-part"
PART_CASES, PART_PROBES = 24, 6  # of each category
Item = TypeVar("Item", Case, Probe, Distractor)


@dataclass(frozen=True)
class Imported:
    """`benchmark` is None when any fault is an error; `counts` by role: cases, facts, trivia, …"""

    benchmark: Benchmark | None
    faults: tuple[Fault, ...]
    counts: dict[str, Counts]

    @property
    def errors(self) -> tuple[Fault, ...]:
        return tuple(fault for fault in self.faults if fault.severity == "error")


def import_benchmark(
    name: str,
    cases: Path,
    facts: Path | None = None,
    trivia: Path | None = None,
    preferences: Path | None = None,
    probes: Path | None = None,
) -> Imported:
    """Reads the files (.xlsx or .csv); every fault is reported with file, sheet, row and column.

    Raises InvalidInput for a file that cannot be read at all.
    """
    importer = _Importer()
    benchmark = Benchmark(
        name,
        importer.read("cases", cases, Parser.case),
        importer.distractors("facts", facts),
        importer.distractors("trivia", trivia),
        importer.distractors("preferences", preferences),
        importer.read("probes", probes, Parser.probe),
    )
    content_faults(benchmark, importer.locate, importer.log)
    faults = importer.log.faults()
    return Imported(None if importer.log.has_errors else benchmark, faults, importer.counts)


class _Importer:
    def __init__(self) -> None:
        self.log = FaultLog()
        self.counts: dict[str, Counts] = {}
        self._tables: dict[str, Table] = {}
        self._offsets: dict[str, int] = {}

    @property
    def locate(self) -> Locate:
        """Number below the header → file, sheet and row as the spreadsheet counts."""

        def place(role: str, number: int | None) -> tuple[str, str | None, int | None]:
            table = self._tables.get(role)
            if table is None:
                return role, None, number
            return table.file, table.sheet, None if number is None else number + self._offsets[role]

        return place

    def distractors(self, role: str, path: Path | None) -> tuple[Distractor, ...]:
        return self.read(role, path, Parser.distractor)

    def read(
        self, role: str, path: Path | None, parse: Callable[[Parser, Record], Item | None]
    ) -> tuple[Item, ...]:
        if path is None:
            return ()
        columns = COLUMNS[role]
        table = read_table(path, headers=[column.header for column in columns])
        headless = TEXT_COLUMN if role in KINDS else None
        records, counts = read_records(table, columns, self.log, headless=headless)
        parser = Parser(role, table, self.log)
        items = [item for record in records if (item := parse(parser, record))]
        counts.accepted = len(items)
        counts.refused += len(records) - len(items)
        self.counts[role], self._tables[role] = counts, table
        self._offsets[role] = records[0].row - records[0].number if records else 0
        return tuple(items)


@cache
def builtin_benchmark() -> Benchmark:
    """The benchmark that comes with the program."""
    with as_file(files("app") / "data" / "benchmark") as folder:
        paths = [folder / f"{role}.csv" for role in COLUMNS]
        imported = import_benchmark(BUILTIN_NAME, *paths)
    if imported.benchmark is None:
        raise AppError(
            "The built-in benchmark is damaged; install again.", details=[str(f) for f in imported.errors]
        )
    return imported.benchmark


@cache
def builtin_part() -> Benchmark:
    """A balanced part of the built-in benchmark, for trying things out: a benchmark of its own name."""
    whole = builtin_benchmark()
    return replace(
        whole,
        name=PART_NAME,
        cases=_spread(whole.cases, PART_CASES),
        probes=_spread(whole.probes, PART_PROBES),
    )


Constrained = TypeVar("Constrained", Case, Probe)


def _spread(items: Sequence[Constrained], per_category: int) -> tuple[Constrained, ...]:
    """So many of each category, at even distances over its length."""
    chosen: set[str] = set()
    for category in Category:
        own = [item.key for item in items if item.category is category]
        count = min(per_category, len(own))
        chosen |= {own[at * len(own) // count] for at in range(count)}
    return tuple(item for item in items if item.key in chosen)


@cache
def licence_text() -> str:
    """Under what terms the built-in benchmark may be used, with its canary."""
    return (files("app") / "data" / "benchmark" / "LICENSE").read_text(encoding="utf-8")


@cache
def canary() -> str:
    """The line by which the built-in benchmark's texts are found in training data."""
    found = re.search(r"\S+ canary [0-9a-f-]{36}", licence_text())
    assert found is not None, "the licence file holds it"
    return found[0]


def is_builtin(benchmark: Benchmark) -> bool:
    """Whether all of its content came with the program."""
    return benchmark.content_hash in {builtin().content_hash for builtin in BUILTIN.values()}


BUILTIN = {BUILTIN_NAME: builtin_benchmark, PART_NAME: builtin_part}

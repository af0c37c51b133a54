"""Writing a benchmark so that importing the files gives the same content."""

from collections.abc import Sequence
from pathlib import Path

from app.benchmark.columns import COLUMNS
from app.benchmark.importing import is_builtin, licence_text
from app.benchmark.records import Benchmark, Case, Distractor, Probe
from app.errors import InvalidInput
from app.tables import FORMATS, Column, write_table

Item = Case | Probe | Distractor


def export_benchmark(benchmark: Benchmark, folder: Path, format: str) -> list[Path]:
    """Writes cases.…, facts.…, trivia.…, preferences.… and probes.… (those that there are) into `folder`,
    and the licence beside them if it is a built-in one.

    `format` is "xlsx" or "csv". Importing the files gives a benchmark with the same content hash. Raises
    InvalidInput when the folder cannot be written.
    """
    if format not in FORMATS:
        raise InvalidInput(f"A benchmark is exported as {' or '.join(FORMATS)}, not as '{format}'.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder}: is no folder to write to ({error.strerror}).") from error
    written = [
        _write(items, role, folder / f"{role}.{format}") for role, items in _files(benchmark).items() if items
    ]
    if is_builtin(benchmark):
        licence = folder / "LICENSE.txt"
        licence.write_text(licence_text(), encoding="utf-8")
        written.append(licence)
    return written


def _files(benchmark: Benchmark) -> dict[str, Sequence[Item]]:
    return {
        "cases": benchmark.cases,
        "facts": benchmark.facts,
        "trivia": benchmark.trivia,
        "preferences": benchmark.preferences,
        "probes": benchmark.probes,
    }


def _write(items: Sequence[Item], role: str, path: Path) -> Path:
    columns = [column for column in COLUMNS[role] if _is_used(column, items)]
    rows = ([_cell(item, column) for column in columns] for item in items)
    return write_table(path, [column.header for column in columns], rows)


def _is_used(column: Column, items: Sequence[Item]) -> bool:
    return column.required or any(getattr(item, column.name) for item in items)


def _cell(item: Item, column: Column) -> str | None:
    value = getattr(item, column.name)
    return "; ".join(value) if isinstance(value, tuple) else value

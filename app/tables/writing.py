"""Tables written row by row, so that memory stays flat, and whole or not at all."""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path

from app.errors import InvalidInput
from app.tables.cells import ErrorValue, Formula, Plain, Value, neutralise
from app.tables.files import write_atomically

FORMATS = ("xlsx", "csv")
_EXACT = 2**53  # a spreadsheet keeps numbers as doubles


def write_table(
    path: Path, header: Sequence[str], rows: Iterable[Sequence[Value]], *, sheet: str = "Sheet1"
) -> Path:
    """Writes header and rows to `path` (.xlsx or .csv); read_table gives back every text exactly.

    Text stays text: in csv by the rule of `neutralise`, in xlsx by the cell's type. Numbers stay numbers,
    times are written as ISO 8601 text. Texts too long for a workbook's cell go to the sheet "Long texts".
    Returns `path`; raises InvalidInput for what a table cannot hold (NaN, infinity, a row wider than the
    header).
    """
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise InvalidInput(
            f"{path.name}: tables are written as {' or '.join(FORMATS)}; choose one of these endings."
        )
    with write_atomically(path) as temporary:
        writer(temporary, _checked(path.name, header, rows), sheet)
    return path


def _checked(name: str, header: Sequence[str], rows: Iterable[Sequence[Value]]) -> Iterator[list[Plain]]:
    yield list(header)
    for number, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise InvalidInput(f"{name}, row {number}: {len(row)} cells under {len(header)} headers.")
        try:
            yield [_plain(value) for value in row]
        except ValueError as error:
            raise InvalidInput(f"{name}, row {number}: {error}.") from error


def _plain(value: Value) -> Plain:
    match value:
        case None | str() | bool():
            return value
        case datetime() | date():
            return value.isoformat()
        case float() if not math.isfinite(value):
            raise ValueError(f"{value} is not a number that a table can hold; leave the cell blank")
        case int() if abs(value) > _EXACT:
            return str(value)
        case int() | float():
            return value
        case Formula() | ErrorValue():
            raise ValueError("formulas are never written")
        case _:
            raise ValueError(f"a {type(value).__name__} has no place in a table")


def _write_csv(path: Path, rows: Iterator[list[Plain]], _: str) -> None:
    with path.open("wb") as opened:
        opened.writelines(_csv_lines(rows))


def csv_lines(
    name: str, header: Sequence[str], rows: Iterable[Sequence[Value]], *, exact: bool = False
) -> Iterator[bytes]:
    """The csv file that `write_table` writes, line by line, for whoever sends it on; `name` is for errors.

    `exact`: for programs. Every text byte for byte, also where a spreadsheet would compute it, and no BOM.
    """
    return _csv_lines(_checked(name, header, rows), exact=exact)


def _csv_lines(rows: Iterator[list[Plain]], *, exact: bool = False) -> Iterator[bytes]:
    for number, row in enumerate(rows, 1):
        # The BOM tells Excel that this is UTF-8.
        begin = "" if exact or number > 1 else "\ufeff"
        line = begin + ",".join(_csv_cell(value, exact=exact) for value in row) + "\r\n"
        try:
            yield line.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"row {number}: a lone surrogate cannot be written as UTF-8; export as xlsx or jsonl."
            ) from error


def _csv_cell(value: Plain, *, exact: bool) -> str:
    """Text with a delimiter of any locale in it is quoted, so that it cannot break out of its cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return repr(value)
    text = value if exact else neutralise(value)
    if _NEEDS_QUOTES.isdisjoint(text) and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'


_NEEDS_QUOTES = frozenset(',;\t|"\r\n')


def _write_xlsx(path: Path, rows: Iterator[list[Plain]], title: str) -> None:
    # Loaded here: it brings openpyxl, which most commands do not need.
    from app.tables.xlsxwriting import write_workbook

    write_workbook(path, rows, title)


_WRITERS = {".csv": _write_csv, ".xlsx": _write_xlsx}

"""Tables written row by row, so that memory stays flat, and whole or not at all."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, TextIO

from openpyxl import Workbook
from openpyxl.cell import Cell, WriteOnlyCell
from openpyxl.styles import Alignment, Font
from openpyxl.worksheet._write_only import WriteOnlyWorksheet

from app.errors import InvalidInput
from app.tables.cells import ErrorValue, Formula, Value, escape_xlsx, neutralise
from app.tables.files import write_atomically
from app.tables.longtext import LONG_HEADER, LONG_SHEET, is_too_long, mark, parts

FORMATS = ("xlsx", "csv")
_LAST_ROW = 1_048_576
_EXACT = 2**53  # a spreadsheet keeps numbers as doubles

Plain = str | int | float | bool | None


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
    # The BOM tells Excel that this is UTF-8.
    with path.open("w", encoding="utf-8-sig", newline="") as opened:
        for number, row in enumerate(rows, 1):
            try:
                _write_csv_row(opened, row)
            except UnicodeEncodeError as error:
                raise InvalidInput(
                    f"row {number}: a lone surrogate cannot be written as UTF-8; export as xlsx or jsonl."
                ) from error


def _write_csv_row(opened: TextIO, row: list[Plain]) -> None:
    opened.write(",".join(_csv_cell(value) for value in row) + "\r\n")


def _csv_cell(value: Plain) -> str:
    """Text with a delimiter of any locale in it is quoted, so that it cannot break out of its cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return repr(value)
    text = neutralise(value)
    if _NEEDS_QUOTES.isdisjoint(text) and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'


_NEEDS_QUOTES = frozenset(',;\t|"\r\n')


def _write_xlsx(path: Path, rows: Iterator[list[Plain]], title: str) -> None:
    workbook = Workbook(write_only=True)
    sheet = workbook.create_sheet(title)
    sheet.freeze_panes = "A2"
    long_sheet = _LongSheet(workbook)
    try:
        for number, row in enumerate(rows, 1):
            if number > _LAST_ROW:
                raise InvalidInput(
                    f"more than {_LAST_ROW:,} rows do not fit on a sheet; export as csv or jsonl."
                )
            sheet.append([_xlsx_cell(sheet, value, long_sheet.moved, bold=number == 1) for value in row])
    except BaseException:
        _drop(workbook)
        raise
    workbook.save(path)


def _drop(workbook: Workbook) -> None:
    """Removes the file that openpyxl keeps for each sheet; left alone, it goes only as the program ends."""
    sheets: list[Any] = workbook.worksheets
    for sheet in sheets:
        sheet.close()
        sheet._writer.cleanup()


class _LongSheet:
    """Made when the first long text comes, so that most workbooks have one sheet."""

    def __init__(self, workbook: Workbook) -> None:
        self._workbook = workbook
        self._sheet: WriteOnlyWorksheet | None = None
        self._count = 0

    def moved(self, text: str) -> str:
        """Puts the text on the long sheet and returns the mark that stands for it."""
        if self._sheet is None:
            self._sheet = self._workbook.create_sheet(LONG_SHEET)
            self._sheet.append(list(LONG_HEADER))
        self._count += 1
        for number, part in enumerate(parts(text), 1):
            self._sheet.append([self._count, number, _text_cell(self._sheet, part)])
        return mark(self._count)


def _xlsx_cell(
    sheet: WriteOnlyWorksheet, value: Plain, moved: Callable[[str], str], *, bold: bool
) -> Cell | Plain:
    if not isinstance(value, str):
        return value
    cell = _text_cell(sheet, moved(value) if is_too_long(value) else value)
    if bold:
        cell.font = Font(bold=True)
        cell.alignment = Alignment(wrap_text=True, vertical="top")
    return cell


def _text_cell(sheet: WriteOnlyWorksheet, text: str) -> Cell:
    cell: Cell = WriteOnlyCell(sheet, escape_xlsx(text))
    cell.data_type = "s"  # openpyxl would make a formula of "=…" and an error of "#N/A"
    return cell


_WRITERS = {".csv": _write_csv, ".xlsx": _write_xlsx}

"""Workbooks written row by row: text stays text; what is too long for a cell stands on a sheet of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from openpyxl import Workbook
from openpyxl.cell import Cell, WriteOnlyCell
from openpyxl.styles import Alignment, Font
from openpyxl.worksheet._write_only import WriteOnlyWorksheet

from app.errors import InvalidInput
from app.tables.cells import Plain, escape_xlsx
from app.tables.longtext import LONG_HEADER, LONG_SHEET, is_too_long, mark, parts

_LAST_ROW = 1_048_576


def write_workbook(path: Path, rows: Iterator[list[Plain]], title: str) -> None:
    """One sheet with these rows, the first of them a bold header that stays in view."""
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

"""xlsx, read without trust. openpyxl parses; what it would pad, drop or repair in silence is done here."""

import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from defusedxml.ElementTree import iterparse
from openpyxl.cell.text import Text
from openpyxl.packaging.relationship import Relationship
from openpyxl.reader.excel import ExcelReader
from openpyxl.worksheet._reader import WorkSheetParser
from openpyxl.xml.constants import SHARED_STRINGS, SHEET_MAIN_NS

from app.errors import InvalidInput
from app.tables.cells import ErrorValue, Formula, Value, is_blank_cell, unescape_xlsx
from app.tables.longtext import LONG_SHEET, LongTexts
from app.tables.shape import Limits, Row, Table
from app.tables.xlsxguard import check_workbook

# What openpyxl warns that it drops (validation lists and the like) does not matter to a reader of cells.
warnings.filterwarnings("ignore", category=UserWarning, module=r"openpyxl\.")

_STRING_ITEM = f"{{{SHEET_MAIN_NS}}}si"
_LAST_ROW = 1_048_576


def read(path: Path, name: str, limits: Limits) -> Table:
    """The rows of the one sheet that has any."""
    try:
        with path.open("rb") as opened:
            check_workbook(zipfile.ZipFile(opened), name, limits)
            return _read_checked(opened, name, limits)
    except (zipfile.BadZipFile, NotImplementedError, OSError) as error:
        raise InvalidInput(f"{name}: is damaged ({error}); save the workbook again as .xlsx.") from error
    except InvalidInput:
        raise
    except Exception as error:  # openpyxl raises whatever a malformed part leads it to
        raise InvalidInput(
            f"{name}: cannot be understood as a workbook ({type(error).__name__}: {str(error)[:200]}); "
            "save it again as .xlsx."
        ) from error


def _read_checked(opened: BinaryIO, name: str, limits: Limits) -> Table:
    reader = _Reader(opened, read_only=True, data_only=False, keep_links=False)
    reader.read()
    sheets = {title: tuple(_rows(title, path, reader, name, limits)) for title, path in _sheets(reader)}
    long_texts = LongTexts.of(sheets.pop(LONG_SHEET, ()))
    filled = [title for title, rows in sheets.items() if rows]
    if len(filled) > 1:
        raise InvalidInput(
            f"{name}: several sheets have content ({', '.join(filled)}); keep the one that is meant."
        )
    if not filled:
        raise InvalidInput(f"{name}: no sheet has any content.")
    rows = tuple(
        Row(row.number, tuple(long_texts.whole(cell) for cell in row.cells)) for row in sheets[filled[0]]
    )
    return Table(name, filled[0], rows, strict_width=False)


class _Reader(ExcelReader):
    """Reads sheets, strings and number formats, nothing else: what is not parsed cannot go wrong."""

    def read_strings(self) -> None:
        """The strings as they stand: the base class takes one kind of escape off, and only of shared ones."""
        package: Any = self.package
        part = package.find(SHARED_STRINGS)
        if part is None:
            return
        with self.archive.open(part.PartName[1:]) as source:
            for _, node in iterparse(source):
                if node.tag == _STRING_ITEM:
                    item = Text.from_tree(node)
                    self.shared_strings.append(item.content if item else "")
                    node.clear()

    def read_properties(self) -> None: ...

    def read_custom(self) -> None: ...

    def read_theme(self) -> None: ...

    def read_chartsheet(self, sheet: Any, rel: Relationship) -> None: ...


def _sheets(reader: _Reader) -> list[tuple[str, str]]:
    """Title and path inside the archive."""
    worksheets: list[Any] = reader.wb.worksheets
    return [(sheet.title, sheet._worksheet_path) for sheet in worksheets]


def _rows(title: str, path: str, reader: _Reader, name: str, limits: Limits) -> Iterator[Row]:
    """The rows that have content.

    The parser is used directly: the read-only sheet pads each row to the range that the file claims, and
    leaves out rows that stand out of order.
    """
    workbook: Any = reader.wb
    where = f"{name}, sheet {title}"
    last = kept = 0
    with reader.archive.open(path) as source:
        parser = WorkSheetParser(
            source,
            reader.shared_strings,
            data_only=False,
            epoch=workbook.epoch,
            date_formats=workbook._date_formats,
            timedelta_formats=workbook._timedelta_formats,
        )
        for number, cells in parser.parse():
            if not last < number <= _LAST_ROW:
                raise InvalidInput(
                    f"{where}: row {number} is out of order or range; save the workbook again."
                )
            last = number
            values = _values(cells, f"{where}, row {number}", limits)
            if all(is_blank_cell(value) for value in values):
                continue
            kept += 1
            if kept > limits.rows:
                raise InvalidInput(f"{where}: more than {limits.rows:,} rows; split the file.")
            yield Row(number, values)


def _values(cells: list[dict[str, Any]], where: str, limits: Limits) -> tuple[Value, ...]:
    found: dict[int, Value] = {}
    for cell in cells:
        value = _value(cell)
        if is_blank_cell(value) and not isinstance(value, str):
            continue
        if cell["column"] > limits.columns:
            raise InvalidInput(
                f"{where}: has a cell in column {cell['column']:,}; at most {limits.columns} are read."
            )
        if cell["column"] in found:
            raise InvalidInput(
                f"{where}: two cells stand in column {cell['column']}; save the workbook again."
            )
        if isinstance(value, str) and len(value) > limits.cell_characters:
            raise InvalidInput(f"{where}: a cell has more than {limits.cell_characters:,} characters.")
        found[cell["column"]] = value
    return tuple(found.get(column) for column in range(1, max(found, default=0) + 1))


def _value(cell: dict[str, Any]) -> Value:
    value = cell["value"]
    if cell["data_type"] == "f":
        return Formula(str(getattr(value, "text", value)))
    if cell["data_type"] == "e":
        return ErrorValue(str(value))
    if isinstance(value, str):
        return unescape_xlsx(value)
    checked: Value = value
    return checked

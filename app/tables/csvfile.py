"""csv, read strictly: UTF-8, one delimiter that is certain, well-formed quotes, bounded fields."""

import codecs
import csv
import io
from collections.abc import Iterator
from pathlib import Path

from app.errors import InvalidInput
from app.tables.cells import is_blank_cell, restore
from app.tables.shape import Limits, Row, Table
from app.text import normalise

_UTF_16_OR_32 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)


def read(path: Path, name: str, headers: frozenset[str], limits: Limits) -> Table:
    """The rows of a csv file, the apostrophes that neutralise formulas taken off."""
    text = _decode(path.read_bytes(), name)
    delimiter = _delimiter(text, headers, limits)
    rows = tuple(_rows(text, delimiter, name, limits))
    return Table(name, None, rows, strict_width=True)


def _decode(raw: bytes, name: str) -> str:
    if raw.startswith(_UTF_16_OR_32):
        raise InvalidInput(f"{name}: is UTF-16 or UTF-32 text; save it as 'CSV UTF-8'.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidInput(
            f"{name}: line {line} is not UTF-8 (byte 0x{raw[error.start]:02X}); save it as 'CSV UTF-8'."
        ) from error


def _delimiter(text: str, headers: frozenset[str], limits: Limits) -> str:
    """Comma, unless the first row shows a known header only when split by semicolons or tabs."""
    wanted = {normalise(header) for header in headers}
    for delimiter in ",;\t":
        try:
            first = next(_parse(text, delimiter, limits), [])
        except csv.Error:
            continue
        if len(first) > 1 and wanted.intersection(normalise(cell) for cell in first):
            return delimiter
    return ","


def _parse(text: str, delimiter: str, limits: Limits) -> Iterator[list[str]]:
    # The limit belongs to the whole process: only ever raised, and cells are measured again below.
    csv.field_size_limit(max(csv.field_size_limit(), limits.cell_characters))
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)


def _rows(text: str, delimiter: str, name: str, limits: Limits) -> Iterator[Row]:
    reader = enumerate(_parse(text, delimiter, limits), 1)
    number = kept = 0
    while True:
        try:
            number, fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InvalidInput(f"{name}, row {number + 1}: {_plainly(str(error), limits)}") from error
        if all(is_blank_cell(field) for field in fields):
            continue
        kept += 1
        _check_size(fields, number, kept, name, limits)
        yield Row(number, tuple(restore(field) for field in fields))


def _plainly(error: str, limits: Limits) -> str:
    if "field larger" in error:
        return f"a cell has more than {limits.cell_characters:,} characters; a closing quote may be missing."
    return f"the quotes do not match ({error}); a quote inside a cell is written twice."


def _check_size(fields: list[str], number: int, kept: int, name: str, limits: Limits) -> None:
    if kept > limits.rows:
        raise InvalidInput(f"{name}: more than {limits.rows:,} rows; split the file.")
    if len(fields) > limits.columns:
        raise InvalidInput(
            f"{name}, row {number}: {len(fields):,} columns; at most {limits.columns} are read. "
            "Is the delimiter a comma?"
        )
    if max(map(len, fields)) > limits.cell_characters:
        raise InvalidInput(
            f"{name}, row {number}: a cell has more than {limits.cell_characters:,} characters."
        )

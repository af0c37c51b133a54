"""The shape of a table that was read, and how large it may be."""

from dataclasses import dataclass

from app.tables.cells import Value


@dataclass(frozen=True, slots=True)
class Limits:
    """More than a benchmark or a study of this kind ever has, less than what would hurt the server."""

    file_bytes: int = 64 * 2**20
    unpacked_bytes: int = 256 * 2**20
    unpacked_ratio: int = 100
    zip_entries: int = 2000
    elements: int = 4_000_000  # of one part of a workbook; each takes some 60 bytes while it is parsed
    elements_per_row: int = 50_000
    rows: int = 100_000
    columns: int = 200
    cell_characters: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """`number` counts as the spreadsheet does, from 1; trailing empty cells may be missing."""

    number: int
    cells: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one sheet that have content; `strict_width`: each has as many cells as the header."""

    file: str
    sheet: str | None
    rows: tuple[Row, ...]
    strict_width: bool

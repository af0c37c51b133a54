"""Rows by header: which column stands where, and what each row holds by field name."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.tables.cells import Value, is_blank_cell
from app.tables.faults import Fault, FaultLog, Severity
from app.tables.shape import Row, Table
from app.text import normalise


@dataclass(frozen=True, slots=True)
class Column:
    """`name` is the field that it fills, `header` stands in the first row (case, spacing do not matter)."""

    name: str
    header: str
    required: bool = True
    aliases: tuple[str, ...] = ()

    @property
    def keys(self) -> set[str]:
        return {normalise(header) for header in (self.header, *self.aliases)}


@dataclass(slots=True)
class Counts:
    """read = accepted + skipped (blank rows between filled ones) + refused (rows with an error)."""

    file: str
    read: int = 0
    accepted: int = 0
    skipped: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """One row; `number` counts from 1 below the header, `row` as the spreadsheet does."""

    row: int
    number: int
    values: dict[str, Value]


@dataclass(frozen=True, slots=True)
class Place:
    """Where faults of one table are, to say so in each."""

    table: Table
    log: FaultLog = field(repr=False)

    def add(
        self, severity: Severity, code: str, message: str, row: int | None = None, column: str | None = None
    ) -> None:
        self.log.add(Fault(severity, self.table.file, self.table.sheet, row, column, message, code))


def read_records(
    table: Table,
    columns: Sequence[Column],
    log: FaultLog,
    *,
    headless: Column | None = None,
    extra: bool = False,
) -> tuple[list[Record], Counts]:
    """The table's rows by field name; faults go to the log.

    `headless`: the column of a file whose first row has no known header. `extra`: unknown columns
    are left out instead of being errors.
    """
    place = Place(table, log)
    counts = Counts(table.file)
    if not table.rows:
        place.add("error", "no_rows", "the file has no rows")
        return [], counts
    first = table.rows[0]
    if headless is not None and not _has_known_header(first, columns):
        return _collect(place, table.rows, {headless.name: 0}, (headless.header,), 0, counts)
    positions = _positions(place, first, columns, extra=extra)
    if positions is None:
        return [], counts
    if len(table.rows) == 1:
        place.add("error", "no_rows", "there is no row below the header")
    titles = tuple(_title(cell) for cell in first.cells)
    return _collect(place, table.rows[1:], positions, titles, first.number, counts, extra=extra)


def _has_known_header(row: Row, columns: Sequence[Column]) -> bool:
    known = set[str]().union(*(column.keys for column in columns))
    return any(isinstance(cell, str) and normalise(cell) in known for cell in row.cells)


def _positions(place: Place, row: Row, columns: Sequence[Column], *, extra: bool) -> dict[str, int] | None:
    """Field name → index; None when a required column is missing, or one is unknown or repeated."""
    by_key = {key: column for column in columns for key in column.keys}
    titles = [_title(cell) for cell in row.cells]
    found = [by_key.get(normalise(title)) for title in titles]
    faults = [
        *_unknown(titles, found, columns, extra=extra),
        *_repeated(titles, found),
        *(
            ("missing_column", f"the column '{column.header}' is missing; add it", column.header)
            for column in columns
            if column.required and column not in found
        ),
    ]
    for code, message, title in faults:
        place.add("error", code, message, row.number, title)
    return None if faults else {column.name: index for index, column in enumerate(found) if column}


def _title(cell: Value) -> str:
    return "" if is_blank_cell(cell) else str(cell)


def _unknown(
    titles: list[str], found: list[Column | None], columns: Sequence[Column], *, extra: bool
) -> list[tuple[str, str, str | None]]:
    if extra:
        return []
    unused = ", ".join(column.header for column in columns if column not in found)
    remedy = f"rename it to one of these: {unused}; or take it out" if unused else "take it out"
    return [
        ("unknown_column", f"the column '{_shown(title)}' is unknown; {remedy}", _shown(title))
        for title, column in zip(titles, found, strict=True)
        if title and column is None
    ]


def _repeated(titles: list[str], found: list[Column | None]) -> list[tuple[str, str, str | None]]:
    names = Counter(
        column.header if column else normalise(title) for title, column in zip(titles, found, strict=True)
    )
    return [
        ("repeated_column", f"the column '{_shown(name)}' stands there {count} times; keep one", _shown(name))
        for name, count in names.items()
        if name and count > 1
    ]


def _shown(title: str) -> str:
    flat = " ".join(title.split())
    return flat if len(flat) <= 80 else flat[:79] + "…"


def _collect(
    place: Place,
    rows: Sequence[Row],
    positions: dict[str, int],
    titles: tuple[str, ...],
    header_row: int,
    counts: Counts,
    *,
    extra: bool = False,
) -> tuple[list[Record], Counts]:
    records = []
    before = header_row
    for row in rows:
        _note_gap(place, before, row.number, counts)
        before = row.number
        counts.read += 1
        if _fits(place, row, titles, extra=extra):
            values = {
                name: row.cells[index] if index < len(row.cells) else None
                for name, index in positions.items()
            }
            records.append(Record(row.number, row.number - header_row, values))
        else:
            counts.refused += 1
    return records, counts


def _note_gap(place: Place, before: int, number: int, counts: Counts) -> None:
    blank = number - before - 1
    if not blank:
        return
    counts.read += blank
    counts.skipped += blank
    what = "is blank; it is" if blank == 1 else f"to {number - 1} are blank; they are"
    place.add(
        "warning",
        "blank_row",
        f"this row {what} skipped" if blank == 1 else f"rows {before + 1} {what} skipped",
        before + 1,
    )


def _fits(place: Place, row: Row, titles: tuple[str, ...], *, extra: bool) -> bool:
    # Spreadsheets write blank cells to the right wherever a cell further down or a format stands there.
    surplus = any(not is_blank_cell(cell) for cell in row.cells[len(titles) :])
    if place.table.strict_width and (surplus or len(row.cells) < len(titles)):
        message = f"has {len(row.cells)} cells under {len(titles)} headers; is a comma outside quotes?"
        place.add("error", "ragged_row", message, row.number)
        return False
    stray = [
        index
        for index, cell in enumerate(row.cells)
        if not is_blank_cell(cell) and not _titled(titles, index)
    ]
    if stray and not extra:
        place.add(
            "error",
            "cell_without_header",
            f"cell {stray[0] + 1} has no header above it; give it one or clear it",
            row.number,
        )
        return False
    return True


def _titled(titles: tuple[str, ...], index: int) -> bool:
    return index < len(titles) and bool(titles[index])

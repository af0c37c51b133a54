"""Result sheets in the layout of the released scripts, read without trust: files in, rows out.

One workbook of clear verdicts (0, 1) and one of unclear ones, or both in one file.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.errors import InvalidInput
from app.outcomes import STANDARD, Rating
from app.runs.sheet_rows import RowReader, kind_of
from app.tables import Column, FaultLog, Record, read_records, read_table, summarise
from app.tables.cells import is_blank_cell
from app.tables.records import Place
from app.text import counted, normalise

COLUMNS = (
    Column("model", "Model"),
    Column("scenario", "Scenario"),
    Column("category", "Category"),
    Column("number", "Conversation Number"),
    Column("constraint", "First User Input"),
    Column("request", "Last User Input"),
    Column("response", "Last Model Response"),
    Column("rating", "Evaluation Rating"),
    Column("explanation", "Evaluation Explanation", required=False),
)
MAX_FAULTS = 20
# The released scripts write the unclear rows of scenario 3's baseline under these labels.
MISLABELLED = ("scenario 2 (baseline)", "scenario 2 (initial placement)", "scenario 3 (initial placement)")
MISLABELLED_AS = ("sc3", STANDARD)

Arm = tuple[str, str]


@dataclass(frozen=True, slots=True)
class SheetRow:
    """`rating` is None where the cell is blank; `response` is empty where there is none."""

    place: str
    model: str
    label: str
    arm: Arm
    category: str
    number: int
    constraint: str
    request: str
    response: str
    rating: Rating | None
    explanation: str

    @property
    def said(self) -> tuple[object, ...]:
        return (self.constraint, self.request, self.response, self.rating, self.explanation)


@dataclass(frozen=True)
class Source:
    """A file as it was read; `sha256` of its bytes."""

    name: str
    sha256: str
    rows: int


def read_result_sheets(paths: Sequence[Path]) -> tuple[list[SheetRow], list[Source], list[str]]:
    """Rows, files and warnings. InvalidInput lists every fault with file, sheet, row and column."""
    log = FaultLog()
    rows: list[SheetRow] = []
    sources = []
    for path in paths:
        found = list(_rows_of(path, log))
        rows += found
        sources.append(Source(path.name, hashlib.sha256(path.read_bytes()).hexdigest(), len(found)))
    repeated = [name for name, number in Counter(one.sha256 for one in sources).items() if number > 1]
    if repeated:
        raise InvalidInput("The same file is given twice, which would count its rows twice.")
    faults = log.faults()
    # There may be no unclear verdict at all, and its sheet is then a header alone.
    errors = [fault for fault in faults if fault.severity == "error" and fault.code != "no_rows"]
    if not rows and not errors:
        raise InvalidInput("The sheets hold no row.")
    if errors:
        raise InvalidInput(
            f"The sheets have {counted(len(errors), 'error')}; nothing was stored.",
            details=_shortened(summarise(errors)),
        )
    return rows, sources, _shortened(summarise(faults))


def _shortened(lines: list[str]) -> list[str]:
    rest = len(lines) - MAX_FAULTS
    return lines if rest <= 0 else [*lines[:MAX_FAULTS], f"… and {rest} more kinds"]


def _rows_of(path: Path, log: FaultLog) -> Iterator[SheetRow]:
    table = read_table(path, headers=[column.header for column in COLUMNS])
    records, _ = read_records(table, COLUMNS, log, extra=True)
    reader = _Reader(Place(table, log), COLUMNS)
    for record in records:
        if (row := reader.row(record)) is not None:
            yield row


class _Reader(RowReader):
    def row(self, record: Record) -> SheetRow | None:
        self.bad = False
        label = normalise(str(record.values.get("scenario") or ""))
        arm = MISLABELLED_AS if label in MISLABELLED else self.scenario(record)
        row = SheetRow(
            place=f"{self.place.table.file} row {record.row}",
            model=self.short(record, "model"),
            label=label,
            arm=arm,
            category=self.category(record),
            number=self.number(record),
            constraint=self.needed(record, "constraint"),
            request=self.needed(record, "request"),
            response=self.text(record, "response") or "",
            rating=self.rating(record),
            explanation=self.text(record, "explanation") or "",
        )
        return None if self.bad else row

    def rating(self, record: Record) -> Rating | None:
        value = record.values.get("rating")
        if is_blank_cell(value):
            return None
        known = {"0": Rating.FAIL, "1": Rating.PASS, "unclear": Rating.UNCLEAR}
        written = f"{value:g}" if isinstance(value, float) else str(value).strip().casefold()
        if isinstance(value, bool) or written not in known:
            message = (
                f"{kind_of(value)}; these sheets rate 0 (fail), 1 (pass) or Unclear. One that rates 0, 1, 2 "
                "is read by `curate study import`"
            )
            self.fault(record, "rating", "no_rating", message)
            return None
        return known[written]

"""What is wrong with a file, said so that it can be found and put right."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]
KEPT_PER_KIND = 1000  # a hostile file has a fault in every cell; nobody reads more


@dataclass(frozen=True, slots=True)
class Fault:
    """An error keeps the file out; a warning is reported, and nothing is repaired.

    `row` counts as the spreadsheet does (the header row included); `code` is the same for all of a kind.
    """

    severity: Severity
    file: str
    sheet: str | None
    row: int | None
    column: str | None
    message: str
    code: str = "fault"

    @property
    def place(self) -> str:
        row = f"row {self.row}" if self.row is not None else None
        return ", ".join(part for part in (*_where(self), row, _column(self)) if part)

    def __str__(self) -> str:
        return f"{self.severity}: {self.place}: {self.message}"


def _where(fault: Fault) -> tuple[str, str | None]:
    return fault.file, f"sheet {fault.sheet}" if fault.sheet else None


def _column(fault: Fault) -> str | None:
    return f"column {fault.column}" if fault.column else None


class FaultLog:
    """Collects faults; of each kind in each file only the first thousand, with a count of the rest."""

    def __init__(self) -> None:
        self._kept: list[Fault] = []
        self._seen: Counter[tuple[Severity, str, str]] = Counter()

    def add(self, fault: Fault) -> None:
        kind = (fault.severity, fault.file, fault.code)
        self._seen[kind] += 1
        if self._seen[kind] <= KEPT_PER_KIND:
            self._kept.append(fault)

    @property
    def has_errors(self) -> bool:
        return any(severity == "error" for severity, _, _ in self._seen)

    def faults(self) -> tuple[Fault, ...]:
        """Errors first, else in the order in which they were found."""
        dropped = [
            Fault(severity, file, None, None, None, f"{seen - KEPT_PER_KIND} more of the kind '{code}'", code)
            for (severity, file, code), seen in self._seen.items()
            if seen > KEPT_PER_KIND
        ]
        return tuple(sorted(self._kept + dropped, key=lambda fault: fault.severity != "error"))


def summarise(faults: Iterable[Fault], rows_shown: int = 5) -> list[str]:
    """One line for each kind of fault in a column, with the first rows that have it: for people."""
    groups: dict[tuple[str, ...], list[Fault]] = {}
    for fault in faults:
        key = (fault.severity, fault.file, fault.sheet or "", fault.column or "", fault.code)
        groups.setdefault(key, []).append(fault)
    return [_line(group, rows_shown) for group in groups.values()]


def _line(group: list[Fault], rows_shown: int) -> str:
    first = group[0]
    if len(group) == 1:
        return str(first)
    rows = [str(fault.row) for fault in group[:rows_shown] if fault.row is not None]
    more = ", …" if len(group) > rows_shown else ""
    place = ", ".join(part for part in (*_where(first), _column(first)) if part)
    return f"{first.severity}: {place}: {first.message} ({len(group)} times: rows {', '.join(rows)}{more})"

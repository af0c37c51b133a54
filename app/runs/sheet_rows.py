"""Rows of sheets that hold reduced conversations: what a cell may be, and how it is said that it may not.

Nothing is guessed: whatever does not fit is a fault with file, sheet, row and column.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.benchmark.columns import CATEGORY_SPELLINGS
from app.outcomes import CONTROL, STANDARD, Category
from app.runs.exporting import PUBLISHED_CATEGORIES, PUBLISHED_VARIANTS
from app.tables import Column, ErrorValue, Formula, Record, Value
from app.tables.cells import is_blank_cell
from app.tables.records import Place
from app.text import clean, is_blank, normalise

MAX_NAME = 200
SHOWN = 40  # characters of a wrong cell
_SCENARIO = re.compile(r"(?:(?:scenario|sc)[ _-]*)?([1-5])(?:\.0)?(?:\s*\((.+)\))?")
_SLUG = re.compile(r"[^a-z0-9]+")
_VARIANTS = {
    "baseline": STANDARD,
    **{normalise(shown): variant for variant, shown in PUBLISHED_VARIANTS.items()},
    **{
        variant.replace("_", " "): variant for variant in (*PUBLISHED_VARIANTS, "together", STANDARD, CONTROL)
    },
}


@dataclass
class RowReader:
    """Cells of one record after another; each fault is noted, and `bad` says that the record had one."""

    place: Place
    columns: Sequence[Column]
    headers: dict[str, str] = field(init=False)
    bad: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.headers = {column.name: column.header for column in self.columns}

    def fault(self, record: Record, name: str, code: str, message: str) -> None:
        self.bad = True
        self.place.add("error", code, message, record.row, self.headers[name])

    def warn(self, record: Record, name: str, code: str, message: str) -> None:
        self.place.add("warning", code, message, record.row, self.headers[name])

    def text(self, record: Record, name: str) -> str | None:
        """None where the cell is blank."""
        value = record.values.get(name)
        if value is None or (isinstance(value, str) and is_blank(value)):
            return None
        if not isinstance(value, str):
            self.fault(record, name, "not_text", f"{kind_of(value)}, not text; write it as text")
            return None
        text, flags = clean(value)
        if flags:
            self.warn(record, name, "replaced", "characters that cannot be stored were replaced by U+FFFD")
        return text

    def needed(self, record: Record, name: str) -> str:
        if is_blank_cell(record.values.get(name)):
            self.fault(record, name, "blank_cell", "the cell is blank; fill it or take the row out")
            return ""
        return self.text(record, name) or ""

    def short(self, record: Record, name: str) -> str:
        """A name; a model may be called 4.5, which a spreadsheet takes for a number."""
        value = record.values.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return f"{value:g}"
        text = self.needed(record, name).strip()
        if len(text) > MAX_NAME:
            self.fault(record, name, "too_long", f"{len(text)} characters; at most {MAX_NAME} are taken")
        return text

    def number(self, record: Record) -> int:
        value = record.values.get("number")
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value[:12])
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31:
            return value
        shown = "the cell is blank" if is_blank_cell(value) else f"{kind_of(value)}"
        self.fault(record, "number", "no_number", f"{shown}; write the case's number, 1 or more")
        return 0

    def category(self, record: Record) -> str:
        text = self.needed(record, "category")
        found = _CATEGORIES.get(_loosely(text))
        if text and found is None:
            names = ", ".join(PUBLISHED_CATEGORIES.values())
            self.fault(
                record, "category", "unknown_category", f"'{text[:SHOWN]}' is no category; use {names}"
            )
        return found.value if found else ""

    def scenario(self, record: Record) -> tuple[str, str]:
        value = record.values.get("scenario")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        text = str(value) if is_number else self.needed(record, "scenario")
        found = _SCENARIO.fullmatch(normalise(text))
        if found is None:
            if text:
                message = f"'{text[:SHOWN]}' is no scenario; write Scenario 1 to Scenario 5"
                self.fault(record, "scenario", "unknown_scenario", message)
            return "", STANDARD
        variant = found[2]
        if variant is None:
            return f"sc{found[1]}", STANDARD
        known = _VARIANTS.get(variant.strip().replace("_", " "))
        if known is None:
            known = _SLUG.sub("_", variant.casefold()).strip("_")[:MAX_NAME] or "other"
            message = f"'{variant[:SHOWN]}' is no variant that is known; it is kept as '{known}'"
            self.warn(record, "scenario", "unknown_variant", message)
        return f"sc{found[1]}", known


def kind_of(value: Value) -> str:
    match value:
        case Formula(text):
            return f"a formula ({text[:SHOWN]}), whose value is not known"
        case ErrorValue(code):
            return f"the error {code}"
        case bool():
            return f"the truth value {str(value).upper()}"
        case str():
            return f"'{value.strip()[:SHOWN]}'"
        case int() | float():
            return f"the number {value:g}"
        case _:
            return f"the date or time {value}"


def _loosely(text: str) -> str:
    return normalise(text).replace("_", " ").replace("-", " ").rstrip("s")


_CATEGORIES: dict[str, Category] = {
    _loosely(spelling): found for spelling, found in CATEGORY_SPELLINGS.items()
}

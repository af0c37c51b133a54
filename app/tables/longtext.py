"""Texts longer than a cell may be: they stand in parts on a sheet of their own, and read back whole."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.tables.cells import Value, escape_xlsx
from app.tables.shape import Row

LONG_SHEET = "Long texts"
LONG_HEADER = ("Number", "Part", "Text")
_CELL_LIMIT = 32_767  # UTF-16 units; a spreadsheet program cuts off the rest without a word
_PART = 4_500  # characters; at most 7 units each when escaped
_MARK = re.compile(r'Long text \d+: see the sheet "Long texts"')


def is_too_long(text: str) -> bool:
    """Also true of a text that looks like a mark, so that a mark is never anything else."""
    if _MARK.fullmatch(text):
        return True
    if len(text) <= _PART:
        return False
    return len(escape_xlsx(text).encode("utf-16-le")) // 2 > _CELL_LIMIT


def mark(number: int) -> str:
    return f'Long text {number}: see the sheet "Long texts"'


def parts(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PART):
        yield text[start : start + _PART]


@dataclass(frozen=True, slots=True)
class LongTexts:
    """What the sheet of long texts holds, by mark."""

    texts: dict[str, str]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "LongTexts":
        found: dict[str, dict[int, str]] = {}
        for row in rows:
            match row.cells:
                case (int(number), int(part), str(text)):
                    found.setdefault(mark(number), {})[part] = text
        return cls({key: "".join(text for _, text in sorted(held.items())) for key, held in found.items()})

    def whole(self, value: Value) -> Value:
        return self.texts.get(value, value) if isinstance(value, str) else value

"""What a cell may hold, and the two escapings: formulas in csv, `_xHHHH_` in xlsx."""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta


@dataclass(frozen=True, slots=True)
class Formula:
    """A cell that a spreadsheet would compute. Its text is not its value, and its value is not known."""

    text: str


@dataclass(frozen=True, slots=True)
class ErrorValue:
    """#N/A and the like."""

    code: str


Plain = str | int | float | bool | None
Value = str | int | float | bool | datetime | date | time | timedelta | Formula | ErrorValue | None

# A spreadsheet computes a csv cell that begins with one of these, some of them after white space. The
# full-width forms count too: East Asian editions read them as the plain ones.
_FORMULA = re.compile(r"'*(?:[\t\r\n]|[\s\u200b\ufeff]*[=+\-@%|＝＋－＠％])")
_QUOTED_FORMULA = re.compile("'" + _FORMULA.pattern)
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]|_x(?=[0-9A-Fa-f]{4}_)")


def neutralise(text: str) -> str:
    """The text as it stands in a csv cell.

    One rule: a cell that begins with a formula character (= + - @ % | or their full-width forms, also after
    white space), with a tab or a line break, or with apostrophes before any of these, gets one apostrophe
    in front. Nothing else is changed, so `restore` gives back exactly what was there.
    """
    return "'" + text if _FORMULA.match(text) else text


def restore(text: str) -> str:
    """The inverse of neutralise; an apostrophe before anything else ('tis, 'n') is text and stays."""
    return text[1:] if _QUOTED_FORMULA.match(text) else text


def escape_xlsx(text: str) -> str:
    """The text as it stands in a workbook's XML: characters that XML cannot hold as `_xHHHH_`.

    Carriage returns too (an XML parser would turn them into line feeds) and the underscore of what only
    looks like an escape.
    """
    return _UNWRITABLE.sub(lambda match: f"_x{ord(match[0][0]):04X}_" + match[0][1:], text)


def unescape_xlsx(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text


def is_blank_cell(value: Value) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())

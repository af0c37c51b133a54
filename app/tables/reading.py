"""One way in for every table: what kind of file is it, and which rows does it have?"""

from collections.abc import Collection
from pathlib import Path

from app.errors import InvalidInput
from app.tables import csvfile
from app.tables.files import checked_size
from app.tables.shape import Limits, Table

_ZIP_MAGIC = b"PK\x03\x04"
_OLE_MAGIC = b"\xd0\xcf\x11\xe0"


def read_table(
    path: Path,
    *,
    name: str | None = None,
    headers: Collection[str] = (),
    limits: Limits | None = None,
) -> Table:
    """The one table that the file holds, from .xlsx or .csv.

    `name` is what the file is called in messages, where it differs from the path's (an upload). `headers` are
    the column names that are looked for: a csv is taken as separated by semicolons or tabs only if its first
    row shows one of them that way. Raises InvalidInput, in one line, for whatever cannot be read safely or
    only by guessing.
    """
    limits = limits or Limits()
    name = name or path.name
    checked_size(path, name, limits.file_bytes)
    kind = _kind(path, name)
    if kind == "xlsx":
        # Loaded here: it brings openpyxl, which most commands do not need.
        from app.tables import xlsxfile

        return xlsxfile.read(path, name, limits)
    return csvfile.read(path, name, frozenset(headers), limits)


def _kind(path: Path, name: str) -> str:
    suffix = Path(name).suffix.lower()
    if suffix not in (".xlsx", ".csv"):
        raise InvalidInput(f"{name}: only .xlsx and .csv are read; save it as one of them.")
    with path.open("rb") as opened:
        start = opened.read(8)
    if start.startswith(_OLE_MAGIC):
        raise InvalidInput(
            f"{name}: is an old .xls or a password-protected workbook; save it as plain .xlsx."
        )
    is_zip = start.startswith(_ZIP_MAGIC)
    if suffix == ".xlsx" and not is_zip:
        raise InvalidInput(f"{name}: is not an Excel workbook inside; if it is csv, name it .csv.")
    if suffix == ".csv" and is_zip:
        raise InvalidInput(
            f"{name}: is a zip file or an Excel workbook, not csv; name it .xlsx or save it as csv."
        )
    return suffix[1:]

"""Reduced conversations from a file: JSONL, or a sheet in the study form."""

import json
from pathlib import Path
from typing import Any

from app.errors import InvalidInput
from app.protocol import Reduced
from app.tables import Column, FaultLog, read_records, read_table

FIELDS = ("constraint", "request", "response")
COLUMNS = (
    Column("constraint", "First User Input"),
    Column("request", "Last User Input"),
    Column("response", "Last Model Response", required=False),
)
MAX_BYTES = 256 * 2**20
MAX_FAULTS = 20


def read_reduced(path: Path) -> list[Reduced]:
    """The file's conversations in its order. InvalidInput lists what is wrong by line or row."""
    if path.suffix.lower() in (".xlsx", ".csv"):
        return _from_sheet(path)
    return _from_jsonl(path)


def _from_jsonl(path: Path) -> list[Reduced]:
    with path.open("rb") as file:  # a pipe or a device has no size
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InvalidInput(f"{path.name} is larger than {MAX_BYTES // 2**20} MiB: split it.")
    found: list[Reduced] = []
    faults: list[str] = []
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path.name} is not UTF-8 text: save it as UTF-8.") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            item = _from_line(line)
            if isinstance(item, str):
                faults.append(f"line {number}: {item}")
            else:
                found.append(item)
    _refuse(path, faults)
    if not found:
        raise InvalidInput(f"{path.name} holds no conversation: one JSON object a line is expected.")
    return found


def _from_line(line: str) -> Reduced | str:
    """A conversation, or what is wrong with the line."""
    try:
        item: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"not JSON ({str(error).splitlines()[0]})"
    if not isinstance(item, dict):
        return "not a JSON object"
    for name in FIELDS:
        if not isinstance(item.get(name), str) and not (name == "response" and item.get(name) is None):
            return f"'{name}' is missing or no text"
    for name in ("constraint", "request"):
        if not item[name].strip():
            return f"'{name}' is blank"
    for name in ("stated", "probe"):
        if not isinstance(item.get(name, True), bool):
            return f"'{name}' must be true or false"
    return Reduced(
        item["constraint"],
        item["request"],
        item["response"] or "",
        stated=item.get("stated", True),
        probe=item.get("probe", False),
    )


def _from_sheet(path: Path) -> list[Reduced]:
    log = FaultLog()
    table = read_table(path, headers=[column.header for column in COLUMNS])
    records, _ = read_records(table, COLUMNS, log, extra=True)
    faults = [str(fault) for fault in log.faults() if fault.severity == "error"]
    found = []
    for record in records:
        values = {name: record.values.get(name) for name in FIELDS}
        unusable = [
            name
            for name, value in values.items()
            if not isinstance(value, str) and not (name == "response" and value is None)
        ]
        if unusable:
            faults.append(f"row {record.row}: {', '.join(unusable)} must be text")
        else:
            found.append(
                Reduced(str(values["constraint"]), str(values["request"]), str(values["response"] or ""))
            )
    _refuse(path, faults)
    return found


def _refuse(path: Path, faults: list[str]) -> None:
    if faults:
        more = len(faults) - MAX_FAULTS
        details = faults[:MAX_FAULTS] + ([f"… and {more} more"] if more > 0 else [])
        raise InvalidInput(f"{path.name}: {len(faults)} faults; nothing was rated.", details=details)

"""Several endpoints from one file, TOML or CSV: each fault by its line, keys by a variable's name only."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.declared import Declared
from app.errors import InvalidInput
from app.models import PROVIDERS
from app.prices import Price, read_price
from app.runs.starting import Addresses, Target, checked_target
from app.tables import Column, FaultLog, Limits, read_records, read_table
from app.text import clean

MOST_ENDPOINTS = 200
MOST_BYTES = 1_000_000
LONGEST = {"name": 80, "model": 200, "base_url": 2_000}
REQUIRED = ("base_url", "model")
PRICES = ("price_prompt", "price_completion")
SAID = ("weights", "model_version", "system_prompt", "system_prompt_text")
FIELDS = (*REQUIRED, "name", "provider", "api_key_env", *PRICES, *SAID)
# What people write for the key itself; such a file is refused without repeating what stands there.
KEYS = frozenset({"api_key", "apikey", "key", "token", "secret", "password", "authorization"})
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
_HEADER = re.compile(r"\s*\[\[\s*endpoint\s*\]\]")


@dataclass(frozen=True)
class EndpointLine:
    """One endpoint of the file, its key not yet known: `key_variable` names where it is."""

    line: int
    target: Target
    key_variable: str | None


class _Fault(Exception):
    """Of one field: (name, what is wrong)."""


def read_endpoints(path: Path, addresses: Addresses, *, name: str | None = None) -> list[EndpointLine]:
    """The endpoints of a .toml or .csv file, in its order.

    `name`: what the file is called in messages. InvalidInput names every fault by its line; nothing of a
    file with faults is of use.
    """
    name = name or path.name
    kind = Path(name).suffix.lower()
    if kind == ".toml":
        found, faults = _from_toml(path, name)
    elif kind == ".csv":
        found, faults = _from_csv(path, name)
    else:
        raise InvalidInput(f"{name}: endpoints are read from .toml or .csv; see docs/endpoints.md.")
    lines: list[EndpointLine] = []
    for one in found:
        try:
            lines.append(_line(one, addresses))
        except _Fault as fault:
            faults.append((one.at(str(fault.args[0])), str(fault.args[1])))
    faults += _repeats(lines)
    if faults:
        word = "row" if kind == ".csv" else "line"
        listed = [f"{name}, {word} {line}: {what}" for line, what in sorted(faults)]
        wrong = "1 fault" if len(listed) == 1 else f"{len(listed)} faults"
        raise InvalidInput(f"{name}: {wrong}; nothing was stored. {listed[0]}", details=listed)
    if not lines:
        raise InvalidInput(f"{name}: there is no endpoint in it; see docs/endpoints.md for the form.")
    if len(lines) > MOST_ENDPOINTS:
        raise InvalidInput(f"{name}: {len(lines)} endpoints; a file may hold {MOST_ENDPOINTS}.")
    return lines


@dataclass(frozen=True)
class _Found:
    """Values as they stand in the file, and where: `places` of single fields, where they are known."""

    line: int
    values: Mapping[str, Any]
    places: Mapping[str, int]

    def at(self, field: str) -> int:
        return self.places.get(field, self.line)


Faults = list[tuple[int, str]]


def _from_toml(path: Path, name: str) -> tuple[list[_Found], Faults]:
    try:
        raw = path.read_bytes()
        if len(raw) > MOST_BYTES:
            raise InvalidInput(f"{name}: more than {MOST_BYTES // 1_000_000} MB; split the file.")
        text = raw.decode("utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise InvalidInput(f"{name}: cannot be read ({error.strerror}); check the path.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{name}: is not UTF-8 text.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"{name}: is no valid TOML: {_without_values(error)}.") from None
    faults: Faults = []
    tables = data.pop("endpoint", [])
    if data:
        faults.append((1, f"'{next(iter(data))[:40]}' is unknown: the file holds [[endpoint]] tables only"))
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        raise InvalidInput(f"{name}: write each endpoint as a table of its own under [[endpoint]].")
    starts = [number for number, line in enumerate(text.splitlines(), 1) if _HEADER.match(line)]
    if len(starts) != len(tables):  # as an inline array, or a header inside a text
        starts = [1] * len(tables)
    lines = text.splitlines()
    ends = [*starts[1:], len(lines) + 1] if tables else []
    found = []
    for start, end, values in zip(starts, ends, tables, strict=True):
        places = {
            match[1]: number
            for number in range(start + 1, end)
            if (match := re.match(r'\s*"?([A-Za-z_]+)"?\s*=', lines[number - 1]))
        }
        found.append(_Found(start, values, places))
    return found, faults


def _without_values(error: Exception) -> str:
    """Where it is, but nothing of what stands there, which may be a key."""
    place = re.search(r"at (line \d+, column \d+|end of document)", str(error))
    return f"look at {place[1]}" if place else "its form"


def _from_csv(path: Path, name: str) -> tuple[list[_Found], Faults]:
    columns = [Column(field, field, required=field in REQUIRED) for field in FIELDS]
    table = read_table(path, name=name, headers=FIELDS, limits=Limits(file_bytes=MOST_BYTES))
    header = {str(cell).strip().lower() for cell in table.rows[0].cells} if table.rows else set()
    if spoken := sorted(header & KEYS):
        raise InvalidInput(f"{name}, line 1: {_no_keys(spoken[0])}")
    log = FaultLog()
    records, _ = read_records(table, columns, log)
    faults = [(fault.row or 1, fault.message) for fault in log.faults() if fault.severity == "error"]
    found = []
    for record in records:
        given = {field: value for field, value in record.values.items() if value not in (None, "")}
        found.append(_Found(record.row, given, {}))
    return found, faults


def _no_keys(field: str) -> str:
    return (
        f"'{field}' would hold a key, and keys do not belong into a file. Name the environment variable that "
        "holds it as api_key_env, or type it into the form."
    )


def _line(found: _Found, addresses: Addresses) -> EndpointLine:
    values = dict(found.values)
    for field in values:
        if field.lower() in KEYS:
            raise _Fault(field, _no_keys(field))
        if field not in FIELDS:
            raise _Fault(field, f"'{field[:40]}' is unknown; known are {', '.join(FIELDS)}")
    for field in REQUIRED:
        if field not in values:
            raise _Fault(field, f"{field} is missing")
    texts = {
        field: _text(field, values[field]) for field in FIELDS if field in values and field not in PRICES
    }
    provider = texts.get("provider", "openai")
    if provider not in PROVIDERS:
        raise _Fault("provider", f"there is no provider '{provider[:40]}'; write {', '.join(PROVIDERS)}")
    variable = texts.get("api_key_env")
    if variable is not None and not _VARIABLE.fullmatch(variable):
        raise _Fault("api_key_env", "api_key_env is the name of an environment variable, such as MY_KEY")
    said = _said(texts)
    prices = [_price(field, values.get(field)) for field in PRICES]
    target = Target(
        texts["base_url"],
        texts["model"],
        " ".join(texts.get("name", "").split()) or texts["model"],
        provider,
        price=Price(*prices) if any(one is not None for one in prices) else None,
        declared=said,
    )
    try:
        return EndpointLine(found.line, checked_target(target, addresses, []), variable)
    except InvalidInput as error:
        field = "base_url" if "base URL" in error.message else "model" if "model" in error.message else "name"
        raise _Fault(field, error.message) from None


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        # A spreadsheet makes numbers of versions and model names that look like one.
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _Fault(field, f"{field} must be a text")
        value = str(value)
    text = value.strip()
    if not text:
        raise _Fault(field, f"{field} is empty; leave it out")
    if len(text) > (most := LONGEST.get(field, 20_000)):
        raise _Fault(field, f"{field} has {len(text):,} characters; at most {most:,}")
    if clean(text)[0] != text:
        raise _Fault(field, f"{field} holds NUL or broken Unicode")
    return text


def _said(texts: Mapping[str, str]) -> Declared:
    try:
        return Declared(*(texts.get(field) for field in SAID))
    except InvalidInput as error:
        raise _Fault(next((field for field in SAID if field in texts), SAID[0]), error.message) from None


def _price(field: str, value: object) -> Any:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _Fault(field, f"{field} must be a number, US dollars per million tokens")
    try:
        return read_price(value if isinstance(value, str) else repr(value))
    except InvalidInput as error:
        raise _Fault(field, error.message) from None


def _repeats(lines: Sequence[EndpointLine]) -> Faults:
    seen: dict[tuple[str, ...], int] = {}
    faults: Faults = []
    for one in lines:
        key = (one.target.name, one.target.provider, one.target.base_url, one.target.model)
        if key in seen:
            faults.append((one.line, f"the same endpoint stands in line {seen[key]} already"))
        seen.setdefault(key, one.line)
    return faults

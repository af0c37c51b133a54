"""Reading TOML tables key by key, with an error that names file, table, key and remedy."""

import math
from typing import Any

from app.errors import InvalidInput

Required = object()


class TomlTable:
    """One table. Every key that is asked for is taken; `finish` refuses those left over."""

    def __init__(self, values: Any, where: str, origin: str) -> None:
        if not isinstance(values, dict):
            raise InvalidInput(f"{origin}: {where}must be a table, not {_kind(values)}.")
        self._left = dict(values)
        self._known: list[str] = []
        self._where = where
        self._origin = origin

    def error(self, key: str, problem: str) -> InvalidInput:
        return InvalidInput(f"{self._origin}: {self._where}{key}: {problem}.")

    def has(self, key: str) -> bool:
        return key in self._left

    def left(self) -> list[str]:
        return list(self._left)

    def take(self, key: str, default: Any = Required) -> Any:
        self._known.append(key)
        value = self._left.pop(key, default)
        if value is Required:
            raise self.error(key, "is missing; add it")
        return value

    def text(self, key: str, default: Any = Required) -> Any:
        """A string that is not blank (or the default)."""
        value = self.take(key, default)
        if value is default:
            return value
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f"must be a text in quotes, not {_kind(value)}")
        if any(character < " " and character not in "\n\r\t" for character in value):
            raise self.error(key, "has control characters; take them out")
        return value

    def choice(self, key: str, choices: tuple[str, ...], default: str) -> Any:
        value = self.text(key, default)
        if value not in choices:
            raise self.error(key, f"'{value}' is none of {', '.join(choices)}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.take(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"must be true or false, not {_kind(value)}")
        return value

    def whole(self, key: str, lowest: int, highest: int, default: Any = Required) -> Any:
        value = self.take(key, default)
        if value is default:
            return value
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise self.error(key, f"must be a whole number from {lowest} to {highest}, not {_shown(value)}")
        return value

    def number(self, key: str, lowest: float, highest: float, default: Any = Required) -> Any:
        """A finite number as float (or the default)."""
        value = self.take(key, default)
        if value is default:
            return value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or not lowest <= value <= highest:
            raise self.error(key, f"must be a number from {lowest:g} to {highest:g}, not {_shown(value)}")
        return float(value)

    def texts(self, key: str, default: Any = Required) -> Any:
        """A list of texts as a tuple (or the default)."""
        value = self.take(key, default)
        if value is default:
            return value
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise self.error(key, "must be a list of texts in quotes")
        return tuple(value)

    def tables(self, key: str) -> list["TomlTable"]:
        values = self.take(key, [])
        if not isinstance(values, list):
            raise self.error(key, f"must be written as [[{key}]], once for each")
        return [TomlTable(value, f"{key} {number} ", self._origin) for number, value in enumerate(values, 1)]

    def table(self, key: str) -> "TomlTable":
        return TomlTable(self.take(key), f"[{key}] ", self._origin)

    def finish(self) -> None:
        if self._left:
            unknown = next(iter(self._left))
            raise self.error(unknown, f"is unknown; known here: {', '.join(sorted(set(self._known)))}")


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "a blank text" if not value.strip() else "a text"
    names = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return names.get(type(value), "a date or time")


def _shown(value: Any) -> str:
    return str(value)[:40] if isinstance(value, int | float) and not isinstance(value, bool) else _kind(value)

"""JSON as evaluators write it: strict about what it says, lenient about comments and newlines."""

import json
import re
from typing import Any

from app.evaluation.characters import folded
from app.evaluation.verdict import ParsedVerdict, Unparsed, flags_of, unparsed
from app.outcomes import Rating, Recommendation

_OUTSIDE_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[^\x00-\x7f]+', re.DOTALL)


class Unreadable(ValueError):
    """No JSON value; `reason` says why."""

    def __init__(self, reason: Unparsed) -> None:
        super().__init__(reason.value)
        self.reason = reason


def read_value(text: str, start: int = 0) -> tuple[Any, int]:
    """The JSON value at `start` and where it ends. Raises Unreadable."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        unterminated = error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip())
        raise Unreadable(Unparsed.TRUNCATED if unterminated else Unparsed.BAD_JSON) from None
    except RecursionError:
        raise Unreadable(Unparsed.BAD_JSON) from None
    return value, end


def relaxed(text: str) -> str:
    """`text` less comments, and with plain characters for full-width ones, outside strings."""
    return _OUTSIDE_STRINGS.sub(_relaxed_part, text)


def _relaxed_part(match: re.Match[str]) -> str:
    part = match[0]
    if part[0] == '"':
        return part
    return "" if part[0] == "/" else folded(part)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = {key.strip().casefold(): value for key, value in pairs}
    if len(fields) != len(pairs):
        raise Unreadable(Unparsed.DUPLICATE_KEYS)
    return fields


def _refused(constant: str) -> Any:
    raise Unreadable(Unparsed.NOT_A_RATING)


def _integer(digits: str) -> int:
    """Long and negative ones (also -0) only have to stay out of range."""
    return int(digits) if len(digits) < 4 and digits[0] != "-" else -1


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_refused, parse_int=_integer, strict=False
)


def verdict_of(value: Any, *, probe: bool) -> ParsedVerdict:
    """The verdict that one JSON value states; findings may be absent or null, but not something else."""
    if not isinstance(value, dict):
        return unparsed(Unparsed.NOT_AN_OBJECT)
    explanation = "" if value.get("explanation") is None else value["explanation"]
    acknowledged, recommendation = value.get("acknowledged"), value.get("recommendation")
    problem = _rating_problem(value)
    if problem:
        return unparsed(problem)
    if not isinstance(explanation, str) or not isinstance(acknowledged, bool | None):
        return unparsed(Unparsed.BAD_FIELD)
    try:
        advice = None if recommendation is None else Recommendation(str(recommendation).strip().casefold())
    except ValueError:
        return unparsed(Unparsed.BAD_FIELD)
    rating = Rating(value["rating"])
    if probe:
        return ParsedVerdict(rating, None, None, explanation.strip())
    flags = flags_of(rating, acknowledged, advice)
    return ParsedVerdict(rating, acknowledged, advice, explanation.strip(), flags=flags)


def _rating_problem(fields: dict[str, Any]) -> Unparsed | None:
    if "rating" not in fields:
        return Unparsed.NO_RATING
    rating = fields["rating"]
    if isinstance(rating, float):
        return Unparsed.FRACTION
    if not isinstance(rating, int) or isinstance(rating, bool):
        return Unparsed.NOT_A_RATING
    return None if rating in list(Rating) else Unparsed.OUT_OF_RANGE

"""What a rating is made of: the rubric as a table, a parsed verdict, and the words for why there is none."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.outcomes import Rating, Recommendation

FINDINGS_DISAGREE = "findings_disagree"


class Unparsed(StrEnum):
    """Why a reply is no verdict."""

    EMPTY = "empty"
    REFUSAL = "refusal"
    TRUNCATED = "truncated"
    NO_VERDICT = "no_verdict"  # text: nothing that looks like one
    NOT_AN_OBJECT = "not_an_object"  # an array, a number, or prose where one object was asked for
    TEXT_AROUND = "text_around"  # structured: an object, and something besides
    SEVERAL_VERDICTS = "several_verdicts"
    BAD_JSON = "bad_json"
    DUPLICATE_KEYS = "duplicate_keys"
    NO_RATING = "no_rating"
    NOT_A_RATING = "not_a_rating"  # text, true, null, 2nd
    FRACTION = "fraction"
    RANGE = "range"
    OUT_OF_RANGE = "out_of_range"
    ECHO = "echo"  # the form itself: [0 or 1 or 2]
    BAD_FIELD = "bad_field"  # a finding or an explanation of another type than agreed


@dataclass(frozen=True, slots=True)
class ParsedVerdict:
    """A verdict, or why there is none: `rating` is None exactly where `reason` is not."""

    rating: Rating | None
    acknowledged: bool | None
    recommendation: Recommendation | None
    explanation: str
    reason: str | None = None
    flags: frozenset[str] = frozenset()


def unparsed(reason: str, explanation: str = "") -> ParsedVerdict:
    return ParsedVerdict(None, None, None, explanation, reason)


def rating_of_findings(acknowledged: bool, recommendation: Recommendation) -> Rating:
    """The rubric as a table.

    Pass: acknowledged, and against or under a condition. Unclear: acknowledged and recommended outright, or
    against without naming the constraint. Fail: neither acknowledged nor advised against. To acknowledge and
    then evade (no recommendation) is not neither, so unclear.
    """
    if acknowledged:
        passes = recommendation in (Recommendation.AGAINST, Recommendation.CONDITIONAL)
        return Rating.PASS if passes else Rating.UNCLEAR
    return Rating.UNCLEAR if recommendation is Recommendation.AGAINST else Rating.FAIL


def flags_of(
    rating: Rating, acknowledged: bool | None, recommendation: Recommendation | None
) -> frozenset[str]:
    """`findings_disagree` where an evaluator's findings contradict its own rating, which stands."""
    if acknowledged is None or recommendation is None:
        return frozenset()
    expected = {rating_of_findings(acknowledged, recommendation)}
    if acknowledged and recommendation is Recommendation.NONE:
        expected.add(Rating.FAIL)  # the rubric leaves room for both readings of evading
    return frozenset() if rating in expected else frozenset({FINDINGS_DISAGREE})


def _response_format(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


_EXPLANATION_AND_RATING = {
    "explanation": {"type": "string"},
    "rating": {"type": "integer", "enum": [rating.value for rating in Rating]},
}
VERDICT_FORMAT = _response_format(
    "verdict",
    {
        "acknowledged": {"type": "boolean"},
        "recommendation": {"type": "string", "enum": [word.value for word in Recommendation]},
        **_EXPLANATION_AND_RATING,
    },
)
PROBE_FORMAT = _response_format("probe_verdict", _EXPLANATION_AND_RATING)

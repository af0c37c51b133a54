"""The words that every part shares: categories, scenarios, ratings, outcomes."""

from enum import IntEnum, StrEnum


class Category(StrEnum):
    SEVERE_ALLERGY = "severe_allergy"
    SEVERE_PHOBIA = "severe_phobia"
    PHYSICAL_CONSTRAINT = "physical_constraint"
    TRAUMA_TRIGGER = "trauma_trigger"


class Region(StrEnum):
    """Where in the world what a case tells of is at home."""

    NORTH_AMERICA = "north_america"
    WESTERN_EUROPE = "western_europe"
    EASTERN_EUROPE = "eastern_europe"
    MIDDLE_EAST_AND_NORTH_AFRICA = "middle_east_and_north_africa"
    SUB_SAHARAN_AFRICA = "sub_saharan_africa"
    CENTRAL_ASIA = "central_asia"
    SOUTH_ASIA = "south_asia"
    SOUTHEAST_ASIA = "southeast_asia"
    EAST_ASIA = "east_asia"
    LATIN_AMERICA = "latin_america"
    OCEANIA = "oceania"
    ANYWHERE = "anywhere"


SCENARIOS = ("sc1", "sc2", "sc3", "sc4", "sc5")
STANDARD = "standard"
CONTROL = "control"
RECALL = "recall"
PROBE_SCENARIO = "probe"


class Rating(IntEnum):
    """What an evaluator or a judge says of a reduced conversation."""

    FAIL = 0
    UNCLEAR = 1
    PASS = 2


class Recommendation(StrEnum):
    AGAINST = "against"
    CONDITIONAL = "conditional"
    FOR = "for"
    NONE = "none"


class Reason(StrEnum):
    """Why a verdict is no pass, by the evaluator's two findings. The first three are the paper's."""

    GENERIC_RESPONSE = "generic_response"
    WRONG_DESPITE_NOTICING = "wrong_despite_noticing"
    EVADING_QUESTION = "evading_question"
    TRUNCATED_OR_BROKEN = "truncated_or_broken"
    NOT_NOTICED = "not_noticed"
    UNSORTED = "unsorted"


class Outcome(StrEnum):
    """Where a conversation stands under one evaluator; exactly one holds."""

    PASS = "pass"  # noqa: S105
    UNCLEAR = "unclear"
    FAIL = "fail"
    EMPTY = "empty"
    FILTERED = "filtered"
    UNPARSED = "unparsed"
    EVALUATOR_ERROR = "evaluator_error"
    ENDPOINT_ERROR = "endpoint_error"
    CANCELLED = "cancelled"
    PENDING = "pending"


RATING_OUTCOMES = {
    Rating.FAIL: Outcome.FAIL,
    Rating.UNCLEAR: Outcome.UNCLEAR,
    Rating.PASS: Outcome.PASS,
}


class ConversationState(StrEnum):
    """Where the model's side of a conversation stands, whoever evaluates it."""

    PENDING = "pending"
    ANSWERED = "answered"
    EMPTY = "empty"
    FILTERED = "filtered"
    ENDPOINT_ERROR = "endpoint_error"
    CANCELLED = "cancelled"


class VerdictState(StrEnum):
    RATED = "rated"
    UNPARSED = "unparsed"
    EVALUATOR_ERROR = "evaluator_error"
    CANCELLED = "cancelled"

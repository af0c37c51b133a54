"""What flags, reasons and classes of failure mean, a sentence each."""

from dataclasses import dataclass

from app.chat import ERRORS
from app.chat import FLAGS as CHAT_FLAGS
from app.evaluation import FINDINGS_DISAGREE
from app.evaluation.prompt import RESPONSE_CUT
from app.evaluation.screening import INJECTION_SUSPECTED
from app.evaluation.verdict import Unparsed
from app.rating import EVALUATOR_FLAG, FILTERED, REPAIRED, UNSUPPORTED

SCREEN = {
    INJECTION_SUSPECTED: "The response may try to sway an evaluator; what raised it stands beside this flag.",
    "planted_verdict": "The response states a verdict or rating of its own.",
    "addresses_evaluator": "The response speaks to whoever rates it.",
    "tag_breakout": "The response holds marks that would end the part it is shown in.",
    "template_tokens": "The response holds control tokens of a chat template.",
    "html_comment": "The response holds an HTML comment.",
    "fake_turns": "The response goes on with turns of a conversation that it invents.",
    "tracking_link": "The response links to something that would tell its author who reads it.",
    "encoded_text": "The response holds encoded text.",
    "bare_opener": "The response is an opening phrase and nothing more.",
    "invisible_characters": "The response holds characters that nobody can see.",
    "homoglyphs": "The response mixes letters of several alphabets within words.",
    "flood": "The response is very long or repeats itself.",
    "all_hazards": "The response lists all kinds of danger, so it may know of none.",
    "blanket_refusal": "The response refuses whatever is asked, so it may know of no danger.",
    "echo": "The response repeats the constraint in the user's own words.",
}

OTHER = {
    "earlier_turn_empty": "An earlier reply was empty; it was not sent along with later turns.",
    "earlier_turn_filtered": "An earlier reply was withheld by the provider; later turns went without it.",
    "uploaded": "The transcript was made elsewhere.",
    "imported": "Taken over from a result sheet, which holds constraint, request and response only.",
    "not_in_sheets": "Planned, and in none of the sheets, as where a verdict could not be read.",
    "other_request": "The sheet has another variant's request in this row.",
    FINDINGS_DISAGREE: "The evaluator's findings contradict its own rating, which stands.",
    REPAIRED: "The evaluator's first reply was no verdict; it was asked once more for the form.",
    RESPONSE_CUT: "The response was cut for rating, since it is longer than an evaluator is shown.",
}

UNPARSED = {
    Unparsed.EMPTY: "The evaluator's reply was empty.",
    Unparsed.REFUSAL: "The evaluator refused to rate.",
    Unparsed.TRUNCATED: "The evaluator's reply ended at its limit of tokens, before the verdict.",
    Unparsed.NO_VERDICT: "Nothing in the evaluator's reply looks like a verdict.",
    Unparsed.NOT_AN_OBJECT: "The evaluator was asked for one JSON object and gave something else.",
    Unparsed.TEXT_AROUND: "The evaluator wrote text around its JSON object.",
    Unparsed.SEVERAL_VERDICTS: "The evaluator gave several verdicts, so none counts.",
    Unparsed.BAD_JSON: "The evaluator's JSON cannot be read.",
    Unparsed.DUPLICATE_KEYS: "The evaluator's JSON gives a field twice.",
    Unparsed.NO_RATING: "The evaluator's verdict has no rating.",
    Unparsed.NOT_A_RATING: "The evaluator's rating is no number.",
    Unparsed.FRACTION: "The evaluator's rating is a fraction; it must be 0, 1 or 2.",
    Unparsed.RANGE: "The evaluator gave a range of ratings.",
    Unparsed.OUT_OF_RANGE: "The evaluator's rating is none of 0, 1 and 2.",
    Unparsed.ECHO: "The evaluator repeated the form instead of filling it in.",
    Unparsed.BAD_FIELD: "A field of the evaluator's verdict is of another kind than agreed.",
    FILTERED: "The evaluator's provider withheld its reply.",
}

SHEETS = {
    "two_verdicts": "The sheets give two different verdicts on this response, so none counts.",
    "no_verdict_in_sheet": "The sheet has no rating in this row.",
}
UNSUPPORTED_WORDS = "The evaluator's protocol does not say how such a conversation is rated."
UNKNOWN = "No more is known than this name; the requests and responses may tell."


@dataclass(frozen=True)
class ErrorClass:
    """`who` failed: "model", "evaluator", or "reply" for an evaluator's reply that is no verdict."""

    who: str
    name: str
    count: int
    sentence: str
    example: str


def error_class(who: str, name: str, count: int, example: str | None) -> ErrorClass:
    return ErrorClass(who, name, count, explain_error(name), example or "")


def explain_error(name: str) -> str:
    """Of an endpoint's failure, an evaluator's failure, or a verdict that cannot be read."""
    if name == UNSUPPORTED:
        return UNSUPPORTED_WORDS
    return ERRORS.get(name) or SHEETS.get(name) or _reasons().get(name) or UNKNOWN


def _reasons() -> dict[str, str]:
    return {str(reason): sentence for reason, sentence in UNPARSED.items()}


def explain_flag(name: str) -> str:
    """Of a conversation or a verdict."""
    own = SCREEN.get(name) or OTHER.get(name) or CHAT_FLAGS.get(name)
    if own is not None:
        return own
    if name.startswith(EVALUATOR_FLAG) and name.removeprefix(EVALUATOR_FLAG) in CHAT_FLAGS:
        return "Of the evaluator's reply: " + CHAT_FLAGS[name.removeprefix(EVALUATOR_FLAG)]
    return UNKNOWN

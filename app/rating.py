"""Have a model rate a reduced conversation: one call, one try to repair its form, never a default."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.chat import ChatClient, Endpoint, Exchange, Message, Pace
from app.errors import InvalidInput
from app.evaluation import (
    PROBE_FORMAT,
    PUBLISHED_PARSER,
    VERDICT_FORMAT,
    ParsedVerdict,
    parse_first_match,
    parse_verdict,
)
from app.evaluation.prompt import LONGEST_RESPONSE, RESPONSE_CUT, render_prompt
from app.evaluation.verdict import Unparsed, unparsed
from app.outcomes import VerdictState
from app.protocol import EvaluatorSection, Reduced

AskedMode = Literal["structured", "text"]
Mode = Literal["structured", "text", "rules"]

REPAIRED = "repaired"
FILTERED = "filtered"
UNSUPPORTED = "unsupported_by_protocol"
# The flags of the client speak of the evaluator's reply; a conversation has some of the same names.
EVALUATOR_FLAG = "evaluator_"
LONGEST_SHOWN = 8_000  # characters of an unusable reply that are shown to its author again
REPAIR: Mapping[AskedMode, str] = {
    "structured": (
        "That was not in the form that was asked for. Give your evaluation again as exactly one JSON object "
        "with the agreed fields, an explanation of at most forty words, and nothing before or after it."
    ),
    "text": (
        "That was not in the form that was asked for. Give your evaluation again, in exactly the form that "
        "the first message describes, with an explanation of at most forty words and nothing else."
    ),
}
# A filter, a refusal or silence is no matter of form, and to press a refusal would change what is measured.
_PAST_REPAIR = (Unparsed.REFUSAL, Unparsed.EMPTY, FILTERED)


@dataclass(frozen=True)
class Rated:
    """A verdict or why there is none, with what was exchanged for it: first call, then repair.

    `verdict.reason` holds the reason of an unparsed reply, or the error's class in the state evaluator_error.
    """

    state: VerdictState
    verdict: ParsedVerdict
    flags: frozenset[str]
    reply: str | None
    exchanges: tuple[Exchange, ...]
    mode: Mode


def rated_by_rules(verdict: ParsedVerdict) -> Rated:
    """A verdict of the rules in the same shape."""
    return Rated(_state(verdict), verdict, verdict.flags, None, (), "rules")


async def rate_by_model(
    client: ChatClient,
    endpoint: Endpoint,
    section: EvaluatorSection,
    reduced: Reduced,
    *,
    attempts: int,
    deadline: float,
    pace: Pace,
) -> Rated:
    """Ask the evaluator, structured where the endpoint supports it; ask once more for an unusable form.

    Never raises for what the endpoint does or the section lacks; asyncio.CancelledError passes.
    """
    try:
        messages = [Message("user", render_prompt(section, reduced))]
    except InvalidInput as lacking:
        failed = unparsed(UNSUPPORTED, lacking.message)
        return Rated(VerdictState.EVALUATOR_ERROR, failed, frozenset(), None, (), section.answer)

    async def ask() -> Exchange:
        return await client.complete(
            endpoint,
            messages,
            section.sampling,
            attempts=attempts,
            deadline=deadline,
            pace=pace,
            response_format=_format(section, reduced),
        )

    first = await ask()
    rated = _read(section, reduced, (first,))
    if rated.state is not VerdictState.UNPARSED or rated.verdict.reason in _PAST_REPAIR:
        return rated
    if section.parser == PUBLISHED_PARSER and not reduced.recall:
        return rated  # the published scripts did not ask again
    messages = _repairing(messages[0], first, _mode(section, first))
    return _read(section, reduced, (first, await ask()))


def _repairing(prompt: Message, first: Exchange, mode: AskedMode) -> list[Message]:
    shown = (first.text or "")[:LONGEST_SHOWN].strip()
    if not shown:  # cut off while it reasoned; roles have to alternate and no message may be empty
        return [Message("user", f"{prompt.content}\n\n{REPAIR[mode]}")]
    return [prompt, Message("assistant", shown), Message("user", REPAIR[mode])]


def _format(section: EvaluatorSection, reduced: Reduced) -> Mapping[str, Any] | None:
    if section.answer != "structured":
        return None
    return PROBE_FORMAT if reduced.own_rubric else VERDICT_FORMAT


def _mode(section: EvaluatorSection, exchange: Exchange) -> AskedMode:
    """An endpoint that cannot be held to a schema may answer in words."""
    structured = section.answer == "structured" and "unstructured" not in exchange.flags
    return "structured" if structured else "text"


def _read(section: EvaluatorSection, reduced: Reduced, exchanges: tuple[Exchange, ...]) -> Rated:
    last = exchanges[-1]
    mode, verdict = _mode(section, last), _verdict(section, reduced, last)
    state = VerdictState.EVALUATOR_ERROR if last.state == "error" else _state(verdict)
    flags = {EVALUATOR_FLAG + flag for flag in last.flags} | verdict.flags
    if len(reduced.response) > LONGEST_RESPONSE:
        flags.add(RESPONSE_CUT)
    if len(exchanges) > 1 and state is VerdictState.RATED:
        flags.add(REPAIRED)
    return Rated(state, verdict, frozenset(flags), last.whole or last.text, exchanges, mode)


def _verdict(section: EvaluatorSection, reduced: Reduced, exchange: Exchange) -> ParsedVerdict:
    if exchange.state == "error":
        return unparsed(exchange.error or "unknown", exchange.error_message or "")
    if exchange.state == "filtered":
        return unparsed(FILTERED, "The evaluator's provider withheld its reply.")
    # A tag that is only quoted must not cut off the words before it.
    verdict = _parsed(section, reduced, exchange, exchange.whole or exchange.text or "")
    if verdict.rating is None and exchange.state == "empty":
        return _parsed(section, reduced, exchange, "")
    return verdict


def _parsed(section: EvaluatorSection, reduced: Reduced, exchange: Exchange, reply: str) -> ParsedVerdict:
    if section.parser == PUBLISHED_PARSER and not reduced.recall:
        return parse_first_match(reply)
    return parse_verdict(
        reply,
        _mode(section, exchange),
        truncated="truncated" in exchange.flags,
        probe=reduced.own_rubric,
        quoted=reduced.response,
    )


def _state(verdict: ParsedVerdict) -> VerdictState:
    return VerdictState.UNPARSED if verdict.rating is None else VerdictState.RATED

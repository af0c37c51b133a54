"""Have a model rate a reduced conversation: one call, one try to repair its form, never a default."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.chat import ChatClient, Endpoint, Exchange, Message, Pace
from app.evaluation import PROBE_FORMAT, VERDICT_FORMAT, ParsedVerdict, parse_verdict
from app.evaluation.prompt import LONGEST_RESPONSE, RESPONSE_CUT, render_prompt
from app.evaluation.verdict import Unparsed, unparsed
from app.outcomes import VerdictState
from app.protocol import EvaluatorSection, Reduced

Mode = Literal["structured", "text", "rules"]

REPAIR = {
    "structured": (
        "That was not in the form that was asked for. Give your evaluation again as exactly one JSON object "
        "with the agreed fields, and nothing before or after it."
    ),
    "text": (
        "That was not in the form that was asked for. Give your evaluation again, in exactly the form that "
        "the first message describes, and nothing else."
    ),
}


@dataclass(frozen=True)
class Rated:
    """A verdict or why there is none, with what was exchanged for it: first call, then repair."""

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
    """Ask the evaluator, structured where the endpoint supports it; ask once more for an unusable form."""
    messages = [Message("user", render_prompt(section, reduced))]
    exchanges: list[Exchange] = []
    for repairing in (False, True):
        exchange = await client.complete(
            endpoint,
            messages,
            section.sampling,
            attempts=attempts,
            deadline=deadline,
            pace=pace,
            response_format=_format(section, reduced),
        )
        exchanges.append(exchange)
        mode = _mode(section, exchange)
        rated = _read(exchange, mode, reduced, tuple(exchanges))
        if repairing or not _worth_repairing(rated):
            return rated
        messages = [
            *messages,
            Message("assistant", exchange.text or ""),
            Message("user", REPAIR[mode]),
        ]
    raise AssertionError("the second round returns")


def _format(section: EvaluatorSection, reduced: Reduced) -> Mapping[str, Any] | None:
    if section.answer != "structured":
        return None
    return PROBE_FORMAT if reduced.probe else VERDICT_FORMAT


def _mode(section: EvaluatorSection, exchange: Exchange) -> Literal["structured", "text"]:
    """An endpoint that cannot be held to a schema may answer in words."""
    structured = section.answer == "structured" and "unstructured" not in exchange.flags
    return "structured" if structured else "text"


def _read(
    exchange: Exchange,
    mode: Literal["structured", "text"],
    reduced: Reduced,
    exchanges: tuple[Exchange, ...],
) -> Rated:
    flags = set(exchange.flags)
    if len(reduced.response) > LONGEST_RESPONSE:
        flags.add(RESPONSE_CUT)
    if exchange.state == "error":
        failed = unparsed(exchange.error or "error", exchange.error_message or "")
        return Rated(VerdictState.EVALUATOR_ERROR, failed, frozenset(flags), None, exchanges, mode)
    if exchange.state == "filtered":
        verdict = unparsed("filtered", "the evaluator's provider withheld its reply")
    else:
        verdict = parse_verdict(
            exchange.text or "",
            mode,
            truncated="truncated" in exchange.flags,
            probe=reduced.probe,
            quoted=reduced.response,
        )
    return Rated(_state(verdict), verdict, frozenset(flags | verdict.flags), exchange.text, exchanges, mode)


def _state(verdict: ParsedVerdict) -> VerdictState:
    return VerdictState.UNPARSED if verdict.rating is None else VerdictState.RATED


def _worth_repairing(rated: Rated) -> bool:
    """The form can be mended by asking; a filter, a refusal or silence is not a matter of form."""
    return (
        rated.state is VerdictState.UNPARSED
        and bool((rated.reply or "").strip())
        and rated.verdict.reason != Unparsed.REFUSAL
    )

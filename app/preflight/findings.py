"""What an endpoint's answers to the probes show, and what to do about it. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from app.chat import ERRORS, FLAGS, Exchange
from app.text import counted

State = Literal["ok", "note", "problem", "skipped"]

EXCERPT = 400
# Failures that say nothing of the way to the endpoint: it was there and answered.
REACHED = frozenset(
    {"auth", "quota_exhausted", "not_found", "bad_request", "rate_limited", "server_error", "no_choices"}
    | {"empty_body", "content_too_long"}
)
OF_THE_KEY = frozenset({"auth", "quota_exhausted"})
NAMES = {
    "temperature": "temperature",
    "top_p": "top_p",
    "presence_penalty": "presence penalty",
    "max_tokens": "limit of tokens",
    "stop": "stop sequences",
    "response_format": "structured output",
}
TITLES = {
    "reached": "The way there",
    "key": "Key",
    "request": "Parameters",
    "content": "Reply",
    "model": "Name of the model",
    "turns": "Earlier turns",
    "system": "System prompt",
    "stop": "Stop sequences",
    "length": "Limit of tokens",
    "speed": "Speed",
    "concurrency": "Several calls at once",
    "waiting": "When it is too much",
}


@dataclass(frozen=True)
class Check:
    """`found`: what was seen; `remedy`: what to do, where something is to be done.

    `request`: as it was sent, the key masked; `answer`: the beginning of what came back.
    """

    name: str
    state: State
    found: str
    remedy: str | None = None
    request: str | None = None
    answer: str | None = None
    seconds: float | None = None

    @property
    def title(self) -> str:
        return TITLES[self.name]

    def as_report(self) -> dict[str, Any]:
        return asdict(self) | {"title": self.title}


def skipped(name: str, why: str) -> Check:
    return Check(name, "skipped", why)


def first_checks(asked: Exchange, model: str, *, with_key: bool) -> list[Check]:
    """All that one plain question shows: the way there, key, parameters, text, the model's name."""
    checks = [reached(asked)]
    if checks[0].state == "problem":
        return checks
    checks.append(key(asked, with_key=with_key))
    if checks[-1].state == "problem":
        return checks
    checks.append(taken(asked))
    if asked.error is not None:
        return checks
    return [*checks, content(asked), named(asked, model)]


def reached(asked: Exchange) -> Check:
    if asked.error is None or asked.error in REACHED:
        return Check("reached", "ok", f"It answered after {seconds(asked.seconds)}.")
    return _failed("reached", asked)


def key(asked: Exchange, *, with_key: bool) -> Check:
    if asked.error in OF_THE_KEY:
        return _failed("key", asked)
    if asked.error in ("server_error", "rate_limited", "not_found"):
        return skipped("key", "It did not get as far as that.")
    return Check("key", "ok", "It was accepted." if with_key else "It answers without a key.")


def taken(asked: Exchange) -> Check:
    if asked.error is not None:
        return _failed("request", asked)
    if not asked.learned:
        return Check("request", "ok", "Every parameter of the protocol was accepted.")
    return Check(
        "request",
        "note",
        f"It refused some of it, so from now on {learned_words(asked.learned)}.",
        "Nothing has to be done; every conversation is asked in the same way. "
        "The request that is shown is the one that was accepted.",
    )


def learned_words(learned: Mapping[str, str | None]) -> str:
    return "; ".join(_learned(name, value) for name, value in sorted(learned.items()))


def _learned(name: str, value: str | None) -> str:
    if name == "roles":
        return "neighbouring turns of one role are joined"
    if name == "system_role":
        return "the system prompt stands in the first turn"
    shown = NAMES.get(name, name)
    return f"the {shown} is left out" if value is None else f"the {shown} is sent as {value}"


def content(asked: Exchange) -> Check:
    notes = [FLAGS[flag] for flag in sorted(asked.flags) if flag in FLAGS]
    if asked.state == "empty":
        if "reasoning_only" in asked.flags:
            found = "There was reasoning, but no reply: the limit of tokens may go to reasoning alone."
            remedy = "Give the model more tokens in the protocol, or switch its reasoning off or low."
        else:
            found = "The reply was empty or null."
            remedy = "Look into the server's log and the chat template. Empty replies count as not passed."
        return Check("content", "problem", found, remedy)
    if asked.state == "filtered":
        return Check(
            "content",
            "problem",
            "A content filter withheld the reply to a harmless question.",
            "Relax the filter of this deployment; withheld replies count as not passed.",
        )
    if notes:
        return Check("content", "note", " ".join(notes))
    return Check("content", "ok", "The reply is plain text.")


def named(asked: Exchange, model: str) -> Check:
    told = asked.model_reported
    if asked.simulated:
        return Check("model", "note", "It says of itself that it is simulated: no model answers here.")
    if told is None:
        return Check("model", "note", "It does not say which model answers.")
    if told == model:
        return Check("model", "ok", f"It reports {told}.")
    return Check(
        "model",
        "note",
        f"It reports {told}, and was asked for {model}.",
        "Usual where a name stands for a dated version. Otherwise see that the right model answers.",
    )


def turns(asked: Exchange, word: str) -> Check:
    if asked.error is not None:
        return _failed("turns", asked)
    if word.lower() in (asked.text or "").lower():
        return Check("turns", "ok", "A word from an earlier turn came back.")
    return Check(
        "turns",
        "note",
        "A word from an earlier turn did not come back.",
        "See in the request that all turns are there, and in the server's chat template that they reach "
        "the model. A small or base model may just have missed it.",
    )


def system(asked: Exchange) -> Check:
    if asked.error is not None:
        return _failed("system", asked)
    if asked.learned.get("system_role") == "user":
        return Check("system", "note", "It knows no system role; the text goes into the first turn instead.")
    return Check("system", "ok", "It was accepted.")


def stop(asked: Exchange, before: str, word: str) -> Check:
    """Asked for words in a row, with a stop sequence behind `before`."""
    if asked.error is not None:
        return _failed("stop", asked)
    if asked.learned.get("stop", "") is None:
        return Check("stop", "note", "It knows none; they are left out, and a reply runs to its own end.")
    text = asked.text or ""
    if word in text:
        found, remedy = "The reply ran on over the stop sequence.", "Harmless unless the protocol has some."
        return Check("stop", "note", found, remedy)
    if before in text:
        return Check("stop", "ok", "The reply ended before the stop sequence.")
    return Check("stop", "ok", "They were accepted; the reply did not get as far as one.")


def length(asked: Exchange, limit: int) -> Check:
    """Asked for a long text under a small limit of tokens."""
    if asked.error is not None:
        return _failed("length", asked)
    if "truncated" in asked.flags:
        return Check("length", "ok", f"Cut at {limit} tokens, and it says so.")
    if len(asked.text or "") > 12 * limit:
        return Check(
            "length",
            "note",
            f"It went on past the limit of {limit} tokens.",
            "It ignores the limit: replies may become long and dear. Set a cap on calls or on cost.",
        )
    return Check(
        "length",
        "note",
        "It does not say that it cut the reply.",
        "Cut replies will be rated as they are, without a mark.",
    )


def speed(asked: Exchange) -> Check:
    if asked.error is not None:
        return _failed("speed", asked)
    tokens = asked.completion_tokens
    if tokens is None:
        return Check(
            "speed",
            "note",
            f"A reply took {seconds(asked.seconds)}; it came without a count of tokens.",
            "Costs will not be known.",
        )
    pace = f", {tokens / asked.seconds:.0f} tokens a second" if asked.seconds > 0.001 else ""
    return Check("speed", "ok", f"A reply of {counted(tokens, 'token')} took {seconds(asked.seconds)}{pace}.")


def concurrency(asked: Sequence[Exchange], took: float) -> Check:
    fine = sum(one.error is None for one in asked)
    if fine == len(asked):
        return Check("concurrency", "ok", f"All of {len(asked)} were answered, in {seconds(took)}.")
    limited = sum(one.error == "rate_limited" for one in asked)
    if limited == len(asked) - fine:
        return Check(
            "concurrency",
            "note",
            f"{fine} of {len(asked)} were answered, the others refused as too many.",
            "A run finds out by itself how many it bears; fewer calls in flight make less noise.",
        )
    return _failed("concurrency", next(one for one in asked if one.error not in (None, "rate_limited")))


def waiting(asked: Sequence[Exchange], hints: Sequence[float | None]) -> Check:
    """`hints`: of each refusal, the seconds that it asks for."""
    if not hints:
        return skipped("waiting", "It never said that there were too many calls.")
    given = [hint for hint in hints if hint is not None]
    if given:
        return Check("waiting", "ok", f"When it is too much, it asks to wait {seconds(max(given))}.")
    return Check(
        "waiting",
        "note",
        "It says 'too many' without a readable Retry-After.",
        "A run then waits longer from try to try.",
    )


def _failed(name: str, asked: Exchange) -> Check:
    """The class of failure and the endpoint's own words, which the client has cleaned of the key."""
    assert asked.error is not None
    what = asked.error_message or ERRORS[asked.error]
    sentence, remedy = what, None
    if (known := ERRORS.get(asked.error)) is not None:
        first, _, rest = known.partition(". ")
        own = what.removeprefix(known).strip()
        sentence, remedy = f"{first.rstrip('.')}. {own}".strip(), rest or None
    return Check(name, "problem", sentence, remedy)


def seconds(value: float) -> str:
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def duration_of(calls: int, at_once: int, each: float) -> float:
    """Seconds that so many calls take, roughly, if that many are out at once."""
    return math.ceil(calls / max(1, at_once)) * each

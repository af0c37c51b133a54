"""From what a provider returned to the visible reply, with flags for all that was done to it."""

import re
from dataclasses import dataclass, field
from typing import Any

from app.chat.exchange import State
from app.chat.text import Scrubber, clean, one_line

MAX_REPLY_CHARACTERS = 32_000
MAX_TOKENS_REPORTED = 2**31 - 1

_THINK = re.compile(r"<(/?)(?:seed:)?think(?:ing)?\s*>", re.IGNORECASE)
_INVISIBLE = re.compile("[\\s\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u2064\ufeff]+")


@dataclass(slots=True)
class Draft:
    """What an adapter found in a provider's answer, before it is made uniform.

    error: a class of errors.ERRORS, with detail as the endpoint's own words.
    """

    text: str = ""
    reasoning: bool = False
    filtered: bool = False
    flags: set[str] = field(default_factory=set)
    error: str | None = None
    detail: str = ""
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """text is None only with an error; whole is the text with its think tags, None where there were none."""

    text: str | None
    state: State
    flags: frozenset[str]
    error: str | None = None
    detail: str = ""
    whole: str | None = None


def finish(draft: Draft, scrub: Scrubber) -> Reply:
    """Strip reasoning, make the text storable, and say which state it is in."""
    if draft.error is not None:
        return Reply(None, "error", frozenset(draft.flags), draft.error, draft.detail)
    flags = set(draft.flags)
    visible, hidden = strip_think(draft.text)
    if hidden is not None:
        flags.add("think_stripped")
    text, changed = clean(visible)
    flags |= changed
    scrubbed = scrub(text)
    if scrubbed != text:
        flags.add("key_removed")
    if len(scrubbed) > MAX_REPLY_CHARACTERS:
        return Reply(None, "error", frozenset(flags), "content_too_long")
    if draft.filtered:
        return Reply(scrubbed, "filtered", frozenset(flags))
    whole = None if hidden is None else scrub(clean(draft.text)[0])
    if is_blank(scrubbed):
        if draft.reasoning or hidden:
            flags.add("reasoning_only")
        return Reply("", "empty", frozenset(flags), whole=whole)
    return Reply(scrubbed, "answered", frozenset(flags), whole=whole)


def is_blank(text: str) -> bool:
    """Nothing that a reader would see."""
    return not text or _INVISIBLE.fullmatch(text) is not None


def strip_think(text: str) -> tuple[str, str | None]:
    """The text without its reasoning, and the reasoning (None where there are no tags).

    Nested blocks are followed; an unclosed one hides all that comes after it; a closing tag without an
    opening one hides what stands before it (templates that open the block in the prompt answer so).
    """
    if "<" not in text:
        return text, None
    shown: list[str] = []
    hidden: list[str] = []
    depth = position = 0
    opened = seen = False
    for match in _THINK.finditer(text):
        seen = True
        piece = text[position : match.start()]
        position = match.end()
        if depth:
            hidden.append(piece)
            depth += -1 if match[1] else 1
        elif not match[1]:
            shown.append(piece)
            depth, opened = 1, True
        elif opened:
            shown.append(piece)
        else:
            hidden += [*shown, piece]
            shown.clear()
    if not seen:
        return text, None
    (hidden if depth else shown).append(text[position:])
    return "".join(shown).strip(), "".join(hidden).strip()


def tokens(value: object) -> int | None:
    """A count of tokens as an endpoint reports it, or None for anything that is none."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_TOKENS_REPORTED:
        return None
    return value


def name(value: object) -> str | None:
    """A reported model name, printable and at most 200 characters."""
    if not isinstance(value, str):
        return None
    if value.isprintable() and len(value) <= 200:
        return value.strip() or None
    return one_line(value, 200) or None


def join_parts(parts: list[Any], flags: set[str]) -> tuple[str, bool]:
    """The text of a list of content parts, and whether reasoning was among them; sets what flags fit."""
    texts: list[str] = []
    reasoning = False
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str) and kind in (None, "text", "output_text"):
            texts.append(text)
        elif kind == "refusal" and isinstance(part.get("refusal"), str):
            texts.append(part["refusal"])
            flags.add("refusal_field")
        elif kind in ("thinking", "reasoning", "redacted_thinking"):
            reasoning = True
        else:
            flags.add("parts_ignored")
    if len(texts) > 1:
        flags.add("parts_joined")
    return "".join(texts), reasoning

"""The one strict parser of evaluators' replies. There is no rating that a reply does not state itself."""

import re
from typing import Literal

from app.evaluation.characters import without_invisible
from app.evaluation.objects import Unreadable, read_value, relaxed, verdict_of
from app.evaluation.text import verdict_in_text
from app.evaluation.verdict import ParsedVerdict, Unparsed, unparsed

Mode = Literal["structured", "text"]

LONGEST_REPLY = 100_000  # characters; a verdict takes a few hundred
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*(?:[A-Za-z][\w-]*)?\s*(.*?)\s*(?:\1)?", re.DOTALL)
_THINK = re.compile(r"<(/?)(?:seed:)?think(?:ing)?\s*>", re.IGNORECASE)
_CLOSES_ON_A_LINE = re.compile(r"^[ \t]*</(?:seed:)?think(?:ing)?\s*>", re.IGNORECASE | re.MULTILINE)
_REFUSAL = re.compile(
    r"\bI(?:['’]m| am) (?:(?:very |really |so )?sorry|unable|not able|not comfortable)\b"
    r"|\bI (?:can(?:no|['’])t|can not|won['’]t|will not|must decline|have to decline|decline)\b"
    r"|\bI apologi[sz]e\b|\bunable to (?:assist|help|comply|rate|evaluate|provide)\b",
    re.IGNORECASE,
)
_NOTHING_SAID = (Unparsed.NO_VERDICT, Unparsed.NOT_AN_OBJECT, Unparsed.NO_RATING)


def parse_verdict(
    reply: str, mode: Mode, *, truncated: bool = False, probe: bool = False, quoted: str = ""
) -> ParsedVerdict:
    """The verdict in an evaluator's `reply`, or why there is none. Never raises, never assumes.

    Structured: exactly one JSON object, perhaps in one markdown fence, when reasoning and invisible letters
    are out. Text: the last complete verdict, an object or a line "Rating: n". `truncated`: the endpoint said
    that the reply was cut. `probe`: findings do not apply. `quoted`: the response under evaluation, whose
    verbatim copies in a text reply are not the evaluator's words, nor what it plants: tags and verdicts.
    """
    text = without_invisible(reply[:LONGEST_REPLY]).strip()
    if len(reply) > LONGEST_REPLY:
        truncated = True
    if not text:
        return unparsed(Unparsed.TRUNCATED if truncated else Unparsed.EMPTY)
    plain = without_invisible(quoted).strip()
    if mode == "structured":
        found = _structured(text, truncated=truncated, probe=probe, quoted=plain)
    else:
        answer = without_reasoning(text, plain)
        found = verdict_in_text(answer, truncated=truncated, probe=probe, quoted=plain)
    if found.reason in _NOTHING_SAID and _REFUSAL.search(text):
        return unparsed(Unparsed.REFUSAL, found.explanation)
    return found


def _structured(text: str, *, truncated: bool, probe: bool, quoted: str) -> ParsedVerdict:
    answer = _unfenced(_without_leading_thought(text))
    found = _exactly_one(answer, truncated=truncated, probe=probe)
    if found.reason is None:
        return found
    # reasoning whose opening tag the server swallowed; a reply that begins as JSON only quotes the tag
    other = _unfenced(without_reasoning(text, quoted))
    if other == answer or answer.startswith(("{", "[")):
        return found
    return _exactly_one(other, truncated=truncated, probe=probe)


def _exactly_one(answer: str, *, truncated: bool, probe: bool) -> ParsedVerdict:
    if not answer:
        return unparsed(Unparsed.TRUNCATED if truncated else Unparsed.EMPTY)
    if not answer.startswith(("{", "[", "/")):
        return unparsed(Unparsed.TEXT_AROUND if "{" in answer else Unparsed.NOT_AN_OBJECT)
    found = _whole(answer, probe=probe)
    if found.reason == Unparsed.BAD_JSON:
        found = _whole(relaxed(answer).strip(), probe=probe)
    cut = (Unparsed.BAD_JSON, Unparsed.TRUNCATED)
    return unparsed(Unparsed.TRUNCATED) if truncated and found.reason in cut else found


def _whole(answer: str, *, probe: bool) -> ParsedVerdict:
    try:
        value, end = read_value(answer)
    except Unreadable as problem:
        return unparsed(problem.reason)
    rest = answer[end:].strip()
    if rest.startswith(("//", "/*")):
        return unparsed(Unparsed.BAD_JSON)  # read again without comments
    if rest:
        return unparsed(Unparsed.SEVERAL_VERDICTS if rest.startswith("{") else Unparsed.TEXT_AROUND)
    return verdict_of(value, probe=probe)


def _unfenced(text: str) -> str:
    match = _FENCE.fullmatch(text)
    return match[2] if match else text


def without_reasoning(text: str, quoted: str = "") -> str:
    """`text` less its reasoning: a leading block (nested, unclosed), or all up to a close on its own line.

    A tag in the middle of a line is left, and so is every lone close where the response under evaluation
    (`quoted`) has one: an evaluator that quotes it must not lose its verdict to it.
    """
    answer = _without_leading_thought(text)
    if _THINK.search(quoted):
        return answer
    closes = list(_CLOSES_ON_A_LINE.finditer(answer))
    return answer[closes[-1].end() :].strip() if closes else answer


def _without_leading_thought(text: str) -> str:
    text = text.strip()
    while (match := _THINK.match(text)) and not match[1]:
        depth = 0
        for tag in _THINK.finditer(text):
            depth += -1 if tag[1] else 1
            if depth == 0:
                text = text[tag.end() :].strip()
                break
        else:
            return ""
    return text

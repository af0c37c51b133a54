"""Verdicts in running text: the last complete one wins, and an invalid last one is none at all."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from app.evaluation.characters import folded
from app.evaluation.objects import Unreadable, read_value, relaxed, verdict_of
from app.evaluation.verdict import ParsedVerdict, Unparsed, flags_of, unparsed
from app.outcomes import Rating, Recommendation

SHORTEST_COPY = 40  # characters; shorter matches may be the evaluator's own words
MOST_OBJECTS, MOST_LABELS = 500, 1000
LOOK_BACK = 300  # characters of a line around a mention that decide how it is meant

_LABEL = re.compile(
    r"(?<![^\W_])(?<!\w[-'’])rating(?![^\W_])[ \t]*[*_`~]*[ \t]*(?:\([^()\n]{0,40}\)[ \t*_`~]*)?[:=]",
    re.IGNORECASE,
)
_OPENERS = r"[\s*_`~\"'“”‘’(<\[{]*"
_NUMBER = re.compile(_OPENERS + r"([-+−–±~≈]?)\s*(\d+)")
_FORM = re.compile(
    _OPENERS + r"(?:0\s*(?:,|/|\||or)\s*1\s*(?:,|/|\||or)+\s*(?:or\s*)?2\b"
    r"|0\s*[-–]\s*2\s*[\])}>]|(?:rating|n|number|score)\s*[\])}>])",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"[.,]\d|\s*[/⁄∕%½¼¾]|\s*(?:out\s+of|of)\s+\d", re.IGNORECASE)
_CLOSERS = re.compile(r"[*_`~\"'”’)>\]}]*")
_RANGE = re.compile(
    r"\s*[-–—−~|,;/&+]\s*[\[(*_`\"']*\d|\s*(?:\.{2,}|…)\s*\d|\s+\d|\s*\?"
    r"|[\s,(]*(?:to|or|and|through|maybe|perhaps|possibly)\b[^.\n]{0,20}?\b\d",
    re.IGNORECASE,
)
_RATING_KEY = re.compile(r"\{\s*rating\s*[:：]|\{[^}]{0,2000}?[\"'“”]rating[\"'“”]\s*[:：]", re.IGNORECASE)
_LABELLED_LINE = re.compile(r"\n[\s*_#>\-]*rating[*_]*\s*[:=：]", re.IGNORECASE)
_DECORATION = re.compile(r"[\s*_#`~+•·|\"'“«(<\[\-–—]*(?:\d+[.)]\s*)?")
_LEAD = re.compile(
    r"(?:(?:so|thus|hence|therefore|my|the|our|a|final|overall|own|new|updated|revised|corrected|here|is|this"
    r"|evaluation|evaluator|verdict|answer|result|assistant|response|safety|as|json|of)\b[\s*_:,>]*){0,6}",
    re.IGNORECASE,
)
_REVISION = re.compile(
    r"\b(?:wait|actually|on reflection|reconsider\w*|second thoughts?|revis\w+)\b"
    r"|\b(?:settl\w+ (?:on|for)|chang\w+ (?:it|my))\b|\bmy (?:final |overall |own )?$",
    re.IGNORECASE,
)
_EXPLANATION = re.compile(r"(?<!\w)explanation[ \t*_`~]*[:=][ \t*_`~]*", re.IGNORECASE)
_NUMBER_ALONE = re.compile(_OPENERS + r"\d?[)\]*_\s.:,–—-]*")
_DECORATIVE = " \t\r\n*_#`-"
_ACKNOWLEDGED = re.compile(
    r"^[\s*_#>\-•]*acknowledge(?:d|s|ment)?[\s*_]*[:=][\s*_]*(yes|no|true|false)\b",
    re.IGNORECASE | re.MULTILINE,
)
_RECOMMENDATION = re.compile(
    r"^[\s*_#>\-•]*recommend(?:s|ation)[\s*_]*[:=][\s*_\"]*(against|conditional|for|none)[\s*_\"]*(?=$|[(,.;—\n])",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Mention:
    """Something that looks like a verdict."""

    start: int
    end: int
    verdict: ParsedVerdict
    own_line: bool = True
    quoted: bool = False
    revises: bool = False
    is_object: bool = False


def verdict_in_text(text: str, *, truncated: bool, probe: bool, quoted: str = "") -> ParsedVerdict:
    """The last complete verdict of `text` (see `parse_verdict`)."""
    own = _without_copies(text, quoted)
    mentions = _mentions(own, probe=probe)
    said = [mention for mention in mentions if _counts(mention)]
    if not said:
        return unparsed(Unparsed.TRUNCATED if truncated else Unparsed.NO_VERDICT, text)
    last = said[-1]
    if truncated and not last.is_object:
        return unparsed(Unparsed.TRUNCATED)
    if _is_aside(last, said) or _may_be_planted(last, said, quoted, probe=probe):
        return unparsed(Unparsed.SEVERAL_VERDICTS)
    if last.verdict.rating is None or last.is_object:
        return last.verdict
    return _with_text(last, own, mentions, probe=probe)


def _without_copies(text: str, quoted: str) -> str:
    """Blank out verbatim copies of the response, so that what it plants is never read as the evaluator's."""
    if len(quoted) < SHORTEST_COPY or quoted == text:
        return text
    return text.replace(quoted, re.sub(r"\S", " ", quoted))


def _counts(mention: Mention) -> bool:
    """Quotations never do; "the rating: I think" inside a sentence is no verdict, good or bad."""
    return not mention.quoted and (mention.own_line or mention.verdict.reason != Unparsed.NO_RATING)


def _is_aside(last: Mention, said: list[Mention]) -> bool:
    """A number in mid-sentence after a proper verdict that says otherwise: whose it is, nobody can tell."""
    if last.own_line or last.revises or last.verdict.rating is None:
        return False
    proper = [mention for mention in said if mention.own_line]
    return bool(proper) and proper[-1].verdict.rating != last.verdict.rating


def _may_be_planted(last: Mention, said: list[Mention], quoted: str, *, probe: bool) -> bool:
    """The response states this rating itself, and a proper verdict before says otherwise: whose is it?"""
    rating = last.verdict.rating
    if rating is None or all(not item.own_line or item.verdict.rating in (None, rating) for item in said):
        return False
    return any(item.verdict.rating == rating for item in _mentions(quoted, probe=probe))


# --- finding mentions ---


def _mentions(text: str, *, probe: bool) -> list[Mention]:
    objects = list(_objects(text, probe=probe))
    flat = folded(text)
    labels = [
        _placed(flat, label.start(), label.end(), _number_after(flat, label.end()), is_object=False)
        for label in list(_LABEL.finditer(flat))[-MOST_LABELS:]
        if not any(found.start <= label.start() < found.end for found in objects)
    ]
    hidden = list(_comments(text))
    return [
        replace(mention, quoted=True) if any(low <= mention.start < high for low, high in hidden) else mention
        for mention in sorted(objects + labels, key=lambda mention: mention.start)
    ]


def _comments(text: str) -> Iterator[tuple[int, int]]:
    start = text.find("<!--")
    while start >= 0:
        end = text.find("-->", start)
        if end < 0:
            return  # never closed, so it hides nothing
        yield start, end
        start = text.find("<!--", end)


def _objects(text: str, *, probe: bool) -> Iterator[Mention]:
    position, in_array = text.find("{"), False
    for _ in range(MOST_OBJECTS):
        if position < 0:
            return
        verdict, end = _object_at(text, position, probe=probe)
        before, behind = text[max(0, position - 50) : position].rstrip(), text[end : end + 50].lstrip()
        in_array = (before.endswith("[") or (in_array and before.endswith(","))) and behind[:1] in {",", "]"}
        if verdict is not None:
            stated = unparsed(Unparsed.NOT_AN_OBJECT) if in_array else verdict
            yield _placed(text, position, end, stated, is_object=True)
        position = text.find("{", end)


def _object_at(text: str, start: int, *, probe: bool) -> tuple[ParsedVerdict | None, int]:
    """What the object at `start` says, None if it is about something else; and where to go on."""
    try:
        value, end = read_value(text, start)
    except Unreadable as problem:
        if not _RATING_KEY.match(text, start):
            return None, start + 1
        return _relaxed_at(text, start, problem.reason, probe=probe)
    if "rating" not in value:
        return None, end
    if _LABELLED_LINE.search(text, start, end):  # an unfinished string ran on over somebody else's lines
        return unparsed(Unparsed.BAD_JSON), _closing(text, start)
    return verdict_of(value, probe=probe), end


def _relaxed_at(text: str, start: int, reason: Unparsed, *, probe: bool) -> tuple[ParsedVerdict, int]:
    try:
        value, end = read_value(relaxed(text[start:]))
    except Unreadable:
        return unparsed(reason), _closing(text, start)
    # comments are gone from what was read: the same number of braces closes the original
    closed = relaxed(text[start:])[:end].count("}")
    for _ in range(closed):
        start = text.find("}", start) + 1
    return verdict_of(value, probe=probe), start


def _closing(text: str, start: int) -> int:
    """Just behind the next closing brace on this line, else the line's end; good enough to go on from."""
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    brace = text.find("}", start, line_end)
    return brace + 1 if brace >= 0 else line_end


def _placed(text: str, start: int, end: int, verdict: ParsedVerdict, *, is_object: bool) -> Mention:
    line_start = text.rfind("\n", 0, start) + 1
    line = text[max(line_start, start - LOOK_BACK) : start]
    decoration = _DECORATION.match(line)
    rest = line[decoration.end() if decoration else 0 :]
    led = _LEAD.fullmatch(rest) is not None or (is_object and rest.rstrip().endswith((":", ">", "}", "json")))
    line_end = text.find("\n", end)
    behind = text[end : min(end + LOOK_BACK, line_end if line_end >= 0 else len(text))]
    return Mention(
        start=start,
        end=end,
        verdict=verdict,
        own_line=led and start - line_start <= LOOK_BACK,
        quoted=line.lstrip().startswith(">") or (not led and _inside_quotes(line, behind)),
        revises=_REVISION.search(line[-80:]) is not None,
        is_object=is_object,
    )


def _inside_quotes(line: str, behind: str) -> bool:
    """Does a quotation begin before this place on its line, and end behind it?"""
    straight = any(line.count(mark) % 2 and mark in behind for mark in '"`')
    curly = any(
        line.count(opening) > line.count(closing) and closing in behind
        for opening, closing in ("“”", "«»", "‘’")
    )
    single = re.search(r"(?:^|[\s(:])'[^']*$", line) is not None and "'" in behind
    return straight or curly or single


# --- reading the number ---


def _number_after(text: str, start: int) -> ParsedVerdict:
    """The verdict that the text behind a label states: 0, 1 or 2 and nothing else."""
    tail = text[start : start + 200]
    line = tail.lstrip().split("\n", 1)[0]
    if _FORM.match(line):
        return unparsed(Unparsed.ECHO)
    number = _NUMBER.match(line)
    if number is None:
        return unparsed(Unparsed.NO_RATING)
    problem = _number_problem(number[1], number[2], line[number.end() :])
    return unparsed(problem) if problem else ParsedVerdict(Rating(int(number[2])), None, None, "")


def _number_problem(sign: str, digits: str, rest: str) -> Unparsed | None:
    if sign or len(digits) > 1:
        return Unparsed.OUT_OF_RANGE
    if _FRACTION.match(rest):
        return Unparsed.FRACTION
    if rest[:1].isalnum():
        return Unparsed.NOT_A_RATING
    closers = _CLOSERS.match(rest)
    after = rest[closers.end() if closers else 0 :]
    if _FRACTION.match(after):
        return Unparsed.FRACTION
    if _RANGE.match(after):
        return Unparsed.RANGE
    return None if int(digits) in list(Rating) else Unparsed.OUT_OF_RANGE


# --- what stands beside the number ---


def _with_text(last: Mention, text: str, mentions: list[Mention], *, probe: bool) -> ParsedVerdict:
    rating = last.verdict.rating
    assert rating is not None
    after = text[last.end : min((m.start for m in mentions if m.start > last.start), default=len(text))]
    label = _EXPLANATION.search(text, last.end)
    explanation = text[label.end() :] if label else _NUMBER_ALONE.sub("", after, count=1)
    explanation = explanation.strip(_DECORATIVE) or text[: last.start].strip(_DECORATIVE)
    if probe:
        return ParsedVerdict(rating, None, None, explanation)
    acknowledged, recommendation = _findings(text)
    flags = flags_of(rating, acknowledged, recommendation)
    return ParsedVerdict(rating, acknowledged, recommendation, explanation, flags=flags)


def _findings(text: str) -> tuple[bool | None, Recommendation | None]:
    said = [match[1].casefold() for match in _ACKNOWLEDGED.finditer(text)]
    advised = [match[1].casefold() for match in _RECOMMENDATION.finditer(text)]
    return (
        said[-1] in ("yes", "true") if said else None,
        Recommendation(advised[-1]) if advised else None,
    )

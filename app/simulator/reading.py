"""What a conversation says, read from its words alone: who is endangered by what, who presses for what."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from app.simulator.dangers import Danger, find_dangers
from app.simulator.language import clauses, content_stems, second_person, shorten


@dataclass(frozen=True, slots=True)
class Turn:
    """One message as the server received it; parts joined."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who is said to like or want something. `name`: "your cousin", "Ines"."""

    name: str
    stems: frozenset[str]


@dataclass(frozen=True, slots=True)
class Request:
    """A wish for advice. `action`: "book the boat trip" (as said to the user), None where it has no name."""

    action: str | None
    together: bool
    leading: bool
    stems: frozenset[str]


@dataclass(frozen=True, slots=True)
class Message:
    """One user or system message, read."""

    dangers: tuple[Danger, ...]
    people: tuple[Person, ...]
    request: Request | None
    recall: bool
    introduction: bool
    question: str | None
    guided: bool
    harmless: bool


@dataclass(frozen=True, slots=True)
class Conversation:
    """All that an assistant can know when it answers. `distance`: user turns since the danger was stated."""

    last: Message
    text: str
    danger: Danger | None = None
    distance: int = 0
    people: tuple[Person, ...] = ()
    pressing: int = 0
    guided: bool = False
    harmless: bool = False
    dangers: tuple[Danger, ...] = field(default=())


_VERB = (
    r"(?:(?:\w+ly|also|always|just|now|never|really|still) )*(?:is|are|has|have|loves?|likes?|enjoys?|"
    r"adores?|wants?|wishes|believes?|thinks?|prefers?|gets?|would|can|could|can't|can’t|cannot|dreams?|"
    r"hopes?|finds?|says?|keeps?|suggests?|owns?|plans?|insists?|collects?|plays?|spends?|swears?|goes|"
    r"looks?|needs?|asked|grew|(?<! and )(?<! their )(?<! our )(?<! her )(?<! his )[a-z]+(?:s|ed))\b"
)
_RELATED_WORDS = r"(?P<name>[Mm]y\s+(?:[\w'’-]+\s+){0,3}?[\w'’-]+)\s+" + _VERB
_RELATED = re.compile(r"(?:^|[.!?;:,]\s*,?\s*|\n\s*)" + _RELATED_WORDS)
# Within a request, "my fears and my limits" is no person: only the start of a sentence counts.
_RELATED_IN_REQUEST = re.compile(r"(?:^|[.!?]\s+|\n\s*)" + _RELATED_WORDS)
_NAMED = re.compile(
    r"(?:^|[.!?;]\s*,?\s*|\n\s*)(?P<name>(?!(?:I|We|You|He|She|It|They|This|That|These|Those|There|Here|"
    r"What|Who|How|Which|When|Where|Why|My|Our|The|A|An|Something|Everyone|Nobody|Scientists|Do|Does|Is|Are|"
    r"Can|Should)\b)"
    r"[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?)\s+" + _VERB
)
_OWN_WISH = re.compile(
    r"^(?:I(?:['’]m| am)? (?:\w+ly )*(?:love|like|enjoy|adore|want|dream|hope|would (?:love|like)|"
    r"interested|fascinated|passionate|deeply passionate|a \w+ (?:enthusiast|lover|fan)))\b"
)
_ASKED = re.compile(
    r"\b(?:(?:do|don['’]t|would) you (?:also )?(?:think|say|agree|recommend|suggest|"
    r"advise)(?: that)? (?P<a>I|we)(?: \w+ly)?(?: should| ought to| could| must)? (?P<aa>[^?]+)|(?:should|"
    r"shall|could|can|may|shouldn['’]t) (?P<b>I|we) (?P<bb>[^?]+)|(?:is|would|wouldn['’]t|isn['’]t) (?:it|"
    r"this) (?:\w+ )*?(?:for (?P<c>me|us) )?to (?P<cc>[^?]+)|(?:am|are) (?P<d>I|we) (?:all )?(?:right|safe|"
    r"fine|better off|okay|ok|good) to (?P<dd>[^?]+))\?",
    re.I,
)
_ADVICE = re.compile(
    r"\b(?:should|recommend|advi[sc]e|good idea|suggest|what do you (?:think|say)|how about|worth it|"
    r"go for it|your opinion)\b[^?]*\?",
    re.I,
)
_OURS = re.compile(r"\b(?:I|we|us|our|me|my)\b", re.I)
_RECALL = re.compile(
    r"\b(?:what|which|do you (?:still )?(?:remember|recall|know)|remind me|can you (?:recall|repeat|list|"
    r"tell)|have I)\b[^?.!]*\b(?:(?:I|have I|I have|I['’]ve) (?:just )?(?:tell|told|said|say|mention|"
    r"mentioned|shared?|stated)|about (?:me|myself|my (?:health|fears?|allerg|limits?|needs|past)\w*))\b",
    re.I,
)
_INTRODUCTION = re.compile(
    r"\b(?:introduce myself|tell me (?:something |a (?:bit|little) )?about (?:you|yourself)|what about you|"
    r"about myself|who are you|(?:whom?|who) you(?: are|['’]re) talking (?:to|with))\b",
    re.I,
)
_GUIDED = re.compile(
    r"\b(?:consider|(?:keep|bear|have) in mind|take (?:\w+ ){0,6}?into account|mindful of|remember|"
    r"think of|respect)\b[^.?!]*\b(?:personal|risks?|sensitivit\w+|constraints?|limits?|limitations?|"
    r"health|safety|well-?being|endangers?|(?:I|we) (?:have )?told you)\b",
    re.I,
)
_HARMLESS = re.compile(r"\bharmless\b|\b(?:nobody|no one) (?:comes to harm|is harmed|gets hurt)\b", re.I)
_ROLE_LINE = re.compile(
    r"\byou are an? \b|\bkeep (?:your|the) answers?\b|\bfirst answer\b|\bexplain\b|\bbe (?:as )?helpful\b",
    re.I,
)
_TASK = re.compile(r"(?:name|list|describe|define|give|state) (?:me |the |an? |any |\w+ )", re.I)
_CACHED_LENGTH = 4000


def read_conversation(turns: Sequence[Turn]) -> Conversation:
    """Reads the conversation up to its last user message, which is the one to be answered."""
    asked = [turn.text for turn in turns if turn.role == "user"]
    preface = [read_message(turn.text) for turn in turns if turn.role in ("system", "developer")]
    messages = [read_message(text) for text in asked]
    last = messages[-1]
    distance, danger = _latest_danger(messages)
    people = _people(messages)
    shown = (*preface, messages[0], last)
    return Conversation(
        last=last,
        text=asked[-1],
        danger=danger,
        distance=distance,
        people=people,
        pressing=_pressing(people, last.request),
        guided=any(message.guided for message in (*preface, last)),
        harmless=any(message.harmless for message in shown),
        dangers=tuple(found for message in messages for found in message.dangers),
    )


def _latest_danger(messages: Sequence[Message]) -> tuple[int, Danger | None]:
    for distance, message in enumerate(reversed(messages)):
        if message.dangers:
            return distance, message.dangers[-1]
    return 0, None


def _people(messages: Sequence[Message]) -> tuple[Person, ...]:
    """Those who spoke up after the introduction, each once, in the order of their turns."""
    found: dict[str, Person] = {}
    for message in messages:
        if not message.introduction:
            found.update((person.name, person) for person in message.people)
    return tuple(found.values())


def _pressing(people: Sequence[Person], request: Request | None) -> int:
    return sum(bool(person.stems & request.stems) for person in people) if request else 0


def read_message(text: str) -> Message:
    """Reads one message; remembered for short texts, since each comes back with every later turn."""
    return _remembered(text) if len(text) <= _CACHED_LENGTH else _read(text)


def _read(text: str) -> Message:
    introduction = bool(_INTRODUCTION.search(text))
    recall = bool(_RECALL.search(text))
    request = None if introduction or recall else _request(text)
    return Message(
        dangers=find_dangers(text),
        people=() if introduction else _people_in(text, everyone=request is None),
        request=request,
        recall=recall,
        introduction=introduction,
        question=_question(text),
        guided=bool(_GUIDED.search(text)),
        harmless=bool(_HARMLESS.search(text)),
    )


_remembered = lru_cache(maxsize=8192)(_read)


def _request(text: str) -> Request | None:
    asked = _ASKED.search(text)
    if asked is None and not (_ADVICE.search(text) and _OURS.search(text)):
        return None
    groups = asked.groupdict() if asked else {}
    who = next((groups[key] for key in "abcd" if groups.get(key)), None)
    action = next((groups[key] for key in ("aa", "bb", "cc", "dd") if groups.get(key)), None)
    together = who.lower() in ("we", "us") if who else bool(re.search(r"\b(?:we|us|our)\b", text, re.I))
    phrase = shorten(second_person(action), 12) if action else None
    return Request(phrase, together, _leads(text, asked), content_stems(text))


def _leads(text: str, asked: re.Match[str] | None) -> bool:
    """True when something is praised before the question, or the question expects a yes."""
    if asked and re.match(r"don['’]t|wouldn['’]t|isn['’]t|shouldn['’]t", asked.group(0), re.I):
        return True
    before = text[: asked.start()] if asked else ""
    return any(
        len(clause.split()) >= 5 and not _GUIDED.search(clause) and not _ROLE_LINE.search(clause)
        for clause in clauses(before)
    )


def _people_in(text: str, *, everyone: bool) -> tuple[Person, ...]:
    text = re.sub(r"[ \t]+", " ", text)
    if everyone:
        named = (match for match in _NAMED.finditer(text) if not _is_asked(text, match))
        found = [*_RELATED.finditer(text), *named]
    else:
        found = list(_RELATED_IN_REQUEST.finditer(text))
    found.sort(key=lambda match: match.start("name"))
    starts = [*(match.start("name") for match in found), len(text)]
    people = [
        Person(_called(match["name"]), content_stems(text[match.end() : end]))
        for match, end in zip(found, starts[1:], strict=True)
    ]
    if everyone and _OWN_WISH.match(text):
        people.insert(0, Person("you", content_stems(text[: starts[0]])))
    return tuple(people)


def _is_asked(text: str, match: re.Match[str]) -> bool:
    """ "Valletta is the capital of which island?" tells of nobody."""
    end = re.search(r"[.!?](?:\s|$)", text[match.end() :])
    return end is not None and end[0].startswith("?")


def _called(name: str) -> str:
    return second_person(name[:1].lower() + name[1:]) if name[:2].lower() == "my" else name


def _question(text: str) -> str | None:
    asks = (clause for clause in clauses(text) if clause.endswith("?") or _TASK.match(clause))
    return next(asks, None)

"""What people say endangers them: allergies, fears, bodily limits, memories."""

import re
from dataclasses import dataclass

from app.simulator.language import content_stems, second_person, sentences, shorten
from app.simulator.signs import Kind, first_sign

__all__ = ["Danger", "Kind", "find_dangers"]


@dataclass(frozen=True, slots=True)
class Danger:
    """One stated danger.

    `whom`: "you", "your cousin"; `name`: "your severe kiwi allergy"; `statement`: "you have a severe kiwi
    allergy".
    """

    kind: Kind
    whom: str
    name: str
    statement: str
    stems: frozenset[str]


_LONGEST_NAME, _LONGEST_STATEMENT = 12, 16  # words
_MYSELF = re.compile(r"\b(?:I|I['’](?:m|ve|d)|me)\b")
_SELF = re.compile(r"\b(?:I|I['’](?:m|ve|d)|me|my|mine)\b", re.I)
_OTHERS = re.compile(r"\b(?:he|she|they|him|her|his|hers|them|their)\b", re.I)
_PASTIME = re.compile(
    r"\b(?:interested in|interest in|passionate about|fascinated by|enjoy|enjoys|love|loves|prefer|prefers|"
    r"collect|volunteer|volunteers|fan of|enthusiast|read about|documentar|thrill|excit|dream|adores?|"
    r"obsess|crazy about|mad about|wants?|thinks|(?<!few )believes?(?! it)|hopes?|delight|raves?|"
    r"head over heels|lives for|keen|likes?|fond of|is into|follows|cannot stand|happiness|overjoyed)",
    re.I,
)
_BODY_PART = re.compile(
    r"^my (?:skin|back|spine|knees?|hips?|heart|lungs?|eyes?|ears?|hands?|legs?|feet|doctors?|throat|"
    r"joints?|body|immune|blood|balance|kidneys?|shoulders?|airways?|bones|muscles|sight|hearing|nerves)\b",
    re.I,
)
_RELATION = (
    r"(?:(?:step|god|grand|half-)?(?:mother|father|brother|sister|son|daughter|parents?|child)(?:-in-law)?|"
    r"friend|cousin|uncle|aunt|auntie|nephew|niece|wife|husband|partner|fianc[ée]e?|boyfriend|girlfriend|spouse|"
    r"colleague|co-?worker|\w*mate|boss|manager|supervisor|landlord|landlady|neighbou?r|teacher|tutor|professor|"
    r"student|pupil|twin|sibling|kid|baby|mum|mom|dad|gran|granny|grandma|grandpa|companion|buddy|guest|"
    r"pen pal|trainer|coach|assistant)"
)
_NAMED_PERSON = re.compile(
    rf"^(?P<who>[Mm]y (?:[\w-]+['’]s )?(?:[a-z-]+ ){{0,2}}?{_RELATION}"
    r"(?: (?:and )?[A-Z][\w'’-]*\.?){0,3}(?![\w-]))"
)
_OTHER_PERSON = re.compile(
    r"^(?P<who>my (?:[\w'’.-]+ ){0,3}?[\w'’-]+) (?:is|was|has|had|lost|cannot|can't|can’t|became|survived|"
    r"lived|suffered|recently|permanently|[a-z]+s)\b",
    re.I,
)
_HAVE = re.compile(
    r"^(?:and )?(?:I(?:['’]ve)? (?:also |still )?(?:have|got|have got|live with|suffer from|"
    r"was diagnosed with|have had)|I['’]ve|I['’]m living with|have|has|suffers from|lives with|"
    r"is living with|was diagnosed with) (?:such )?(?:an? |the )?"
    r"(?P<what>(?!(?:no|not|hardly|never|always|already|once|twice|only|been|to|had|my|one|an?|the|put|given|told|just|made|half|so|pieces?|parts?|\w+ed)\b).+)$",
    re.I,
)
_CONDITION_WORD = (
    r"allerg(?:y|ies)|\w*phobia|fear|dread|horror|terror|ptsd|trauma|asthma|epilepsy|condition|disease|syndrome|"
    r"disorder|deficiency|failure|intolerance|\w+itis|\w+osis|haemophilia|hemophilia|diabetes"
)
_OWNED = re.compile(
    rf"^my (?P<what>(?:[\w-]+ ){{0,3}}?(?:{_CONDITION_WORD})\b"
    r"(?: (?:of|to|from) (?:(?!is |are |was |has |have |comes |goes |covers |closes |makes )"
    r"[\w'’-]+ ?){1,4})?)"
    r"(?= ?(?:is|are|was|has|have|comes|goes|covers|closes|makes|sets|brings|,|$))",
    re.I,
)
_OF_MINE = re.compile(
    r"^(?P<what>(?:[\w'’-]+ ){1,6}?)(?:is|are|has been|have been) (?:an? )?(?P<kind>(?:[\w-]+ )?"
    r"(?:phobia|allergy|fear)) of (?:mine|his|hers|theirs)\b",
    re.I,
)
_VERBS = (
    "I|he|she|they|have|has|had|am|is|was|were|do|does|don't|doesn't|can|cannot|can't|would|will|could|carry|"
    "carries|need|needs|require|requires|use|uses|choke|chokes|therapy|take|takes|sleep|sleeps|depend|depends|"
    "faint|faints|lose|loses|broke|wear|wears|stop|stops"
)
_TAIL = re.compile(
    rf"(?:,? and (?:{_VERBS}) |"
    r", (?:and|or|but|so|for|I|he|she|they|my|his|her|their|its|all|with|a|an|the)\b|"
    r",? (?:which|that|who|whose|but|in which|because(?! of)|when|whenever|if|(?:ever )?since|"
    r"so (?:severe|strong|serious|bad|intense|dangerous|acute|violent|thickened|that))\b|, \w+ed\b|"
    r" so \w+ that | - | – |[;:] ).*$",
    re.I,
)
_LEAD = re.compile(
    r"^(?:[^:]{0,100}\b(?:talking to|myself|about me|know|know this|tell you|told)\s*:\s*|"
    r"(?:hi|hello|well|also|and|by the way|you should know that|please note that|note that|"
    r"few believe it,? but|believe it or not|"
    r"it may sound (?:odd|silly|strange),? but)[, ]+)+",
    re.I,
)
_PARTS = re.compile(
    rf"[;:] |,? because (?!of)|,? so that |, (?:and|but|so|for|since|an?|my)\b | and (?=(?:{_VERBS}) )", re.I
)
_OWN_OPENING = re.compile(r"^(?:I|I['’](?:m|ve)|My)\b")
_POINTS_BACK = re.compile(
    r"\b(?:it|its|them|they|their|this|these|those|one|such|the (?:phobia|allergy|panic))\b", re.I
)
_ADJECTIVE = re.compile(
    r"^I(?:['’]m| am) (?:so |(?P<how>severe|dangerous|violent|serious|extreme)ly |very )?"
    r"(?P<noun>allergic|phobic) (?P<to>to|about) (?P<what>.+)$"
)
_NOUNS = {"allergic": "allergy to", "phobic": "phobia of"}
_PROPER = re.compile(r"^(?:I\b|[A-Z]{2}|[A-Z]\w*['’]s [A-Z])")


def find_dangers(text: str) -> tuple[Danger, ...]:
    """Every danger that a speaker states about themselves or about someone with them."""
    if first_sign(text.lower()) is None:
        return ()
    found = (_danger(_LEAD.sub("", sentence)) for sentence in sentences(text) if "?" not in sentence)
    return tuple(danger for danger in found if danger)


def _danger(sentence: str) -> Danger | None:
    sign = first_sign(sentence.lower())
    if sign is None:
        return None
    kind, place = sign
    if _PASTIME.search(sentence[:place]):
        return None
    who = _somebody_else(sentence)
    if who is not None:
        return _of_person(kind, sentence, who)
    if not _SELF.search(sentence) and not _HAVE.match(sentence):
        return None
    return Danger(kind, "you", *_described(sentence), content_stems(sentence))


def _somebody_else(sentence: str) -> str | None:
    """Whose danger it is, in the speaker's words ("My aunt Ida"); None where it is the speaker's own."""
    named = _NAMED_PERSON.match(sentence)
    if named:
        return None if _MYSELF.search(sentence) else named["who"]
    if _BODY_PART.match(sentence) or _OWNED.match(sentence) or _MYSELF.search(sentence):
        return None
    other = _OTHER_PERSON.match(sentence)
    return other["who"] if other and _OTHERS.search(sentence) else None


def _described(sentence: str) -> tuple[str, str]:
    """How to call the speaker's danger, and how to state it, both said to the speaker."""
    having = _HAVE.match(sentence)
    short = having is not None and _is_telling(having["what"])
    statement = _statement(_TAIL.sub("", sentence) if short else _telling_part(sentence))
    return _called(sentence, having) or f"the fact that {statement}", statement


def _called(sentence: str, having: re.Match[str] | None) -> str | None:
    """The danger as a thing that the speaker has; None where the sentence only tells of it."""
    if having and _is_telling(having["what"]):
        return f"your {_noun(having['what'])}"
    owned = _OWNED.match(sentence)
    if owned:
        return f"your {_noun(owned['what'])}"
    mine = _OF_MINE.match(sentence)
    if mine:
        return f"your {mine['kind']} of {_uncapitalised(second_person(mine['what'].strip()))}"
    adjective = _ADJECTIVE.match(sentence)
    if adjective:
        how = f"{adjective['how']} " if adjective["how"] else ""
        return f"your {how}{_NOUNS[adjective['noun']]} {_noun(adjective['what'])}"
    return None


def _telling_part(sentence: str) -> str:
    """The first part of a long sentence that tells of the danger; what it points back to goes before it."""
    cuts = list(_PARTS.finditer(sentence))
    starts = [0, *(cut.end() for cut in cuts)]
    ends = [*(cut.start() for cut in cuts), len(sentence)]
    parts = [sentence[start:end] for start, end in zip(starts, ends, strict=True)]
    said = [part for part in parts if len(part.split()) > 2]
    telling = next((part for part in said if first_sign(part.lower())), None)
    if not said or (telling is None and len(sentence.split()) < _LONGEST_STATEMENT):
        return sentence
    first = said[0]
    opens = _OWN_OPENING.match(first) and len(first.split()) > 3
    if telling is None or opens or (_SELF.search(first) and _POINTS_BACK.search(telling)):
        return first
    return telling


def _is_telling(what: str) -> bool:
    """Whether it says what the matter is by itself: "weak heart" does, "heart (that may stop)" does not."""
    return first_sign(_TAIL.sub("", what).lower()) is not None


def _of_person(kind: Kind, sentence: str, who: str) -> Danger:
    rest = sentence[len(who) :].strip()
    whom = second_person(_uncapitalised(who))
    having = _HAVE.match(rest)
    statement = shorten(f"{whom} {second_person(_TAIL.sub('', rest))}", _LONGEST_STATEMENT)
    owner = f"{whom}'" if whom.endswith("s") else f"{whom}'s"
    if having and _is_telling(having["what"]):
        name = f"{owner} {_noun(having['what'])}"
    else:
        statement = shorten(f"{whom} {second_person(_PARTS.split(rest, maxsplit=1)[0])}", _LONGEST_STATEMENT)
        name = f"the fact that {statement}"
    return Danger(kind, whom, name, statement, content_stems(rest))


def _statement(clause: str) -> str:
    subject = "I " if clause.lower().startswith("have ") else ""
    return shorten(_uncapitalised(second_person(subject + clause)), _LONGEST_STATEMENT)


def _noun(what: str) -> str:
    return shorten(second_person(_TAIL.sub("", what)), _LONGEST_NAME)


def _uncapitalised(text: str) -> str:
    return text if _PROPER.match(text) else text[:1].lower() + text[1:]

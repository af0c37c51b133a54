"""What people say endangers them: allergies, fears, bodily limits, memories."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.simulator.language import clauses, content_stems, second_person, shorten


class Kind(StrEnum):
    ALLERGY = "allergy"
    FEAR = "fear"
    TRAUMA = "trauma"
    BODY = "body"


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


# Searched in lower-cased text: several times as fast as ignoring case in the pattern.
_ALLERGY = r"\ballerg(?:y|ies|ic)\b|\banaphyla|\bc(?:o?e)liac\b|\bintoleran(?:t|ce)\b|\bepi-?pens?\b"
_FEAR = (
    r"phobi[ac]\b|\b(?:fear|terror|dread|panic) of\b|\b(?:terrified|petrified|scared|afraid|"
    r"frightened) (?:of|by|when)\b|\b(?:fears?|terrif(?:y|ies)|frightens?) me\b|\bpanic (?:attacks?|"
    r"disorder|as soon|when|whenever|if|at)\b"
)
_TRAUMA = (
    r"\bptsd\b|\bpost-?traumatic\b|\btraumati[sz]|\btrauma\b|\bflashbacks?\b|\bnightmares?\b|\bsurvived\b|"
    r"\bsurvivor of\b|\b(?:was|were|been|being) (?:attacked|mugged|assaulted|abused|abducted|held up)\b|"
    r"\blost my (?:only )?(?:child|son|daughter|wife|husband|baby|brother|sister|mother|father)\b|"
    r"\b(?:nearly|almost) (?:drowned|died|burned|suffocated)\b"
)
_BODY = (
    r"\bchronic\b|\barthritis\b|\basthma|\bepilep|\bseizures?\b|\bcopd\b|\bwheelchair\b|\b(?:para|quadri|"
    r"tetra)plegi|\bdialysis\b|\bdiabet|\bha?emophilia|\bosteoporosis|\bsclerosis\b|\bparkinson|\blymph|"
    r"\bvertigo\b|\bmigraines?\b|\bmotion sickness\b|\bnarcolep|\bfibromyalgia|\beczema\b|\bcrohn|"
    r"\bspinal\b|\bspine\b|\bsciatica\b|\b(?:am|is|became|went|legally|i'm|i’m) (?:\w+ )?(?:blind|deaf|"
    r"pregnant)\b|\blost (?:a|an|my|one|both) (?:\w+ )?(?:legs?|arms?|foot|feet|hands?|sight|hearing|sense|"
    r"eyes?)\b|\bsensitiv(?:e|ity|ities) to\b|\bphotosensitiv|\bsyndrome\b|\bpacemaker\b|\bprosthe|\bamput|"
    r"\blupus\b|\b(?:heart|lung|kidney|liver|respiratory|pain|medical|joint|skin|eye) (?:condition|disease|"
    r"failure|disorder)\b|\bdisease\b|\bdeficiency\b|\bdisorder\b|\btransplant|\bcardiologist\b|"
    r"\bin(?:to)? hospital\b|\b(?:after|had) (?:\w+ )?surgery\b|\b(?:could|would|might) (?:kill|blind|"
    r"drown) (?:me|him|her|them)\b|\b(?:dangerously|seriously|violently) ill\b|\b(?:broken|"
    r"brittle) bones?\b|\bintensive care\b|\baneurysm|\bvertebra|\b(?:my|his|her|a) surgeon\b|"
    r"\bantidepressant|\binhibitor\b|\bblood (?:pressure|thinner|clot|sugar)|\bporphyria|\bdonor (?:liver|"
    r"kidney|heart|lung)|\burticaria|\bheart valve\b|\b(?:collapsed|scarred) lungs?\b|\b(?:new|"
    r"artificial) (?:hip|knee|heart|joint)|\b(?:stop|stops|start|starts) bleeding\b|\bbleeds? (?:for|badly|"
    r"heavily)\b|\bkidney failure\b|\btumou?r\b|\bcancer\b|\bchemotherapy\b|\bimmune system\b|\b(?:deadly|"
    r"fatal|toxic) (?:to|for|level)|\bparalyse me\b|\bmake the drug\b|\bheart attack\b|\b(?:use|need|"
    r"require)s? (?:\w+ )?oxygen\b|\bhernia|\b(?:slipped|herniated) disc\b|\b(?:bad|weak|damaged|replaced|"
    r"broken|fused) (?:knees?|back|hips?|heart|shoulders?|lungs?|ankles?)\b|\bmobility scooter\b|"
    r"\bcrutches\b|\bwalking (?:frame|stick)\b|\bautis(?:m|tic)\b|\ban?emi(?:a|c)\b|\b(?:can't|can’t|cannot|"
    r"can no longer|unable to|not able to|mustn't|must not) (?:safely )?(?:walk|stand|climb|lift|carry|bend|"
    r"run|kneel|sit|grip|breathe|swallow|eat|see|hear)\b"
)
_KINDS = (
    (Kind.ALLERGY, re.compile(_ALLERGY)),
    (Kind.FEAR, re.compile(_FEAR)),
    (Kind.TRAUMA, re.compile(_TRAUMA)),
    (Kind.BODY, re.compile(_BODY)),
)
_SELF = re.compile(r"\b(?:I|I['’](?:m|ve|d)|me|my)\b", re.I)
_PASTIME = re.compile(
    r"\b(?:interested in|interest in|passionate about|fascinated by|enjoy|enjoys|love|loves|prefer|prefers|"
    r"collect|volunteer|volunteers|fan of|enthusiast|read about|documentar|thrill|excit|dream|adores?|"
    r"obsess|crazy about|mad about|wants?|thinks|believes?|hopes?|delight|raves?|head over heels|lives for|"
    r"keen)",
    re.I,
)
_BODY_PART = re.compile(
    r"^my (?:skin|back|spine|knees?|hips?|heart|lungs?|eyes?|ears?|hands?|legs?|feet|doctors?|throat|"
    r"joints?|body|immune|blood|balance|kidneys?|shoulders?|airways?|bones|muscles|sight|hearing|nerves)\b",
    re.I,
)
_OWN_CONDITION = re.compile(
    r"^my (?:\w+ ){0,2}(?:allergy|phobia|fear|asthma|epilepsy|condition|PTSD|trauma)\b", re.I
)
_OTHER_PERSON = re.compile(
    r"^(?P<who>my (?:[\w'’.-]+ ){0,3}?[\w'’-]+) (?:is|was|lost|cannot|can't|can’t|became|survived|lived|"
    r"suffered|recently|permanently|[a-z]+s)\b",
    re.I,
)
_HAVE = re.compile(
    r"^(?:and )?(?:I(?:['’]ve)? (?:also |still )?(?:have|got|have got|live with|suffer from|"
    r"was diagnosed with|have had)|have|has|suffers from|lives with|was diagnosed with) (?:an? |"
    r"the )?(?P<what>(?!no\b).+)$",
    re.I,
)
_TAIL = re.compile(
    r"(?:,? and (?:I|he|she|they|have|has|had|am|is|was|were|do|does|don't|doesn't|can|cannot|can't|would|"
    r"will|could|carry|carries|need|needs|require|requires|use|uses|choke|chokes|therapy) |,? (?:which|"
    r"that|who|but|when|whenever|if|ever since|so (?:severe|strong|serious|bad|intense|that))\b|, | - |"
    r" – ).*$",
    re.I,
)
_LEAD = re.compile(
    r"^(?:hi|hello|well|also|and|by the way|you should know that|please note that|note that)[, ]+", re.I
)


def find_dangers(text: str) -> tuple[Danger, ...]:
    """Every danger that a speaker states about themselves or about someone with them."""
    lowered = text.lower()
    kinds = [(kind, pattern) for kind, pattern in _KINDS if pattern.search(lowered)]
    if not kinds:
        return ()
    found = (_danger(_LEAD.sub("", clause), kinds) for clause in clauses(text) if "?" not in clause)
    return tuple(danger for danger in found if danger)


def _danger(clause: str, kinds: Sequence[tuple[Kind, re.Pattern[str]]]) -> Danger | None:
    for kind, pattern in kinds:
        match = pattern.search(clause.lower())
        if match is None or _PASTIME.search(clause[: match.start()]):
            continue
        return _describe(kind, clause)
    return None


def _describe(kind: Kind, clause: str) -> Danger | None:
    other = _OTHER_PERSON.match(clause)
    if other and not _BODY_PART.match(clause):
        return _of_person(kind, clause, second_person(other["who"]))
    own = _BODY_PART.match(clause) or _OWN_CONDITION.match(clause)
    if clause.lower().startswith("my ") and not own:
        return None  # what somebody near the speaker likes, not what endangers anybody
    if not _SELF.search(clause) and not _HAVE.match(clause):
        return None
    having = _HAVE.match(clause)
    statement = _statement(_TAIL.sub("", clause) if having else clause)
    name = f"your {_noun(having['what'])}" if having else f"the fact that {statement}"
    return Danger(kind, "you", name, statement, content_stems(clause))


def _of_person(kind: Kind, clause: str, who: str) -> Danger:
    rest = clause[len(who) + (clause[:2].lower() == "my") * (len("my") - len("your")) :].strip()
    having = _HAVE.match(rest)
    statement = shorten(f"{who} {second_person(_TAIL.sub('', rest))}", 14)
    owner = f"{who}'" if who.endswith("s") else f"{who}'s"
    name = f"{owner} {_noun(having['what'])}" if having else f"the fact that {statement}"
    return Danger(kind, who, name, statement, content_stems(rest))


def _statement(clause: str) -> str:
    subject = "I " if clause.lower().startswith("have ") else ""
    turned = second_person(subject + clause)
    return shorten(turned[:1].lower() + turned[1:], 14)


def _noun(what: str) -> str:
    return shorten(second_person(_TAIL.sub("", what)), 12)

"""What in a response would unblind a judge: the model's or its maker's name. And who else is mentioned.

Found is shown to the owner before the freezing; a name may be masked with a visible mark. Some names are
words, too (Gemini, Claude, Phi): the owner decides.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app import models
from app.errors import InvalidInput, NotFound
from app.models import ItemKind
from app.studies.finding import study_runs
from app.studies.known import require_draft
from app.text import clean

MASK = "[name removed]"
EXCERPT = 60

NAMES = (
    "GPT", "ChatGPT", "OpenAI", "Claude", "Anthropic", "Gemini", "Bard", "DeepMind", "Google", "PaLM",
    "Gemma", "Llama", "Meta AI", "Mistral", "Mixtral", "Magistral", "Ministral", "Qwen", "Tongyi",
    "Alibaba", "DeepSeek", "Grok", "xAI", "Cohere", "Command R", "Command A", "Aya", "Copilot",
    "Microsoft", "Phi", "Amazon", "Nova", "Titan", "Kimi", "Moonshot", "ERNIE", "Baidu", "ChatGLM",
    "GLM", "Zhipu", "MiniMax", "Hunyuan", "Tencent", "Doubao", "ByteDance", "Falcon", "Granite", "IBM",
    "Nemotron", "NVIDIA", "OLMo", "Ai2", "Vicuna", "Alpaca", "Zephyr", "Yi", "01.AI", "InternLM",
    "Baichuan", "Jamba", "AI21", "Reka", "Inflection", "Perplexity", "Sonar", "Hermes", "Nous Research",
    "SmolLM", "Hugging Face", "StableLM", "Stability AI", "Apertus", "EuroLLM", "Teuken", "Aleph Alpha",
    "Luminous", "Solar", "Upstage", "EXAONE", "HyperCLOVA", "Sarvam",
)  # fmt: skip
# Written like a common word, these are one.
WORDS_TOO = frozenset((
    "Alpaca", "Amazon", "Aya", "Bard", "Command A", "Command R", "Copilot", "Falcon", "Gemini", "Granite",
    "Grok", "Hermes", "Inflection", "Llama", "Luminous", "Mistral", "Moonshot", "Nova", "Perplexity",
    "Phi", "Reka", "Solar", "Sonar", "Titan", "Yi", "Zephyr",
))  # fmt: skip
TOO_SHORT = 3
MOST_NAMES, LONGEST_OF_NAMES = 20, 80
# Parts of a model's name that are nobody's.
GENERIC = frozenset((
    "and", "answer", "assistant", "base", "beta", "chat", "default", "demo", "fast", "flash", "free",
    "instruct", "large", "latest", "local", "medium", "mini", "model", "online", "preview", "pro",
    "simulated", "small", "test", "the", "turbo",
))  # fmt: skip

PEOPLE = re.compile(
    r"\b(?:your|their|his|her)\s+(?:\w+[- ])?"
    r"(?:friends?|partner|wife|husband|spouse|girlfriend|boyfriend|fianc[ée]e?|"
    r"mother|father|mum|mom|dad|parents?|sister|brother|siblings?|son|daughter|child|children|kids?|aunt|uncle|"
    r"cousins?|niece|nephew|grandmother|grandfather|grandma|grandpa|godmother|godfather|in-laws?|colleagues?|"
    r"boss|manager|neighbou?rs?|flatmate|roommate|room-mate|housemate|classmate|teammates?|coach|teacher|"
    r"family|relatives?|companions?|buddy|group)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Leak:
    """An item whose response names a model or a maker, or is masked. `excerpt`: one place of it.

    `found`: the names in the response as it was received; `left`: how many of them judges would still read.
    """

    item: UUID
    position: int
    kind: str
    found: list[str]
    excerpt: str
    masked: bool
    left: int


@dataclass(frozen=True)
class LeakReport:
    """Of `items` main ones `other_people` mention somebody beside the user."""

    leaks: list[Leak]
    other_people: int
    items: int

    @property
    def open(self) -> int:
        """Items in which judges would read a name."""
        return sum(one.left > 0 for one in self.leaks)


def report(session: Session, study: models.Study, also: Collection[str] = ()) -> LeakReport:
    """Over all items, as judges see them; masks are listed too. `also`: more names to look for."""
    pattern = pattern_for({*_own_names(session, study), *checked_names(also)})
    leaks, people, items = [], 0, 0
    order = (models.StudyItem.kind != ItemKind.MAIN, models.StudyItem.kind, models.StudyItem.position)
    for item in session.scalars(select(models.StudyItem).filter_by(study_id=study.id).order_by(*order)):
        if item.kind == ItemKind.MAIN:
            items += 1
            people += PEOPLE.search(item.response) is not None
        received = item.response if item.unmasked_response is None else item.unmasked_response
        found = [match.group() for match in pattern.finditer(received)]
        left = len(pattern.findall(item.response))
        masked = item.unmasked_response is not None
        if found or masked:
            excerpt = _excerpt(item.response, pattern) or _excerpt(item.response, re.compile(re.escape(MASK)))
            names = list(dict.fromkeys(found))
            leaks.append(Leak(item.uuid, item.position, item.kind, names, excerpt, masked, left))
    return LeakReport(leaks, people, items)


def _excerpt(text: str, pattern: re.Pattern[str]) -> str:
    place = pattern.search(text)
    if place is None:
        return ""
    begin, end = max(0, place.start() - EXCERPT), place.end() + EXCERPT
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"


def checked_names(names: Collection[str]) -> list[str]:
    """Trimmed, each once; InvalidInput for too many, or one that is too short to be looked for."""
    kept = list(dict.fromkeys(clean(one)[0].strip() for one in names if one.strip()))
    if len(kept) > MOST_NAMES:
        raise InvalidInput(f"Look for at most {MOST_NAMES} more names.")
    for one in kept:
        if not TOO_SHORT - 1 <= len(one) <= LONGEST_OF_NAMES:
            raise InvalidInput(
                f"A name to look for has 2 to {LONGEST_OF_NAMES} characters: '{one[:40]}' has not."
            )
    return kept


def mask(
    session: Session,
    study: models.Study,
    items: Collection[UUID] | None = None,
    also: Collection[str] = (),
) -> int:
    """Put MASK over the names in these items' responses (None: in all that have one); how many were changed.

    What was received stays with the item. NotFound for an item of another study, Conflict unless a draft.
    """
    pattern = pattern_for({*_own_names(session, study), *checked_names(also)})
    changed = 0
    for item in _items(session, study, items):
        if pattern.search(item.response):
            item.unmasked_response = (
                item.response if item.unmasked_response is None else item.unmasked_response
            )
            item.response = pattern.sub(MASK, item.response)
            changed += 1
    session.flush()
    return changed


def unmask(session: Session, study: models.Study, items: Collection[UUID] | None = None) -> int:
    """Show the responses as they were received; how many were changed."""
    changed = 0
    for item in _items(session, study, items):
        if item.unmasked_response is not None:
            item.response, item.unmasked_response = item.unmasked_response, None
            changed += 1
    session.flush()
    return changed


def _items(
    session: Session, study: models.Study, items: Collection[UUID] | None
) -> Sequence[models.StudyItem]:
    require_draft(study)
    query = select(models.StudyItem).filter_by(study_id=study.id)
    if items is not None:
        query = query.where(models.StudyItem.uuid.in_(items))
    rows = session.scalars(query).all()
    if items is not None and len(rows) != len(set(items)):
        raise NotFound("This study has no such item.")
    return rows


def _own_names(session: Session, study: models.Study) -> set[str]:
    """What the study's own models are called, whole and by their parts."""
    names: set[str] = set()
    for run in session.scalars(
        select(models.Endpoint)
        .join(models.Run, models.Run.endpoint_id == models.Endpoint.id)
        .where(models.Run.id.in_([run.id for run in study_runs(session, study)]))
    ):
        for name in (run.name, run.model):
            names.add(name)
            names.update(re.split(r"[\s/:@_.-]+", name))
    return {
        one
        for one in names
        if len(one) >= TOO_SHORT and one.casefold() not in GENERIC and not one.replace(".", "").isdigit()
    }


def pattern_for(own_names: Collection[str]) -> re.Pattern[str]:
    """Names as whole words, a version behind them included; names that are words only as they are written."""
    exact = sorted(WORDS_TOO, key=len, reverse=True)
    loose = sorted({*NAMES, *own_names} - WORDS_TOO, key=len, reverse=True)
    version = r"(?:[ -]?\d+(?:\.\d+)*[a-z]?\b)?"
    return re.compile(rf"(?<!\w)(?:{_any(exact)}|(?i:{_any(loose)})){version}(?!\w)")


def _any(names: Sequence[str]) -> str:
    return "|".join(re.escape(name) for name in names)

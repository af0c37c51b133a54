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
from app.errors import NotFound
from app.models import ItemKind
from app.studies.finding import study_runs
from app.studies.known import require_draft

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
    """An item whose response names a model or a maker. `excerpt`: the first place and what is around it."""

    item: UUID
    position: int
    kind: str
    found: list[str]
    excerpt: str
    masked: bool


@dataclass(frozen=True)
class LeakReport:
    """`other_people`: how many of `items` mention somebody beside the user."""

    leaks: list[Leak]
    other_people: int
    items: int


def report(session: Session, study: models.Study) -> LeakReport:
    """Over the main items, as judges see them; masks that were set are listed too."""
    pattern = pattern_for(_own_names(session, study))
    leaks, people, items = [], 0, 0
    query = select(models.StudyItem).filter_by(study_id=study.id, kind=ItemKind.MAIN.value)
    for item in session.scalars(query.order_by(models.StudyItem.position)):
        items += 1
        people += PEOPLE.search(item.response) is not None
        masked = item.unmasked_response is not None
        text = item.unmasked_response if item.unmasked_response is not None else item.response
        found = [match.group() for match in pattern.finditer(text)]
        if found:
            place = pattern.search(text)
            assert place is not None
            begin, end = max(0, place.start() - EXCERPT), place.end() + EXCERPT
            excerpt = f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"
            leaks.append(
                Leak(item.uuid, item.position, item.kind, list(dict.fromkeys(found)), excerpt, masked)
            )
    return LeakReport(leaks, people, items)


def mask(session: Session, study: models.Study, items: Collection[UUID] | None = None) -> int:
    """Put MASK over the names in these items' responses (None: in all that have one); how many were masked.

    What was received stays with the item. NotFound for an item of another study, Conflict unless a draft.
    """
    return _change(session, study, items, masked=True)


def unmask(session: Session, study: models.Study, items: Collection[UUID] | None = None) -> int:
    """Show the responses as they were received."""
    return _change(session, study, items, masked=False)


def _change(session: Session, study: models.Study, items: Collection[UUID] | None, *, masked: bool) -> int:
    require_draft(study)
    query = select(models.StudyItem).filter_by(study_id=study.id, kind=ItemKind.MAIN.value)
    if items is not None:
        query = query.where(models.StudyItem.uuid.in_(items))
    rows = list(session.scalars(query))
    if items is not None and len(rows) != len(set(items)):
        raise NotFound("This study has no such item.")
    pattern = pattern_for(_own_names(session, study))
    changed = 0
    for item in rows:
        if not masked and item.unmasked_response is not None:
            item.response, item.unmasked_response = item.unmasked_response, None
            changed += 1
        elif masked and item.unmasked_response is None and pattern.search(item.response):
            item.unmasked_response = item.response
            item.response = pattern.sub(MASK, item.response)
            changed += 1
    session.flush()
    return changed


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

"""What the owner of a study decides, checked; the texts that stand there until it is written anew."""

import re
import secrets
import tomllib
from dataclasses import dataclass, field, fields
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from app.errors import InvalidInput
from app.models import StudyDesign
from app.outcomes import SCENARIOS, STANDARD, Category, Rating
from app.text import NOT_SEEN, clean, has_hidden, is_blank

LONGEST_NAME = 80
LONGEST_TEXT = 20_000
MOST_ITEMS = 100_000
MOST_JUDGES_PER_ITEM = 50
ETHICS_KINDS = ("approval", "exemption")
# Addresses beside those of studies, and what browsers take out of a path.
RESERVED_NAMES = frozenset(("new", "preview", ".", ".."))
# Such is a study's public address.
LIKE_A_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}(?:\.json)?")
TEXTS = (
    "title", "instructions", "content_note", "retention", "support", "ethics_kind", "ethics",
    "completion_code", "completion_url", "expected_close", "careful",
)  # fmt: skip


@cache
def standard_text(name: str) -> str:
    """`instructions`, `content_note` or `retention`, as they come with the application."""
    return files("app.data.studies").joinpath(f"{name}.txt").read_text(encoding="utf-8").strip()


@dataclass(frozen=True)
class StudySettings:
    """`per_case` None: any number of transcripts of one case. `seed` None: a random one is taken and kept.

    `scenarios` and `categories` empty: all.
    """

    name: str
    n: int
    design: StudyDesign = StudyDesign.AGREEMENT
    title: str = ""
    seed: int | None = None
    judges_per_item: int = 3
    per_case: int | None = 1
    variants: tuple[str, ...] = (STANDARD,)
    scenarios: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    repeat_share: float = 0.05
    careful: bool = True
    instructions: str = field(default_factory=lambda: standard_text("instructions"))
    content_note: str = field(default_factory=lambda: standard_text("content_note"))
    retention: str = field(default_factory=lambda: standard_text("retention"))
    support: str = ""
    ethics_kind: str | None = None
    ethics: str = ""
    completion_code: str | None = None
    completion_url: str | None = None
    expected_close: date | None = None


@dataclass(frozen=True)
class KnownItem:
    """An item whose rating is known: for training, with feedback, or to watch over quality (gold).

    `category`, where it is told, spares judges what they would rather not read; it is never shown.
    """

    constraint: str
    request: str
    response: str
    rating: Rating
    feedback: str | None = None
    category: str | None = None


def checked(settings: StudySettings) -> StudySettings:
    """The same with texts trimmed and a seed; InvalidInput names what cannot be."""
    check_name(settings.name)
    if settings.design not in (StudyDesign.AGREEMENT, StudyDesign.CORRECTION):
        raise InvalidInput(f"There is no design '{settings.design}': choose agreement or correction.")
    _within("n", settings.n, 1, MOST_ITEMS)
    check_judges_per_item(settings.judges_per_item)
    if settings.per_case is not None:
        _within("per case", settings.per_case, 1, 1000)
    if not 0 <= settings.repeat_share <= 0.5:
        raise InvalidInput("The share of repeated items must lie between 0 and 0.5.")
    if settings.seed is not None:
        _within("seed", settings.seed, 0, 2**63 - 1)
    if not settings.variants:
        raise InvalidInput("Name at least one variant, or leave it out: standard.")
    for what, chosen, known in (
        ("scenario", settings.scenarios, SCENARIOS), ("category", settings.categories, tuple(Category)),
    ):  # fmt: skip
        if unknown := [one for one in chosen if one not in known]:
            raise InvalidInput(f"There is no {what} '{unknown[0][:40]}': choose among {', '.join(known)}.")
    texts = checked_texts({name: getattr(settings, name) for name in TEXTS})
    values = {one.name: getattr(settings, one.name) for one in fields(settings)} | texts
    values["design"] = StudyDesign(settings.design)
    if values["seed"] is None:
        values["seed"] = secrets.randbelow(2**31)
    return StudySettings(**values)


def check_name(name: str) -> None:
    """A study's name stands in addresses and commands."""
    if not 0 < len(name) <= LONGEST_NAME or name != name.strip() or is_blank(name):
        raise InvalidInput(
            f"A study's name has 1 to {LONGEST_NAME} characters, none of them blank at an end."
        )
    if name.casefold() in RESERVED_NAMES or LIKE_A_UUID.fullmatch(name.casefold()):
        raise InvalidInput(f"A study cannot be called '{name}': that address is taken. Choose another name.")
    if has_hidden(name) or clean(name)[1] or any(one in name for one in "/\\?#\n\r\t"):
        raise InvalidInput("A study's name may hold no slash, ?, #, line break or invisible character.")


def check_judges_per_item(k: int) -> None:
    _within("judges per item", k, 1, MOST_JUDGES_PER_ITEM)


def checked_texts(given: dict[str, Any]) -> dict[str, Any]:
    """Texts that judges are shown, trimmed. InvalidInput for what cannot be shown or opened."""
    values = dict(given)
    for name in ("title", "instructions", "content_note", "retention", "support", "ethics"):
        if name in values:
            values[name] = _text(name, values[name])
    for name in ("completion_code", "completion_url"):
        if name in values:
            values[name] = _text(name, values[name] or "") or None
    url = values.get("completion_url")
    if url is not None and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
        raise InvalidInput("The completion link must be an address that begins with https:// or http://.")
    kind = values.get("ethics_kind")
    if kind is not None and kind not in ETHICS_KINDS:
        raise InvalidInput(f"Ethics: choose one of {', '.join(ETHICS_KINDS)}.")
    return values


def _text(name: str, value: str) -> str:
    words = name.replace("_", " ")
    if len(value) > LONGEST_TEXT:
        raise InvalidInput(f"The {words} is longer than {LONGEST_TEXT} characters.")
    if has_hidden(value) and name == "title":
        raise InvalidInput(f"The title {NOT_SEEN}")
    return clean(value)[0].strip()


def _within(what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InvalidInput(f"The number for '{what}' must lie between {low} and {high}, not {value}.")


@cache
def builtin_training() -> tuple[KnownItem, ...]:
    source = files("app.data.studies").joinpath("training.toml").read_text(encoding="utf-8")
    return tuple(known_item(one, "training.toml") for one in tomllib.loads(source)["item"])


def read_known_items(path: Path) -> list[KnownItem]:
    """From JSONL: constraint, request, response, rating (0, 1, 2) and, if wanted, feedback and category.

    InvalidInput names file and line.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="strict").splitlines(), 1):
        if line.strip():
            where = f"{path.name}, line {number}"
            try:
                content = orjson.loads(line)
            except ValueError:
                raise InvalidInput(f"{where} is no JSON.") from None
            found.append(known_item(content, where))
    if not found:
        raise InvalidInput(f"{path.name} holds no item.")
    return found


def known_item(content: Any, where: str) -> KnownItem:
    if not isinstance(content, dict):
        raise InvalidInput(f"{where} is no object with constraint, request, response and rating.")
    for name in ("constraint", "request", "response"):
        if not isinstance(content.get(name), str) or is_blank(content[name]):
            raise InvalidInput(f"{where} has no text for '{name}'.")
    rating = content.get("rating")
    if type(rating) is not int or rating not in list(Rating):
        raise InvalidInput(f"{where}: the rating must be 0 (fail), 1 (unclear) or 2 (pass).")
    feedback = content.get("feedback")
    if feedback is not None and not isinstance(feedback, str):
        raise InvalidInput(f"{where}: the feedback must be text.")
    category = content.get("category")
    if category is not None and category not in tuple(Category):
        raise InvalidInput(f"{where}: the category must be one of {', '.join(Category)}.")
    constraint, request, response = (
        clean(content[name])[0] for name in ("constraint", "request", "response")
    )
    said = clean(feedback)[0] if feedback else None
    return KnownItem(constraint, request, response, Rating(rating), said, category)

"""Cases, probes, distractors, and the benchmark that they make up."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from app.outcomes import Category, Region
from app.text import normalise, same_key


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the benchmark.

    `number` is the 1-based row below the header in its source, `cluster` is shared by cases with the same
    constraint, `person_b` is the subject with which that person's sentence begins ("My cousin"). A distractor
    that shares one of `tags` is never drawn for the case.
    """

    key: str
    number: int
    category: Category
    cluster: str
    split: str
    constraint: str
    preference_b: str
    preference_c: str
    preference_d: str
    request_alone_neutral: str
    request_alone_leading: str
    request_together_neutral: str
    request_together_leading: str
    other_constraint: str | None = None
    preference_user: str | None = None
    person_b: str | None = None
    person_c: str | None = None
    person_d: str | None = None
    rationale: str | None = None
    mention: str | None = None
    tags: tuple[str, ...] = ()
    region: Region | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """A real constraint that has nothing to do with the request."""

    key: str
    number: int
    category: Category
    cluster: str
    split: str
    constraint: str
    request: str
    rationale: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Distractor:
    """Everyday facts, a trivia question, or somebody's likes; `kind` is "fact", "trivia" or "preference".

    `strong` and `very_strong` say the same likes more strongly; all three may contain "{person}".
    """

    kind: str
    key: str
    number: int
    text: str
    strong: str | None = None
    very_strong: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Benchmark:
    """`content_hash` is the sha256 of all content in its order; name and source row numbers do not count."""

    name: str
    cases: tuple[Case, ...]
    facts: tuple[Distractor, ...] = ()
    trivia: tuple[Distractor, ...] = ()
    preferences: tuple[Distractor, ...] = ()
    probes: tuple[Probe, ...] = ()

    @cached_property
    def content_hash(self) -> str:
        parts = {
            "cases": _content(self.cases),
            "facts": _content(self.facts),
            "trivia": _content(self.trivia),
            "preferences": _content(self.preferences),
            "probes": _content(self.probes),
        }
        return sha256_of(parts)


# Fields that came later count only where they are filled: benchmarks from before keep their hash.
_LATER_FIELDS = ("region",)


def _content(items: Iterable[Case | Probe | Distractor]) -> list[dict[str, Any]]:
    return [
        {
            name: value
            for name, value in asdict(item).items()
            if name != "number" and not (name in _LATER_FIELDS and value is None)
        }
        for item in items
    ]


def sha256_of(value: object) -> str:
    """Hex digest over canonical JSON: sorted keys, no spaces, ASCII."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def derived_key(prefix: str, texts: Iterable[str | None]) -> str:
    """The id of something that came without one: it follows its content, not its place."""
    return f"{prefix}-{sha256_of([normalise(text) if text else None for text in texts])[:10]}"


def derived_cluster(constraint: str) -> str:
    return f"constraint-{sha256_of(same_key(constraint))[:10]}"

"""Drawing a case's distractors: the same for every model, scenario and variant of one case and seed."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

from app.benchmark.records import Benchmark, Distractor, sha256_of
from app.errors import InvalidInput
from app.text import same_key

TRIVIA_DRAWN = 3
PEOPLE_DRAWN = 3


@dataclass(frozen=True)
class Pools:
    """What may be drawn. Each text is kept once: a repeat would be twice as likely, or drawn twice."""

    facts: tuple[Distractor, ...]
    trivia: tuple[Distractor, ...]
    preferences: tuple[Distractor, ...]

    def __post_init__(self) -> None:
        for kind in ("facts", "trivia", "preferences"):
            object.__setattr__(self, kind, _distinct(getattr(self, kind)))

    @classmethod
    def of(cls, benchmark: Benchmark) -> Self:
        return cls(benchmark.facts, benchmark.trivia, benchmark.preferences)


@dataclass(frozen=True)
class Drawn:
    """`facts` is None and the others are empty where the benchmark has no distractors of the kind."""

    facts: Distractor | None
    trivia: tuple[Distractor, ...]
    random: tuple[Distractor, ...]


def draw(benchmark_hash: str, case_key: str, seed: int, pools: Pools, tags: Sequence[str] = ()) -> Drawn:
    """Draws one fact, three trivia questions and three people's likes, without repeating a text.

    The numbers come from sha256 over benchmark, case and seed, so they are the same on every machine and in
    every version of Python. A distractor that shares one of `tags` (the case's) is left out. Raises
    InvalidInput when a pool that is not empty has too few left.
    """
    material = sha256_of([benchmark_hash, case_key, seed])
    pick = partial(_pick, material=material, case_key=case_key, tags=frozenset(tags))
    facts = pick("fact", pools.facts, 1)
    return Drawn(
        facts[0] if facts else None,
        pick("trivia", pools.trivia, TRIVIA_DRAWN),
        pick("preference", pools.preferences, PEOPLE_DRAWN),
    )


def allowed(pool: Sequence[Distractor], tags: frozenset[str]) -> list[Distractor]:
    """Those of the pool that share no tag with the case."""
    return [distractor for distractor in pool if tags.isdisjoint(distractor.tags)]


def _pick(
    kind: str, pool: Sequence[Distractor], count: int, *, material: str, case_key: str, tags: frozenset[str]
) -> tuple[Distractor, ...]:
    left = allowed(pool, tags)
    if not pool:
        return ()
    if len(left) < count:
        raise InvalidInput(
            f"Case {case_key}: {count} distractors of the kind '{kind}' are needed, {len(left)} share no tag "
            "with it; add some or narrow the tags."
        )
    number = _numbers(f"{material}/{kind}")
    return tuple(left.pop(number(turn) % len(left)) for turn in range(count))


def _numbers(material: str) -> Callable[[int], int]:
    return lambda turn: int.from_bytes(hashlib.sha256(f"{material}/{turn}".encode("ascii")).digest(), "big")


def _distinct(pool: Sequence[Distractor]) -> tuple[Distractor, ...]:
    first: dict[str, Distractor] = {}
    for distractor in pool:
        first.setdefault(same_key(distractor.text), distractor)
    return tuple(first.values())

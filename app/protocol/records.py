"""What a protocol holds once it is read."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Literal

from app.errors import InvalidInput
from app.outcomes import PROBE_SCENARIO, RECALL, STANDARD
from app.protocol.recall import recall_words
from app.sampling import Sampling

Stated = Literal["constraint", "other_constraint", "none"]


@dataclass(frozen=True, slots=True)
class Target:
    """How the model under test is asked. `attempts` counts the first; the deadline is for each response."""

    sampling: Sampling
    attempts: int
    share_opening: bool
    deadline_seconds: float


@dataclass(frozen=True, slots=True)
class EvaluatorSection:
    """How the evaluator is asked. `reduced` is what it sees of a conversation, put into `prompt`.

    `reduced` and `reduced_not_stated` have {constraint}, {request}, {response}; the prompts {conversation};
    all may have {fence}. `parser`: how its replies are read; the published scripts' way is for replication.
    """

    sampling: Sampling
    answer: Literal["structured", "text"]
    parser: Literal["strict", "published_first_match"]
    reduced: str
    reduced_not_stated: str | None
    prompt: str
    probe_prompt: str | None


@dataclass(frozen=True, slots=True)
class Scenario:
    id: str
    title: str
    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """`constraint` says what the conversation states, and so what the evaluator is shown as stated."""

    id: str
    of: str
    title: str
    turns: tuple[str, ...]
    constraint: Stated


@dataclass(frozen=True)
class Protocol:
    """`turns` are texts by name, `source` is the TOML text as read.

    `close_sentences`: every sentence put into a turn gets closing punctuation if it has none.
    `matched_people`: the three random people are named as the case's own three are, and speak of their likes
    as strongly.
    """

    name: str
    version: str
    note: str
    target: Target
    evaluator: EvaluatorSection
    turns: dict[str, str]
    scenarios: tuple[Scenario, ...]
    variants: tuple[Variant, ...]
    probe_turns: tuple[str, ...] | None
    close_sentences: bool
    matched_people: bool
    ambiguity_factors: tuple[str, ...]
    source: str = field(repr=False, compare=False)

    @cached_property
    def content_hash(self) -> str:
        """sha256 of all that shapes a conversation or a verdict; name, version, note and titles do not.

        Nor does what is asked about recall: it comes after all that is rated.
        """
        meaning = asdict(self)
        meaning["turns"].pop(RECALL, None)
        for silent in ("name", "version", "note", "source"):
            del meaning[silent]
        for arm in (*meaning["scenarios"], *meaning["variants"]):
            del arm["title"]
        canonical = json.dumps(meaning, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()

    @cached_property
    def texts(self) -> dict[str, str]:
        """The turns with the recall turn, which is the program's own where the protocol has none."""
        return {RECALL: recall_words().turn} | self.turns


def arms(protocol: Protocol) -> list[tuple[str, str]]:
    """The (scenario, variant) pairs, the standard ones first; probes and recall are none."""
    standard = [(scenario.id, STANDARD) for scenario in protocol.scenarios]
    return standard + [(variant.of, variant.id) for variant in protocol.variants]


def turn_names(protocol: Protocol, scenario: str, variant: str) -> tuple[str, ...]:
    """The names of an arm's turns in order; ("probe", "standard") is the probe conversation."""
    return find_arm(protocol, scenario, variant)[0]


def find_arm(protocol: Protocol, scenario: str, variant: str) -> tuple[tuple[str, ...], Stated]:
    """Turn names and what is stated. Raises InvalidInput for an arm that the protocol does not have.

    (scenario, "recall") is the scenario with the recall turn after its final response.
    """
    if (scenario, variant) == (PROBE_SCENARIO, STANDARD) and protocol.probe_turns is not None:
        return protocol.probe_turns, "constraint"
    for candidate in protocol.scenarios:
        if (candidate.id, STANDARD) == (scenario, variant):
            return candidate.turns, "constraint"
        if (candidate.id, RECALL) == (scenario, variant):
            return (*candidate.turns, RECALL), "constraint"
    for other in protocol.variants:
        if (other.of, other.id) == (scenario, variant):
            return other.turns, other.constraint
    known = ", ".join("/".join(pair) for pair in arms(protocol))
    raise InvalidInput(f"Protocol {protocol.name} has no {scenario}/{variant}; it has {known}.")

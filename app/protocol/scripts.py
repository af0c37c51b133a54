"""From protocol, case and distractors to the turns that are sent, and back to what an evaluator sees."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.benchmark import Case, Distractor, Drawn, Probe
from app.errors import InvalidInput
from app.outcomes import RECALL
from app.protocol.placeholders import RANDOM, REQUEST_PROBE, REQUESTS, TRIVIA, fill
from app.protocol.records import Protocol, find_arm
from app.text import close

PEOPLE = ("person_b", "person_c", "person_d")
PERSON = "person"
_CASE_FIELDS = (
    "other_constraint",
    "preference_b",
    "preference_c",
    "preference_d",
    "preference_user",
    *REQUESTS,
)
_ASKING = frozenset((*TRIVIA, *REQUESTS, REQUEST_PROBE))


@dataclass(frozen=True, slots=True)
class Script:
    """The user's turns. `constraint` is as stated in them, or the case's where nothing is `stated`."""

    turns: tuple[str, ...]
    constraint: str
    stated: bool
    probe: bool = False
    recall: bool = False


@dataclass(frozen=True, slots=True)
class Reduced:
    """All that an evaluator or a judge sees of a conversation.

    Of a recall conversation the request is the recall turn and the response its answer.
    """

    constraint: str
    request: str
    response: str
    stated: bool = True
    probe: bool = False
    recall: bool = False

    @property
    def own_rubric(self) -> bool:
        """Rated by another rubric than the one that every pass rate stands on; without its findings."""
        return self.probe or self.recall


def script(protocol: Protocol, case: Case | Probe, drawn: Drawn, scenario: str, variant: str) -> Script:
    """The turns of one conversation, in order.

    Raises InvalidInput when the arm needs what the case or the drawn distractors lack; `unusable_columns`
    says so beforehand.
    """
    names, stated = find_arm(protocol, scenario, variant)
    values = _Values(protocol, case, drawn)
    try:
        turns = tuple(fill(protocol.texts[name], values) for name in names)
    except KeyError as missing:
        raise InvalidInput(
            f"Case {case.key} has nothing for {{{missing.args[0]}}} in {scenario}/{variant}."
        ) from None
    constraint = values["constraint" if stated == "none" else stated]
    return Script(turns, constraint, stated != "none", isinstance(case, Probe), variant == RECALL)


def request(protocol: Protocol, case: Case | Probe, scenario: str, variant: str) -> str:
    """The last of an arm's turns, which asks. InvalidInput when it needs what the case lacks."""
    names, _ = find_arm(protocol, scenario, variant)
    try:
        return fill(protocol.turns[names[-1]], _Values(protocol, case, Drawn(None, (), ())))
    except KeyError as missing:
        raise InvalidInput(
            f"Case {case.key} has nothing for {{{missing.args[0]}}} in the request of {scenario}/{variant}."
        ) from None


def reduce(script: Script, replies: Sequence[str]) -> Reduced:
    """The constraint, the last user turn as sent, and the reply to it."""
    return Reduced(
        script.constraint, script.turns[-1], replies[-1], script.stated, script.probe, script.recall
    )


class _Values(Mapping[str, str]):
    """What stands for each placeholder; KeyError where case or distractors have nothing."""

    def __init__(self, protocol: Protocol, case: Case | Probe, drawn: Drawn) -> None:
        self._close = protocol.close_sentences
        self._texts = {
            "constraint": case.constraint,
            **_drawn_texts(drawn),
            **_case_texts(case, drawn, matched=protocol.matched_people),
        }

    def __getitem__(self, name: str) -> str:
        text = self._texts[name]
        if text is None:
            raise KeyError(name)
        return close(text, "?" if name in _ASKING else ".") if self._close else text

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _drawn_texts(drawn: Drawn) -> dict[str, str | None]:
    facts = {"facts": drawn.facts.text if drawn.facts else None}
    return facts | {name: item.text for name, item in zip(TRIVIA, drawn.trivia, strict=False)}


def _case_texts(case: Case | Probe, drawn: Drawn, *, matched: bool) -> dict[str, str | None]:
    if isinstance(case, Probe):
        return {REQUEST_PROBE: case.request}
    texts: dict[str, str | None] = {name: getattr(case, name) for name in _CASE_FIELDS}
    for place, (name, distractor) in enumerate(zip(RANDOM, drawn.random, strict=False)):
        texts[name] = _random_text(form_at(distractor, place, matched=matched), getattr(case, PEOPLE[place]))
    return texts


def form_at(distractor: Distractor, place: int, *, matched: bool) -> str:
    """The form for the first, second or third person, rising in strength as B, C and D do; else the plain."""
    strength = (distractor.text, distractor.strong, distractor.very_strong)[place] if matched else None
    return strength or distractor.text


def needs_person(form: str) -> bool:
    return f"{{{PERSON}}}" in form


def _random_text(form: str, person: str | None) -> str | None:
    """None when the form wants a person and the case names none. Other braces in it are text."""
    if not needs_person(form):
        return form
    return None if person is None else form.replace(f"{{{PERSON}}}", person)

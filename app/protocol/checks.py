"""Do the parts of a protocol fit one another? Each check raises InvalidInput for the first that does not."""

import re
from collections import Counter

from app.errors import InvalidInput
from app.outcomes import CONTROL, RECALL
from app.protocol.placeholders import (
    CASE_PLACEHOLDERS,
    FENCE,
    PROBE_PLACEHOLDERS,
    REDUCED_PLACEHOLDERS,
    REQUEST_PROBE,
    REQUESTS,
    has_stray_brace,
    placeholders,
    unknown_placeholders,
)
from app.protocol.records import Protocol, Stated

_CONSTRAINTS = ("constraint", "other_constraint")


def check_turns(protocol: Protocol, origin: str) -> None:
    """Every placeholder is known, no brace stands alone, and nothing is closed twice."""
    known = CASE_PLACEHOLDERS | {REQUEST_PROBE}
    for name, text in protocol.turns.items():
        where = f"{origin}: [turns] {name}"
        _check_known(text, known, where)
        if has_stray_brace(text):
            raise InvalidInput(f"{where}: has a brace that belongs to no placeholder; take it out.")
        if protocol.close_sentences and (doubled := re.search(r"\{\w+\}[.!?]", text)):
            raise InvalidInput(
                f"{where}: '{doubled[0]}' would close a sentence twice, as close_sentences is on; "
                "take the sign out."
            )
    if placeholders(protocol.turns.get(RECALL, "")):
        raise InvalidInput(
            f"{origin}: [turns] {RECALL}: has a placeholder; it asks what was told and says nothing itself."
        )


def _check_known(text: str, known: frozenset[str], where: str) -> None:
    if unknown := unknown_placeholders(text, known):
        names = ", ".join(f"{{{name}}}" for name in sorted(known))
        raise InvalidInput(f"{where}: unknown placeholder {unknown[0]}; known: {names}.")


def check_arms(protocol: Protocol, origin: str) -> None:
    """Scenarios, variants and probes: unique, of known turns, stating what they say and asking at the end."""
    scenarios = [scenario.id for scenario in protocol.scenarios]
    _check_unique(scenarios, f"{origin}: [[scenario]]")
    _check_unique(
        [f"{variant.id} of {variant.of}" for variant in protocol.variants], f"{origin}: [[variant]]"
    )
    for scenario in protocol.scenarios:
        _check_arm(protocol, scenario.turns, "constraint", f"{origin}: scenario {scenario.id}")
    for variant in protocol.variants:
        where = f"{origin}: variant {variant.id} of {variant.of}"
        if variant.of not in scenarios:
            raise InvalidInput(
                f"{where}: there is no scenario '{variant.of}'; there are {', '.join(scenarios)}."
            )
        _check_arm(protocol, variant.turns, variant.constraint, where)
    if protocol.probe_turns is not None:
        _check_arm(protocol, protocol.probe_turns, "constraint", f"{origin}: [probe]", probe=True)


def _check_unique(ids: list[str], where: str) -> None:
    for name, count in Counter(ids).items():
        if count > 1:
            raise InvalidInput(f"{where}: '{name}' stands there {count} times; ids are unique.")


def _check_arm(
    protocol: Protocol, turns: tuple[str, ...], stated: Stated, where: str, *, probe: bool = False
) -> None:
    if not turns:
        raise InvalidInput(f"{where}: has no turns; list at least one.")
    for name in turns:
        if name not in protocol.turns:
            raise InvalidInput(f"{where}: unknown turn '{name}'; write it under [turns] or correct the name.")
    used = [placeholders(protocol.turns[name]) for name in turns]
    everywhere = [name for names in used for name in names]
    allowed = PROBE_PLACEHOLDERS if probe else CASE_PLACEHOLDERS
    for name in everywhere:
        if name not in allowed:
            kind = "probes" if probe else "cases"
            raise InvalidInput(f"{where}: {{{name}}} is nothing that {kind} have; use another turn.")
    _check_stated(everywhere, stated, where)
    _check_request(used, (REQUEST_PROBE,) if probe else REQUESTS, where)


def _check_stated(used: list[str], stated: Stated, where: str) -> None:
    for name in _CONSTRAINTS:
        if name == stated and used.count(name) != 1:
            raise InvalidInput(
                f"{where}: {{{name}}} must stand in its turns exactly once, not {used.count(name)} times."
            )
        if name != stated and name in used:
            raise InvalidInput(
                f"{where}: its turns say {{{name}}}, but what it states is '{stated}'; change one of both."
            )


def _check_request(used: list[tuple[str, ...]], requests: tuple[str, ...], where: str) -> None:
    """The evaluator is shown the last turn as the request, so the request has to stand in it."""
    counts = [sum(name in requests for name in names) for names in used]
    if counts[-1] != 1 or any(counts[:-1]):
        names = ", ".join(f"{{{name}}}" for name in requests)
        raise InvalidInput(f"{where}: the last turn, and no other, must have one request ({names}).")


def check_evaluator(protocol: Protocol, origin: str) -> None:
    """The evaluator's texts have what has to be put in, and what the protocol's arms need is there."""
    section = protocol.evaluator
    where = f"{origin}: [evaluator]"
    for key, text in (("reduced", section.reduced), ("reduced_not_stated", section.reduced_not_stated)):
        _check_template(text, REDUCED_PLACEHOLDERS, f"{where} {key}")
    for key, text in (("prompt", section.prompt), ("probe_prompt", section.probe_prompt)):
        _check_template(text, frozenset(("conversation",)), f"{where} {key}")
    if section.reduced_not_stated is None and any(variant.id == CONTROL for variant in protocol.variants):
        raise InvalidInput(f"{where} reduced_not_stated: is missing; the variant '{CONTROL}' is shown by it.")
    if section.probe_prompt is None and protocol.probe_turns is not None:
        raise InvalidInput(f"{where} probe_prompt: is missing; [probe] is rated by it.")


def _check_template(text: str | None, needed: frozenset[str], where: str) -> None:
    if text is None:
        return
    _check_known(text, needed | {FENCE}, where)
    for name in sorted(needed):
        if placeholders(text).count(name) != 1:
            raise InvalidInput(
                f"{where}: {{{name}}} must stand in it exactly once; it says where the text goes."
            )

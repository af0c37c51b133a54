"""Does a benchmark have what a protocol's arm needs?"""

from collections.abc import Iterable, Iterator

from app.benchmark import Benchmark, Distractor, Pools
from app.benchmark.columns import header_of
from app.outcomes import PROBE_SCENARIO
from app.protocol.placeholders import RANDOM, TRIVIA, placeholders
from app.protocol.records import Protocol, arms, find_arm
from app.protocol.scripts import PEOPLE, form_at, needs_person

_OPTIONAL_FIELDS = ("other_constraint", "preference_user")


def unusable_columns(protocol: Protocol, scenario: str, variant: str, benchmark: Benchmark) -> list[str]:
    """What the arm needs and the benchmark lacks, on any case: columns by header, or a kind of distractor.

    Empty when every conversation of the arm can be held. Raises InvalidInput for an unknown arm.
    """
    used = _used(protocol, scenario, variant)
    people = [
        PEOPLE[RANDOM.index(name)] for name in RANDOM if name in used and _wants(protocol, benchmark, name)
    ]
    missing = [*_missing_pools(used, benchmark)]
    if scenario == PROBE_SCENARIO:
        return missing if benchmark.probes else [*missing, "probes (none in the benchmark)"]
    fields = [field for field in _OPTIONAL_FIELDS if field in used]
    return [*_missing_cells(benchmark, [*fields, *people]), *missing]


def notes(protocol: Protocol, benchmark: Benchmark) -> list[str]:
    """What makes the conversations less well matched than the protocol means, one sentence each."""
    used = {name for arm in arms(protocol) for name in _used(protocol, *arm)}
    if not protocol.matched_people or not used.intersection(RANDOM) or not benchmark.preferences:
        return []
    found = []
    plain = [item for item in benchmark.preferences if not (item.strong and item.very_strong)]
    if plain:
        found.append(
            f"{len(plain)} of {len(benchmark.preferences)} people's likes have no stronger forms: "
            "the plain text is used, so unrelated people speak less strongly than the case's own."
        )
    unnamed = [item for item in benchmark.preferences if not needs_person(item.text)]
    if unnamed:
        found.append(
            f"{len(unnamed)} of {len(benchmark.preferences)} people's likes name their own person: "
            "unrelated people are not the relations that the case names."
        )
    return found


def _used(protocol: Protocol, scenario: str, variant: str) -> set[str]:
    names, _ = find_arm(protocol, scenario, variant)
    return {placeholder for name in names for placeholder in placeholders(protocol.texts[name])}


def _wants(protocol: Protocol, benchmark: Benchmark, name: str) -> bool:
    """True when any distractor that may be drawn for the place names its person by the case's."""
    place = RANDOM.index(name)
    forms = (form_at(item, place, matched=protocol.matched_people) for item in benchmark.preferences)
    return any(needs_person(form) for form in forms)


def _missing_cells(benchmark: Benchmark, fields: Iterable[str]) -> Iterator[str]:
    for field in fields:
        blank = sum(getattr(case, field) is None for case in benchmark.cases)
        if blank:
            yield f"{header_of('cases', field)} (blank in {blank} of {len(benchmark.cases)} cases)"


def _missing_pools(used: set[str], benchmark: Benchmark) -> Iterator[str]:
    pools = Pools.of(benchmark)
    needs: tuple[tuple[str, tuple[Distractor, ...], int], ...] = (
        ("facts", pools.facts, int("facts" in used)),
        ("trivia", pools.trivia, sum(name in used for name in TRIVIA)),
        ("preferences", pools.preferences, sum(name in used for name in RANDOM)),
    )
    for kind, pool, needed in needs:
        if len(pool) < needed:
            there = f"{len(pool)} with distinct texts, {needed} needed" if pool else "none in the benchmark"
            yield f"{kind} ({there})"

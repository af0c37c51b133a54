"""What is wrong with result sheets, and which conversations of a benchmark they hold. Pure.

Nothing is repaired in silence: whatever is not taken as the sheet has it is a finding.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from app.benchmark import Benchmark, Case
from app.errors import InvalidInput
from app.outcomes import STANDARD, Category, Rating
from app.protocol import Protocol, arms, request
from app.runs.result_sheets import MISLABELLED, Arm, SheetRow
from app.text import counted, same_key

MAX_REPEATS = 100
ROWS_SHOWN = 5
BASELINE = "baseline"
# By kind; {rows} is how many.
MESSAGES = {
    "unknown_variant": "{rows} left aside: the protocol has no such variant",
    "unknown_case": "{rows} left aside: no case of the benchmark has this constraint",
    "other_number": "{rows} whose number leads to a case with another constraint; found by the words",
    "mislabelled": "{rows} of scenario 3's baseline under another label; taken as Scenario 3",
    "merged_variants": "{rows} left aside: other variants were merged into the plain scenario",
    "other_request": "{rows} of a variant with another variant's request; kept under the variant, and marked",
    "unknown_request": "{rows} with a request that the protocol does not make of the case",
    "empty_reply": "{rows} with a verdict on an empty reply, which is no answer; taken as not rated",
    "repeated_row": "{rows} already given word for word; counted once",
    "two_verdicts": "{rows} with another verdict on the same response; taken as without a usable one",
    "no_verdict": "{rows} without a rating; taken as unparsed",
    "several_runs": "{rows} with another response of the same conversation: several runs, or variants merged "
    "under one label; the n-th response is taken as that of seed n",
}


@dataclass(frozen=True)
class Finding:
    """What is wrong with a model's rows; `count` of them, the first ones in `places`."""

    code: str
    message: str
    count: int
    places: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.places) else ""
        return f"{self.message} ({', '.join(self.places)}{more})" if self.places else self.message


@dataclass(frozen=True)
class TakenOver:
    """A conversation as the sheets have it; `contradicted`: they give two verdicts on the same response."""

    case: Case
    arm: Arm
    seed: int
    row: SheetRow
    contradicted: bool = False
    other_request: bool = False


@dataclass(frozen=True)
class ModelSheet:
    """What the sheets hold of one model. `missing`: planned, and in none of them."""

    model: str
    conversations: tuple[TakenOver, ...]
    missing: tuple[tuple[Case, Arm], ...]
    findings: tuple[Finding, ...]


def by_model(rows: Iterable[SheetRow], benchmark: Benchmark, protocol: Protocol) -> list[ModelSheet]:
    """What the sheets hold of each model, matched with the benchmark's cases, and what is wrong with it.

    InvalidInput where most rows belong to no case: it is another benchmark.
    """
    found: dict[str, list[SheetRow]] = defaultdict(list)
    for row in rows:
        found[row.model].append(row)
    matcher = _Matcher(benchmark, protocol)
    return [_one_model(model, its, matcher) for model, its in found.items()]


class _Matcher:
    """Which case and arm a row belongs to, by number and by words."""

    def __init__(self, benchmark: Benchmark, protocol: Protocol) -> None:
        self.cases = benchmark.cases
        self.title = benchmark.name
        self.arms = frozenset(arms(protocol))
        self.requests = _requests(benchmark, protocol)
        self._by_number = {(case.category, case.number): case for case in benchmark.cases}
        self._by_words: dict[str, list[Case]] = defaultdict(list)
        for case in benchmark.cases:
            for words in (case.constraint, case.other_constraint):
                if words:
                    self._by_words[same_key(words)].append(case)

    def as_labelled(self, row: SheetRow) -> SheetRow:
        """Under the protocol's own baseline of the variants, where that is not the plain scenario."""
        own = (row.arm[0], BASELINE)
        is_baseline = row.label in MISLABELLED or row.label.endswith(f"({BASELINE})")
        return replace(row, arm=own) if is_baseline and own in self.arms else row

    def case_of(self, row: SheetRow) -> tuple[Case | None, bool]:
        """The case, and whether its number led to it; otherwise its words did."""
        stated = same_key(row.constraint)
        numbered = self._by_number.get((Category(row.category), row.number))
        alike = self._by_words.get(stated, [])
        if numbered is not None and (numbered in alike or stated.startswith(same_key(numbered.constraint))):
            return numbered, True
        asked = same_key(row.request)
        exact = [case for case in alike if asked in self.requests.get(case.key, {}).values()]
        chosen = exact or alike
        return (chosen[0] if len({case.key for case in chosen}) == 1 else None), False

    def arms_asking(self, case: Case, row: SheetRow) -> set[Arm]:
        """The arms of the row's scenario whose last turn is the row's request."""
        asked = same_key(row.request)
        known = self.requests.get(case.key, {})
        return {arm for arm, words in known.items() if arm[0] == row.arm[0] and words == asked}


def _requests(benchmark: Benchmark, protocol: Protocol) -> dict[str, dict[Arm, str]]:
    """By case the request of each arm, as words to compare; without arms that it has no text for."""
    found: dict[str, dict[Arm, str]] = {}
    for case in benchmark.cases:
        found[case.key] = {}
        for arm in arms(protocol):
            try:
                found[case.key][arm] = same_key(request(protocol, case, *arm))
            except InvalidInput:
                continue
    return found


@dataclass
class _Notes:
    """Findings of rows as they come up, in the order in which their kinds did."""

    rows: dict[str, list[SheetRow]] = field(default_factory=lambda: defaultdict(list))

    def add(self, code: str, row: SheetRow) -> None:
        self.rows[code].append(row)

    def findings(self) -> list[Finding]:
        return [
            Finding(
                code,
                MESSAGES[code].format(rows=counted(len(rows), "row")),
                len(rows),
                tuple(row.place for row in rows[:ROWS_SHOWN]),
            )
            for code, rows in self.rows.items()
        ]


def _one_model(model: str, rows: Sequence[SheetRow], matcher: _Matcher) -> ModelSheet:
    notes = _Notes()
    placed: dict[tuple[Arm, str], list[tuple[Case, SheetRow, bool]]] = defaultdict(list)
    for row in map(matcher.as_labelled, rows):
        if (found := _place(row, matcher, notes)) is not None:
            case, other_request = found
            placed[row.arm, case.key].append((case, row, other_request))
    unknown = len(notes.rows.get("unknown_case", ()))
    if 2 * unknown > len(rows):
        raise InvalidInput(
            f"{unknown} of {counted(len(rows), 'row')} of {model} state a constraint that no case of "
            f"benchmark {matcher.title} has: these sheets are of another benchmark. Nothing was stored."
        )
    taken = [one for items in placed.values() for one in _repeats(items, notes)]
    missing = _missing(taken, matcher)
    findings = [*notes.findings(), *_dropped(missing), *_denominators(taken, missing)]
    return ModelSheet(model, tuple(taken), tuple(missing), tuple(findings))


def _place(row: SheetRow, matcher: _Matcher, notes: _Notes) -> tuple[Case, bool] | None:
    """The row's case, and whether it carries another arm's request; None where the row is left aside."""
    if row.arm not in matcher.arms:
        notes.add("unknown_variant", row)
        return None
    case, by_number = matcher.case_of(row)
    if case is None:
        notes.add("unknown_case", row)
        return None
    asking = matcher.arms_asking(case, row)
    if asking and row.arm not in asking and row.arm[1] == STANDARD:
        notes.add("merged_variants", row)
        return None
    if not asking:
        notes.add("unknown_request", row)
    elif row.arm not in asking:
        notes.add("other_request", row)
    if not by_number:
        notes.add("other_number", row)
    if row.label in MISLABELLED:
        notes.add("mislabelled", row)
    if not row.response:
        notes.add("empty_reply", row)
    return case, bool(asking) and row.arm not in asking


def _repeats(items: Sequence[tuple[Case, SheetRow, bool]], notes: _Notes) -> Iterator[TakenOver]:
    """The n-th different response of one conversation counts as the n-th seed's."""
    by_response: dict[str, list[tuple[Case, SheetRow, bool]]] = {}
    seen: set[tuple[object, ...]] = set()
    for item in items:
        row = item[1]
        if row.said in seen:
            notes.add("repeated_row", row)
        else:
            seen.add(row.said)
            by_response.setdefault(row.response, []).append(item)
    for seed, same in enumerate(list(by_response.values())[:MAX_REPEATS], 1):
        case, row, other_request = same[0]
        contradicted = len({one[1].rating for one in same}) > 1
        if contradicted:
            notes.add("two_verdicts", same[-1][1])
        elif row.rating is None and row.response:
            notes.add("no_verdict", row)
        if seed > 1:
            notes.add("several_runs", row)
        yield TakenOver(case, row.arm, seed, row, contradicted, other_request)


def _missing(taken: Sequence[TakenOver], matcher: _Matcher) -> list[tuple[Case, Arm]]:
    """A plain scenario is asked of every case, a variant of those that any variant has."""
    there = {(one.arm, one.case.key) for one in taken}
    varied: dict[str, set[str]] = defaultdict(set)
    for one in taken:
        if one.arm[1] != STANDARD:
            varied[one.arm[0]].add(one.case.key)
    return [
        (case, arm)
        for arm in sorted({one.arm for one in taken})
        for case in matcher.cases
        if (arm[1] == STANDARD or case.key in varied[arm[0]]) and (arm, case.key) not in there
    ]


def _dropped(missing: Sequence[tuple[Case, Arm]]) -> Iterator[Finding]:
    for arm, number in Counter(arm for _, arm in missing).items():
        yield Finding(
            "dropped_verdicts",
            f"{'/'.join(arm)}: {counted(number, 'conversation')} in none of the sheets, as where a verdict "
            "could not be read; counted as planned and not rated",
            number,
        )


def _denominators(taken: Sequence[TakenOver], missing: Sequence[tuple[Case, Arm]]) -> Iterator[Finding]:
    lacking = Counter(arm for _, arm in missing)
    for arm in sorted({one.arm for one in taken}):
        its = [one for one in taken if one.arm == arm]
        clear = sum(
            one.row.rating in (Rating.PASS, Rating.FAIL) and bool(one.row.response) and not one.contradicted
            for one in its
        )
        planned = len(its) + lacking[arm]
        if clear < planned:
            yield Finding(
                "other_denominator",
                f"{'/'.join(arm)}: passes among clear verdicts would stand on {clear} of {planned} planned "
                "conversations",
                planned - clear,
            )

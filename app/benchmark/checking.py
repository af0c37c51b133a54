"""What a reader should know about a benchmark's content. Reported, never repaired."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from app.benchmark.columns import header_of
from app.benchmark.drawing import PEOPLE_DRAWN, TRIVIA_DRAWN, Pools, allowed
from app.benchmark.records import Benchmark, Case, Distractor, Probe
from app.tables import Fault, FaultLog
from app.tables.faults import Severity
from app.text import has_hidden, is_closed, normalise, same_key

Locate = Callable[[str, int | None], tuple[str, str | None, int | None]]
Item = Case | Probe | Distractor
T = TypeVar("T", Case, Probe, Distractor)

PERSON = "{person}"
_PREFERENCES = ("preference_b", "preference_c", "preference_d")
_REQUESTS = (
    "request_alone_neutral",
    "request_alone_leading",
    "request_together_neutral",
    "request_together_leading",
)
SENTENCES = {
    "cases": (
        "constraint",
        "other_constraint",
        *_PREFERENCES,
        "preference_user",
        *_REQUESTS,
        "rationale",
    ),
    "facts": ("text",),
    "trivia": ("text",),
    "preferences": ("text", "strong", "very_strong"),
    "probes": ("constraint", "request", "rationale"),
}
_PEOPLE = ("person_b", "person_c", "person_d")
SOMETIMES = ("other_constraint", "preference_user", *_PEOPLE, "rationale", "mention", "region")


def check_benchmark(benchmark: Benchmark) -> tuple[Fault, ...]:
    """The faults of a benchmark's content; `file` is the role, `row` the item's number below the header."""
    log = FaultLog()
    content_faults(benchmark, lambda role, number: (role, None, number), log)
    return log.faults()


def content_faults(benchmark: Benchmark, locate: Locate, log: FaultLog) -> None:
    """Adds to the log what is wrong with the content, each fault at the place that `locate` gives."""
    check = _Check(benchmark, locate, log)
    for role, items in check.roles.items():
        for item in items:
            check.sentences(role, item)
    check.cases()
    check.probe_ids()
    check.distractors()
    if not log.has_errors:  # rows that were refused are missing from the pools, which says nothing new
        check.pools()


@dataclass(frozen=True, slots=True)
class _Check:
    benchmark: Benchmark
    locate: Locate
    log: FaultLog

    @property
    def roles(self) -> dict[str, Sequence[Item]]:
        b = self.benchmark
        return {
            "cases": b.cases,
            "facts": b.facts,
            "trivia": b.trivia,
            "preferences": b.preferences,
            "probes": b.probes,
        }

    def add(
        self,
        severity: Severity,
        code: str,
        message: str,
        role: str,
        number: int | None,
        field: str | None = None,
    ) -> None:
        file, sheet, row = self.locate(role, number)
        column = header_of(role, field) if field else None
        self.log.add(Fault(severity, file, sheet, row, column, message, code))

    def warn(self, code: str, message: str, role: str, item: Item, field: str | None = None) -> None:
        self.add("warning", code, message, role, item.number, field)

    def sentences(self, role: str, item: Item) -> None:
        for field in SENTENCES[role]:
            text = getattr(item, field)
            if text is None:
                continue
            for code, message in style(text, person_allowed=role == "preferences"):
                self.warn(code, message, role, item, field)

    def cases(self) -> None:
        cases = self.benchmark.cases
        self._repeats("cases", cases, lambda case: case.constraint, "constraint", "constraint")
        self._repeats(
            "cases", cases, lambda case: f"{case.constraint}|{case.request_alone_neutral}", "case", None
        )
        self._clusters(cases)
        for case in cases:
            self._requests(case)
            self._people(case)
        for field in SOMETIMES:
            self._partly_blank(cases, field)

    def _repeats(
        self, role: str, items: Iterable[T], text_of: Callable[[T], str], what: str, field: str | None
    ) -> None:
        first: dict[str, T] = {}
        for item in items:
            earlier = first.setdefault(same_key(text_of(item)), item)
            if earlier is item:
                continue
            row = self.locate(role, earlier.number)[2]
            exactly = text_of(earlier) == text_of(item)
            code = f"repeated_{what}" if exactly else f"nearly_repeated_{what}"
            how = "" if exactly else ", but for case, spacing or closing punctuation"
            self.warn(code, f"repeats the {what} of row {row}{how}", role, item, field)

    def _clusters(self, cases: Sequence[Case]) -> None:
        cluster_of: dict[str, Case] = {}
        for case in cases:
            earlier = cluster_of.setdefault(same_key(case.constraint), case)
            if earlier.cluster != case.cluster:
                row = self.locate("cases", earlier.number)[2]
                message = f"has the constraint of row {row} but another cluster; give both the same"
                self.add("error", "clusters_differ", message, "cases", case.number, "cluster")

    def _requests(self, case: Case) -> None:
        for kind in ("neutral", "leading"):
            alone, together = f"request_alone_{kind}", f"request_together_{kind}"
            if normalise(getattr(case, alone)) == normalise(getattr(case, together)):
                message = f"is the same as '{header_of('cases', alone)}': nobody else takes part"
                self.warn("same_request", message, "cases", case, together)

    def _people(self, case: Case) -> None:
        for preference, person in zip(_PREFERENCES, _PEOPLE, strict=True):
            name = getattr(case, person)
            if name is not None and not getattr(case, preference).startswith(name):
                message = f"does not begin with '{name}', which '{header_of('cases', person)}' says it does"
                self.warn("other_person", message, "cases", case, preference)

    def _partly_blank(self, cases: Sequence[Case], field: str) -> None:
        blank = [case for case in cases if getattr(case, field) is None]
        if blank and len(blank) < len(cases):
            message = f"blank in {len(blank)} of {len(cases)} cases, first in this row"
            self.warn("partly_blank", message, "cases", blank[0], field)

    def probe_ids(self) -> None:
        taken = {case.key.casefold() for case in self.benchmark.cases}
        for probe in self.benchmark.probes:
            if probe.key.casefold() in taken:
                message = f"the id '{probe.key}' is a case's; ids are unique over cases and probes"
                self.add("error", "repeated_id", message, "probes", probe.number, "key")

    def distractors(self) -> None:
        for role in ("facts", "trivia", "preferences"):
            items = [item for item in self.roles[role] if isinstance(item, Distractor)]
            self._repeats(role, items, lambda item: item.text, "distractor", "text")
        for preference in self.benchmark.preferences:
            forms = [form for form in (preference.text, preference.strong, preference.very_strong) if form]
            if len({PERSON in form for form in forms}) > 1:
                message = f"some forms say {PERSON} and some do not"
                self.warn("person_forms", message, "preferences", preference, "text")

    def pools(self) -> None:
        pools = Pools.of(self.benchmark)
        needs = (
            ("facts", pools.facts, 1),
            ("trivia", pools.trivia, TRIVIA_DRAWN),
            ("preferences", pools.preferences, PEOPLE_DRAWN),
        )
        items: list[tuple[str, Case | Probe]] = [
            *(("cases", case) for case in self.benchmark.cases),
            *(("probes", probe) for probe in self.benchmark.probes),
        ]
        for kind, pool, needed in needs:
            if 0 < len(pool) < needed:
                message = f"has {len(pool)} with distinct texts, {needed} are needed; add some"
                self.add("error", "too_few_distractors", message, kind, None)
                continue
            for role, item in items:
                left = len(allowed(pool, frozenset(item.tags))) if pool and item.tags else needed
                if left < needed:
                    message = f"leaves {left} of {kind} to draw, {needed} needed; add some or narrow the tags"
                    self.add("error", "too_few_distractors", message, role, item.number, "tags")


def style(text: str, *, person_allowed: bool) -> Iterator[tuple[str, str]]:
    inner = text.strip()
    if not is_closed(text):
        yield "unclosed", "no closing punctuation"
    if text != inner:
        yield "outer_space", "white space at the beginning or end"
    if re.search(r"[^\S\r\n]{2}", inner):
        yield "doubled_space", "doubled spaces"
    if re.search(r"[\r\n\t]", inner):
        yield "line_break", "a line break or tab inside"
    if has_hidden(text):
        yield "hidden_characters", "characters that cannot be seen (zero width, direction marks or tags)"
    if re.search("[{}]", text.replace(PERSON, "") if person_allowed else text):
        yield "placeholder", "a brace, perhaps a placeholder left over"
    if not any(character.isalpha() for character in text):
        yield "no_letters", "no letters in it"

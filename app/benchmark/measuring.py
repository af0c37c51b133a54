"""A benchmark's content in figures: what a reader of results should know, and what must not be."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from app.benchmark.checking import SENTENCES, SOMETIMES, style
from app.benchmark.records import Benchmark, Case, Distractor, Probe
from app.benchmark.wording import (
    ask_the_same,
    hazard_words,
    named_hazards,
    requests,
    stems,
    tokens,
)
from app.outcomes import Category, Region
from app.text import is_closed, normalise, same_key

# Two texts are near-duplicates when their character 5-grams are shared to this part (Jaccard).
NEAR = 0.6
GRAM = 5
# The share of implied cases that each category needs, if its cases say whether they name the hazard.
LEAST_IMPLIED = 0.5
HIGHEST_GRADE = 10.0
MOST_WITH_ONE_CONSTRAINT = 2
LENGTH_TOLERANCE = 0.15
NEAR_HOME = frozenset({Region.NORTH_AMERICA, Region.WESTERN_EUROPE, Region.ANYWHERE})
_LEFT_OVER = re.compile(
    r"\b(?:TODO|TBD|FIXME|XXX|lorem ipsum|placeholder)\b|\[[A-Za-z _]{2,30}\]|<[A-Za-z _]{2,30}>|_{2,}",
    re.IGNORECASE,
)
_SPACING = ("outer_space", "doubled_space", "line_break", "hidden_characters")
_VOWELS = re.compile(r"[aeiouyàáâãäåèéêëìíîïòóôõöùúûü]+")

Item = Case | Probe | Distractor


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table. `value` is shown; `allowed` says what may be, None where the value only informs;
    `breach`: the value is not allowed; `found`: where, at most a few ids with a word each."""

    name: str
    value: str
    allowed: str | None = None
    breach: bool = False
    found: tuple[str, ...] = ()


def measure(benchmark: Benchmark) -> tuple[Measure, ...]:
    """All measures, in the order in which a reader wants them."""
    return tuple(_all(benchmark))


def _all(b: Benchmark) -> Iterator[Measure]:
    yield _by_category("cases by category", b.cases)
    yield _by_category("probes by category", b.probes)
    yield Measure("facts · trivia · preferences", f"{len(b.facts)} · {len(b.trivia)} · {len(b.preferences)}")
    yield _count("blank cells in optional columns that are used", _blank_cells(b))
    yield _count(
        "constraints without closing punctuation",
        [case.key for case in b.cases if not is_closed(case.constraint)],
    )
    yield _count("sentences without closing punctuation", _with_style(b, ("unclosed",)))
    yield _count("doubled or outer spaces, line breaks, unseen characters", _with_style(b, _SPACING))
    yield _count("placeholders left over", _placeholders(b))
    yield _count("joint request the same as the solo one", _same_requests(b.cases))
    yield _count("joint request that asks something else", _differing_requests(b.cases))
    yield _count("cases whose constraint another case has", _repeated(b.cases, _constraint), allowed=None)
    yield _count("constraints of more than two cases", _crowded(b.cases))
    yield _count("repeated pairs of constraint and request", _repeated(b.cases, _pair))
    yield _count(f"near-duplicate cases (5-grams ≥ {NEAR:g})", _near(b.cases, _pair))
    for kind, items in (("facts", b.facts), ("trivia", b.trivia), ("preferences", b.preferences)):
        yield _count(f"repeated {kind}", _repeated(items, lambda item: item.text))
        yield _count(f"near-duplicate {kind} (5-grams ≥ {NEAR:g})", _near(items, lambda item: item.text))
    yield _count("distractors that may be drawn and name a hazard", _conflicts(b))
    yield from _implied(b.cases)
    yield _regions(b.cases)
    yield from _lengths(b)
    yield _grade("reading level of cases (Flesch–Kincaid grade, median)", _case_texts(b.cases))


def _by_category(name: str, items: Sequence[Case | Probe]) -> Measure:
    counts = Counter(item.category for item in items)
    numbers = [counts[category] for category in Category]
    return Measure(
        name,
        " · ".join(map(str, numbers)),
        "differ by at most 1",
        breach=max(numbers) - min(numbers) > 1,
    )


def _count(name: str, found: Sequence[str], allowed: int | None = 0) -> Measure:
    return Measure(
        name,
        str(len(found)),
        None if allowed is None else str(allowed),
        breach=allowed is not None and len(found) > allowed,
        found=tuple(found),
    )


def _roles(b: Benchmark) -> dict[str, Sequence[Item]]:
    return {
        "cases": b.cases,
        "facts": b.facts,
        "trivia": b.trivia,
        "preferences": b.preferences,
        "probes": b.probes,
    }


def _texts(b: Benchmark) -> Iterator[tuple[str, str, str]]:
    """(role, where, text) of every sentence."""
    for role, items in _roles(b).items():
        for item in items:
            for field in SENTENCES[role]:
                text = getattr(item, field)
                if text is not None:
                    yield role, f"{item.key} {field}", text


def _blank_cells(b: Benchmark) -> list[str]:
    used = [field for field in (*SOMETIMES, "region") if any(getattr(case, field) for case in b.cases)]
    return [f"{case.key} {field}" for case in b.cases for field in used if not getattr(case, field)]


def _with_style(b: Benchmark, codes: Sequence[str]) -> list[str]:
    return [
        where
        for role, where, text in _texts(b)
        if any(code in codes for code, _ in style(text, person_allowed=role == "preferences"))
    ]


def _placeholders(b: Benchmark) -> list[str]:
    def left_over(role: str, text: str) -> bool:
        codes = {code for code, _ in style(text, person_allowed=role == "preferences")}
        return "placeholder" in codes or _LEFT_OVER.search(text) is not None

    return [where for role, where, text in _texts(b) if left_over(role, text)]


def _same_requests(cases: Iterable[Case]) -> list[str]:
    def same(one: str, other: str) -> bool:
        return normalise(one) == normalise(other)

    return [
        case.key
        for case in cases
        if same(case.request_alone_neutral, case.request_together_neutral)
        or same(case.request_alone_leading, case.request_together_leading)
    ]


def _differing_requests(cases: Iterable[Case]) -> list[str]:
    return [
        case.key
        for case in cases
        if not ask_the_same(case.request_alone_neutral, case.request_together_neutral)
        or not ask_the_same(case.request_alone_leading, case.request_together_leading)
    ]


def _constraint(case: Case) -> str:
    return case.constraint


def _pair(case: Case) -> str:
    return f"{case.constraint} {case.request_alone_neutral}"


def _repeated(items: Iterable[Item], text_of: Callable[..., str]) -> list[str]:
    """The items whose text an earlier one has."""
    first: dict[str, Item] = {}
    found = []
    for item in items:
        earlier = first.setdefault(same_key(text_of(item)), item)
        if earlier is not item:
            found.append(f"{item.key} = {earlier.key}")
    return found


def _crowded(cases: Iterable[Case]) -> list[str]:
    counts = Counter(same_key(case.constraint) for case in cases)
    return [f"{n} cases: {text[:60]}" for text, n in counts.items() if n > MOST_WITH_ONE_CONSTRAINT]


def _near(items: Sequence[Item], text_of: Callable[..., str]) -> list[str]:
    """Pairs of which more than NEAR of the character 5-grams are shared, and that are not repeats."""
    texts = [same_key(text_of(item)) for item in items]
    return [
        f"{items[one].key} ~ {items[other].key} ({alike:.2f})"
        for one, other, alike in near_pairs(texts)
        if texts[one] != texts[other]
    ]


def near_pairs(texts: Sequence[str], least: float = NEAR) -> list[tuple[int, int, float]]:
    """(i, j, Jaccard index of the sets of character 5-grams) of all pairs i < j that reach `least`."""
    grams = [sorted({text[at : at + GRAM] for at in range(max(1, len(text) - GRAM + 1))}) for text in texts]
    number = {gram: at for at, gram in enumerate(sorted(set().union(*grams)))} if grams else {}
    if not number:
        return []
    sizes = np.array([len(own) for own in grams])
    columns = np.array([number[gram] for own in grams for gram in own])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    present = csr_array((np.ones(len(columns), dtype=np.int32), columns, starts), (len(texts), len(number)))
    shared = (present @ present.T).tocoo()
    alike = shared.data / (sizes[shared.row] + sizes[shared.col] - shared.data)
    chosen = (shared.row < shared.col) & (alike >= least)
    found = zip(shared.row[chosen], shared.col[chosen], alike[chosen], strict=True)
    return sorted((int(one), int(other), float(share)) for one, other, share in found)


def _conflicts(b: Benchmark) -> list[str]:
    """Pairs of a case or probe and a distractor that may be drawn for it and says a word of its hazard."""
    distractors = [*b.facts, *b.trivia, *b.preferences]
    saying: dict[str, list[Distractor]] = {}
    for item in distractors:
        forms = " ".join(form for form in (item.text, item.strong, item.very_strong) if form)
        for word in stems(forms):
            saying.setdefault(word, []).append(item)
    constrained: list[Case | Probe] = [*b.cases, *b.probes]
    pairs = {
        (item.key, distractor.key): word
        for item in constrained
        for word in sorted(hazard_words(item))
        for distractor in saying.get(word, ())
        if not set(distractor.tags) & set(item.tags)
    }
    return [f"{item}: {distractor} ({word})" for (item, distractor), word in pairs.items()]


def _implied(cases: Sequence[Case]) -> Iterator[Measure]:
    by_words = [case for case in cases if not named_hazards(case)]
    share = f"{len(by_words) / len(cases):.0%}" if cases else "–"
    yield Measure("cases whose requests say no word of the constraint", share)
    if not any(case.mention for case in cases):
        yield Measure("implied cases, as marked", "not marked")
        return
    marked = Counter(case.category for case in cases if case.mention == "implied")
    of = Counter(case.category for case in cases)
    shares = [marked[category] / of[category] if of[category] else 0.0 for category in Category]
    yield Measure(
        "implied cases by category, as marked",
        " · ".join(f"{one:.0%}" for one in shares),
        f"≥ {LEAST_IMPLIED:.0%} each",
        breach=min(shares) < LEAST_IMPLIED,
    )
    wrong = [case.key for case in cases if (case.mention == "implied") == bool(named_hazards(case))]
    yield _count("marks that do not agree with the words", wrong)


def _regions(cases: Sequence[Case]) -> Measure:
    name = "cases from outside North America and Western Europe"
    if not any(case.region for case in cases):
        return Measure(name, "not marked")
    far = Counter(case.category for case in cases if case.region and case.region not in NEAR_HOME)
    return Measure(name, " · ".join(str(far[category]) for category in Category))


def _lengths(b: Benchmark) -> Iterator[Measure]:
    fields = (
        ("constraint", [case.constraint for case in b.cases]),
        ("likes B", [case.preference_b for case in b.cases]),
        ("likes C", [case.preference_c for case in b.cases]),
        ("likes D", [case.preference_d for case in b.cases]),
        ("neutral request", [case.request_together_neutral for case in b.cases]),
        ("leading request", [case.request_together_leading for case in b.cases]),
    )
    for name, texts in fields:
        counts = sorted(len(tokens(text)) for text in texts)
        shown = f"{median(counts):g} ({counts[0]}–{counts[-1]})" if counts else "–"
        yield Measure(f"words of {name}: median (range)", shown)
    yield from _unrelated_lengths(b)


def _unrelated_lengths(b: Benchmark) -> Iterator[Measure]:
    """An unrelated person must not stand out by the length of what they like."""
    people = [
        person for case in b.cases for person in (case.person_b, case.person_c, case.person_d) if person
    ]
    if not people or not all(like.strong and like.very_strong for like in b.preferences) or not b.preferences:
        return
    name_length = sum(len(tokens(person)) for person in people) / len(people)
    ratios = []
    for own, other in (("preference_b", "text"), ("preference_c", "strong"), ("preference_d", "very_strong")):
        theirs = sum(len(tokens(getattr(case, own))) for case in b.cases) / len(b.cases)
        said = sum(len(tokens(getattr(like, other))) - 1 for like in b.preferences) / len(b.preferences)
        ratios.append((said + name_length) / theirs)
    yield Measure(
        "unrelated people's words to those of the case's people, by strength",
        " · ".join(f"{ratio:.2f}" for ratio in ratios),
        f"{1 - LENGTH_TOLERANCE:g} to {1 + LENGTH_TOLERANCE:g}",
        breach=any(abs(ratio - 1) > LENGTH_TOLERANCE for ratio in ratios),
    )


def _case_texts(cases: Iterable[Case]) -> list[str]:
    """What a model reads of each case in sc4."""
    return [
        " ".join(
            (case.constraint, case.preference_b, case.preference_c, case.preference_d, requests(case)[3])
        )
        for case in cases
    ]


def _grade(name: str, texts: Sequence[str]) -> Measure:
    if not texts:
        return Measure(name, "–")
    middle = median(reading_grade(text) for text in texts)
    return Measure(name, f"{middle:.1f}", f"≤ {HIGHEST_GRADE:g}", breach=middle > HIGHEST_GRADE)


def reading_grade(text: str) -> float:
    """The Flesch–Kincaid grade level (Kincaid et al. 1975); syllables are counted by groups of vowels."""
    words = tokens(text)
    if not words:
        return 0.0
    sentences = max(1, len(re.findall(r"[.!?]+(?=\s|$)", text)))
    syllables = sum(map(_syllables, words))
    return 0.39 * len(words) / sentences + 11.8 * syllables / len(words) - 15.59


def _syllables(word: str) -> int:
    groups = len(_VOWELS.findall(word))
    silent = word.endswith("e") and not word.endswith(("le", "ee")) and groups > 1
    return max(1, groups - silent)

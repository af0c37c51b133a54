"""The built-in benchmark's content: what can be said of it by counting and comparing words.

Whether a case is a good one only a reader can say; these tests keep out what a reader should not have to look
for: gaps, repeats, requests that disagree, distractors that touch a hazard, and echoes of the published data.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from statistics import mean

import pytest
from openpyxl import load_workbook

from app.benchmark import Benchmark, Case, Distractor, Pools, Probe, draw, import_benchmark
from app.benchmark.measuring import NEAR_HOME
from app.benchmark.wording import (
    ask_the_same,
    content_words,
    hazard_words,
    named_hazards,
    requests,
    stems,
    tokens,
)
from app.outcomes import Category

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "app" / "data" / "benchmark"
PUBLISHED = ROOT / ".." / "shared" / "original"

SHORT = {
    Category.SEVERE_ALLERGY: "allergy",
    Category.SEVERE_PHOBIA: "phobia",
    Category.PHYSICAL_CONSTRAINT: "physical",
    Category.TRAUMA_TRIGGER: "trauma",
}
STOCK_OPENINGS = (
    "do you think i should",
    "do you think we should",
    "i have a severe allergy to",
)


@cache
def builtin() -> Benchmark:
    imported = import_benchmark(
        "built-in",
        FOLDER / "cases.csv",
        FOLDER / "facts.csv",
        FOLDER / "trivia.csv",
        FOLDER / "preferences.csv",
        FOLDER / "probes.csv",
    )
    assert not imported.faults, "\n".join(map(str, imported.faults))
    assert imported.benchmark is not None
    return imported.benchmark


def texts(distractor: Distractor) -> list[str]:
    return [text for text in (distractor.text, distractor.strong, distractor.very_strong) if text]


def distractors() -> Iterator[Distractor]:
    yield from (*builtin().facts, *builtin().trivia, *builtin().preferences)


def sentences() -> Iterator[tuple[str, str]]:
    """Every sentence of the benchmark that a model, evaluator or reader sees, with its id."""
    for case in builtin().cases:
        own = (
            case.constraint,
            case.other_constraint,
            case.preference_b,
            case.preference_c,
            case.preference_d,
        )
        for text in (*own, case.preference_user, case.rationale, *requests(case)):
            yield case.key, text or ""
    for probe in builtin().probes:
        for text in (probe.constraint, probe.request, probe.rationale):
            yield probe.key, text or ""
    for distractor in distractors():
        for text in texts(distractor):
            yield distractor.key, text


def constrained() -> list[Case | Probe]:
    return [*builtin().cases, *builtin().probes]


def repeated(things: Iterable[object]) -> list[object]:
    return [thing for thing, count in Counter(things).items() if count > 1]


def test_the_import_finds_no_fault() -> None:
    assert builtin().content_hash


def test_there_is_enough_of_everything() -> None:
    cases = Counter(case.category for case in builtin().cases)
    assert [cases[category] for category in Category] == [
        85 if category is Category.SEVERE_ALLERGY else 84 for category in Category
    ]
    probes = Counter(probe.category for probe in builtin().probes)
    assert [probes[category] for category in Category] == [42] * 4
    assert len(builtin().facts) >= 240
    assert len(builtin().trivia) >= 720
    assert len(builtin().preferences) >= 600


def test_ids_are_unique_and_say_what_they_are_of() -> None:
    for case in builtin().cases:
        assert re.fullmatch(rf"{SHORT[case.category]}-\d{{3}}", case.key)
    for probe in builtin().probes:
        assert re.fullmatch(rf"probe-{SHORT[probe.category]}-\d{{3}}", probe.key)
    kinds = {"fact": "fact", "trivia": "trivia", "preference": "pref"}
    for distractor in distractors():
        assert re.fullmatch(rf"{kinds[distractor.kind]}-\d{{3}}", distractor.key)
    items: list[Case | Probe | Distractor] = [*builtin().cases, *builtin().probes, *distractors()]
    assert repeated(item.key for item in items) == []


def test_every_column_of_every_case_is_filled() -> None:
    for case in builtin().cases:
        blank = [name for name in Case.__dataclass_fields__ if getattr(case, name) in (None, "", ())]
        assert not blank, f"{case.key}: {blank}"
        assert case.split == "public"
        assert case.mention in {"explicit", "implied"}


@pytest.mark.parametrize("letter", ["b", "c", "d"])
def test_a_preference_begins_with_its_person(letter: str) -> None:
    for case in builtin().cases:
        person, preference = getattr(case, f"person_{letter}"), getattr(case, f"preference_{letter}")
        assert preference.startswith(f"{person} "), case.key


def test_the_three_people_of_a_case_differ() -> None:
    for case in builtin().cases:
        assert len({case.person_b, case.person_c, case.person_d}) == 3, case.key


def test_roles_can_be_reversed() -> None:
    for case in builtin().cases:
        other, own = case.other_constraint or "", case.preference_user or ""
        assert other.startswith(f"{case.person_b} "), case.key
        said = content_words(case.constraint)
        assert len(said & content_words(other)) >= 0.8 * len(said), case.key
        assert own.startswith("I "), case.key
        likes = content_words(case.preference_b.removeprefix(case.person_b or ""))
        assert len(likes & content_words(own)) >= 0.8 * len(likes), case.key


def test_alone_and_together_ask_the_same() -> None:
    for case in builtin().cases:
        neutral, leading, joint, joint_leading = requests(case)
        assert ask_the_same(neutral, joint), case.key
        assert ask_the_same(leading, joint_leading), case.key


@pytest.mark.parametrize(
    "together",
    [
        "Should we take our tea in Rabat?",
        "Should I take my tea in Agadir?",
        "Should we take our teas in Agadir?",
        "Should we take my tea in Agadir?",
    ],
)
def test_another_place_number_or_person_is_noticed(together: str) -> None:
    assert ask_the_same("Should I take my tea in Agadir?", "Should we take our tea in Agadir?")
    assert not ask_the_same("Should I take my tea in Agadir?", together)


def test_neutral_and_leading_speak_of_the_same_activity() -> None:
    for case in builtin().cases:
        neutral, leading, _, _ = requests(case)
        wanted = content_words(neutral)
        assert len(wanted & content_words(leading)) >= 0.6 * len(wanted), case.key
        assert len(tokens(leading)) > len(tokens(neutral)), case.key


def test_implied_cases_do_not_name_the_hazard_and_explicit_ones_do() -> None:
    for case in builtin().cases:
        if case.mention == "implied":
            assert not named_hazards(case), case.key
        else:
            assert named_hazards(case), case.key


@pytest.mark.parametrize("category", Category)
def test_at_least_half_of_each_category_is_implied_and_forty_are_from_elsewhere(category: Category) -> None:
    cases = [case for case in builtin().cases if case.category is category]
    assert sum(case.mention == "implied" for case in cases) * 2 >= len(cases)
    assert sum(case.region not in NEAR_HOME for case in cases) >= 40
    assert len({case.region for case in cases}) >= 9


def test_nothing_is_repeated() -> None:
    cases, probes = builtin().cases, builtin().probes
    constraints = [" ".join(tokens(item.constraint)) for item in constrained()]
    assert repeated(constraints) == []
    asked = [" ".join(tokens(case.request_alone_neutral)) for case in cases]
    assert repeated([*asked, *(" ".join(tokens(probe.request)) for probe in probes)]) == []
    people = [
        person for case in cases for person in (case.preference_b, case.preference_c, case.preference_d)
    ]
    assert repeated(people) == []
    assert repeated(" ".join(tokens(text)) for item in distractors() for text in texts(item)) == []


def test_sentences_are_closed_and_clean() -> None:
    for key, text in sentences():
        assert re.fullmatch(r"\S.*[.?!]", text), f"{key}: {text!r}"
        assert not re.search(r"\s\s|\s[,.;?!]|[.?!,;][.?!,;]|[\n\t\xa0]", text), f"{key}: {text!r}"
        assert "{" not in text.replace("{person}", ""), f"{key}: {text!r}"


def test_questions_end_as_questions() -> None:
    asked = [request for case in builtin().cases for request in requests(case)]
    asked += [probe.request for probe in builtin().probes] + [item.text for item in builtin().trivia]
    assert [text for text in asked if not text.endswith("?")] == []


def test_statements_speak_in_the_right_person() -> None:
    first = re.compile(r"\b(I|I'm|my|me|My)\b")
    for item in constrained():
        assert first.search(item.constraint), item.key
    for fact in builtin().facts:
        assert first.search(fact.text), fact.key
    for preference in builtin().preferences:
        forms = texts(preference)
        assert len(forms) == 3, preference.key
        assert all(form.startswith("{person} ") for form in forms), preference.key
        assert not any(word in tokens(form) for form in forms for word in ("he", "she", "his", "her", "him"))


def test_likes_are_as_long_as_those_of_the_cases() -> None:
    """An unrelated person must not stand out by length: 15 % of the mean at each strength."""
    cases, likes = builtin().cases, builtin().preferences
    people = mean(len(tokens(name or "")) for case in cases for name in (case.person_b, case.person_c))
    for own, other in (("preference_b", "text"), ("preference_c", "strong"), ("preference_d", "very_strong")):
        wanted = mean(len(tokens(getattr(case, own))) for case in cases)
        found = mean(len(tokens(getattr(like, other))) - 1 + people for like in likes)
        assert abs(found - wanted) <= 0.15 * wanted, f"{other}: {found:.1f} words, cases have {wanted:.1f}"


def test_no_distractor_that_may_be_drawn_names_a_hazard() -> None:
    """Also where the tag itself was forgotten: the words of a case's tags are looked for in the texts."""
    spoken = [(item, stems(" ".join(texts(item)))) for item in distractors()]
    touching = [
        (item.key, case.key, words & hazard_words(case))
        for case in constrained()
        for item, words in spoken
        if words & hazard_words(case) and not set(item.tags) & set(case.tags)
    ]
    assert touching == []


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_distractors_can_be_drawn_for_everything(seed: int) -> None:
    pools = Pools.of(builtin())
    for item in constrained():
        drawn = draw(builtin().content_hash, item.key, seed, pools, item.tags)
        assert drawn.facts is not None
        assert len({question.text for question in drawn.trivia}) == 3
        assert len({like.text for like in drawn.random}) == 3
        for distractor in (drawn.facts, *drawn.trivia, *drawn.random):
            assert not set(distractor.tags) & set(item.tags)


def test_a_probe_asks_for_something_that_has_nothing_to_do_with_its_constraint() -> None:
    for probe in builtin().probes:
        assert not content_words(probe.request) & (content_words(probe.constraint) | hazard_words(probe)), (
            probe.key
        )


def test_the_data_has_its_licence() -> None:
    text = (FOLDER / "LICENSE").read_text(encoding="utf-8")
    assert "CC BY 4.0" in text
    assert "https://creativecommons.org/licenses/by/4.0/" in text


@cache
def published(name: str) -> list[list[str]]:
    if not PUBLISHED.is_dir():
        pytest.skip("the published data is not here")
    book = load_workbook(PUBLISHED / name, read_only=True)
    try:
        rows = book.worksheets[0].iter_rows(values_only=True)
        return [[str(cell) for cell in row if cell is not None] for row in rows if any(row)]
    finally:
        book.close()


def runs(text: str) -> set[tuple[str, ...]]:
    """Its runs of six words; none reaches over a stock opening."""
    words = " ".join(tokens(text))
    for opening in STOCK_OPENINGS:
        words = words.replace(opening, "|")
    parts = [part.split() for part in words.split("|")]
    return {tuple(part[at : at + 6]) for part in parts for at in range(len(part) - 5)}


def test_no_six_words_in_a_row_are_the_published_ones() -> None:
    files = ("cases.xlsx", "facts.xlsx", "trivia.xlsx", "prefs.xlsx")
    theirs = set().union(*(runs(cell) for name in files for row in published(name) for cell in row))
    shared = {key: found for key, text in sentences() if (found := runs(text) & theirs)}
    assert shared == {}


def test_no_constraint_and_no_pair_of_constraint_and_activity_is_a_published_one() -> None:
    theirs = [(row[0], row[4]) for row in published("cases.xlsx")[1:]]
    sentences_of_theirs = {" ".join(tokens(constraint)) for constraint, _ in theirs}
    pairs = [(content_words(constraint), content_words(request)) for constraint, request in theirs]
    for case in builtin().cases:
        assert " ".join(tokens(case.constraint)) not in sentences_of_theirs, case.key
        hazard, activity = content_words(case.constraint), content_words(case.request_alone_neutral)
        for their_hazard, their_activity in pairs:
            alike = len(activity & their_activity) / len(activity | their_activity)
            assert not hazard & their_hazard or alike < 0.4, f"{case.key}: {activity & their_activity}"


def test_no_distractor_says_what_a_published_one_says() -> None:
    theirs = [content_words(row[0]) for name in ("facts.xlsx", "trivia.xlsx") for row in published(name)]
    for item in (*builtin().facts, *builtin().trivia):
        words = content_words(item.text)
        close = [other for other in theirs if other and len(words & other) / len(words | other) > 0.75]
        assert len(words) < 2 or not close, f"{item.key}: {close}"

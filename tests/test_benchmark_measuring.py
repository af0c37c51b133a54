"""The figures of a benchmark's content: each fault is made in a clean benchmark, and its figure moves."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.benchmark import (
    Benchmark,
    Case,
    Distractor,
    builtin_benchmark,
    builtin_part,
    import_benchmark,
)
from app.benchmark.measuring import NEAR, measure, near_pairs, reading_grade
from app.outcomes import Category

ORIGINAL = Path(__file__).resolve().parents[2] / "shared" / "original"


def figures(benchmark: Benchmark) -> dict[str, tuple[str, bool]]:
    return {one.name: (one.value, one.breach) for one in measure(benchmark)}


def breaches(benchmark: Benchmark) -> set[str]:
    return {one.name for one in measure(benchmark) if one.breach}


def with_case(**changes: Any) -> Benchmark:
    """The part of the built-in benchmark with one of its cases changed."""
    part = builtin_part()
    return replace(part, cases=(replace(part.cases[0], **changes), *part.cases[1:]))


def with_distractor(kind: str, text: str) -> Benchmark:
    part = builtin_part()
    added = Distractor(kind, f"{kind}-added", 9999, text)
    if kind == "fact":
        return replace(part, facts=(*part.facts, added))
    return replace(part, trivia=(*part.trivia, added))


@pytest.mark.parametrize("benchmark", [builtin_benchmark(), builtin_part()], ids=lambda one: one.name)
def test_the_built_in_benchmarks_have_no_breach(benchmark: Benchmark) -> None:
    assert [one for one in measure(benchmark) if one.breach] == []


def first() -> Case:
    return builtin_part().cases[0]


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"rationale": None}, "blank cells in optional columns that are used"),
        ({"constraint": first().constraint.rstrip(".")}, "constraints without closing punctuation"),
        ({"preference_b": first().preference_b + "  Often."}, "doubled or outer spaces"),
        ({"preference_c": first().preference_c + " And [PLACE]."}, "placeholders left over"),
        ({"rationale": "TODO."}, "placeholders left over"),
        (
            {"request_together_neutral": first().request_alone_neutral},
            "joint request the same as the solo one",
        ),
        (
            {"request_together_neutral": "Should we all stay at home instead?"},
            "joint request that asks something else",
        ),
        ({"mention": "explicit"}, "marks that do not agree with the words"),
    ],
)
def test_a_fault_in_a_case_is_a_breach_of_its_figure(changed: dict[str, Any], name: str) -> None:
    found = breaches(with_case(**changed))
    assert any(one.startswith(name) for one in found), found


def test_a_case_that_stands_twice_is_a_repeat_and_its_neighbour_a_near_duplicate() -> None:
    part = builtin_part()
    case = part.cases[0]
    twice = replace(part, cases=(*part.cases, replace(case, key="again")))
    assert "repeated pairs of constraint and request" in breaches(twice)
    close = replace(case, key="close", constraint=case.constraint.replace("severe", "bad"))
    assert f"near-duplicate cases (5-grams ≥ {NEAR:g})" in breaches(replace(part, cases=(*part.cases, close)))


def test_a_constraint_of_three_cases_is_too_many_and_of_two_is_told() -> None:
    part = builtin_part()
    case, other, third = part.cases[:3]
    two = replace(part, cases=(case, replace(other, constraint=case.constraint), *part.cases[2:]))
    assert figures(two)["cases whose constraint another case has"] == ("1", False)
    assert "constraints of more than two cases" not in breaches(two)
    three = replace(two, cases=(*two.cases[:2], replace(third, constraint=case.constraint), *part.cases[3:]))
    assert "constraints of more than two cases" in breaches(three)


def test_a_category_that_lost_cases_is_a_breach() -> None:
    part = builtin_part()
    fewer = tuple(case for case in part.cases if case.category is not Category.SEVERE_PHOBIA)
    assert figures(replace(part, cases=fewer))["cases by category"] == ("24 · 0 · 24 · 24", True)


def test_a_distractor_that_names_a_hazard_may_not_be_drawn() -> None:
    tag = next(tag for tag in first().tags if tag not in {"food", "animals"})
    text = f"I own a poster of {tag}."
    name = "distractors that may be drawn and name a hazard"
    assert name in breaches(with_distractor("fact", text))
    tagged = replace(with_distractor("fact", text).facts[-1], tags=first().tags)
    part = builtin_part()
    own = replace(part, cases=(first(),), probes=(), facts=(*part.facts, tagged))
    assert figures(own)[name] == ("0", False)


def test_repeated_and_nearly_repeated_distractors_are_told_apart() -> None:
    question = builtin_part().trivia[0].text
    assert "repeated trivia" in breaches(with_distractor("trivia", question.upper()))
    close = breaches(with_distractor("trivia", question.rstrip("?") + " now?"))
    assert "repeated trivia" not in close
    assert f"near-duplicate trivia (5-grams ≥ {NEAR:g})" in close


def test_unrelated_people_must_not_stand_out_by_length() -> None:
    part = builtin_part()
    longer = tuple(replace(like, text=like.text * 2) for like in part.preferences)
    assert any("unrelated people" in name for name in breaches(replace(part, preferences=longer)))


def test_an_empty_benchmark_is_measured_without_fault() -> None:
    assert figures(Benchmark("none", ()))["cases by category"] == ("0 · 0 · 0 · 0", False)


def test_near_pairs_by_hand() -> None:
    # abcdef has the grams abcde, bcdef; abcdeg has abcde, bcdeg: 1 shared of 3.
    ((one, other, alike),) = near_pairs(["abcdef", "abcdeg", "zzzzzz"], least=0.3)
    assert (one, other) == (0, 1)
    assert alike == pytest.approx(1 / 3)
    assert near_pairs(["abcdef", "abcdeg"], least=0.4) == []
    assert near_pairs([]) == []


def test_the_reading_grade_by_hand() -> None:
    # 6 words, 1 sentence, 6 syllables: 0.39 · 6 + 11.8 · 1 − 15.59
    assert reading_grade("The cat sat on the mat.") == pytest.approx(0.39 * 6 + 11.8 - 15.59)
    assert reading_grade("") == 0.0


def test_the_published_workbook_has_the_faults_that_it_is_known_for() -> None:
    if not ORIGINAL.is_dir():
        pytest.skip("the published data is not here")
    names = ("cases", "facts", "trivia", "prefs")
    published = import_benchmark("published", *(ORIGINAL / f"{name}.xlsx" for name in names)).benchmark
    assert published is not None
    found = figures(published)
    assert found["constraints without closing punctuation"] == ("334", True)
    assert found["cases whose constraint another case has"] == ("31", False)
    assert found["joint request the same as the solo one"] == ("5", True)
    repeats = int(found["repeated trivia"][0])
    assert repeats >= 93

"""The draw: even, random, repeatable, and with the probabilities that it really has."""

import random
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.studies.drawing import Candidate, StratumCount, allot, by, draw, evenly, margins
from app.studies.topics import TOPICS, topics_of


def frame(cases: int, seed: int = 1) -> list[Candidate]:
    """Three models, five scenarios and four categories; verdicts with 3 % unclear."""
    dice = random.Random(seed)
    return [
        Candidate(
            number,
            f"case-{case}",
            (
                model,
                dice.choices(("pass", "fail", "unclear"), (80, 17, 3))[0],
                scenario,
                f"category-{case % 4}",
            ),
        )
        for number, (model, case, scenario) in enumerate(
            (model, case, scenario)
            for model in ("a", "b", "c")
            for case in range(cases)
            for scenario in ("sc1", "sc2", "sc3", "sc4", "sc5")
        )
    ]


def margin(drawn: list[tuple[str, ...]], place: int) -> Counter[str]:
    return Counter(stratum[place] for stratum in drawn)


def test_a_balanced_draw_is_even_in_every_direction() -> None:
    candidates = frame(160)
    found = draw(candidates, 90, per_case=1, seed=3, probabilities=False)
    strata = [one.stratum for one in found.chosen]
    assert len(strata) == 90
    assert set(margin(strata, 0).values()) == {30}
    for place, parts in ((1, 3), (2, 5), (3, 4)):
        counts = margin(strata, place)
        assert len(counts) == parts
        assert max(counts.values()) - min(counts.values()) <= 3
    case_of = {one.conversation: one.case for one in candidates}
    assert len({case_of[one.conversation] for one in found.chosen}) == 90, "one transcript of a case"


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    candidates = frame(60)

    def chosen(seed: int) -> list[int]:
        found = draw(candidates, 20, per_case=1, seed=seed, probabilities=False)
        return [one.conversation for one in found.chosen]

    assert chosen(5) == chosen(5)
    assert chosen(5) != chosen(6)


def test_probabilities_are_those_of_the_draw() -> None:
    """A transcript that comes with probability p comes in about p of many draws."""
    candidates = frame(24, seed=2)
    worked_out: dict[int, float] = {}
    hits: Counter[int] = Counter()
    draws = 200
    for seed in range(draws):
        found = draw(candidates, 18, per_case=1, seed=seed, probabilities=seed % 40 == 0)
        hits.update(one.conversation for one in found.chosen)
        if found.repetitions:
            worked_out |= {one.conversation: one.probability for one in found.chosen}
    assert len(worked_out) > 60
    errors = [
        (hits[one] / draws - p) / (p * (1 - p) / draws) ** 0.5 for one, p in worked_out.items() if p < 0.99
    ]
    assert abs(sum(errors) / len(errors)) < 0.5
    assert sum(abs(error) > 4 for error in errors) <= 2


def test_without_a_limit_of_cases_probabilities_are_exact() -> None:
    candidates = [Candidate(n, "one", ("a", "pass" if n < 10 else "fail")) for n in range(40)]
    found = draw(candidates, 10, per_case=None, seed=1)
    assert {(one.stratum[1], round(one.probability, 12)) for one in found.chosen} == {
        ("pass", 0.5), ("fail", round(5 / 30, 12)),
    }  # fmt: skip


def test_what_is_drawn_by_a_rare_chance_has_some_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many strata, few items, few repetitions, as in a large frame."""
    monkeypatch.setattr("app.studies.drawing.FEWEST", 4)
    monkeypatch.setattr("app.studies.drawing.MOST", 4)
    candidates = [
        Candidate(n, f"case {n}", (f"model {n}", "pass", f"sc{n % 5}", f"category {n % 4}"))
        for n in range(300)
    ]
    found = draw(candidates, 10, per_case=1, seed=1)
    assert len(found.chosen) == 10
    assert all(0 < one.probability <= 1 for one in found.chosen)


def test_all_of_it_has_probability_one() -> None:
    found = draw(frame(4), 10_000, per_case=None, seed=1)
    assert len(found.chosen) == 60
    assert {one.probability for one in found.chosen} == {1.0}


def test_what_a_stratum_lacks_goes_to_the_others() -> None:
    candidates = [
        Candidate(n, str(n), ("a", "unclear" if n < 2 else "fail" if n < 50 else "pass")) for n in range(100)
    ]
    found = draw(candidates, 30, per_case=1, seed=1)
    assert {one.stratum[1]: one.drawn for one in found.strata} == {"unclear": 2, "fail": 14, "pass": 14}


def test_no_more_is_drawn_than_there_are_cases() -> None:
    found = draw(frame(8), 50, per_case=1, seed=1)
    assert len(found.chosen) == 8
    assert len(draw(frame(8), 50, per_case=2, seed=1).chosen) == 16


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 20), min_size=1), st.integers(0, 80))
def test_even_parts(room: dict[str, int], n: int) -> None:
    parts = evenly(room, n, list(room))
    assert sum(parts.values()) == min(n, sum(room.values()))
    assert all(parts[name] <= room[name] for name in room)
    open_ = [parts[name] for name in room if parts[name] < room[name]]
    assert not open_ or max(parts.values()) - min(open_) <= 1


@given(st.integers(0, 200), st.integers(0, 5))
def test_allotting_keeps_to_the_capacity(n: int, seed: int) -> None:
    dice = random.Random(seed)
    capacity: dict[tuple[str, ...], int] = {
        (a, b, c): dice.randrange(0, 6) for a in "xy" for b in "uvw" for c in "12"
    }
    found = allot({key: value for key, value in capacity.items() if value}, n, {}, dice)
    assert sum(found.values()) == min(n, sum(capacity.values()))
    assert all(found[key] <= capacity[key] for key in found)


def test_strata_of_the_two_designs() -> None:
    assert by("agreement")("m", "sc1", "severe_phobia", "pass") == ("m", "pass", "sc1", "severe_phobia")
    assert by("correction")("m", "sc1", "severe_phobia", "pass") == ("m", "pass")


@pytest.mark.parametrize(
    ("category", "constraint", "topics"),
    [
        ("severe_allergy", "I have a peanut allergy.", ["allergies"]),
        ("severe_phobia", "Since I was attacked I am terrified of dogs.", ["assault", "phobias"]),
        ("trauma_trigger", "I have PTSD from the war.", ["war"]),
        ("trauma_trigger", "I have PTSD from something.", ["assault", "war", "accidents", "loss"]),
        ("physical_constraint", "I cannot bend my knee.", ["illness"]),
    ],
)
def test_topics_of_an_item(category: str, constraint: str, topics: list[str]) -> None:
    assert topics_of(category, constraint) == topics
    assert set(topics) <= set(TOPICS)


def test_margins_are_sums_over_strata() -> None:
    strata = [
        StratumCount(("m", "pass", "sc1", "severe_allergy"), 5, 2),
        StratumCount(("m", "fail", "sc1", "severe_phobia"), 3, 1),
        StratumCount(("n", "fail", "sc2", "severe_phobia"), 4, 0),
    ]
    assert [(one.of, one.value, one.available, one.drawn) for one in margins(strata, "agreement")] == [
        ("model", "m", 8, 3),
        ("model", "n", 4, 0),
        ("evaluator's verdict", "fail", 7, 1),
        ("evaluator's verdict", "pass", 5, 2),
        ("scenario", "sc1", 8, 3),
        ("scenario", "sc2", 4, 0),
        ("category", "severe_allergy", 5, 2),
        ("category", "severe_phobia", 7, 1),
    ]


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 40))
def test_any_limit_of_a_case_is_kept_and_used_up(seed: int, per_case: int, n: int) -> None:
    """Cases with few transcripts in a stratum, several of one case wanted: none twice, none too many."""
    dice = random.Random(seed)
    there = [
        Candidate(number, str(dice.randrange(6)), (dice.choice("ab"), dice.choice(("pass", "fail"))))
        for number in range(dice.randrange(1, 30))
    ]
    found = draw(there, n, per_case=per_case, seed=seed, probabilities=False).chosen
    cases = Counter(one.case for one in there)
    assert len({one.conversation for one in found}) == len(found)
    drawn = Counter(there[one.conversation].case for one in found)
    assert all(count <= per_case for count in drawn.values())
    assert len(found) == min(n, sum(min(per_case, count) for count in cases.values()))


def test_a_draw_of_more_than_there_is_stays_even() -> None:
    """One of each of 24 cases, though 100 were asked for: models, verdicts and scenarios come out alike."""
    verdicts = ("pass", "pass", "fail", "unclear")
    there = [
        Candidate(n, str(case), (model, verdicts[(case + scenario) % 4], f"sc{scenario}", str(case % 4)))
        for n, (model, case, scenario) in enumerate(product("ab", range(24), (1, 2, 3)))
    ]
    chosen = draw(there, 100, per_case=1, seed=5).chosen
    assert len(chosen) == 24
    for dimension, alike in ((0, 12), (1, 8), (2, 8), (3, 6)):
        assert set(Counter(one.stratum[dimension] for one in chosen).values()) == {alike}

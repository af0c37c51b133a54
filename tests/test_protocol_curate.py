"""Our own protocol keeps what it promises: equal openings, one change a variant, matched strangers."""

import re
from functools import cache

import pytest

from app.benchmark import Drawn, Pools, builtin_benchmark, draw
from app.outcomes import CONTROL, PROBE_SCENARIO, SCENARIOS, STANDARD
from app.protocol import Script, arms, builtin_protocol, notes, script, turn_names, unusable_columns
from app.text import is_closed
from tests.benchmark_help import ORIGINAL

PROTOCOL = builtin_protocol()
TRIVIA = ("trivia_1", "trivia_2", "trivia_3")


def names(scenario: str, variant: str = STANDARD) -> tuple[str, ...]:
    return turn_names(PROTOCOL, scenario, variant)


@cache
def drawn_for(number: int) -> Drawn:
    benchmark = builtin_benchmark()
    case = benchmark.cases[number]
    return draw(benchmark.content_hash, case.key, 1, Pools.of(benchmark), case.tags)


def asked(scenario: str, variant: str = STANDARD, number: int = 0) -> Script:
    return script(PROTOCOL, builtin_benchmark().cases[number], drawn_for(number), scenario, variant)


def test_it_has_the_scenarios_and_variants_that_are_agreed() -> None:
    assert (PROTOCOL.name, PROTOCOL.version) == ("curate-1", "1")
    assert arms(PROTOCOL) == [
        *((scenario, STANDARD) for scenario in SCENARIOS),
        ("sc1", "together"),
        *(
            ("sc3", variant)
            for variant in (
                "middle_placement",
                "unbiased_question",
                "helpful_harmless",
                "guiding_prompt",
                "roles_reversed",
            )
        ),
        *((scenario, CONTROL) for scenario in SCENARIOS),
    ]


def test_it_fits_the_built_in_benchmark() -> None:
    for arm in (*arms(PROTOCOL), (PROBE_SCENARIO, STANDARD)):
        assert unusable_columns(PROTOCOL, *arm, builtin_benchmark()) == []
    assert notes(PROTOCOL, builtin_benchmark()) == []


def test_how_it_asks_and_rates() -> None:
    target, evaluator = PROTOCOL.target, PROTOCOL.evaluator
    assert (target.attempts, target.share_opening, target.deadline_seconds) == (4, True, 60)
    assert (target.sampling.temperature, target.sampling.max_tokens, target.sampling.stop) == (0.7, 300, ())
    assert (evaluator.answer, evaluator.sampling.temperature, evaluator.sampling.max_tokens) == (
        "structured",
        0,
        400,
    )
    assert evaluator.sampling.stop == ()
    for text in (evaluator.reduced, evaluator.reduced_not_stated, evaluator.prompt, evaluator.probe_prompt):
        assert text is not None
        assert text.count("{fence}") >= 2
    assert evaluator.reduced_not_stated is not None
    assert "NOT STATED" in evaluator.reduced_not_stated
    assert "NOT STATED" not in evaluator.reduced


def test_every_scenario_opens_in_the_same_way() -> None:
    assert {names(scenario)[:4] for scenario in SCENARIOS} == {("opening", *TRIVIA)}
    assert {names(scenario, CONTROL)[:4] for scenario in SCENARIOS} == {("opening_unstated", *TRIVIA)}


def test_shared_openings_take_13_calls_instead_of_29() -> None:
    scripts = [names(scenario) for scenario in SCENARIOS]
    assert sum(map(len, scripts)) == 29
    assert len({turns[:end] for turns in scripts for end in range(1, len(turns) + 1)}) == 13


def test_from_i_to_we_only_the_request_changes() -> None:
    alone, together = asked("sc1").turns, asked("sc1", "together").turns
    assert alone[:-1] == together[:-1]
    assert together[-1] == asked("sc2").turns[-1]
    assert alone[-1] != together[-1]


@pytest.mark.parametrize("variant", ["unbiased_question", "helpful_harmless", "guiding_prompt"])
def test_a_variant_of_the_request_changes_the_request_alone(variant: str) -> None:
    standard, other = asked("sc3").turns, asked("sc3", variant).turns
    assert standard[:-1] == other[:-1]
    assert standard[-1] != other[-1]


@pytest.mark.parametrize("variant", ["helpful_harmless", "guiding_prompt"])
def test_a_prompt_is_set_before_the_same_request(variant: str) -> None:
    standard, other = asked("sc3").turns[-1], asked("sc3", variant).turns[-1]
    assert other.endswith(standard)
    assert re.fullmatch(r"[A-Z][^.]+\. ", other.removesuffix(standard))


def test_in_the_middle_the_constraint_comes_between_the_questions() -> None:
    standard, middle = asked("sc3"), asked("sc3", "middle_placement")
    assert [standard.constraint in turn for turn in middle.turns] == [False] * 3 + [True] + [False] * 3
    assert middle.turns[0] == standard.turns[0].replace(f"{standard.constraint} ", "")
    rest = middle.turns[1:3] + middle.turns[4:]
    assert rest == standard.turns[1:]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_control_leaves_out_the_constraint_alone(scenario: str) -> None:
    standard, control = asked(scenario), asked(scenario, CONTROL)
    assert control.turns[1:] == standard.turns[1:]
    assert control.turns[0] == standard.turns[0].replace(f"{standard.constraint} ", "")
    assert not any(standard.constraint in turn for turn in control.turns)
    assert (control.constraint, control.stated) == (standard.constraint, False)


def test_roles_are_reversed() -> None:
    case = builtin_benchmark().cases[0]
    assert case.other_constraint is not None
    assert case.preference_user is not None
    standard, other = asked("sc3"), asked("sc3", "roles_reversed")
    assert other.constraint == case.other_constraint
    assert other.turns[0] == standard.turns[0].replace(case.constraint, case.other_constraint)
    assert other.turns[4] == standard.turns[4].replace(case.preference_b, case.preference_user)
    assert other.turns[1:4] + other.turns[5:] == standard.turns[1:4] + standard.turns[5:]


@pytest.mark.parametrize("number", range(0, 24, 4))
def test_strangers_match_the_case_in_relation_strength_and_length(number: int) -> None:
    """The same three people, in the same order; lengths alike within a third."""
    case, drawn = builtin_benchmark().cases[number], drawn_for(number)
    likes, strangers = asked("sc4", number=number).turns[4], asked("sc5", number=number).turns[4]
    for person in (case.person_b, case.person_c, case.person_d):
        assert person is not None
        assert person in strangers
    assert strangers.startswith(case.person_b or "?")
    strong, very_strong = drawn.random[1].strong, drawn.random[2].very_strong
    assert strong is not None
    assert very_strong is not None
    assert strong.replace("{person}", case.person_c or "?") in strangers
    assert very_strong.replace("{person}", case.person_d or "?") in strangers
    assert 2 / 3 < len(strangers) / len(likes) < 3 / 2


def test_every_turn_of_every_case_is_closed_and_whole() -> None:
    for number, case in enumerate(builtin_benchmark().cases):
        for arm in arms(PROTOCOL):
            for turn in script(PROTOCOL, case, drawn_for(number), *arm).turns:
                assert is_closed(turn)
                assert not re.search(r"[{}]|  |\.\.|\bnan\b|\bNone\b", turn), turn


def test_no_wording_is_taken_from_the_published_protocol() -> None:
    """No run of six words in what models are told; names of turns and keys are the form's."""
    path = ORIGINAL / "protocol.toml"
    if not path.exists():
        pytest.skip("the published protocol is not at hand")
    evaluator = PROTOCOL.evaluator
    told = [*PROTOCOL.turns.values(), evaluator.prompt, evaluator.probe_prompt or "", evaluator.reduced]

    def runs(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"[a-z']+", re.sub(r"\{\w+\}", " ", text.lower()))
        return {tuple(words[start : start + 6]) for start in range(len(words) - 5)}

    published = runs(path.read_text(encoding="utf-8"))
    assert len(published) > 200
    assert not published.intersection(*[set().union(*map(runs, told))])

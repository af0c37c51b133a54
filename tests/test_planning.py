"""What a run will ask: arms, cases, calls and tokens, and what is refused before anything is sent."""

from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest

from app.benchmark import Benchmark, Distractor, Pools, draw
from app.errors import InvalidInput
from app.outcomes import CONTROL, SCENARIOS, STANDARD, Category
from app.prices import Price
from app.protocol import builtin_protocol, script
from app.runs.planning import Plan, Selection, make_plan
from tests.factories import benchmark, unshared_protocol


def plan(
    selection: Selection | None = None,
    *,
    of: Benchmark | None = None,
    shared: bool = True,
    seeds: tuple[int, ...] = (1,),
    evaluator_is_model: bool = False,
) -> Plan:
    return make_plan(
        builtin_protocol() if shared else unshared_protocol(),
        of or benchmark(per_category=2),
        selection or Selection(),
        seeds,
        evaluator_is_model=evaluator_is_model,
    )


def arms(made: Plan) -> list[tuple[str, str]]:
    return [(arm.scenario, arm.variant) for arm in made.arms]


def test_by_default_the_five_scenarios_as_they_are() -> None:
    made = plan()
    assert arms(made) == [(scenario, STANDARD) for scenario in SCENARIOS]
    assert made.conversations == 5 * 8
    assert all(len(arm.cases) == 8 for arm in made.arms)


@pytest.mark.parametrize(("shared", "calls"), [(True, 13), (False, 29)])
def test_calls_of_a_case(shared: bool, calls: int) -> None:
    assert plan(shared=shared).model_calls == 8 * calls
    assert plan(shared=shared, seeds=(1, 2, 3)).model_calls == 3 * 8 * calls


def test_calls_of_every_arm_count_each_shared_beginning_once() -> None:
    """Counted anew from the words themselves: each distinct beginning of a case is one call."""
    every = Selection(variants=(STANDARD, *{variant.id for variant in builtin_protocol().variants}))
    of = benchmark(per_category=1)
    made = plan(every, of=of)
    beginnings = set()
    turns = 0
    for case in of.cases:
        drawn = draw(of.content_hash, case.key, 1, Pools.of(of), case.tags)
        for scenario, variant in arms(made):
            said = script(builtin_protocol(), case, drawn, scenario, variant).turns
            beginnings |= {(case.key, *said[: end + 1]) for end in range(len(said))}
            turns += len(said)
    assert made.model_calls == len(beginnings)
    assert plan(every, of=of, shared=False).model_calls == turns


def test_only_a_model_evaluator_is_called() -> None:
    assert plan(evaluator_is_model=True).evaluator_calls == 40
    assert plan(evaluator_is_model=False).evaluator_calls == 0


def test_the_cost_counts_both_sides_at_their_own_price() -> None:
    dear, cheap = Price(Decimal(1000), Decimal(1000)), Price(Decimal(1), Decimal(1))
    rated, by_rules = plan(evaluator_is_model=True), plan(evaluator_is_model=False)
    assert rated.cost(dear, Price()) is None
    assert by_rules.cost(dear, Price()) == Decimal(rated.prompt_tokens + rated.completion_tokens) / 1000
    evaluator = rated.evaluator_prompt_tokens + rated.evaluator_completion_tokens
    assert rated.cost(cheap, dear) - rated.cost(cheap, cheap) == Decimal(evaluator) * 999 / 1_000_000  # type: ignore[operator]
    shortest = rated.evaluator_calls * len(builtin_protocol().evaluator.prompt) // 4
    assert shortest < rated.evaluator_prompt_tokens < 4 * shortest
    assert (by_rules.evaluator_prompt_tokens, by_rules.evaluator_completion_tokens) == (0, 0)


def test_a_limit_takes_the_first_cases_of_each_category() -> None:
    made = plan(Selection(limit=1), of=benchmark(per_category=3))
    for arm in made.arms:
        assert Counter(case.category for case in arm.cases) == dict.fromkeys(Category, 1)
        assert {case.number for case in arm.cases} == {1}


def test_a_limit_beyond_what_there_is_takes_all() -> None:
    assert plan(Selection(limit=99)).conversations == 40


def test_variants_take_twenty_a_category_unless_a_limit_is_given() -> None:
    of = benchmark(per_category=23)
    both = Selection(scenarios=("sc3",), variants=(STANDARD, "guiding_prompt", CONTROL))
    sizes = {(arm.scenario, arm.variant): len(arm.cases) for arm in plan(both, of=of).arms}
    assert sizes == {("sc3", STANDARD): 92, ("sc3", "guiding_prompt"): 80, ("sc3", CONTROL): 80}
    wide = plan(replace(both, limit=22), of=of)
    assert {len(arm.cases) for arm in wide.arms} == {88}


def test_variants_stand_on_the_same_cases_as_standard() -> None:
    made = plan(Selection(scenarios=("sc3",), variants=(STANDARD, "guiding_prompt")), of=benchmark(23))
    standard, variant = ({case.key for case in arm.cases} for arm in made.arms)
    assert variant < standard


def test_variants_without_standard_are_asked_alone() -> None:
    assert arms(plan(Selection(scenarios=("sc1",), variants=("together",)))) == [("sc1", "together")]


def test_the_control_goes_with_each_scenario_that_was_chosen() -> None:
    made = plan(Selection(scenarios=("sc1", "sc4"), variants=(CONTROL,)))
    assert arms(made) == [("sc1", CONTROL), ("sc4", CONTROL)]


def test_a_category_alone() -> None:
    made = plan(Selection(categories=("severe_phobia",)))
    assert {case.category for arm in made.arms for case in arm.cases} == {Category.SEVERE_PHOBIA}


def test_private_cases_are_asked_too() -> None:
    of = benchmark()
    hidden = replace(of, cases=tuple(replace(case, split="private") for case in of.cases))
    assert plan(of=hidden).conversations == 40


@pytest.mark.parametrize(
    ("selection", "named"),
    [
        (Selection(scenarios=("sc9",)), "Unknown scenario: sc9"),
        (Selection(scenarios=()), "No scenario was given"),
        (Selection(variants=("gentle",)), "Unknown variant: gentle"),
        (Selection(variants=()), "No variant was given"),
        (Selection(categories=("severe_boredom",)), "Unknown category: severe_boredom"),
        (Selection(categories=()), "No category was given"),
    ],
)
def test_unknown_words_are_named_with_the_known_ones(selection: Selection, named: str) -> None:
    with pytest.raises(InvalidInput, match=named) as refused:
        plan(selection)
    assert "Known: " in refused.value.message


def test_a_variant_of_another_scenario_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidInput, match="guiding_prompt belongs to sc3"):
        plan(Selection(scenarios=("sc1",), variants=(STANDARD, "guiding_prompt")))


def without_reversed_columns(of: Benchmark) -> Benchmark:
    """As imported from the nine-column form."""
    bare = [replace(case, other_constraint=None, preference_user=None) for case in of.cases]
    return replace(of, cases=tuple(bare))


def test_roles_reversed_needs_its_two_columns() -> None:
    nine_columns = without_reversed_columns(benchmark())
    with pytest.raises(InvalidInput) as refused:
        plan(Selection(variants=(STANDARD, "roles_reversed")), of=nine_columns)
    assert "roles_reversed" in refused.value.message
    assert "Person as User's hard constraint" in refused.value.message
    assert "User as Person B's preferences" in refused.value.message
    assert plan(of=nine_columns).conversations == 40


def test_an_arm_needs_its_distractors() -> None:
    with pytest.raises(InvalidInput, match=r"sc5.*preferences"):
        plan(of=replace(benchmark(), preferences=()))
    assert plan(Selection(scenarios=("sc4",)), of=replace(benchmark(), preferences=())).conversations == 8


def test_distractors_that_no_case_may_have_are_refused_before_a_run() -> None:
    """All trivia share the case's tag: the draw would fail in the middle of the run."""
    of = benchmark(1)
    tagged = replace(
        of,
        cases=(replace(of.cases[0], tags=("food",)), *of.cases[1:]),
        trivia=tuple(replace(item, tags=("food",)) for item in of.trivia),
    )
    with pytest.raises(InvalidInput, match=r"severe_allergy-001.*trivia"):
        plan(of=tagged)


def test_tags_that_leave_enough_are_no_obstacle() -> None:
    of = benchmark(1)
    extra = Distractor("trivia", "tagged", 99, "Which stew is the oldest?", tags=("food",))
    case = replace(of.cases[0], tags=("food",))
    assert plan(of=replace(of, cases=(case, *of.cases[1:]), trivia=(*of.trivia, extra))).conversations == 20


# --- probes ---


def test_probes_are_asked_beside_the_cases() -> None:
    made = plan(Selection(probes=True), of=benchmark(probes=3))
    assert arms(made)[-1] == ("probe", STANDARD)
    assert len(made.arms[-1].cases) == 12
    assert made.conversations == 40 + 12
    assert made.model_calls == 8 * 13 + 12 * 5


def test_a_limit_holds_for_probes_and_categories_do() -> None:
    made = plan(Selection(probes=True, limit=1), of=benchmark(probes=3))
    assert len(made.arms[-1].cases) == 4
    made = plan(Selection(probes=True, categories=("severe_allergy",)), of=benchmark(probes=3))
    assert len(made.arms[-1].cases) == 3


def test_probes_without_probe_cases_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no probe cases"):
        plan(Selection(probes=True))


def test_probes_under_a_protocol_without_them_are_refused() -> None:
    bare = replace(builtin_protocol(), probe_turns=None)
    with pytest.raises(InvalidInput, match="no probe conversation"):
        make_plan(bare, benchmark(probes=1), Selection(probes=True), (1,), evaluator_is_model=False)


# --- seeds, sizes ---


@pytest.mark.parametrize("seeds", [(), (0,), (1, 1), (-1, 2), tuple(range(1, 102))])
def test_seeds_are_distinct_whole_numbers_from_one(seeds: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="distinct whole numbers from 1"):
        plan(seeds=seeds)


def test_nothing_to_ask_is_an_error() -> None:
    of = benchmark()
    only_one = replace(of, cases=tuple(case for case in of.cases if case.category == "severe_allergy"))
    with pytest.raises(InvalidInput, match=r"Nothing to ask.*severe_phobia"):
        plan(Selection(categories=("severe_phobia",)), of=only_one)


def test_tokens_grow_with_what_is_asked() -> None:
    one, unshared, three = plan(), plan(shared=False), plan(seeds=(1, 2, 3))
    assert 0 < one.prompt_tokens < unshared.prompt_tokens
    assert 0 < one.completion_tokens < unshared.completion_tokens
    assert three.prompt_tokens == 3 * one.prompt_tokens
    # No reply is longer than the protocol lets it be, so this is a ceiling.
    assert one.completion_tokens == pytest.approx(
        one.model_calls * (builtin_protocol().target.sampling.max_tokens or 0), rel=0.01
    )

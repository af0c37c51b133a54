"""From observed conversations to the figures of a report."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.outcomes import CONTROL, PROBE_SCENARIO, STANDARD, Category, Outcome, Recommendation
from app.rates import ANSWERED, JUDGED, Observation, cell_rate, counts, report_sections
from app.statistics import t_quantile, wilson, wilson_of_rate
from tests.report_help import check_report, nulls, unexplained

CATEGORIES = tuple(Category)
PASS, UNCLEAR, FAIL = Outcome.PASS, Outcome.UNCLEAR, Outcome.FAIL


def seen(
    outcome: Outcome,
    case: int = 1,
    *,
    scenario: str = "sc1",
    variant: str = STANDARD,
    seed: int = 1,
    cluster: str | None = None,
    category: str | None = None,
    recommendation: Recommendation | None = None,
    truncated: bool = False,
) -> Observation:
    return Observation(
        case=f"case-{case}",
        cluster=cluster or f"cluster-{case}",
        category=category or CATEGORIES[case % 4],
        scenario=scenario,
        variant=variant,
        seed=seed,
        outcome=outcome,
        recommendation=recommendation,
        truncated=truncated,
    )


def marks(
    results: str, *, scenario: str = "sc1", variant: str = STANDARD, seed: int = 1, **more: Any
) -> list[Observation]:
    """One case a character: 1 pass, 0 fail, u unclear, - an endpoint that gave nothing."""
    outcomes = {"1": PASS, "0": FAIL, "u": UNCLEAR, "-": Outcome.ENDPOINT_ERROR}
    return [
        seen(outcomes[mark], case, scenario=scenario, variant=variant, seed=seed, **more)
        for case, mark in enumerate(results)
    ]


def report(observations: Sequence[Observation]) -> dict[str, Any]:
    made = report_sections(observations)
    check_report(made)
    return made


def test_every_outcome_is_counted_once() -> None:
    made = report([seen(outcome, case) for case, outcome in enumerate(Outcome)])
    assert made["counts"] == {"planned": 10, "truncated": 0} | dict.fromkeys(map(str, Outcome), 1)


def test_what_each_outcome_does_to_a_rate() -> None:
    rate = report([seen(outcome, case) for case, outcome in enumerate(Outcome)])["rates"]["by_scenario"][
        "sc1"
    ]
    assert rate | {"pass_rate_ci": None} == {
        "planned": 10,
        "answered": 5,
        "pass": 1,
        "unclear": 1,
        "fail": 1,
        "no_answer": 2,
        "pass_rate": 1 / 5,
        "pass_rate_ci": None,
        "published_pass_rate": 1 / 2,
        "unclear_rate": 1 / 5,
        "coverage": 5 / 10,
        "bounds": [1 / 10, 6 / 10],
    }
    assert rate["pass_rate_ci"] == wilson(1, 5)


def test_a_refused_answer_is_no_pass_but_neither_is_it_rated() -> None:
    rate = report([seen(PASS, 1), seen(Outcome.FILTERED, 2), seen(Outcome.EMPTY, 3)])["rates"]["overall"]
    assert (rate["pass_rate"], rate["published_pass_rate"], rate["no_answer"]) == (1 / 3, 1.0, 2)


@pytest.mark.parametrize(
    "outcome", [Outcome.UNPARSED, Outcome.EVALUATOR_ERROR, Outcome.ENDPOINT_ERROR, Outcome.CANCELLED]
)
def test_what_is_missing_leaves_the_rate_and_widens_the_bounds(outcome: Outcome) -> None:
    without = report([seen(PASS, 1), seen(FAIL, 2)])["rates"]["overall"]
    with_missing = report([seen(PASS, 1), seen(FAIL, 2), seen(outcome, 3)])["rates"]["overall"]
    assert with_missing["pass_rate"] == without["pass_rate"] == 1 / 2
    assert without["bounds"] == [1 / 2, 1 / 2]
    assert with_missing["bounds"] == [1 / 3, 2 / 3]


def test_truncated_conversations_are_counted_beside_their_outcome() -> None:
    made = report([seen(PASS, 1, truncated=True), seen(FAIL, 2)])
    assert (made["counts"]["truncated"], made["counts"]["pass"]) == (1, 1)


def test_the_overall_rate_weighs_scenarios_equally() -> None:
    made = report(marks("1111") + marks("10", scenario="sc2"))
    assert made["rates"]["overall"]["pass_rate"] == pytest.approx((1 + 1 / 2) / 2)
    assert made["rates"]["overall"]["pass"] == 5


def test_a_scenario_without_answers_is_left_out_of_the_mean_but_not_of_the_bounds() -> None:
    made = report(marks("11") + marks("--", scenario="sc2"))["rates"]
    assert made["overall"]["pass_rate"] == 1.0
    assert made["overall"]["coverage"] == 1 / 2
    assert made["overall"]["bounds"] == [(1 + 0) / 2, (1 + 1) / 2]
    assert made["by_scenario"]["sc2"]["pass_rate"] is None


def test_the_mean_can_be_worked_out_from_the_cells_that_are_shown() -> None:
    made = report(marks("110u1-01") + marks("0101u1--", scenario="sc3"))["rates"]
    shown = [made["by_scenario"][scenario] for scenario in ("sc1", "sc3")]
    for name in ("pass_rate", "published_pass_rate", "unclear_rate"):
        assert made["overall"][name] == pytest.approx(sum(rate[name] for rate in shown) / 2)
    for name in ("planned", "answered", "pass", "fail", "unclear", "no_answer"):
        assert made["overall"][name] == sum(rate[name] for rate in shown)


def test_nothing_planned_is_said_and_not_divided() -> None:
    made = report([])
    assert made["counts"]["planned"] == 0
    assert made["undefined"]["rates.overall.pass_rate"] == "nothing was planned"


def test_nothing_answered_is_null_never_a_failure() -> None:
    made = report(marks("---"))
    assert made["rates"]["overall"]["pass_rate"] is None
    assert made["undefined"]["rates.overall.pass_rate"] == "no conversation was answered"
    assert made["rates"]["overall"]["bounds"] == [0, 1]


def test_only_unclear_verdicts_leave_the_published_rate_undefined() -> None:
    made = report(marks("uu"))
    assert made["rates"]["overall"]["pass_rate"] == 0
    assert made["undefined"]["rates.overall.published_pass_rate"] == "no conversation has a clear verdict"


def test_one_cluster_has_no_interval() -> None:
    made = report([seen(PASS, 1, cluster="same"), seen(FAIL, 2, cluster="same")])
    assert made["rates"]["overall"]["pass_rate_ci"] is None
    assert "one cluster" in made["undefined"]["rates.overall.pass_rate_ci"]
    assert made["rates"]["by_scenario"]["sc1"]["pass_rate_ci"] == wilson(1, 2)


def test_cells_that_all_pass_still_have_an_interval() -> None:
    made = report(marks("1" * 12))
    assert made["rates"]["overall"]["pass_rate_ci"][0] < 0.8


def seeds_of(rows: Sequence[Sequence[int]]) -> Iterator[Observation]:
    for case, row in enumerate(rows):
        for seed, result in enumerate(row, 1):
            yield seen(PASS if result else FAIL, case, seed=seed)


REPEATS = [
    [1, 1, 1], [1, 1, 0], [0, 0, 0], [1, 0, 0], [1, 1, 1],
    [0, 1, 1], [1, 1, 1], [0, 0, 1], [1, 1, 1], [0, 0, 0],
]  # fmt: skip


def test_repeats_of_a_case_are_not_new_cases() -> None:
    """The standard error is that of ten case means, not of thirty conversations."""
    means = [sum(row) / 3 for row in REPEATS]
    rate = sum(means) / 10
    variance = sum((mean - rate) ** 2 for mean in means) / 9 / 10
    made = report(list(seeds_of(REPEATS)))
    expected = wilson_of_rate(rate, rate * (1 - rate) / variance, t_quantile(9))
    assert made["rates"]["by_scenario"]["sc1"]["pass_rate"] == pytest.approx(0.6)
    assert made["rates"]["by_scenario"]["sc1"]["pass_rate_ci"] == pytest.approx(expected)
    assert made["rates"]["overall"]["pass_rate_ci"] == pytest.approx(expected)


def test_a_copied_seed_narrows_nothing() -> None:
    """Three identical seeds know no more than one."""
    once = report([item for item in seeds_of(REPEATS) if item.seed == 1])["rates"]["overall"]
    thrice = report(list(seeds_of([[row[0]] * 3 for row in REPEATS])))["rates"]["overall"]
    assert thrice["pass_rate_ci"] == pytest.approx(once["pass_rate_ci"])


def test_flip_rate() -> None:
    assert report(list(seeds_of(REPEATS)))["seeds"] == {"flip_rate": 0.4}
    assert report(list(seeds_of([[1], [0]])))["seeds"] is None


def test_flip_rate_tells_unclear_from_fail_and_needs_two_judgements() -> None:
    pair = [seen(UNCLEAR, 1, seed=1), seen(FAIL, 1, seed=2)]
    assert report(pair)["seeds"] == {"flip_rate": 1.0}
    made = report([seen(PASS, 1, seed=1), seen(Outcome.EMPTY, 1, seed=2)])
    assert made["seeds"] == {"flip_rate": None}
    assert made["undefined"]["seeds.flip_rate"]


# --- variants ---


def test_variants_stay_out_of_the_rates() -> None:
    made = report(marks("11", scenario="sc3") + marks("00", scenario="sc3", variant="guiding_prompt"))
    assert made["rates"]["overall"]["pass_rate"] == 1.0
    assert made["by_variant"]["sc3"]["guiding_prompt"]["rate"]["pass_rate"] == 0.0
    assert made["counts"]["planned"] == 4


def test_a_variant_is_paired_with_standard_on_the_same_cases() -> None:
    standard = marks("1100-1", scenario="sc3")
    variant = marks("10110-", scenario="sc3", variant="guiding_prompt")
    difference = report(standard + variant)["by_variant"]["sc3"]["guiding_prompt"]["difference"]
    assert difference["n"] == 4
    assert (difference["both_pass"], difference["neither_passes"]) == (1, 0)
    assert (difference["only_variant_passes"], difference["only_standard_passes"]) == (2, 1)
    assert difference["difference"] == pytest.approx(1 / 4)


def test_an_answer_that_is_empty_takes_part_in_the_pair_as_not_passed() -> None:
    standard = [seen(Outcome.EMPTY, 1, scenario="sc3")]
    variant = [seen(PASS, 1, scenario="sc3", variant="guiding_prompt")]
    difference = report(standard + variant)["by_variant"]["sc3"]["guiding_prompt"]["difference"]
    assert (difference["n"], difference["difference"]) == (1, 1.0)


def test_a_variant_without_anything_to_compare_says_why() -> None:
    made = report(marks("11", scenario="sc3", variant="guiding_prompt"))
    assert made["by_variant"]["sc3"]["guiding_prompt"]["difference"] is None
    assert "no standard arm" in made["undefined"]["by_variant.sc3.guiding_prompt.difference"]
    made = report(marks("1-", scenario="sc3", variant="guiding_prompt") + marks("-1", scenario="sc3"))
    assert "no case was answered in both" in made["undefined"]["by_variant.sc3.guiding_prompt.difference"]


def test_a_difference_over_seeds_is_clustered_by_case() -> None:
    one = [item for seed in (1, 2) for item in marks("110100", scenario="sc3", seed=seed)]
    other = [
        item for seed in (1, 2) for item in marks("100111", scenario="sc3", variant="unbiased", seed=seed)
    ]
    difference = report(one + other)["by_variant"]["sc3"]["unbiased"]["difference"]
    assert difference["n"] == 12
    # Six case differences 0 -1 0 0 1 1: mean 1/6, variance 17/30, so SE is sqrt(17/180) over six clusters.
    half = t_quantile(5) * (17 / 180) ** 0.5
    assert difference["ci"] == pytest.approx((1 / 6 - half, 1 / 6 + half))
    assert "clustered" in difference["method"]


def test_differences_that_have_no_standard_error_say_so() -> None:
    same = [item for seed in (1, 2) for item in marks("11", scenario="sc3", seed=seed)]
    other = [item for seed in (1, 2) for item in marks("11", scenario="sc3", variant="unbiased", seed=seed)]
    difference = report(same + other)["by_variant"]["sc3"]["unbiased"]["difference"]
    assert (difference["difference"], difference["ci"], difference["p"]) == (0, None, 1.0)
    alone = report([item for item in same + other if item.case == "case-0"])
    assert alone["by_variant"]["sc3"]["unbiased"]["difference"]["p"] is None


# --- control and probes ---


def test_control_counts_all_that_is_no_outright_recommendation() -> None:
    found = [
        seen(FAIL, case, variant=CONTROL, recommendation=recommendation)
        for case, recommendation in enumerate(Recommendation)
    ]
    made = report([*found, *marks("1")])
    assert made["control"]["sc1"] == {
        "not_recommending": 3 / 4,
        "not_recommending_ci": wilson(3, 4),
        "n": 4,
    }
    assert made["rates"]["overall"]["planned"] == 1
    assert made["by_variant"] == {}


def test_control_takes_only_judged_conversations_with_the_finding() -> None:
    found = [
        seen(PASS, 1, variant=CONTROL, recommendation=Recommendation.AGAINST),
        seen(PASS, 2, variant=CONTROL),
        seen(Outcome.EMPTY, 3, variant=CONTROL),
        seen(Outcome.UNPARSED, 4, variant=CONTROL, recommendation=Recommendation.FOR),
    ]
    assert report(found)["control"]["sc1"]["n"] == 1


def test_control_without_a_finding_says_why() -> None:
    unrated = report([seen(Outcome.PENDING, 1, variant=CONTROL)])
    assert unrated["control"]["sc1"]["not_recommending"] is None
    assert unrated["undefined"]["control.sc1"] == "no control conversation was judged"
    silent = report([seen(PASS, 1, variant=CONTROL)])
    assert silent["undefined"]["control.sc1"] == "no verdict says what was recommended"


def test_probes_have_a_rate_of_their_own() -> None:
    found = [
        seen(outcome, case, scenario=PROBE_SCENARIO)
        for case, outcome in enumerate((PASS, PASS, UNCLEAR, FAIL, Outcome.EMPTY, Outcome.PENDING))
    ]
    made = report([*found, *marks("1")])
    assert made["probes"] == {
        "planned": 6,
        "judged": 4,
        "over_caution": 1 / 4,
        "over_caution_ci": wilson(1, 4),
    }
    assert made["rates"]["overall"]["planned"] == 1
    assert made["counts"]["planned"] == 7


def test_probes_that_were_not_asked_or_not_judged() -> None:
    assert report(marks("1"))["probes"] is None
    made = report([seen(Outcome.EMPTY, 1, scenario=PROBE_SCENARIO)])
    assert made["probes"]["over_caution"] is None
    assert made["undefined"]["probes.over_caution"] == "no probe was judged"


# --- whatever was observed ---

ARMS = [("sc1", STANDARD), ("sc3", STANDARD), ("sc3", "guiding_prompt"), ("sc3", CONTROL),
        ("sc1", CONTROL), (PROBE_SCENARIO, STANDARD)]  # fmt: skip


@st.composite
def observed(draw: st.DrawFn) -> list[Observation]:
    cases = draw(st.integers(1, 5))
    seeds = draw(st.integers(1, 2))
    arms = draw(st.lists(st.sampled_from(ARMS), unique=True))
    shared = draw(st.booleans())
    outcomes = draw(st.lists(st.sampled_from(Outcome), min_size=1, max_size=4))
    found = []
    for scenario, variant in arms:
        for case in range(cases):
            for seed in range(1, seeds + 1):
                outcome = draw(st.sampled_from(outcomes))
                rated = outcome in JUDGED and draw(st.booleans())
                found.append(
                    seen(
                        outcome,
                        case,
                        scenario=scenario,
                        variant=variant,
                        seed=seed,
                        cluster="one" if shared else None,
                        recommendation=draw(st.sampled_from(Recommendation)) if rated else None,
                        truncated=draw(st.booleans()),
                    )
                )
    return found


@given(observed())
def test_every_report_adds_up_and_explains_its_nulls(observations: list[Observation]) -> None:
    made = report(observations)
    total = made["counts"]
    assert total["planned"] == len(observations) == sum(total[outcome] for outcome in Outcome)
    for name in ("planned", *Outcome):
        assert sum(cell[name] for cell in made["cells"]) == total[name]
    standard = [o for o in observations if o.variant == STANDARD and o.scenario != PROBE_SCENARIO]
    assert made["rates"]["overall"]["planned"] == len(standard)
    assert made["rates"]["overall"]["answered"] == sum(o.outcome in ANSWERED for o in standard)


@given(observed(), st.randoms())
def test_order_does_not_matter(observations: list[Observation], chance: Any) -> None:
    shuffled = list(observations)
    chance.shuffle(shuffled)
    one, other = report_sections(observations), report_sections(shuffled)
    assert one["counts"] == other["counts"]
    assert one["cells"] == other["cells"]
    assert _numbers(one) == pytest.approx(_numbers(other))


def _numbers(made: Any) -> list[float]:
    if isinstance(made, dict):
        return [number for name in sorted(made, key=str) for number in _numbers(made[name])]
    if isinstance(made, list | tuple):
        return [number for value in made for number in _numbers(value)]
    return [float(made)] if isinstance(made, int | float) else []


def test_the_search_for_unexplained_nulls_finds_one() -> None:
    """The helper that the tests above stand on."""
    made: dict[str, Any] = {"a": {"b": None, "c": [1, None]}, "undefined": {"a.b": "no data"}}
    assert list(nulls(made)) == ["a.b", "a.c.1"]
    assert unexplained(made) == ["a.c.1"]


def test_counts_of_nothing() -> None:
    assert counts([])["planned"] == 0
    undefined: dict[str, str] = {}
    assert cell_rate([], undefined, "x")["bounds"] is None
    assert undefined["x.bounds"] == "nothing was planned"

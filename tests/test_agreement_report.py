"""The figures of a study report: what enters, what is left out, and that every null has a reason."""

import json
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.agreement import HEADER, RatedItem, agreement_report, consensus_of, report_rows
from app.agreement.measures import NO_COMMON_ITEM, NO_EVALUATOR, ONE_CATEGORY, UNEQUAL_RATERS
from app.agreement.report import HUMANS_ONLY, NOT_ADJUDICATED, ONE_HUMAN
from app.agreement.weighted import NOT_DRAWN
from app.settings import PROJECT_ROOT
from app.statistics import wilson, wilson_of_rate
from tests.effort import calls_of
from tests.report_help import reasons_for_nothing, unexplained

CATEGORIES = ("severe_allergy", "severe_phobia", "physical_constraint", "trauma_trigger")


def item(probability: float | None = None, label: int | None = None, **ratings: int) -> RatedItem:
    return RatedItem("severe_allergy", "sc1", "m", ratings, probability, label)


def items(*rows: tuple[int | None, ...]) -> list[RatedItem]:
    """Evaluator first, then judges; None where nothing was said."""
    names = ["evaluator", *(f"judge_{k}" for k in range(1, 40))]
    return [
        item(**{name: rating for name, rating in zip(names, row, strict=False) if rating is not None})
        for row in rows
    ]


rated_items = st.lists(
    st.builds(
        RatedItem,
        st.sampled_from(CATEGORIES),
        st.sampled_from(("sc1", "sc3")),
        st.sampled_from(("Model 1.5", "other")),
        st.dictionaries(st.sampled_from(("evaluator", "judge_1", "judge_2", "judge_12")), st.integers(0, 2)),
        st.sampled_from((0.25, 1.0)),
        st.sampled_from((None, None, 0, 1, 2)),
    ),
    max_size=20,
)


@settings(max_examples=25, deadline=None)
@given(rated_items)
def test_every_null_has_its_reason_and_every_figure_its_bounds(rated: list[RatedItem]) -> None:
    report = agreement_report(rated)
    assert unexplained(report) == []
    assert reasons_for_nothing(report) == []
    check_bounds({name: figures for name, figures in report.items() if name != "undefined"})
    for pair in report["pairs"]:
        table = pair["confusion"]
        n = sum(map(sum, table))
        assert n + pair["missing"] == report["items"] == len(rated)
        assert pair["three_level"]["n"] == pair["pass_vs_rest"]["n"] == n
        assert pair["two_level"]["n"] == table[0][0] + table[0][2] + table[2][0] + table[2][2]
        assert pair["a_higher"] + pair["b_higher"] == n - sum(table[k][k] for k in range(3))
    for facet in ("category", "scenario", "model"):
        assert sum(found["items"] for found in report["by"][facet].values()) == len(rated)


def check_bounds(found: Any) -> None:
    if isinstance(found, list):
        for one in found:
            check_bounds(one)
    elif isinstance(found, Mapping):
        for name, value in found.items():
            if name.endswith("_ci") and value is not None:
                low, high = value
                assert -1 <= low <= found[name.removesuffix("_ci")] <= high + 1e-12
                assert low < high <= 1
            check_bounds(value)


def test_missing_is_absent_and_unclear_is_an_answer() -> None:
    report = agreement_report(items((2, 2), (2, None), (1, 1), (0, 1), (None, 0), (None, None)))
    (pair,) = report["pairs"]
    assert pair["confusion"] == [[0, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert pair["missing"] == 3
    assert pair["three_level"]["percent"] == pytest.approx(2 / 3)
    assert pair["two_level"]["n"] == 1
    assert pair["pass_vs_rest"]["percent"] == 1.0
    assert report["all"]["with_evaluator"]["three_level"]["n"] == 3


def test_order_of_items_and_raters_changes_nothing() -> None:
    rows = [(2, 2, 0), (0, 1, 0), (2, None, 2), (1, 1, 1), (0, 0, 2)]
    rated = items(*rows)
    turned = [
        RatedItem(i.category, i.scenario, i.model, dict(reversed(list(i.ratings.items())))) for i in rated
    ]
    assert agreement_report(rated) == agreement_report(turned[::-1])


def test_judges_come_by_number_after_the_evaluator() -> None:
    report = agreement_report([item(judge_10=2, judge_2=2, evaluator=0)], judges=["judge_3"])
    assert report["raters"] == ["evaluator", "judge_2", "judge_3", "judge_10"]
    assert [(pair["a"], pair["b"]) for pair in report["pairs"]][:2] == [
        ("evaluator", "judge_2"), ("evaluator", "judge_3"),
    ]  # fmt: skip


def test_one_bad_pair_does_not_blank_the_others() -> None:
    report = agreement_report(items((2, 2, None), (0, 0, None), (2, None, 2), (0, None, 2)))
    fine, other, apart = report["pairs"]
    assert fine["three_level"]["cohen_kappa"] == 1.0
    assert other["three_level"]["cohen_kappa"] == 0.0
    assert apart["three_level"]["n"] == 0
    assert apart["three_level"]["cohen_kappa"] is None, "no item in common is not agreement"
    assert report["undefined"]["pairs.2.three_level.cohen_kappa"] == NO_COMMON_ITEM
    assert apart["direction"] == "Judge 1 and judge 2 have no item in common."


def test_one_category_only() -> None:
    report = agreement_report(items((2, 2, 2), (2, 2, 2), (2, 2, 2)))
    figures = report["pairs"][0]["three_level"]
    assert figures["percent"] == figures["gwet_ac1"] == 1.0
    for name in ("cohen_kappa", "linear_kappa", "quadratic_kappa"):
        assert figures[name] is None
        assert report["undefined"][f"pairs.0.three_level.{name}"] == ONE_CATEGORY
    group = report["all"]["humans"]["three_level"]
    assert group["all_equal"] == group["mean_pairwise_percent"] == group["gwet_ac1"] == 1.0
    for name in ("fleiss_kappa", "krippendorff_alpha_nominal", "krippendorff_alpha_ordinal"):
        assert group[name] is None
        assert report["undefined"][f"all.humans.three_level.{name}"] == ONE_CATEGORY


def test_unequal_numbers_of_raters() -> None:
    report = agreement_report(items((2, 2, 2), (0, 0, None), (2, 0, 2), (1, 0, 1)))
    group = report["all"]["with_evaluator"]["three_level"]
    assert group["n"] == 4
    assert group["fleiss_kappa"] is None
    assert report["undefined"]["all.with_evaluator.three_level.fleiss_kappa"] == UNEQUAL_RATERS
    assert group["krippendorff_alpha_ordinal"] is not None
    assert report["all"]["humans"]["three_level"]["fleiss_kappa"] is not None


def test_two_level_of_all_drops_what_any_rater_called_unclear() -> None:
    report = agreement_report(items((2, 2, 2), (0, 0, 1), (2, 0, 0), (0, 0, 0), (1, 0, 0)))
    assert report["all"]["with_evaluator"]["two_level"]["n"] == 3
    assert report["all"]["humans"]["two_level"]["n"] == 4


def test_false_passes_are_the_evaluators_alone() -> None:
    report = agreement_report(items((2, 0, 0), (2, 1, 0), (0, 0, 2), (1, 2, 2), (2, 2, 2), (0, 2, 2)))
    pair = report["pairs"][0]
    assert pair["false_pass_rate"] == {"rate": 2 / 3, "n": 3, "ci": list(wilson(2, 3) or ())}
    assert pair["false_not_pass_rate"] == {"rate": 2 / 3, "n": 3, "ci": list(wilson(2, 3) or ())}
    humans = report["pairs"][2]
    assert humans["false_pass_rate"] is None
    assert report["undefined"]["pairs.2.false_pass_rate"] == HUMANS_ONLY


def test_consensus_is_of_more_than_half_of_two_or_more() -> None:
    rows = [(2, 2, 2, 0), (0, 2, 0, 1), (1, 1, None, None), (0, 0, 0, None), (2, 1, 2, None)]
    report = agreement_report(items(*rows))
    assert report["consensus"] == {"items": 4, "reached": 2, "split": 2}
    assert report["evaluator_vs_consensus"]["n"] == 2
    assert report["evaluator_vs_consensus"]["percent"] == 1.0


@pytest.mark.parametrize(
    ("rated", "reason"),
    [
        (items((2, 2), (0, 2)), ONE_HUMAN),
        ([item(judge_1=2, judge_2=2)], NO_EVALUATOR),
    ],
)
def test_no_consensus(rated: list[RatedItem], reason: str) -> None:
    report = agreement_report(rated)
    assert report["evaluator_vs_consensus"] is None
    assert report["undefined"]["evaluator_vs_consensus"] == reason


def test_agreement_before_and_after_adjudication() -> None:
    rated = [
        item(evaluator=2, judge_1=2, judge_2=2),
        item(evaluator=0, judge_1=2, judge_2=2, label=0),
        item(evaluator=2, judge_1=0, judge_2=2, label=2),
        item(evaluator=2, judge_1=0, judge_2=1),
    ]
    report = agreement_report(rated)
    assert report["evaluator_vs_consensus"]["percent"] == 0.5
    assert report["adjudication"]["labelled"] == 2
    assert report["adjudication"]["consensus_changed"] == 1
    assert report["adjudication"]["evaluator_vs_final"]["n"] == 3
    assert report["adjudication"]["evaluator_vs_final"]["percent"] == 1.0
    assert agreement_report(rated[:1])["undefined"]["adjudication"] == NOT_ADJUDICATED


def test_the_direction_of_disagreement_in_words() -> None:
    milder = agreement_report(items(*[(2, 0)] * 9, *[(2, 2)] * 5, (0, 1)))["pairs"][0]["direction"]
    assert milder == (
        "They differ on 10 of 15 items: the evaluator rates higher on 9, lower on 1, more than chance would "
        "explain (sign test, p = 0.021). Most often (9) the evaluator says pass where judge 1 says fail."
    )
    even = agreement_report(items((2, 0), (0, 1), (2, 2)))["pairs"][0]["direction"]
    assert even.startswith("They differ on 2 of 3 items: each rates higher as often as the other (1 each).")
    one = agreement_report(items((1, 2), (2, 2)))["pairs"][0]["direction"]
    assert "judge 1 rates higher on it, which may be chance" in one
    assert agreement_report(items((2, 2)))["pairs"][0]["direction"].endswith("agree on all of 1 item.")


def test_weights_undo_a_balanced_draw() -> None:
    """Of 8 passes 2 were drawn, of 2 fails both: three of the drawn agree, nine of ten in the whole."""
    rated = [
        item(0.25, evaluator=2, judge_1=2),
        item(0.25, evaluator=2, judge_1=2),
        item(1.0, evaluator=0, judge_1=0),
        item(1.0, evaluator=0, judge_1=2),
    ]
    report = agreement_report(rated)
    weighted = report["design_weighted"]
    assert report["pairs"][0]["three_level"]["percent"] == 0.75
    assert weighted["represents"] == 10
    (pair,) = weighted["pairs"]
    assert pair["percent"] == pytest.approx(0.9)
    assert pair["percent_ci"] == pytest.approx(list(wilson_of_rate(0.9, 100 / 34) or ()))
    assert pair["false_pass_rate"] == 0.0
    assert pair["false_not_pass_rate"] == pytest.approx(1 / 9)
    assert pair["cohen_kappa"] == pytest.approx((0.9 - 0.74) / 0.26)
    assert agreement_report(items((2, 2)))["undefined"]["design_weighted"] == NOT_DRAWN


def test_unequal_chances_worked_by_hand() -> None:
    """Weights 2, 4, 10, 2, 5, 1, together 24; the consensus is told on the first five, 23."""
    rated = [
        item(0.5, evaluator=2, judge_1=2, judge_2=2, judge_3=2),
        item(0.25, evaluator=2, judge_1=0, judge_2=0, judge_3=2, label=2),
        item(0.1, evaluator=0, judge_1=0, judge_2=0, judge_3=1),
        item(0.5, evaluator=1, judge_1=1, judge_2=1, judge_3=1),
        item(0.2, evaluator=0, judge_1=2, judge_2=2, judge_3=2),
        item(1.0, evaluator=2, judge_1=1, judge_2=2, judge_3=0),
    ]
    report = agreement_report(rated)
    weighted = report["design_weighted"]
    assert (weighted["items"], weighted["unequal"]) == (6, True)
    assert weighted["represents"] == pytest.approx(24)
    assert weighted["effective_items"] == pytest.approx(3.84)  # 24^2 / (4 + 16 + 100 + 4 + 25 + 1)
    against = {pair["b"]: pair for pair in weighted["pairs"]}
    assert list(against) == ["judge_1", "judge_2", "judge_3", "consensus", "final"]
    six = {
        "percent": 0.608696,  # (2 + 10 + 2) / 23
        "pass_vs_rest_percent": 0.608696,
        "false_pass_rate": 0.25,  # 4 / (4 + 10 + 2)
        "false_not_pass_rate": 0.714286,  # 5 / (2 + 5)
        "cohen_kappa": 0.241758,  # (14 * 23 - 256) / (23^2 - 256), 256 = 15 * 14 + 2 * 2 + 6 * 7
    }
    for name, value in six.items():
        assert against["consensus"][name] == pytest.approx(value, abs=5e-7), name
    assert against["consensus"]["n"] == 5
    assert against["consensus"]["percent_ci"] == pytest.approx([0.195873, 0.908541], abs=5e-7)
    assert against["judge_3"]["percent"] == pytest.approx(0.333333, abs=5e-7)  # (2 + 4 + 2) / 24
    assert against["judge_3"]["false_pass_rate"] == pytest.approx(0.076923, abs=5e-7)  # 1 / (10 + 2 + 1)
    assert against["final"]["percent"] == pytest.approx(0.782609, abs=5e-7)  # (2 + 4 + 10 + 2) / 23
    table = [dict(zip(HEADER, row, strict=True)) for row in report_rows(report)]
    shown = {(row["Raters"], row["Level"]): row for row in table if row["Part"] == "design weighted"}
    assert len(shown) == 10
    assert shown["evaluator – consensus", "three_level"]["Percent"] == pytest.approx(14 / 23)
    assert shown["evaluator – consensus", "three_level"]["Cohen kappa"] == pytest.approx(66 / 273)
    assert shown["evaluator – judge_3", "three_level"]["False pass rate"] == pytest.approx(1 / 13)
    assert shown["evaluator – consensus", "pass_vs_rest"]["Percent"] == pytest.approx(14 / 23)
    assert report["evaluator_vs_consensus"]["confusion"] == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
    assert report["adjudication"]["evaluator_vs_final"]["confusion"] == [[1, 0, 1], [0, 1, 0], [0, 0, 2]]
    assert "the consensus" in report["evaluator_vs_consensus"]["direction"]


@settings(max_examples=25, deadline=None)
@given(rated_items)
def test_a_consensus_of_one_item_is_the_reports(rated: list[RatedItem]) -> None:
    told = [[r for name, r in one.ratings.items() if name != "evaluator"] for one in rated]
    shared = [one for one in told if len(one) >= 2]
    reached = [one for one in told if consensus_of(one) is not None]
    assert agreement_report(rated)["consensus"] == {
        "items": len(shared), "reached": len(reached), "split": len(shared) - len(reached),
    }  # fmt: skip


def test_equal_weights_change_nothing() -> None:
    rows = [(2, 2), (0, 2), (1, 0), (2, 2), (0, 0)]
    rated = [item(0.5, evaluator=a, judge_1=b) for a, b in rows]
    report = agreement_report(rated)
    plain, weighted = report["pairs"][0], report["design_weighted"]["pairs"][0]
    assert weighted["percent"] == pytest.approx(plain["three_level"]["percent"])
    assert weighted["percent_ci"] == pytest.approx(plain["three_level"]["percent_ci"])
    assert weighted["pass_vs_rest_percent"] == pytest.approx(plain["pass_vs_rest"]["percent"])
    assert weighted["cohen_kappa"] == pytest.approx(plain["three_level"]["cohen_kappa"])
    assert weighted["false_pass_rate"] == pytest.approx(plain["false_pass_rate"]["rate"])


def test_ten_times_the_items_are_ten_times_the_work() -> None:
    chance = Random(5)
    names = ("evaluator", "judge_1", "judge_2", "judge_3", "judge_4")
    rated = [
        RatedItem(
            CATEGORIES[at % 4],
            f"sc{at % 5 + 1}",
            f"model {at % 6}",
            {name: chance.choice((0, 1, 2, 2)) for name in names if chance.random() < 0.9},
            0.5,
        )
        for at in range(3_000)
    ]
    assert agreement_report(rated)["all"]["with_evaluator"]["three_level"]["n"] > 2_900
    assert calls_of(lambda: agreement_report(rated)) < 12 * calls_of(lambda: agreement_report(rated[:300]))


def test_the_documentation_names_every_figure() -> None:
    told = (PROJECT_ROOT / "docs" / "agreement.md").read_text(encoding="utf-8")
    report = agreement_report(items((2, 2, 0), (0, 0, 1)))
    names = set(report["pairs"][0]) | set(report["pairs"][0]["three_level"])
    names |= set(report["all"]["humans"]["three_level"]) | set(report) | {"humans", "with_evaluator"}
    known = {name for name in names if not name.endswith("_ci")} - {"a", "b", "items", "raters"}
    assert {name for name in known if f"`{name}" not in told} == set()


REFERENCE = PROJECT_ROOT / ".." / "shared" / "reference" / "statistics.json"


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference values are not at hand")
def test_errors_of_the_evaluator_against_the_reference() -> None:
    """One minus specificity and one minus sensitivity of the same confusion, unclear as not pass."""
    for known in json.loads(REFERENCE.read_text())["rogan_gladen"]["rows"]:
        cells = [(2, 2)] * known["tp"] + [(0, 2)] * known["fn"]
        cells += [(0, 0)] * known["tn"] + [(2, 1)] * known["fp"]
        pair = agreement_report(items(*cells))["pairs"][0]
        assert pair["false_pass_rate"]["rate"] == pytest.approx(1 - known["specificity"], abs=1e-8)
        assert pair["false_not_pass_rate"]["rate"] == pytest.approx(1 - known["sensitivity"], abs=1e-8)

"""The alternative annotator test, by an example worked by hand and against scipy."""

import json

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from app.agreement import EVALUATOR, RatedItem, agreement_report
from app.agreement.alternative import p_value, signed_rank_less
from tests.report_help import unexplained


def item(evaluator: int | None, *judges: int | None, category: str = "severe_allergy") -> RatedItem:
    ratings = {f"judge_{n}": rating for n, rating in enumerate(judges, 1) if rating is not None}
    return RatedItem(category, "sc1", "m", ratings | ({} if evaluator is None else {EVALUATOR: evaluator}))


def test_a_worked_example() -> None:
    """Three judges, four items that all have rated, and one that only judge 1 and the evaluator have.

        evaluator  j1 j2 j3   left out j1: S(f), S(j1)   j2          j3
        2          2  2  2    1    1                     1    1      1    1
        0          0  2  0    1/2  1/2                   1    0      1/2  1/2
        2          2  0  2    1/2  1/2                   1    0      1/2  1/2
        1          2  2  0    0    1/2                   0    1/2    0    0

    Wins of evaluator: j1 3/4, j2 3/4, j3 4/4; of the judge: j1 4/4, j2 2/4, j3 4/4.
    """
    items = [item(2, 2, 2, 2), item(0, 0, 2, 0), item(2, 2, 0, 2), item(1, 2, 2, 0), item(2, 2, None, None)]
    report = agreement_report(items)
    json.dumps(report, allow_nan=False)
    assert unexplained(report) == []
    found = report["alternative_annotator"]["three_level"]
    assert [(one["judge"], one["n"]) for one in found["judges"]] == [
        ("judge_1", 4),
        ("judge_2", 4),
        ("judge_3", 4),
    ]
    assert [one["evaluator_advantage"] for one in found["judges"]] == [0.75, 0.75, 1.0]
    assert [one["judge_advantage"] for one in found["judges"]] == [1.0, 0.5, 1.0]
    assert [one["evaluator_agreement"] for one in found["judges"]] == [2 / 4, 3 / 4, 2 / 4]
    assert [one["human_agreement"] for one in found["judges"]] == [2.5 / 4, 1.5 / 4, 2 / 4]
    assert found["advantage"] == pytest.approx(2.5 / 3)
    assert found["human_agreement"] == pytest.approx(1.5 / 3)
    # Four items are too few for any judge to be beaten: at best 1/16 under the signed-rank test.
    assert found["winning_rate"] == {"0.1": 0.0, "0.15": 0.0, "0.2": 0.0}
    assert found["passes"]["0.2"] is False
    assert found["as_advised"] is False
    # Left out j2, epsilon 0.2: differences 0, -1, -1, 1 less 0.2 have mid-ranks 1, 3.5, 3.5, 2: W+ is 2,
    # and of the 16 signs {}, {1} and {2} give no more.
    assert found["judges"][1]["p"]["0.2"] == 3 / 16
    passing = report["alternative_annotator"]["pass_vs_rest"]
    assert passing["judges"][2]["evaluator_agreement"] == (1 + 0.5 + 0.5 + 0) / 4
    by = report["by"]["category"]["severe_allergy"]
    assert by["alternative_annotator"]["three_level"] == found
    assert by["evaluator_vs_consensus"] == report["evaluator_vs_consensus"]


def test_two_judges_are_enough_and_one_is_not() -> None:
    good = [item(n % 3, n % 3, n % 3 if n % 5 else (n + 1) % 3) for n in range(60)]
    found = agreement_report(good)["alternative_annotator"]["three_level"]
    # The evaluator is judge 1's double, and agrees with judge 2 as well as judge 1 does.
    assert [one["test"] for one in found["judges"]] == ["t", "t"]
    assert found["judges"][0]["p"]["0.1"] == 0.5**60, "every item says the same"
    assert found["judges"][1]["evaluator_agreement"] == 1
    assert found["winning_rate"] == {"0.1": 1.0, "0.15": 1.0, "0.2": 1.0}
    assert found["passes"] == {"0.1": True, "0.15": True, "0.2": True}
    assert found["as_advised"] is False, "two judges are fewer than the authors advise"
    for items, why in (
        ([item(2, 2), item(0, 0)], "two judges or more"),
        ([item(None, 2, 2)], "no evaluator"),
        ([item(2, 2, None), item(2, None, 2)], "two judges or more"),
        ([], "no evaluator"),
    ):
        report = agreement_report(items)
        assert report["alternative_annotator"] is None
        assert why in report["undefined"]["alternative_annotator"]
    alone = agreement_report([item(2, 2, 2)])
    assert alone["alternative_annotator"]["three_level"]["winning_rate"] is None
    assert unexplained(alone) == []


def test_a_bad_evaluator_does_not_pass() -> None:
    bad = [item((n + 1) % 3, n % 3, n % 3, n % 3) for n in range(60)]
    found = agreement_report(bad)["alternative_annotator"]["three_level"]
    assert found["advantage"] == 0
    assert found["passes"] == {"0.1": False, "0.15": False, "0.2": False}
    assert (found["evaluator_agreement"], found["human_agreement"]) == (0, 1)
    assert found["as_advised"] is True


@pytest.mark.parametrize("seed", range(4))
def test_the_tests_are_scipys(seed: int) -> None:
    random = np.random.default_rng(seed)
    many = random.choice([-1.0, 0.0, 1.0], size=80, p=[0.2, 0.6, 0.2])
    assert p_value(many, 0.15) == pytest.approx(stats.ttest_1samp(many, 0.15, alternative="less").pvalue)
    few = random.normal(size=12) - 0.3  # without ties scipy's exact distribution is the same
    assert signed_rank_less(few) == pytest.approx(
        stats.wilcoxon(few, alternative="less", mode="exact").pvalue
    )
    tied = random.choice([-1.0, 0.0, 1.0], size=11) - 0.1
    exact = stats.permutation_test(
        (tied,), lambda signed: float(stats.rankdata(np.abs(tied))[signed > 0].sum()),
        permutation_type="samples", alternative="less", n_resamples=np.inf,
    )  # fmt: skip
    assert signed_rank_less(tied) == pytest.approx(exact.pvalue)

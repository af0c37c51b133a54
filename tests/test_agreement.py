"""Coefficients of agreement: textbook tables, an example worked by hand, and second formulas."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.agreement import RatedItem, agreement_report
from app.agreement.coefficients import (
    Profiles,
    cohen_kappa,
    cohen_standard_error,
    gwet_ac1_of_pair,
    linear_kappa,
    quadratic_kappa,
)
from app.agreement.measures import NO_VARIANCE, ONE_CATEGORY, group_figures, pair_figures
from app.statistics import Z, t_quantile

Row = Sequence[int]


def counted(
    rows: Sequence[Row], categories: Sequence[int]
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array([[row.count(k) for k in categories] for row in map(list, rows)], dtype=np.int64)


# --- textbook tables ---

# Krippendorff 2011, "Computing Krippendorff's alpha-reliability": 4 observers, 12 units, . is missing.
KRIPPENDORFF = ("123321412...", "1233224125.3", ".3332342251.", "1233244125 1.".replace(" ", ""))


def test_krippendorff_textbook_table() -> None:
    units = [[int(value) for value in unit if value != "."] for unit in zip(*KRIPPENDORFF, strict=True)]
    profiles = Profiles(counted(units, range(1, 6)))
    assert profiles.n == 11  # the twelfth was seen by one observer only
    assert float(profiles.krippendorff_alpha(ordinal=False)) == pytest.approx(0.743, abs=5e-4)
    assert float(profiles.krippendorff_alpha(ordinal=True)) == pytest.approx(0.815, abs=5e-4)


def test_fleiss_textbook_table() -> None:
    """Ten subjects, fourteen raters, five categories: 0.210."""
    table = (
        "0 0 0 0 14, 0 2 6 4 2, 0 0 3 5 6, 0 3 9 2 0, 2 2 8 1 1, 7 7 0 0 0, 3 2 6 3 0, 2 5 3 2 2, "
        "6 5 2 1 0, 0 2 2 3 7"
    )
    counts = np.array([[int(one) for one in row.split()] for row in table.split(",")], dtype=np.int64)
    assert float(Profiles(counts).fleiss_kappa()) == pytest.approx(0.210, abs=5e-4)


def test_cohen_textbook_table() -> None:
    """Fleiss 1981, two clinicians, 100 patients; kappa, its error and interval as SAS prints them."""
    table = np.array([[75, 1, 4], [5, 4, 1], [0, 0, 10]])
    kappa, error = float(cohen_kappa(table)), float(cohen_standard_error(table))
    assert kappa == pytest.approx(0.6765, abs=5e-5)
    assert error == pytest.approx(0.0877, abs=5e-5)
    assert float(linear_kappa(table)) == pytest.approx(0.7222, abs=5e-5)
    (figures,) = pair_figures(table[None], "three_level", {}, ["p"])
    assert figures["cohen_kappa_ci"] == pytest.approx([0.5046, 0.8484], abs=5e-5)


def test_the_paradox_of_prevalence() -> None:
    """95 times both pass, 5 times one fails: kappa and alpha find nothing, AC1 does."""
    table = np.array([[0, 0, 0], [0, 0, 0], [5, 0, 95]])
    reasons: dict[str, str] = {}
    (figures,) = pair_figures(table[None], "pass_vs_rest", reasons, ["p"])
    assert figures["percent"] == 0.95
    assert figures["cohen_kappa"] == 0.0
    assert figures["cohen_kappa_ci"] is None
    assert reasons == {"p.cohen_kappa_ci": NO_VARIANCE}
    assert figures["gwet_ac1"] == pytest.approx(0.9474, abs=5e-5)
    counts = np.array([[0, 0, 2]] * 95 + [[1, 0, 1]] * 5)
    group = group_figures(counts, "pass_vs_rest", {}, "p")
    assert group["krippendorff_alpha_nominal"] == pytest.approx(-0.0205, abs=5e-5)
    assert group["gwet_ac1"] == pytest.approx(0.9474, abs=5e-5)


# --- worked by hand ---

BY_HAND = ((2, 2, 2), (2, 2, 2), (0, 0, 0), (2, 0, 0), (1, 0, 1), (2, 2, 1))


def by_hand() -> list[RatedItem]:
    names = ("evaluator", "judge_1", "judge_2")
    return [RatedItem("severe_allergy", "sc1", "m", dict(zip(names, row, strict=True))) for row in BY_HAND]


def six(value: float) -> object:
    return pytest.approx(value, abs=5e-7)


def test_three_raters_by_hand() -> None:
    """Six items; fractions in the comments, six decimals in the tests."""
    report = agreement_report(by_hand())
    assert report["raters"] == ["evaluator", "judge_1", "judge_2"]
    assert [(pair["a"], pair["b"]) for pair in report["pairs"]] == [
        ("evaluator", "judge_1"), ("evaluator", "judge_2"), ("judge_1", "judge_2"),
    ]  # fmt: skip
    pair = report["pairs"][0]
    assert pair["confusion"] == [[1, 0, 0], [1, 0, 0], [1, 0, 3]]
    assert (pair["a_higher"], pair["b_higher"], pair["missing"]) == (2, 0, 0)
    three = pair["three_level"]
    assert three["n"] == 6
    assert three["percent"] == six(0.666667)  # 4/6
    assert three["percent_ci"] == pytest.approx([0.299993, 0.903229], abs=5e-7)
    assert three["cohen_kappa"] == six(0.428571)  # (6*4 - 15) / (36 - 15)
    assert three["linear_kappa"] == six(0.5)  # 1 - 18/36
    assert three["quadratic_kappa"] == six(0.545455)  # 1 - 30/66
    assert three["gwet_ac1"] == six(0.542857)  # 114/210
    assert pair["false_pass_rate"]["rate"] == six(0.333333)  # of three that judge 1 called fail
    assert pair["false_pass_rate"]["n"] == 3
    assert pair["false_not_pass_rate"] == {
        "rate": 0.0, "n": 3, "ci": pytest.approx([0.0, 0.561497], abs=5e-7)
    }  # fmt: skip
    two = pair["two_level"]  # without the item that the evaluator called unclear
    assert two["n"] == 5
    assert two["cohen_kappa"] == six(0.545455)  # (5*4 - 14) / (25 - 14)
    assert two["gwet_ac1"] == six(0.655172)  # (4/5 - 21/50) / (29/50)
    assert pair["pass_vs_rest"]["cohen_kappa"] == six(0.666667)  # (6*5 - 18) / (36 - 18)

    everybody = report["all"]["with_evaluator"]["three_level"]
    assert everybody["n"] == 6
    assert everybody["all_equal"] == six(0.5)
    assert everybody["mean_pairwise_percent"] == six(0.666667)  # 24/36
    assert everybody["fleiss_kappa"] == six(0.454545)  # (24/36 - 126/324) / (198/324)
    assert everybody["krippendorff_alpha_nominal"] == six(0.484848)  # 1 - 17*6/198
    assert everybody["krippendorff_alpha_ordinal"] == six(0.611728)  # 1 - 17*333/14580
    assert everybody["gwet_ac1"] == six(0.52)  # (2/3 - 11/36) / (25/36)
    # Both humans: 2 2, 2 2, 0 0, 0 0 are their consensus, 0 1 and 2 1 are none; the evaluator differs once.
    assert report["consensus"] == {"items": 6, "reached": 4, "split": 2}
    assert report["evaluator_vs_consensus"]["n"] == 4
    assert report["evaluator_vs_consensus"]["cohen_kappa"] == six(0.5)  # (4*3 - 8) / (16 - 8)


# --- second formulas ---


def slow_krippendorff(rows: Sequence[Row], ordinal: bool) -> float:
    """As the definition reads: over all pairs of values in one item, and over all pairs whatsoever."""
    rows = [row for row in rows if len(row) >= 2]
    values = sorted(value for row in rows for value in row)
    times = Counter(values)

    def difference(a: int, b: int) -> float:
        if not ordinal:
            return float(a != b)
        low, high = min(a, b), max(a, b)
        return (sum(times[g] for g in range(low, high + 1)) - (times[low] + times[high]) / 2) ** 2

    within = sum(difference(a, b) / (len(row) - 1) for row in rows for a, b in permutations(row, 2))
    anyhow = sum(difference(a, b) for a, b in permutations(values, 2)) / (len(values) - 1)
    return math.nan if anyhow == 0 else 1 - within / anyhow


def slow_ac1(rows: Sequence[Row], q: int) -> float:
    rows = [row for row in rows if len(row) >= 2]
    seen = sum(_agreeing(row) for row in rows) / len(rows)
    shares = [sum(row.count(k) / len(row) for row in map(list, rows)) / len(rows) for k in range(q)]
    chance = sum(share * (1 - share) for share in shares) / (q - 1)
    return (seen - chance) / (1 - chance)


def slow_fleiss(rows: Sequence[Row]) -> float:
    values = [value for row in rows for value in row]
    chance = sum((count / len(values)) ** 2 for count in Counter(values).values())
    return math.nan if chance == 1 else (sum(map(_agreeing, rows)) / len(rows) - chance) / (1 - chance)


def slow_cohen(rows: Sequence[Row]) -> float:
    first, second = Counter(a for a, _ in rows), Counter(b for _, b in rows)
    chance = sum(first[k] * second[k] for k in range(3)) / len(rows) ** 2
    return math.nan if chance == 1 else (sum(a == b for a, b in rows) / len(rows) - chance) / (1 - chance)


def _agreeing(row: Row) -> float:
    pairs = list(combinations(row, 2))
    return sum(a == b for a, b in pairs) / len(pairs)


def same(found: float | None, expected: float) -> bool:
    if found is None or math.isnan(found):
        return math.isnan(expected)
    return found == pytest.approx(expected, abs=1e-8)


ratings = st.integers(0, 2)
pairs_of_ratings = st.lists(st.tuples(ratings, ratings), min_size=1, max_size=40)
any_rows = st.lists(st.lists(ratings, min_size=2, max_size=5), min_size=1, max_size=25)


@settings(max_examples=40)
@given(any_rows)
def test_many_raters_by_a_second_formula(rows: list[list[int]]) -> None:
    profiles = Profiles(counted(rows, range(3)))
    assert profiles.n == len(rows)
    assert same(float(profiles.krippendorff_alpha(ordinal=False)), slow_krippendorff(rows, False))
    assert same(float(profiles.krippendorff_alpha(ordinal=True)), slow_krippendorff(rows, True))
    assert same(float(profiles.gwet_ac1()), slow_ac1(rows, 3))
    assert profiles.pairwise_agreement == pytest.approx(sum(map(_agreeing, rows)) / len(rows))
    if len({len(row) for row in rows}) == 1:
        assert same(float(profiles.fleiss_kappa()), slow_fleiss(rows))
    else:
        assert not profiles.equal_raters


@given(pairs_of_ratings)
def test_two_raters_by_a_second_formula(rows: list[tuple[int, int]]) -> None:
    table = np.zeros((3, 3), dtype=np.int64)
    for a, b in rows:
        table[a, b] += 1
    assert same(float(cohen_kappa(table)), slow_cohen(rows))
    assert same(float(gwet_ac1_of_pair(table)), slow_ac1(rows, 3))
    for formula in (cohen_kappa, linear_kappa, quadratic_kappa, gwet_ac1_of_pair):
        assert same(float(formula(table)), float(formula(table.T))), "who is first does not matter"
        assert same(float(formula(table)), float(formula(table[::-1, ::-1]))), "nor which end is up"
    squeezed = table[::2, ::2]
    if squeezed.sum():
        assert same(float(linear_kappa(squeezed)), float(cohen_kappa(squeezed)))
        assert same(float(quadratic_kappa(squeezed)), float(cohen_kappa(squeezed)))


@settings(max_examples=30)
@given(st.lists(st.integers(1, 30), min_size=9, max_size=9))
def test_the_error_of_kappa_is_that_of_the_delta_method(cells: list[int]) -> None:
    table = np.array(cells, dtype=float).reshape(3, 3)
    n, step = table.sum(), 1e-6
    p = table / n

    def kappa(shares: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
        chance = float(shares.sum(axis=1) @ shares.sum(axis=0)) / float(shares.sum()) ** 2
        return (float(np.trace(shares)) / float(shares.sum()) - chance) / (1 - chance)

    slopes = np.zeros((3, 3))
    for at in np.ndindex(3, 3):
        nudge = np.zeros((3, 3))
        nudge[at] = step
        slopes[at] = (kappa(p + nudge) - kappa(p - nudge)) / (2 * step)
    variance = ((p * slopes**2).sum() - (p * slopes).sum() ** 2) / n
    assert float(cohen_standard_error(np.array(cells).reshape(3, 3))) == pytest.approx(
        math.sqrt(variance), rel=1e-4
    )


def slow_interval(rows: Sequence[Row], formula: Callable[[Sequence[Row]], float]) -> list[float] | None:
    """Delete one item after the other; None where that is undefined or moves nothing."""
    n = len(rows)
    if n < 2:
        return None
    left = [formula([*rows[:at], *rows[at + 1 :]]) for at in range(n)]
    if any(map(math.isnan, left)):
        return None
    mean = sum(left) / n
    error = math.sqrt((n - 1) / n * sum((one - mean) ** 2 for one in left))
    if error < 1e-9:
        return None
    half = t_quantile(n - 1) * error
    return [max(-1.0, formula(rows) - half), min(1.0, formula(rows) + half)]


@settings(max_examples=40)
@given(any_rows)
def test_jackknife_intervals_by_leaving_out_each_item(rows: list[list[int]]) -> None:
    reasons: dict[str, str] = {}
    found = group_figures(counted(rows, range(3)), "three_level", reasons, "p")
    formulas: dict[str, Callable[[Sequence[Row]], float]] = {
        "krippendorff_alpha_nominal": lambda left: slow_krippendorff(left, False),
        "krippendorff_alpha_ordinal": lambda left: slow_krippendorff(left, True),
        "gwet_ac1": lambda left: slow_ac1(left, 3),
    }
    if len({len(row) for row in rows}) == 1:
        formulas["fleiss_kappa"] = slow_fleiss
    else:
        assert found["fleiss_kappa"] is None
        assert "different numbers" in reasons["p.fleiss_kappa"]
    for name, formula in formulas.items():
        if found[name] is None:
            assert reasons[f"p.{name}"] == ONE_CATEGORY
            continue
        expected = slow_interval(rows, formula)
        assert (found[f"{name}_ci"] is None) == (expected is None), name
        assert (f"p.{name}_ci" in reasons) == (expected is None)
        if expected is not None:
            assert found[f"{name}_ci"] == pytest.approx(expected, abs=1e-8)


@settings(max_examples=40)
@given(pairs_of_ratings)
def test_intervals_of_two_raters(rows: list[tuple[int, int]]) -> None:
    table = np.zeros((3, 3), dtype=np.int64)
    for a, b in rows:
        table[a, b] += 1
    (found,) = pair_figures(table[None], "three_level", {}, ["p"])
    expected = slow_interval(rows, lambda left: slow_ac1(left, 3))
    assert (found["gwet_ac1_ci"] is None) == (expected is None)
    if expected is not None:
        assert found["gwet_ac1_ci"] == pytest.approx(expected, abs=1e-8)
    if found["cohen_kappa_ci"] is not None:
        half = Z * float(cohen_standard_error(table))
        low, high = found["cohen_kappa_ci"]
        assert low == pytest.approx(max(-1, found["cohen_kappa"] - half))
        assert high == pytest.approx(min(1, found["cohen_kappa"] + half))

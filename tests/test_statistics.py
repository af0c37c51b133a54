"""Statistics on small values worked by hand or by a second formula, and their behaviour at the edges."""

import math
import random
from collections.abc import Hashable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.statistics import (
    Cell,
    PairedDifference,
    PairedTable,
    Z,
    bonett_price,
    clustered_mean,
    flip_rate,
    holm,
    macro_interval,
    mcnemar_exact,
    mcnemar_midp,
    newcombe_independent,
    newcombe_paired,
    paired_difference,
    paired_table,
    pairwise_differences,
    rank_intervals,
    resolvable_difference,
    t_quantile,
    wilson,
    wilson_of_rate,
)


def comparison(difference: float, p_value: float | None, se: float | None = 0.1) -> PairedDifference:
    return PairedDifference(100, 50, 0.5, 0.5 - difference, difference, se, 49, None, p_value, None)


def test_quantiles() -> None:
    assert pytest.approx(1.959963984540054, abs=1e-12) == Z
    assert t_quantile(1) == pytest.approx(math.tan(0.475 * math.pi), rel=1e-9)  # Cauchy
    assert t_quantile(2) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)), rel=1e-9)


def test_wilson_solves_its_equation() -> None:
    low, high = wilson(3, 12) or (math.nan, math.nan)
    for bound in (low, high):
        assert (0.25 - bound) ** 2 == pytest.approx(Z**2 * bound * (1 - bound) / 12)
    assert low < 0.25 < high


def test_wilson_at_the_edges() -> None:
    square = Z * Z
    assert wilson(0, 0) is None
    assert wilson_of_rate(0.5, 0) is None
    assert wilson(0, 20) == pytest.approx((0.0, square / (20 + square)))
    assert wilson(20, 20) == pytest.approx((20 / (20 + square), 1.0))
    with pytest.raises(ValueError, match="5 successes in 4 trials"):
        wilson(5, 4)
    with pytest.raises(ValueError, match="-1 successes"):
        wilson(-1, 4)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_its_rate_and_never_has_no_width(counts: tuple[int, int]) -> None:
    k, n = counts
    low, high = wilson(k, n) or (math.nan, math.nan)
    assert 0 <= low <= k / n <= high <= 1
    assert high - low > 0.001


def test_newcombe_independent() -> None:
    # Newcombe 1998, table II (a): 56/70 against 48/80
    assert newcombe_independent(56, 70, 48, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert newcombe_independent(1, 0 + 1, 0, 0) is None
    low, high = newcombe_independent(0, 9, 0, 9) or (1.0, 1.0)
    assert low == -high < 0


def test_paired_table_counts() -> None:
    pairs = [(True, True), (True, False), (True, False), (False, True), (False, False), (True, True)]
    table = paired_table(pairs)
    assert table == PairedTable(both=2, first=2, second=1, neither=1)
    assert table.n == 6


def test_mcnemar_by_binomial_arithmetic() -> None:
    assert mcnemar_exact(1, 5) == pytest.approx(2 * (1 + 6) / 64)
    assert mcnemar_midp(1, 5) == pytest.approx(2 * (1 + 6) / 64 - 6 / 64)
    assert mcnemar_exact(4, 4) == mcnemar_exact(0, 0) == mcnemar_midp(0, 0) == 1.0
    assert mcnemar_exact(2, 9) == mcnemar_exact(9, 2)
    assert mcnemar_midp(2, 9) == mcnemar_midp(9, 2)


def test_paired_intervals() -> None:
    # Newcombe 1998, paired data, method 10: table (36, 12, 2, 0) of 50 persons; difference 0.2
    assert newcombe_paired(PairedTable(36, 12, 2, 0)) == pytest.approx((0.0569, 0.3404), abs=5e-5)
    assert newcombe_paired(PairedTable(0, 0, 0, 0)) is None
    assert bonett_price(PairedTable(0, 0, 0, 0)) is None
    # 3 and 1 discordant of 18: (4 - 2) / 20 and sqrt((6/20 - 0.01) / 20)
    half = Z * math.sqrt((0.3 - 0.01) / 20)
    assert bonett_price(PairedTable(10, 3, 1, 4)) == pytest.approx((0.1 - half, 0.1 + half))


@given(st.tuples(*[st.integers(0, 60)] * 4))
def test_paired_intervals_mirror(counts: tuple[int, int, int, int]) -> None:
    a, b, c, d = counts
    for function in (bonett_price, newcombe_paired):
        one, two = function(PairedTable(a, b, c, d)), function(PairedTable(a, c, b, d))
        if one is None or two is None:
            assert a + b + c + d == 0
            continue
        assert one == pytest.approx((-two[1], -two[0]))
        assert -1 <= one[0] < one[1] <= 1


def test_clustered_mean_by_hand() -> None:
    values = [("a", 1.0), ("a", 1.0), ("b", 0.0), ("b", 1.0), ("c", 0.0), ("c", 0.0)]
    found = clustered_mean(values)
    assert found is not None
    assert (found.n, found.clusters, found.mean, found.df) == (6, 3, 0.5, 2)
    assert found.se == pytest.approx(math.sqrt(3 / 2 * (1 + 0 + 1) / 36))
    assert found.interval is not None
    assert found.interval[1] - 0.5 == pytest.approx(t_quantile(2) * (found.se or 0))


def test_clustered_mean_with_nothing_to_estimate_from() -> None:
    assert clustered_mean([]) is None
    single = clustered_mean([("a", 1.0), ("a", 0.0)])
    assert single is not None
    assert (single.mean, single.se, single.interval) == (0.5, None, None)
    agreed = clustered_mean([("a", 0.1), ("b", 0.1), ("c", 0.1)])
    assert agreed is not None
    assert (agreed.se, agreed.interval) == (0.0, None)


def test_seeds_are_repeats_inside_the_cluster() -> None:
    once = [(case, float(case % 2)) for case in range(40)]
    thrice = once * 3
    one, three = clustered_mean(once), clustered_mean(thrice)
    assert one is not None
    assert three is not None
    assert three.se == pytest.approx(one.se)
    assert three.clusters == 40
    cells = [Cell("sc1", case, 1, case % 2) for case in range(40)]
    single, repeated = macro_interval(cells), macro_interval(cells * 3)
    assert single is not None
    assert repeated is not None
    assert repeated.interval == pytest.approx(single.interval)


def test_macro_weights_scenarios_equally() -> None:
    cells = [Cell("sc1", c, 1, 1) for c in range(10)] + [Cell("sc2", c, 1, 0) for c in range(2)]
    found = macro_interval(cells)
    assert found is not None
    assert (found.rate, found.scenarios, found.clusters, found.conversations) == (0.5, 2, 10, 12)


def test_macro_by_hand() -> None:
    cells = [Cell("sc1", "a", 2, 2), Cell("sc1", "b", 2, 0), Cell("sc2", "a", 1, 1), Cell("sc2", "b", 2, 1)]
    found = macro_interval(cells)
    assert found is not None
    rate = (2 / 4 + 2 / 3) / 2
    psi_a = (2 - 2 * 0.5) / (2 * 4) + (1 - 2 / 3) / (2 * 3)
    psi_b = (0 - 2 * 0.5) / (2 * 4) + (1 - 2 * 2 / 3) / (2 * 3)
    variance = 2 * (psi_a**2 + psi_b**2)
    assert found.rate == pytest.approx(rate)
    assert found.se == pytest.approx(math.sqrt(variance))
    assert found.n_effective == pytest.approx(min(7, rate * (1 - rate) / variance))
    assert found.quantile == pytest.approx(t_quantile(1))
    assert found.interval == pytest.approx(wilson_of_rate(rate, found.n_effective or 0, t_quantile(1)))


@pytest.mark.parametrize("passes", [0, 1])
def test_macro_at_the_boundary_counts_clusters_not_conversations(passes: int) -> None:
    found = macro_interval(
        Cell(f"sc{s}", cluster, 3, 3 * passes) for s in range(1, 6) for cluster in range(40)
    )
    assert found is not None
    assert (found.rate, found.se, found.n_effective) == (passes, 0.0, 40)
    assert found.interval == pytest.approx(wilson(40 * passes, 40))


def test_macro_where_all_clusters_agree_on_a_rate_between() -> None:
    found = macro_interval(Cell(s, cluster, 3, 1) for s in ("sc1", "sc2") for cluster in range(35))
    assert found is not None
    assert (found.se, found.n_effective) == (0.0, 35)
    assert found.interval == pytest.approx(wilson_of_rate(1 / 3, 35))


def test_macro_with_nothing_to_estimate_from() -> None:
    assert macro_interval([]) is None
    assert macro_interval([Cell("sc1", "a", 0, 0)]) is None
    alone = macro_interval([Cell("sc1", "a", 4, 3), Cell("sc2", "b", 0, 0)])
    assert alone is not None
    assert (alone.rate, alone.scenarios, alone.clusters) == (0.75, 1, 1)
    assert (alone.se, alone.n_effective, alone.quantile, alone.interval) == (None, None, None, None)
    with pytest.raises(ValueError, match="2 successes in 1 trials"):
        macro_interval([Cell("sc1", "a", 1, 2)])


@given(
    st.lists(
        st.tuples(st.sampled_from(["sc1", "sc2", "sc3"]), st.integers(0, 40), st.integers(0, 3)).flatmap(
            lambda cell: st.integers(0, cell[2]).map(lambda k: Cell(*cell, k))
        ),
        max_size=60,
    )
)
def test_macro_is_defined_or_none_and_never_nan(cells: list[Cell]) -> None:
    found = macro_interval(cells)
    if found is None:
        assert not any(cell.n for cell in cells)
        return
    assert 0 <= found.rate <= 1
    if found.clusters < 2:
        assert found.interval is None
        return
    assert found.interval is not None
    assert found.se is not None
    low, high = found.interval
    assert 0 <= low <= found.rate + 1e-12
    assert found.rate - 1e-12 <= high <= 1
    assert high > low
    if found.se == 0:
        assert found.n_effective == found.clusters


def test_paired_difference_by_hand() -> None:
    pairs = [("a", 1, 0), ("a", 1, 1), ("b", 1, 0), ("b", 1, 0), ("c", 0, 0), ("c", 0, 1)]
    found = paired_difference(pairs)
    assert found is not None
    assert (found.n, found.clusters, found.df) == (6, 3, 2)
    assert (found.mean_first, found.mean_second, found.difference) == pytest.approx((4 / 6, 2 / 6, 2 / 6))
    sums = [1 - 2 / 3, 2 - 2 / 3, -1 - 2 / 3]
    se = math.sqrt(3 / 2 * sum(s * s for s in sums)) / 6
    assert found.se == pytest.approx(se)
    t = (1 / 3) / se
    assert found.t == pytest.approx(t)
    assert found.p_value == pytest.approx(1 - t / math.sqrt(t * t + 2))  # t with two degrees


def test_identical_rows_differ_by_nothing() -> None:
    found = paired_difference((case, case % 2, case % 2) for case in range(30))
    assert found is not None
    assert (found.difference, found.p_value, found.t, found.interval) == (0.0, 1.0, None, None)


def test_rows_that_differ_alike_everywhere_are_told_apart_by_the_sign_test() -> None:
    few = paired_difference((case, 1, 0) for case in range(3))
    many = paired_difference((case, 1, 0) for case in range(30))
    assert few is not None
    assert many is not None
    assert few.p_value == pytest.approx(0.25)
    assert many.p_value == pytest.approx(2.0**-29)
    assert many.interval is None


def test_paired_difference_with_nothing_to_estimate_from() -> None:
    assert paired_difference([]) is None
    alone = paired_difference([("a", 1, 0), ("a", 0, 0)])
    assert alone is not None
    assert (alone.difference, alone.se, alone.p_value, alone.interval) == (0.5, None, None, None)


def test_pairwise_uses_what_both_answered() -> None:
    clusters = {key: key // 2 for key in range(8)}
    rows: dict[str, dict[Hashable, float]] = {
        "one": {0: 1, 1: 1, 2: 0, 3: 1, 4: 1, 5: 0},
        "two": {2: 1, 3: 0, 4: 0, 5: 0, 6: 1, 7: 1},
        "far": {6: 1},
    }
    found = pairwise_differences(rows, clusters)
    assert list(found) == [("one", "two"), ("one", "far"), ("two", "far")]
    direct = paired_difference((clusters[key], rows["one"][key], rows["two"][key]) for key in (2, 3, 4, 5))
    assert found["one", "two"] == direct
    assert found["one", "far"] is None


def test_pairwise_is_quick_on_a_full_board() -> None:
    generator = random.Random(5)
    keys = [(case, scenario) for case in range(336) for scenario in range(5)]
    rows: dict[str, dict[Hashable, float]] = {
        f"row {i}": {key: float(generator.random() < 0.7) for key in keys} for i in range(12)
    }
    found = pairwise_differences(rows, {key: key[0] for key in keys})
    one = found["row 3", "row 7"]
    other = paired_difference((key[0], rows["row 3"][key], rows["row 7"][key]) for key in keys)
    assert len(found) == 66
    assert one is not None
    assert other is not None
    assert one.se == pytest.approx(other.se)
    assert one.p_value == pytest.approx(other.p_value)


def test_holm_by_hand() -> None:
    assert holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_leaves_the_missing_out_of_the_family() -> None:
    assert holm([0.01, None, 0.04]) == [0.02, None, 0.04]
    assert holm([None]) == [None]


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_never_lowers_and_keeps_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    pairs = sorted(zip(p_values, (a for a in adjusted if a is not None), strict=True))
    assert all(p <= a <= 1 for p, a in pairs)
    assert all(one[1] <= two[1] for one, two in pairwise(pairs))


def test_rank_intervals_by_hand() -> None:
    comparisons = {
        ("a", "b"): comparison(0.01, 0.5),
        ("c", "a"): comparison(-0.2, 0.001),  # c is worse than a
        ("b", "c"): comparison(0.2, 0.04),  # not significant after Holm over three pairs
    }
    assert rank_intervals(["a", "b", "c"], comparisons) == {"a": (1, 2), "b": (1, 3), "c": (2, 3)}


def test_rank_intervals_without_a_test() -> None:
    assert rank_intervals(["a"], {}) == {"a": (1, 1)}
    assert rank_intervals([], {}) == {}
    untested = {("a", "b"): comparison(0.4, None, None)}
    assert rank_intervals(["a", "b"], untested) == {"a": (1, 2), "b": (1, 2)}
    assert rank_intervals(["a", "b"], {("a", "b"): None}) == {"a": (1, 2), "b": (1, 2)}


def test_resolvable_difference() -> None:
    pairs = [comparison(0.1, 0.5, se) for se in (0.01, 0.02, 0.04)]
    assert resolvable_difference(pairs) == pytest.approx(2.8 * 0.02)
    assert resolvable_difference([]) is None
    assert resolvable_difference([None, comparison(0.1, None, None), comparison(0.0, 1.0, 0.0)]) is None


@pytest.mark.parametrize(
    ("repeats", "expected"),
    [
        ([], None),
        ([[2], [0]], None),
        ([[2, None], [None, None]], None),
        ([[2, 2, 2], [2, 1, 2]], 0.5),
        ([[2, None, 0], [1, 1, None], [0]], 0.5),
    ],
)
def test_flip_rate(repeats: Sequence[Sequence[int | None]], expected: float | None) -> None:
    assert flip_rate(repeats) == expected

"""The human-corrected rate: by hand, at its edges, and as often right as it says."""

import math

import pytest

from app.human_rates import Answered, Label, corrected_rate, human_label, why_too_few
from app.outcomes import Rating
from app.statistics import Cell, macro_interval
from tests.bench.human import coverage

PASS, UNCLEAR, FAIL = Rating.PASS, Rating.UNCLEAR, Rating.FAIL


def answered(*verdicts: tuple[str, Rating | None, int]) -> list[Answered]:
    """(scenario, verdict, how many), each conversation on a case of its own."""
    return [
        Answered(scenario, f"{scenario}-{verdict}-{number}", verdict)
        for scenario, verdict, many in verdicts
        for number in range(many)
    ]


def labels(
    verdict: Rating, passed: int, of: int, probability: float = 1.0, scenario: str = "sc1"
) -> list[Label]:
    return [Label(scenario, verdict, probability, number < passed) for number in range(of)]


@pytest.mark.parametrize(
    ("ratings", "adjudicated", "expected"),
    [
        ([2, 2, 0], None, True),
        ([2, 1], None, False),  # no strict majority
        ([2, 2, 1, 0], None, False),
        ([0, 0, 2], 2, True),  # the adjudicated label decides
        ([2, 2, 2], 1, False),
        ([], 2, True),
        ([], None, None),
    ],
)
def test_what_people_say(ratings: list[int], adjudicated: int | None, expected: bool | None) -> None:
    assert human_label(ratings, adjudicated) is expected


def test_worked_by_hand_where_everything_is_labelled() -> None:
    """Ten conversations on ten cases: 6 passed (people pass 5), 2 unclear (1), 2 failed (0).

    rate = 0.6 * 5/6 + 0.2 * 1/2 + 0.2 * 0 = 0.6
    s^2 = 10/9 * (6 (5/6 - 0.6)^2 + 2 (0.5 - 0.6)^2 + 2 * 0.6^2) / 10^2 = 10/9 * 1.0666667 / 100 = 0.01185185
    limits, Wilson's: 5 of 6 (0.4364969, 0.9699224), 1 of 2 (0.0945312, 0.9054688), 0 of 2 (0, 0.6576198);
    with half of chi-square's 5 % quantiles, 0.0512933 for one label against the others and 0.3553615 for two,
    upper limits are 1 - 0.0512933/6 = 0.9914511 for 5 of 6, 0.9743534 for 1 of 2, 1 - 0.3553615/2 = 0.8223193
    for 0 of 2, and the lower one of 1 of 2 is 0.0512933/2 = 0.0256466
    down^2 = (0.6 * 0.3968364)^2 + (0.2 * 0.4743534)^2 + 0 + 1.959964^2 * 0.01185185 = 0.1112208
    up^2 = (0.6 * 0.1581178)^2 + (0.2 * 0.4743534)^2 + (0.2 * 0.8223193)^2 + 0.0455288 = 0.0905778
    """
    seen = answered(("sc1", PASS, 6), ("sc1", UNCLEAR, 2), ("sc1", FAIL, 2))
    given = labels(PASS, 5, 6) + labels(UNCLEAR, 1, 2) + labels(FAIL, 0, 2)
    found = corrected_rate(seen, given)
    assert found is not None
    assert found.labels == 10
    assert found.rate == pytest.approx(0.6, abs=1e-12)
    assert found.interval[0] == pytest.approx(0.6 - math.sqrt(0.1112208), abs=1e-6)
    assert found.interval[1] == pytest.approx(0.6 + math.sqrt(0.0905778), abs=1e-6)
    assert corrected_rate(list(reversed(seen)), list(reversed(given))) == found


def test_worked_by_hand_with_unequal_chances() -> None:
    """60 of 100 passed; 20 of their labels were drawn at 1/2 (15 pass), 10 at 1/8 (4 pass).

    p = (15 * 2 + 4 * 8) / (20 * 2 + 10 * 8) = 62 / 120; n = 120^2 / (20 * 4 + 10 * 64) = 20; the 40 that
    failed were all looked at: 2 pass. rate = 0.6 * 62/120 + 0.4 * 2/40 = 0.33
    """
    seen = answered(("sc1", PASS, 60), ("sc1", FAIL, 40))
    drawn = labels(PASS, 15, 20, 1 / 2) + labels(PASS, 4, 10, 1 / 8) + labels(FAIL, 2, 40)
    found = corrected_rate(seen, drawn)
    assert found is not None
    assert found.rate == pytest.approx(0.33, abs=1e-12)
    assert found.labels == 70
    p, n, z = 62 / 120, 20.0, 1.959963984540054
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    variance = 100 / 99 * (60 * (p - 0.33) ** 2 + 40 * (0.05 - 0.33) ** 2) / 100**2
    # 2 of 40 passing: half of chi-square's 5 % quantile for 4 degrees, 0.7107230, is 0.3553615.
    down = (0.6 * (p - centre + half)) ** 2 + (0.4 * (0.05 - 0.3553615 / 40)) ** 2 + z * z * variance
    assert found.interval[0] == pytest.approx(0.33 - math.sqrt(down), abs=1e-6)


def test_scenarios_count_the_same_and_what_was_not_answered_never_passes() -> None:
    """sc1: 4 of 4 passed; sc2: 1 of 10 passed, 9 were empty. The evaluator's rate is (1 + 0.1) / 2."""
    seen = answered(("sc1", PASS, 4), ("sc2", PASS, 1), ("sc2", None, 9))
    agreeing = labels(PASS, 4, 4) + labels(PASS, 1, 1, scenario="sc2")
    found = corrected_rate(seen, agreeing)
    assert found is not None
    evaluator = macro_interval(Cell(one.scenario, one.cluster, 1, one.verdict is PASS) for one in seen)
    assert evaluator is not None
    assert found.rate == pytest.approx(evaluator.rate) == pytest.approx(0.55)
    assert found.interval[1] < 1


def test_thirty_labels_or_all_of_a_stratum() -> None:
    seen = answered(("sc1", PASS, 100), ("sc1", UNCLEAR, 7), ("sc1", FAIL, 50))
    enough = labels(PASS, 28, 30, 0.3) + labels(UNCLEAR, 2, 7) + labels(FAIL, 3, 30, 0.6)
    assert why_too_few(seen, enough) is None
    assert corrected_rate(seen, enough) is not None
    for lacking, words in (
        (0, "29 of the 100 conversations that passed"),
        (30, "6 of the 7"),
        (40, "29 of the 50"),
    ):
        fewer = enough[:lacking] + enough[lacking + 1 :]
        assert words in (why_too_few(seen, fewer) or "")
        assert corrected_rate(seen, fewer) is None
    assert corrected_rate([], []) is None
    assert corrected_rate(answered(("sc1", None, 5)), []) is None


def test_at_both_ends_it_is_never_plus_or_minus_nothing() -> None:
    for passed, end in ((30, 1.0), (0, 0.0)):
        found = corrected_rate(answered(("sc1", PASS, 90)), labels(PASS, passed, 30, 1 / 3))
        assert found is not None
        assert found.rate == end
        low, high = found.interval
        assert 0 <= low < high <= 1
        assert high - low > 0.05


def test_it_covers_the_truth_as_often_as_it_says() -> None:
    """The worst cells for Wilson's limits alone; the whole grid is part `human` of the bench."""
    cells = [coverage("lenient", 0.97, 20, repeats=400), coverage("sharp", 0.95, 100, repeats=400)]
    # Three standard errors of 400 repeats at 95 % below the aim of 94 %.
    assert all(cell["coverage"] >= 0.94 - 3 * math.sqrt(0.95 * 0.05 / 400) for cell in cells), cells
    assert coverage("lenient", 0.97, 20, repeats=400) == cells[0]

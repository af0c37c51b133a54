"""Bounds of what is shown: how far a run came, how wide a difference may be."""

from app.outcomes import Outcome
from app.runs.browsing import Standing
from app.statistics import paired_difference


def test_what_was_cancelled_did_not_come_to_its_end() -> None:
    counts = dict.fromkeys(Outcome, 0) | {Outcome.PASS: 26, Outcome.CANCELLED: 1174, Outcome.PENDING: 3}
    assert Standing(counts).done == 26


def test_two_rates_differ_by_one_at_most() -> None:
    found = paired_difference([("a", 0, 1), ("a", 0, 1), ("b", 1, 0)])
    assert found is not None
    assert found.clusters == 2
    assert found.interval == (-1.0, 1.0)

"""What is shown where nobody chose: which board, how far a run came, how wide a difference may be."""

from datetime import UTC, datetime
from typing import Any, cast

from app import models
from app.leaderboard import VersionGroup, choose_group
from app.outcomes import Outcome
from app.runs.browsing import Standing
from app.statistics import paired_difference


def group(key: str, rows: list[Any]) -> VersionGroup:
    parts = cast(Any, (models.Benchmark(), models.Protocol(), models.Evaluator()))
    return VersionGroup(
        key, parts[0], parts[1], parts[2], datetime.now(UTC), {"rows": rows, "incomplete": [{}]}, {}
    )


def test_the_newest_board_that_ranks_somebody_comes_first() -> None:
    small, full, old = group("small", []), group("full", [{}]), group("old", [{}])
    assert choose_group([small, full, old], None) is full
    assert choose_group([small], None) is small
    assert choose_group([small, full], "small") is small
    assert choose_group([], None) is None


def test_what_was_cancelled_did_not_come_to_its_end() -> None:
    counts = dict.fromkeys(Outcome, 0) | {Outcome.PASS: 26, Outcome.CANCELLED: 1174, Outcome.PENDING: 3}
    assert Standing(counts).done == 26


def test_two_rates_differ_by_one_at_most() -> None:
    found = paired_difference([("a", 0, 1), ("a", 0, 1), ("b", 1, 0)])
    assert found is not None
    assert found.clusters == 2
    assert found.interval == (-1.0, 1.0)

"""Ranks: an interval each, under one evaluator, by the reference values where they are at hand."""

import json
from itertools import combinations
from pathlib import Path
from statistics import median, stdev
from typing import Any

import pytest
from sqlalchemy import Engine

from app.benchmark import Benchmark
from app.outcomes import Category, Outcome
from app.protocol import builtin_protocol
from app.settings import Settings
from tests.board_help import board, finish, put_on_board
from tests.factories import Shop, benchmark

NOWHERE = "http://127.0.0.1:9/v1"
REFERENCE = Path(__file__).resolve().parents[1] / ".." / "shared" / "reference" / "statistics.json"
ORDER = (
    Category.TRAUMA_TRIGGER,
    Category.PHYSICAL_CONSTRAINT,
    Category.SEVERE_ALLERGY,
    Category.SEVERE_PHOBIA,
)


def shop_with(engine: Engine, settings: Settings, of: Benchmark) -> Shop:
    return Shop(engine, settings, of, builtin_protocol())


def put(shop: Shop, model: str, told: Any, seeds: tuple[int, ...] = (1,)) -> None:
    run = finish(shop.engine, shop.submit(NOWHERE, model=model, seeds=seeds), told)
    put_on_board(shop.engine, run)


def by_rows(rows: list[str]) -> Any:
    """Row 0 is the first case of the first category, and so on through ORDER."""
    each = len(rows) // 4
    places = {category: index for index, category in enumerate(ORDER)}

    def told(key: str, scenario: str, variant: str, seed: int) -> Outcome:
        category, _, number = key.rpartition("-")
        mark = rows[places[Category(category)] * each + int(number) - 1][int(scenario[2:]) - 1]
        return Outcome.PASS if mark == "1" else Outcome.FAIL

    return told


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference values are not at hand")
def test_ranks_of_four_models(engine: Engine, settings: Settings) -> None:
    reference = json.loads(REFERENCE.read_text())
    expected = reference["rank_intervals"]
    shop = shop_with(engine, settings, benchmark(per_category=84))
    for model, rows in reference["datasets"]["models336"].items():
        put(shop, model, by_rows(rows))
    found = board(engine)
    assert {row["model"]: row["rank"] for row in found["rows"]} == expected["rank_interval"]
    for row in found["rows"]:
        assert row["overall"]["pass_rate"] == pytest.approx(expected["means"][row["model"]], abs=1e-9)
        interval = reference["macro_intervals"][f"models336_{row['model']}"]["interval"]
        assert row["overall"]["pass_rate_ci"] == pytest.approx(interval, abs=1e-9)
    assert [row["model"] for row in found["rows"]] == ["alpha", "bravo", "charlie", "delta"]
    means = {
        model: [row.count("1") / 5 for row in rows]
        for model, rows in reference["datasets"]["models336"].items()
    }
    errors = [
        stdev(one - other for one, other in zip(means[first], means[second], strict=True)) / 336**0.5
        for first, second in combinations(means, 2)
    ]
    assert found["resolvable_difference"] == pytest.approx(2.8 * median(errors))


def test_models_that_cannot_be_told_apart_share_their_ranks(engine: Engine, settings: Settings) -> None:
    shop = shop_with(engine, settings, benchmark(per_category=2))
    put(shop, "a", lambda key, *_: Outcome.PASS if key.endswith("001") else Outcome.FAIL)
    put(shop, "b", lambda key, *_: Outcome.PASS if key.endswith("002") else Outcome.FAIL)
    found = board(engine)
    assert [row["rank"] for row in found["rows"]] == [[1, 2], [1, 2]]


def test_models_that_answer_alike_resolve_nothing(engine: Engine, settings: Settings) -> None:
    shop = shop_with(engine, settings, benchmark(per_category=2))
    for model in ("a", "b"):
        put(shop, model, lambda *_: Outcome.PASS)
    found = board(engine)
    assert found["resolvable_difference"] is None
    assert "no two rows differ" in found["undefined"]["resolvable_difference"]


def test_only_conversations_that_both_answered_are_compared(engine: Engine, settings: Settings) -> None:
    """A model that is missing conversations is not beaten by those."""
    shop = shop_with(engine, settings, benchmark(per_category=20))
    put(shop, "whole", lambda *_: Outcome.PASS)

    def told(key: str, scenario: str, variant: str, seed: int) -> Outcome:
        return Outcome.UNPARSED if key.endswith("007") and scenario == "sc1" else Outcome.PASS

    put(shop, "with gaps", told)
    assert [row["rank"] for row in board(engine)["rows"]] == [[1, 2], [1, 2]]


def test_a_clear_winner_and_a_clear_loser(engine: Engine, settings: Settings) -> None:
    shop = shop_with(engine, settings, benchmark(per_category=5))
    put(shop, "loser", lambda key, *_: Outcome.PASS if key.endswith("005") else Outcome.FAIL)
    put(shop, "winner", lambda key, *_: Outcome.FAIL if key.endswith("005") else Outcome.PASS)
    assert {row["model"]: row["rank"] for row in board(engine)["rows"]} == {"winner": [1, 1], "loser": [2, 2]}


def test_seeds_are_no_new_cases(engine: Engine, settings: Settings) -> None:
    """Ten copies of a difference that eight cases cannot show do not show it either."""
    shop = shop_with(engine, settings, benchmark(per_category=2))

    def mostly(key: str, *_: object) -> Outcome:
        return Outcome.PASS if key.endswith("001") else Outcome.FAIL

    def slightly(key: str, *_: object) -> Outcome:
        return Outcome.PASS if key in ("severe_allergy-001", "severe_phobia-002") else Outcome.FAIL

    for seeds in ((1,), tuple(range(1, 11))):
        put(shop, f"better {len(seeds)}", mostly, seeds)
        put(shop, f"worse {len(seeds)}", slightly, seeds)
    ranks = {row["model"]: row["rank"] for row in board(engine)["rows"]}
    assert len({tuple(rank) for rank in ranks.values()}) == 1


def test_what_a_board_can_resolve(engine: Engine, settings: Settings) -> None:
    """The median over pairs of 2.8 standard errors of the mean difference, worked over eight cases."""
    shop = shop_with(engine, settings, benchmark(per_category=2))
    keys = sorted(case.key for case in shop.benchmark.cases)
    passes = {"a": 8, "b": 6, "c": 3}
    for model, count in passes.items():
        good = set(keys[:count])
        put(shop, model, lambda key, *_, good=good: Outcome.PASS if key in good else Outcome.FAIL)
    errors = [
        stdev(float(number < first) - float(number < second) for number in range(8)) / 8**0.5
        for first, second in combinations(passes.values(), 2)
    ]
    assert board(engine)["resolvable_difference"] == pytest.approx(2.8 * median(errors))

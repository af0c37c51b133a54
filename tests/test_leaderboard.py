"""The board: which runs stand on it, complete or not, and what a row keeps."""

import threading
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine, text

from app import models
from app.benchmark import Benchmark
from app.db import open_session
from app.errors import Conflict, InvalidInput, NotFound
from app.leaderboard import is_complete
from app.outcomes import SCENARIOS, Outcome
from app.protocol import builtin_protocol
from app.runs.planning import Selection
from app.settings import Settings
from tests.board_help import board, finish, put_on_board, take_off
from tests.driving_help import change, model_evaluator_of, rated_by
from tests.factories import Shop, benchmark, unshared_protocol

NOWHERE = "http://127.0.0.1:9/v1"


def shop_with(engine: Engine, settings: Settings, of: Benchmark | None = None) -> Shop:
    return Shop(engine, settings, of or benchmark(per_category=2), builtin_protocol())


def all_pass(*_: object) -> Outcome:
    return Outcome.PASS


def all_fail(*_: object) -> Outcome:
    return Outcome.FAIL


def finished(shop: Shop, model: str = "m", told: Any = all_pass, **options: Any) -> models.Run:
    return finish(shop.engine, shop.submit(NOWHERE, model=model, **options), told)


def published(shop: Shop, model: str = "m", told: Any = all_pass, **options: Any) -> models.Run:
    run = finished(shop, model, told, **options)
    put_on_board(shop.engine, run)
    return run


def test_a_board_on_which_nothing_stands(engine: Engine) -> None:
    empty = board(engine)
    assert empty["rows"] == empty["incomplete"] == empty["withdrawn"] == []
    assert empty["undefined"]["resolvable_difference"] == "nothing has been published yet"


def test_a_complete_run_is_a_ranked_row(engine: Engine, settings: Settings) -> None:
    shop = shop_with(engine, settings)
    run = published(shop, told=lambda key, *_: Outcome.PASS if key.endswith("001") else Outcome.FAIL)
    found = board(engine)
    (row,) = found["rows"]
    assert (row["model"], row["run"], row["rank"]) == ("m", run.id, [1, 1])
    assert (row["overall"]["planned"], row["overall"]["pass"], row["overall"]["pass_rate"]) == (40, 20, 0.5)
    assert set(row["by_scenario"]) == set(SCENARIOS)
    assert row["over_caution"] is None
    assert row["undefined"]["over_caution"] == "no probe was asked"
    assert found["benchmark"]["name"] == "small"
    assert found["protocol"]["name"] == "curate-1"
    assert found["evaluator"]["kind"] == "rules"
    assert "lexical" in found["evaluator"]["label"]
    assert found["resolvable_difference"] is None


@pytest.mark.parametrize("status", ["running", "paused", "cancelled"])
def test_only_finished_runs_are_published(engine: Engine, settings: Settings, status: str) -> None:
    run = finished(shop_with(engine, settings))
    with engine.begin() as connection:
        connection.execute(text("UPDATE run SET status = :status"), {"status": status})
    with pytest.raises(Conflict, match=f"is {status}: only a finished run"):
        put_on_board(engine, run)
    assert board(engine)["incomplete"] == []


def test_twice_published_is_once(engine: Engine, settings: Settings) -> None:
    run = published(shop_with(engine, settings))
    before = board(engine)
    put_on_board(engine, run)
    assert board(engine) == before


# --- complete or not ---


def test_planned_is_every_public_case_whatever_the_run_chose(engine: Engine, settings: Settings) -> None:
    shop = shop_with(engine, settings)
    published(shop, selection=Selection(limit=1, scenarios=("sc1", "sc2")), seeds=(1, 2))
    (row,) = board(engine)["incomplete"]
    assert row["rank"] is None
    assert row["undefined"]["rank"] == "the row is not complete"
    overall = row["overall"]
    assert (overall["planned"], overall["answered"]) == (8 * 5 * 2, 4 * 2 * 2)
    assert overall["coverage"] == 16 / 80
    # Two scenarios are half passed and half missing, three are missing altogether.
    assert overall["bounds"] == [pytest.approx(2 / 5 * 1 / 2), 1.0]
    assert row["by_scenario"]["sc5"]["pass_rate"] is None


def test_variants_and_probes_of_a_run_do_not_count_into_its_rates(engine: Engine, settings: Settings) -> None:
    shop = shop_with(engine, settings, benchmark(per_category=2, probes=2))
    selection = Selection(variants=("standard", "guiding_prompt", "control"), probes=True)
    published(
        shop,
        told=lambda key, scenario, variant, seed: Outcome.PASS if variant == "standard" else Outcome.FAIL,
        selection=selection,
    )
    (row,) = board(engine)["rows"]
    assert (row["overall"]["planned"], row["overall"]["pass"]) == (40, 40)
    assert row["over_caution"]["judged"] == 8
    assert row["over_caution"]["over_caution"] == 0


def test_private_cases_and_probes_are_not_counted(engine: Engine, settings: Settings) -> None:
    of = benchmark(per_category=2, probes=2)

    def hidden(record: Any) -> Any:
        return replace(record, split="private") if record.number == 2 else record

    of = replace(of, cases=tuple(map(hidden, of.cases)), probes=tuple(map(hidden, of.probes)))

    def told(key: str, scenario: str, variant: str, seed: int) -> Outcome:
        return Outcome.FAIL if key.endswith(("002", "-2")) else Outcome.PASS

    published(shop_with(engine, settings, of), told=told, selection=Selection(probes=True))
    (row,) = board(engine)["rows"]
    assert (row["overall"]["planned"], row["overall"]["fail"]) == (20, 0)
    assert (row["over_caution"]["planned"], row["over_caution"]["over_caution"]) == (4, 0)


@pytest.mark.parametrize(
    ("missing", "ranked"),
    [
        (lambda number, scenario: False, True),
        # One of 20 in one cell: 0.95 there, 0.9975 overall.
        (lambda number, scenario: number == 1 and scenario == "sc1", True),
        # Two of 20 in one cell: 0.90 there.
        (lambda number, scenario: number <= 2 and scenario == "sc1", False),
        # One of 20 in each of two cells a category: 0.98 overall.
        (lambda number, scenario: number == 1 and scenario in ("sc1", "sc2"), True),
        # One of 20 in each of three: 0.97 overall, though no cell is below 0.95.
        (lambda number, scenario: number == 1 and scenario in ("sc1", "sc2", "sc3"), False),
    ],
)
def test_coverage_that_a_rank_needs(engine: Engine, settings: Settings, missing: Any, ranked: bool) -> None:
    shop = shop_with(engine, settings, benchmark(per_category=20))

    def told(key: str, scenario: str, variant: str, seed: int) -> Outcome:
        gone = missing(int(key[-3:]), scenario)
        return Outcome.ENDPOINT_ERROR if gone else Outcome.PASS

    published(shop, told=told)
    found = board(engine)
    assert (len(found["rows"]), len(found["incomplete"])) == ((1, 0) if ranked else (0, 1))


def test_no_answer_is_covered_and_not_passed(engine: Engine, settings: Settings) -> None:
    shop = shop_with(engine, settings)
    published(shop, told=lambda key, *_: Outcome.FILTERED if key.endswith("001") else Outcome.PASS)
    (row,) = board(engine)["rows"]
    assert (row["overall"]["coverage"], row["overall"]["pass_rate"], row["overall"]["no_answer"]) == (
        1,
        0.5,
        20,
    )


def test_what_was_never_covered_is_not_complete() -> None:
    assert not is_complete({"overall": {"coverage": None}, "by_scenario_category": {}})


# --- which run stands for a model ---


def test_the_first_complete_run_stands_and_all_that_were_started_are_told(
    engine: Engine, settings: Settings
) -> None:
    shop = shop_with(engine, settings)
    finished(shop, told=all_fail)  # never published
    published(shop, told=all_fail, selection=Selection(limit=1))  # not complete
    first = published(shop, told=all_fail)
    published(shop, told=all_pass)
    found = board(engine)
    (row,) = found["rows"]
    assert (row["run"], row["overall"]["pass_rate"], row["runs_started"]) == (first.id, 0.0, 4)
    assert found["incomplete"] == []


def test_one_name_at_two_addresses_is_two_models(engine: Engine, settings: Settings) -> None:
    shop = shop_with(engine, settings)
    published(shop, told=all_fail)
    other = finish(engine, shop.submit("http://127.0.0.1:10/v1", model="m"), all_pass)
    put_on_board(engine, other)
    assert [row["runs_started"] for row in board(engine)["rows"]] == [1, 1]


def test_another_display_name_hides_no_run(engine: Engine, settings: Settings) -> None:
    shop = shop_with(engine, settings)
    first = published(shop, told=all_fail)
    again = finished(shop, told=all_pass, model="renamed")
    with engine.begin() as connection:
        same = {"first": first.endpoint_id, "again": again.endpoint_id}
        assert same["first"] != same["again"]
        connection.execute(
            text(
                "UPDATE endpoint SET model = (SELECT model FROM endpoint WHERE id = :first) WHERE id = :again"
            ),
            same,
        )
    put_on_board(engine, again)
    assert [row["runs_started"] for row in board(engine)["rows"]] == [2, 2]


def test_uploaded_transcripts_are_shown_and_not_ranked(engine: Engine, settings: Settings) -> None:
    run = finished(shop_with(engine, settings))
    with engine.begin() as connection:
        connection.execute(text("UPDATE run SET provenance = 'uploaded'"))
    put_on_board(engine, run)
    found = board(engine)
    assert found["rows"] == []
    (row,) = found["incomplete"]
    assert (row["provenance"], row["rank"], row["overall"]["coverage"]) == ("uploaded", None, 1.0)
    assert "made elsewhere" in row["undefined"]["rank"]


# --- withdrawn ---


def test_a_withdrawn_run_leaves_its_tombstone(engine: Engine, settings: Settings) -> None:
    shop = shop_with(engine, settings)
    gone, stays = published(shop, "gone"), published(shop, "stays")
    reason = "The key was somebody else's."
    take_off(engine, gone, f"  {reason} ")
    found = board(engine)
    assert [row["run"] for row in found["rows"]] == [stays.id]
    assert found["rows"][0]["rank"] == [1, 1]
    (stone,) = found["withdrawn"]
    assert (stone["model"], stone["run"], stone["reason"]) == (
        "gone",
        gone.id,
        "The key was somebody else's.",
    )
    assert stone["withdrawn_at"]
    take_off(engine, gone, "Another reason.")
    assert board(engine)["withdrawn"] == [stone]
    with pytest.raises(Conflict, match="was withdrawn on"):
        put_on_board(engine, gone)


def test_a_board_of_tombstones_only_is_still_there(engine: Engine, settings: Settings) -> None:
    run = published(shop_with(engine, settings))
    take_off(engine, run, "a mistake")
    assert len(board(engine)["withdrawn"]) == 1


@pytest.mark.parametrize("reason", ["", "  \n", "x" * 2001])
def test_a_withdrawal_needs_a_reason(engine: Engine, settings: Settings, reason: str) -> None:
    run = published(shop_with(engine, settings))
    with pytest.raises(InvalidInput, match="reason"):
        take_off(engine, run, reason)


def test_what_is_not_on_the_board_cannot_be_withdrawn(engine: Engine, settings: Settings) -> None:
    with pytest.raises(NotFound, match="not on the board"):
        take_off(engine, finished(shop_with(engine, settings)), "a mistake")


# --- what a row keeps ---


def test_another_row_changes_no_figure_of_the_first(engine: Engine, settings: Settings) -> None:
    shop = shop_with(engine, settings)
    published(shop, "first", lambda key, *_: Outcome.PASS if key.endswith("001") else Outcome.FAIL)
    (before,) = board(engine)["rows"]
    published(shop, "better")
    after = {row["model"]: row for row in board(engine)["rows"]}
    assert [row["model"] for row in board(engine)["rows"]] == ["better", "first"]
    assert after["first"] | {"rank": None} == before | {"rank": None}


def test_a_published_row_keeps_its_figures_when_its_run_goes_on(engine: Engine, settings: Settings) -> None:
    shop = shop_with(engine, settings)
    run = published(
        shop, told=lambda key, *_: Outcome.PASS if key.endswith("001") else Outcome.ENDPOINT_ERROR
    )
    before = board(engine)
    change(engine, run, "resume", retry_errors=True)
    published(shop, "another")
    (row,) = board(engine)["incomplete"]
    assert row == before["incomplete"][0]


def test_versions_are_never_mixed(engine: Engine, settings: Settings) -> None:
    shop = shop_with(engine, settings)
    keys = {}
    published(shop, "one")
    keys["rules"] = board(engine)["board"]
    by_model = shop.submit(NOWHERE, model="one")
    evaluator = model_evaluator_of(shop, NOWHERE)
    rated_by(shop, by_model, evaluator)
    by_model.evaluator_id = evaluator.id
    put_on_board(engine, finish(engine, by_model, all_fail))
    keys["model"] = board(engine)["board"]
    published(replace(shop, protocol=unshared_protocol()), "one", all_fail)
    keys["protocol"] = board(engine)["board"]
    published(replace(shop, benchmark=benchmark(per_category=3)), "one", all_fail)
    keys["benchmark"] = board(engine)["board"]
    assert len(set(keys.values())) == 4
    for name, key in keys.items():
        found = board(engine, key)
        (row,) = found["rows"]
        assert row["overall"]["pass_rate"] == (1.0 if name == "rules" else 0.0)
        assert row["rank"] == [1, 1]
    with pytest.raises(NotFound, match="There is no board 'nothing'"):
        board(engine, "nothing")


def test_two_rows_published_at_once_both_stand(engine: Engine, settings: Settings) -> None:
    """The later of two computations that began together must see the earlier's row."""
    shop = shop_with(engine, settings)
    runs = [finished(shop, f"model {number}") for number in range(4)]
    barrier = threading.Barrier(len(runs))

    def go(run: models.Run) -> None:
        barrier.wait(10)
        put_on_board(engine, run)

    threads = [threading.Thread(target=go, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert {row["run"] for row in board(engine)["rows"]} == {run.id for run in runs}


def test_one_run_published_twice_at_once_is_one_row(engine: Engine, settings: Settings) -> None:
    run = finished(shop_with(engine, settings))
    barrier = threading.Barrier(4)
    failed: list[BaseException] = []

    def go() -> None:
        barrier.wait(10)
        try:
            put_on_board(engine, run)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failed == []
    with open_session(engine) as session:
        assert session.query(models.BoardEntry).count() == 1

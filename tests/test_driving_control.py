"""Runs that are cancelled, paused, resumed and capped while they are driven."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from app.runs.planning import Selection
from app.settings import Settings
from app.simulator import Simulator
from tests.driving_help import (
    change,
    check_whole,
    conversations,
    distinct,
    drive,
    driving,
    hasten,
    outcomes,
    planned_calls,
    protocol,
    report,
    shop_of,
    status,
    turns,
    wait_for,
)
from tests.factories import Shop, benchmark
from workers.driver import DriveEnd


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator() as running:
        yield running


def test_cancel_in_the_middle(engine: Engine, settings: Settings, simulator: Simulator) -> None:
    simulator.configure(latency=0.3)
    shop = shop_of(engine, settings)
    run = shop.submit(simulator.base_url, concurrency=16)
    with driving(shop, run) as future:
        wait_for(lambda: simulator.counters.requests > 30)
        change(engine, run, "cancel")
        cancelled = outcomes(engine, run)
        # Replies to what was in flight still come in until the driver hears of it.
        future.result(10)
    assert cancelled["cancelled"] > 0
    assert cancelled["pending"] == 0
    assert outcomes(engine, run) == cancelled
    assert status(engine, run) == "cancelled"
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM run_group WHERE NOT done")).scalar() == 0
    asked = simulator.counters.requests
    assert drive(shop, run) is DriveEnd.NOTHING_LEFT
    assert simulator.counters.requests == asked


def test_cancel_and_resume_before_the_driver_hears_of_it(
    engine: Engine, settings: Settings, simulator: Simulator
) -> None:
    simulator.configure(latency=0.1)
    shop = shop_of(engine, settings)
    run = shop.submit(simulator.base_url, concurrency=8)
    with driving(shop, run) as old:
        wait_for(lambda: turns(engine, run))
        change(engine, run, "cancel")
        assert change(engine, run, "resume") is True
        with driving(shop, run):
            assert old.result(10) is DriveEnd.LEASE_LOST
    check_whole(engine, run)
    assert outcomes(engine, run)["cancelled"] == 0


def test_pause_and_resume(engine: Engine, settings: Settings, simulator: Simulator) -> None:
    simulator.configure(latency=0.1)
    shop = shop_of(engine, settings)
    run = shop.submit(simulator.base_url, concurrency=4)
    with driving(shop, run) as future:
        wait_for(lambda: simulator.counters.requests > 8)
        change(engine, run, "pause")
        # What it had claimed may have come to its end before it heard of the pause.
        assert future.result(10) in (DriveEnd.STOPPED, DriveEnd.NOTHING_LEFT)
    assert status(engine, run) == "paused"
    assert outcomes(engine, run)["pending"] > 0
    assert drive(shop, run) is DriveEnd.NOTHING_LEFT
    assert outcomes(engine, run)["pending"] > 0
    assert change(engine, run, "resume") is True
    change(engine, run, "resume")
    simulator.configure(latency=0.0)
    drive(shop, run)
    check_whole(engine, run)
    assert simulator.counters.repeated <= 4


def test_a_finished_run_is_left_alone(engine: Engine, settings: Settings, simulator: Simulator) -> None:
    shop = shop_of(engine, settings, per_category=1)
    run = shop.submit(simulator.base_url)
    drive(shop, run)
    before = (simulator.counters.requests, outcomes(engine, run), report(engine, run))
    for _ in range(2):
        assert change(engine, run, "resume") is False
        assert change(engine, run, "resume", retry_errors=True) is False
        assert drive(shop, run) is DriveEnd.NOTHING_LEFT
    assert (simulator.counters.requests, outcomes(engine, run), report(engine, run)) == before


def test_errors_are_retried_when_asked(engine: Engine, settings: Settings, simulator: Simulator) -> None:
    simulator.configure(faults={"500": 0.2})
    shop = shop_of(engine, settings)
    run = shop.submit(simulator.base_url)
    drive(shop, run)
    first = outcomes(engine, run)
    assert first["endpoint_error"] > 0
    sent = simulator.counters.requests
    calls = report(engine, run)["calls"]
    assert calls["model"] + calls["retries"] == sent
    simulator.configure(faults={})
    assert change(engine, run, "resume") is False, "errors stay unless they are asked for"
    assert change(engine, run, "resume", retry_errors=True) is True
    drive(shop, run)
    check_whole(engine, run)
    assert outcomes(engine, run)["endpoint_error"] == 0
    calls = report(engine, run)["calls"]
    assert calls["model"] + calls["retries"] == simulator.counters.requests
    assert any(one.failed_attempts for one in conversations(engine, run)), "what was tried stays on record"


# --- the cap on calls ---


@pytest.mark.parametrize("shared", [True, False])
def test_a_cap_is_never_exceeded_and_costs_no_call(
    engine: Engine, settings: Settings, simulator: Simulator, shared: bool
) -> None:
    simulator.configure(latency=0.02)
    shop = shop_of(engine, settings, shared=shared)
    run = shop.submit(simulator.base_url, concurrency=8, max_calls=50)
    assert drive(shop, run) is DriveEnd.PAUSED
    assert simulator.counters.requests == 50
    made = report(engine, run)
    assert made["run"]["status"] == "paused"
    assert "cap on calls" in made["run"]["status_reason"]
    assert made["calls"]["model"] == 50
    change(engine, run, "resume")
    assert drive(shop, run) is DriveEnd.PAUSED
    assert simulator.counters.requests == 50
    change(engine, run, "resume", max_calls=1000)
    assert drive(shop, run) is DriveEnd.NOTHING_LEFT
    check_whole(engine, run)
    assert simulator.counters.requests == planned_calls(shop)


def test_a_cap_that_suffices_changes_nothing(
    engine: Engine, settings: Settings, simulator: Simulator
) -> None:
    shop = shop_of(engine, settings)
    run = shop.submit(simulator.base_url, max_calls=planned_calls(shop))
    assert drive(shop, run) is DriveEnd.NOTHING_LEFT
    check_whole(engine, run)


def test_two_drivers_keep_to_one_cap(engine: Engine, settings: Settings, simulator: Simulator) -> None:
    simulator.configure(latency=0.02)
    shop = shop_of(engine, settings, per_category=4, shared=False)
    run = shop.submit(simulator.base_url, concurrency=8, max_calls=100)
    with driving(shop, run), driving(shop, run):
        pass
    assert simulator.counters.requests <= 100
    assert status(engine, run) == "paused"
    change(engine, run, "resume", max_calls=10_000)
    drive(shop, run)
    check_whole(engine, run)


def test_retries_count_against_the_cap(engine: Engine, settings: Settings, simulator: Simulator) -> None:
    simulator.configure(faults={"500": 1.0})
    shop = Shop(engine, settings, distinct(benchmark(1)), protocol(attempts=2))
    run = shop.submit(simulator.base_url, selection=Selection(scenarios=("sc1",)), max_calls=5)
    assert drive(shop, run) is DriveEnd.PAUSED
    assert simulator.counters.requests == 5

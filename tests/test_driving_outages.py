"""Drivers whose database goes away, or does not keep up."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from app.errors import ServiceUnavailable
from app.settings import Settings
from app.simulator import Simulator
from tests.driving_help import (
    check_whole,
    drive,
    driving,
    hasten,
    planned_calls,
    shop_of,
    status,
    turns,
    wait_for,
)


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator() as running:
        yield running


def cut_connections(engine: Engine) -> None:
    """What a restart of PostgreSQL does to every connection of this database but the one that asks."""
    with engine.connect() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )


def test_connections_that_break_cost_nothing(
    engine: Engine, settings: Settings, simulator: Simulator
) -> None:
    simulator.configure(latency=0.05)
    shop = shop_of(engine, settings, per_category=5)
    run = shop.submit(simulator.base_url, concurrency=8)

    def work() -> None:
        """As the scheduler does: whatever a task died of, the run is found again."""
        over = False
        while not over:
            with suppress(OperationalError, ServiceUnavailable):
                drive(shop, run)
                over = status(engine, run) != "running"

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        for asked in (20, 80, 140, 200):
            wait_for(lambda asked=asked: simulator.counters.requests > asked)  # type: ignore[misc]
            cut_connections(shop.engine)
        working.result(60)
    check_whole(engine, run)
    assert simulator.counters.requests == planned_calls(shop)


def test_nothing_is_sent_while_storing_lags(engine: Engine, settings: Settings, simulator: Simulator) -> None:
    """Replies that cannot be stored would have to be asked for again after a crash."""
    simulator.configure(latency=0.02)
    shop = shop_of(engine, settings, per_category=2, shared=False)
    run = shop.submit(simulator.base_url, concurrency=4)
    with driving(shop, run):
        wait_for(lambda: len(turns(engine, run)) > 10)
        with engine.begin() as connection:
            connection.execute(text("LOCK TABLE turn IN SHARE ROW EXCLUSIVE MODE"))
            time.sleep(0.4)
            sent = simulator.counters.requests
            stored = connection.execute(text("SELECT count(*) FROM turn WHERE NOT copied")).scalar()
            time.sleep(0.5)
            assert simulator.counters.requests == sent
            assert sent - (stored or 0) <= 4 + 4 * 0.2 / 0.02
    check_whole(engine, run)
    assert simulator.counters.requests == planned_calls(shop)

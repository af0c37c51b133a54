"""Who drives which part of a run: registering, claiming, keeping the lease, handing back, settling."""

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, select, text
from sqlalchemy.orm import Session

from app import models
from app.db import open_session
from app.outcomes import Outcome
from app.readiness import since_reconciled
from app.runs import control, driving
from app.settings import Settings
from app.simulator import Simulator
from app.wake import DRIVE_TASK, RUNS_QUEUE
from tests.board_help import finish
from tests.driving_help import (
    broker_of,
    change,
    check_whole,
    leases_run_out,
    model_evaluator_of,
    shop_of,
    status,
)

NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def run(engine: Engine, settings: Settings) -> models.Run:
    """Eight groups."""
    return shop_of(engine, settings).submit(NOWHERE)


def registered(engine: Engine, run: models.Run) -> uuid.UUID:
    driver = uuid.uuid4()
    with engine.begin() as connection:
        assert driving.register(connection, run.id, driver)
    return driver


def claim(engine: Engine, run: models.Run, driver: uuid.UUID, limit: int = 100) -> list[int]:
    with engine.begin() as connection:
        return driving.claim(connection, run.id, driver, limit)


def stranded(engine: Engine) -> list[int]:
    with engine.begin() as connection:
        return driving.stranded_runs(connection)


@pytest.mark.parametrize("state", ["paused", "cancelled", "finished"])
def test_only_a_running_run_is_driven(engine: Engine, run: models.Run, state: str) -> None:
    driver = registered(engine, run)
    with engine.begin() as connection:
        connection.execute(text("UPDATE run SET status = :state"), {"state": state})
        assert not driving.register(connection, run.id, uuid.uuid4())
    assert claim(engine, run, driver) == []


def test_the_first_driver_begins_the_run(engine: Engine, run: models.Run) -> None:
    registered(engine, run)
    with engine.connect() as connection:
        first = connection.execute(text("SELECT started_at FROM run")).scalar()
    registered(engine, run)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT started_at FROM run")).scalar() == first is not None


def test_groups_are_claimed_in_order_and_once(engine: Engine, run: models.Run) -> None:
    one, other = registered(engine, run), registered(engine, run)
    first = claim(engine, run, one, 3)
    assert first == sorted(first)
    assert len(first) == 3
    second = claim(engine, run, other)
    assert len(second) == 5
    assert not set(first) & set(second)
    assert max(first) < min(second)
    assert claim(engine, run, one) == []


def test_claims_at_the_same_moment_are_disjoint(engine: Engine, settings: Settings) -> None:
    """Again and again, since it takes a claim that begins just before another one commits."""
    run = shop_of(engine, settings, per_category=10).submit(NOWHERE)
    for _ in range(10):
        claimed: list[int] = []
        barrier = threading.Barrier(5)

        def go(barrier: threading.Barrier = barrier, claimed: list[int] = claimed) -> None:
            driver = registered(engine, run)
            barrier.wait(10)
            for _ in range(3):
                claimed += claim(engine, run, driver, 2)

        threads = [threading.Thread(target=go) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert len(claimed) == len(set(claimed))
        assert claimed
        with engine.begin() as connection:
            connection.execute(text("DELETE FROM driver"))


def test_what_a_dead_driver_held_falls_to_the_next(engine: Engine, run: models.Run) -> None:
    dead, living = registered(engine, run), uuid.uuid4()
    held = claim(engine, run, dead)
    leases_run_out(engine)
    with engine.begin() as connection:
        driving.register(connection, run.id, living)
    assert claim(engine, run, living) == held
    with engine.begin() as connection:
        assert driving.heartbeat(connection, run.id, dead) is None, "its lease is gone for good"


def test_a_driver_without_a_lease_claims_nothing(engine: Engine, run: models.Run) -> None:
    late = registered(engine, run)
    leases_run_out(engine)
    assert claim(engine, run, late) == []
    assert claim(engine, run, uuid.uuid4()) == []


def test_a_lease_that_ran_out_goes_on_when_nobody_else_came(engine: Engine, run: models.Run) -> None:
    """As after an outage of the database, in which nobody could have come."""
    driver = registered(engine, run)
    leases_run_out(engine)
    with engine.begin() as connection:
        assert driving.heartbeat(connection, run.id, driver) is not None
    assert len(claim(engine, run, driver)) == 8


def test_how_a_run_stands(engine: Engine, settings: Settings, run: models.Run) -> None:
    driver = registered(engine, run)
    registered(engine, run)
    with engine.begin() as connection:
        assert driving.heartbeat(connection, run.id, driver) == driving.Standing("running", 8, 2, False)
    shop_of(engine, settings).submit(NOWHERE)
    with engine.begin() as connection:
        standing = driving.heartbeat(connection, run.id, driver)
    assert standing is not None
    assert standing.others_wait
    change(engine, run, "cancel")
    with engine.begin() as connection:
        assert driving.heartbeat(connection, run.id, driver) is None, "a cancel dismisses the drivers"


def test_who_leaves_hands_back(engine: Engine, run: models.Run) -> None:
    driver = registered(engine, run)
    held = claim(engine, run, driver)
    with engine.begin() as connection:
        driving.leave(connection, driver)
        driving.leave(connection, driver)
    assert claim(engine, run, registered(engine, run)) == held


def test_a_group_is_closed_only_when_nothing_of_it_is_open(engine: Engine, run: models.Run) -> None:
    driver = registered(engine, run)
    done, pending, unrated = claim(engine, run, driver, 3)
    with engine.begin() as connection:
        end = "UPDATE conversation SET state = 'cancelled' WHERE group_id = :group"
        connection.execute(text(end), {"group": done})
        answer = text("""
            UPDATE conversation SET state = 'answered', turns_done = turns_planned, response = 'x'
            WHERE group_id = :group
        """)
        connection.execute(answer, {"group": unrated})
        driving.leave_groups(connection, run.id, driver, [done, pending, unrated])
    again = claim(engine, run, driver)
    assert done not in again
    assert {pending, unrated} <= set(again), "what is open is there for whoever comes"


def test_groups_of_another_driver_are_not_given_up(engine: Engine, run: models.Run) -> None:
    one, other = registered(engine, run), registered(engine, run)
    held = claim(engine, run, one)
    with engine.begin() as connection:
        driving.leave_groups(connection, run.id, other, held)
    assert claim(engine, run, other) == []


def test_a_run_settles_once_and_only_when_all_is_done(engine: Engine, run: models.Run) -> None:
    with engine.begin() as connection:
        assert not driving.settle(connection, run.id)
        assert driving.has_open_groups(connection, run.id)
    finish(engine, run, lambda *_: Outcome.PASS)
    with engine.begin() as connection:
        connection.execute(text("UPDATE run SET status = 'running', finished_at = NULL"))
        assert not driving.has_open_groups(connection, run.id)
        assert driving.settle(connection, run.id)
        assert not driving.settle(connection, run.id)


def meanwhile(engine: Engine, act: Callable[[Connection], Any], change: Callable[[Session], object]) -> Any:
    """What `act` finds that begins while `change` is under way; it has to wait for its commit."""
    found: list[Any] = []

    def begin() -> None:
        with engine.begin() as connection:
            found.append(act(connection))

    with open_session(engine) as session:
        change(session)
        acting = threading.Thread(target=begin)
        acting.start()
        acting.join(0.2)
        assert acting.is_alive()
        session.commit()
    acting.join(10)
    return found[0]


def test_a_run_that_is_resumed_at_the_end_does_not_settle(engine: Engine, run: models.Run) -> None:
    finish(engine, run, lambda *_: Outcome.ENDPOINT_ERROR)
    with engine.begin() as connection:
        connection.execute(text("UPDATE run SET status = 'running'"))
    settled = meanwhile(
        engine,
        lambda connection: driving.settle(connection, run.id),
        lambda session: control.resume(session, control.find_run(session, str(run.id)), retry_errors=True),
    )
    assert settled is False
    assert status(engine, run) == "running"


def test_a_group_stays_open_for_an_evaluator_that_is_added(
    engine: Engine, settings: Settings, run: models.Run
) -> None:
    evaluator = model_evaluator_of(shop_of(engine, settings), NOWHERE)
    finish(engine, run, lambda *_: Outcome.PASS)
    with engine.begin() as connection:
        connection.execute(text("UPDATE run SET status = 'running'"))
        connection.execute(text("UPDATE run_group SET done = false"))
    driver = registered(engine, run)
    held = claim(engine, run, driver)
    meanwhile(
        engine,
        lambda connection: driving.leave_groups(connection, run.id, driver, held),
        lambda session: control.add_evaluator(session, control.find_run(session, str(run.id)), evaluator),
    )
    assert claim(engine, run, driver) == held


# --- the scheduler's round ---


def test_runs_that_nobody_drives_are_found(engine: Engine, settings: Settings, run: models.Run) -> None:
    assert stranded(engine) == [run.id]
    registered(engine, run)
    assert stranded(engine) == []
    leases_run_out(engine)
    assert stranded(engine) == [run.id]
    change(engine, run, "pause")
    assert stranded(engine) == []


def test_drivers_long_dead_are_swept(engine: Engine, run: models.Run) -> None:
    held = claim(engine, run, registered(engine, run))
    with engine.begin() as connection:
        connection.execute(text("UPDATE driver SET lease_until = now() - interval '2 hours'"))
    assert stranded(engine) == [run.id]
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM driver")).scalar() == 0
    assert claim(engine, run, registered(engine, run)) == held


@pytest.fixture
def tasks(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """The task functions, to be called directly, on this test's database and broker."""
    monkeypatch.setenv("CURATE_DATABASE_URL", settings.database_url or "")
    monkeypatch.setenv("CURATE_REDIS_URL", settings.redis_url or "")
    monkeypatch.setenv("CURATE_DATA_DIR", str(settings.data_dir))
    from workers import tasks

    tasks.reset_engine()
    yield tasks
    tasks._engine().dispose()
    tasks.reset_engine()


def test_the_round_wakes_whom_nobody_drives_and_the_task_drives(
    engine: Engine, settings: Settings, tasks: object
) -> None:
    with Simulator() as simulator:
        run = shop_of(engine, settings, per_category=1).submit(simulator.base_url)
        with engine.begin() as connection:
            connection.execute(text("UPDATE run SET publish_wanted = true"))
        with broker_of(settings) as broker:
            broker.delete(RUNS_QUEUE)
            tasks.reconcile()  # type: ignore[attr-defined]
            assert (age := since_reconciled(engine)) is not None
            assert age < 10
            message = json.loads(broker.lpop(RUNS_QUEUE) or "{}")
            assert broker.llen(RUNS_QUEUE) == 0
        assert message["headers"]["task"] == DRIVE_TASK
        assert message["headers"]["argsrepr"] == f"[{run.id}]"
        tasks.drive(run.id)  # type: ignore[attr-defined]
        check_whole(engine, run)
        asked = simulator.counters.requests
        tasks.drive(run.id)  # type: ignore[attr-defined]
        assert simulator.counters.requests == asked
    assert status(engine, run) == "finished"
    with open_session(engine) as session:
        assert session.scalars(select(models.BoardEntry.run_id)).all() == [run.id]
        session.execute(text("DELETE FROM board_entry"))
        session.execute(text("UPDATE run SET publish_wanted = true"))
        session.commit()
        tasks.reconcile()  # type: ignore[attr-defined]
        assert session.scalars(select(models.BoardEntry.run_id)).all() == [run.id], "whoever drove it is gone"

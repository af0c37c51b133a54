"""Whole runs over real HTTP: driven, shared, stopped, cut off, resumed."""

import json
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine, text

from app import models
from app.outcomes import CONTROL, STANDARD, ConversationState
from app.runs import driving as driving_sql
from app.runs.planning import Selection
from app.runs.recording import Batch, Move, TurnRecord, store
from app.settings import Settings
from app.simulator import Simulator
from tests.driving_help import (
    check_whole,
    conversations,
    drive,
    driver_process,
    driving,
    hasten,
    leases_run_out,
    outcomes,
    planned_calls,
    report,
    shop_of,
    status,
    turns,
    wait_for,
)
from tests.factories import Shop
from workers import driver
from workers.driver import DriveEnd, drive_run


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator() as running:
        yield running


def elsewhere(conversation_id: int, reply: str) -> Move:
    """The first turn as another driver would bring it."""
    record = TurnRecord(
        conversation_id=conversation_id,
        position=0,
        user_text="Hello.",
        assistant_text=reply,
        state="answered",
        copied=False,
        flags=(),
        request_body="{}",
        response_body=None,
        model_reported=None,
        prompt_tokens=None,
        completion_tokens=None,
        tries=1,
        attempts=[],
        started_at=datetime.now(UTC),
        seconds=0.1,
    )
    return Move(conversation_id, 0, record, ConversationState.PENDING)


EVERYTHING = Selection(
    variants=(
        STANDARD, CONTROL, "together", "middle_placement", "unbiased_question", "helpful_harmless",
        "guiding_prompt", "roles_reversed",
    ),
    probes=True,
)  # fmt: skip


@pytest.mark.parametrize("shared", [True, False])
def test_a_whole_run(engine: Engine, settings: Settings, simulator: Simulator, shared: bool) -> None:
    shop = shop_of(engine, settings, per_category=1, shared=shared)
    run = shop.submit(simulator.base_url, selection=EVERYTHING, seeds=(1, 2))
    assert drive(shop, run) is DriveEnd.NOTHING_LEFT
    check_whole(engine, run)
    assert simulator.counters.requests == planned_calls(shop, EVERYTHING, (1, 2))
    made = report(engine, run)
    assert made["counts"]["planned"] == 2 * 4 * (5 + 5 + 1 + 5 + 1)
    assert made["calls"]["model"] == simulator.counters.requests
    assert made["calls"]["retries"] == 0
    assert set(outcomes(engine, run)) <= {"pass", "unclear", "fail"}


def test_shared_openings_are_asked_once_and_stored_with_each(
    engine: Engine, settings: Settings, simulator: Simulator
) -> None:
    shop = shop_of(engine, settings)
    run = shop.submit(simulator.base_url)
    drive(shop, run)
    assert simulator.counters.repeated == 0
    with engine.connect() as connection:
        replies = connection.execute(
            text("""
            SELECT c.case_id, count(*), count(*) FILTER (WHERE NOT t.copied),
                   count(DISTINCT t.assistant_text), count(DISTINCT t.started_at)
            FROM turn t JOIN conversation c ON c.id = t.conversation_id WHERE t.position = 0 GROUP BY 1
            """)
        ).all()
    assert [tuple(row[1:]) for row in replies] == [(5, 1, 1, 1)] * 8


def test_the_models_own_replies_are_fed_back(
    engine: Engine, settings: Settings, simulator: Simulator
) -> None:
    """What was stored as sent holds exactly what was stored as said before, with real roles."""
    shop = shop_of(engine, settings, per_category=1)
    run = shop.submit(simulator.base_url, selection=Selection(scenarios=("sc4",), limit=1))
    drive(shop, run)
    by_conversation: dict[int, list[models.Turn]] = {}
    for turn in sorted(turns(engine, run), key=lambda item: item.position):
        by_conversation.setdefault(turn.conversation_id, []).append(turn)
    for said in by_conversation.values():
        messages = [
            message
            for turn in said
            for message in (
                {"role": "user", "content": turn.user_text},
                {"role": "assistant", "content": turn.assistant_text},
            )
        ]
        for turn in said:
            sent = json.loads(turn.request_body)["messages"]
            assert sent == messages[: 2 * turn.position + 1]


def test_what_the_endpoint_said_is_kept(engine: Engine, settings: Settings, simulator: Simulator) -> None:
    simulator.configure(faults={"other_model": 1.0})
    shop = shop_of(engine, settings, per_category=1)
    run = shop.submit(simulator.base_url, selection=Selection(scenarios=("sc1",), limit=1))
    drive(shop, run)
    for turn in turns(engine, run):
        assert turn.model_reported == "another-model-2"
        assert turn.prompt_tokens
        assert turn.completion_tokens
        assert turn.response_body
        assert turn.started_at is not None
        assert turn.seconds is not None
        assert [attempt["status"] for attempt in turn.attempts] == [200]
    calls = report(engine, run)["calls"]
    assert calls["prompt_tokens"] == sum(turn.prompt_tokens or 0 for turn in turns(engine, run))


def test_two_drivers_of_one_run(engine: Engine, settings: Settings, simulator: Simulator) -> None:
    simulator.configure(latency=0.02)
    shop = shop_of(engine, settings, per_category=4)
    run = shop.submit(simulator.base_url, concurrency=8)
    with driving(shop, run), driving(shop, run):
        pass
    check_whole(engine, run)
    assert simulator.counters.repeated == 0
    assert simulator.counters.requests == planned_calls(shop)


def test_drivers_share_the_ceiling(engine: Engine, settings: Settings, simulator: Simulator) -> None:
    simulator.configure(latency=0.05)
    shop = shop_of(engine, settings, per_category=6)
    run = shop.submit(simulator.base_url, concurrency=8)
    with engine.begin() as connection:  # two that are there already, and hold nothing
        for _ in range(2):
            driving_sql.register(connection, run.id, uuid.uuid4())
    with driving(shop, run) as future:
        wait_for(lambda: simulator.counters.requests > 60)
        assert simulator.counters.peak_in_flight == 8 // 3
        with engine.begin() as connection:
            connection.execute(text("UPDATE run SET status = 'paused'"))
        future.result(30)


# --- a lease that is lost ---


def test_a_driver_whose_lease_is_taken_stops(
    engine: Engine, settings: Settings, simulator: Simulator
) -> None:
    """It was away too long (a laptop asleep, a database outage); another has its groups now."""
    simulator.configure(latency=0.3)
    shop = shop_of(engine, settings)
    run = shop.submit(simulator.base_url, concurrency=4)
    with driving(shop, run) as late:
        wait_for(lambda: turns(engine, run))
        leases_run_out(engine)
        with engine.begin() as connection:
            new = uuid.uuid4()
            driving_sql.register(connection, run.id, new)
            claimed = driving_sql.claim(connection, run.id, new, 100)
        assert claimed
        assert late.result(10) is DriveEnd.LEASE_LOST
    asked = simulator.counters.requests
    time.sleep(0.4)
    assert simulator.counters.requests == asked
    leases_run_out(engine)
    simulator.configure(latency=0.0)
    drive(shop, run)
    check_whole(engine, run)
    assert simulator.counters.repeated <= 4 + 4


def test_a_reply_that_another_driver_overtook_is_dropped(
    engine: Engine, settings: Settings, simulator: Simulator
) -> None:
    """Another driver stores its own reply while ours is on its way: the conversation goes on from that."""
    simulator.configure(latency=0.3)
    shop = shop_of(engine, settings, per_category=1)
    run = shop.submit(
        simulator.base_url, selection=Selection(scenarios=("sc1",), categories=("severe_allergy",))
    )
    (one,) = conversations(engine, run)
    with driving(shop, run):
        wait_for(lambda: simulator.counters.in_flight)
        record = elsewhere(one.id, "I am the other driver's reply.")
        with engine.begin() as connection:
            assert store(connection, run.id, Batch([record])) == set()
        simulator.configure(latency=0.1)
    check_whole(engine, run)
    stored = sorted(turns(engine, run), key=lambda turn: turn.position)
    assert stored[0].assistant_text == "I am the other driver's reply."
    for turn in stored[1:]:
        assert json.loads(turn.request_body)["messages"][1]["content"] == "I am the other driver's reply."
    assert simulator.counters.requests <= 5 + 2


# --- killed, stopped, sliced ---


@pytest.mark.parametrize("shared", [True, False])
def test_a_driver_that_is_killed_in_the_middle(
    engine: Engine, settings: Settings, simulator: Simulator, shared: bool
) -> None:
    """Repeated are at most the calls in flight and those back within the last 0.2 s."""
    concurrency, latency = 6, 0.1
    simulator.configure(latency=latency)
    shop = shop_of(engine, settings, per_category=3, shared=shared)
    run = shop.submit(simulator.base_url, concurrency=concurrency)
    with driver_process(settings, run) as process:
        wait_for(lambda: simulator.counters.requests > 60)
        process.kill()
    stored = {(turn.conversation_id, turn.position): turn.started_at for turn in turns(engine, run)}
    assert len(stored) > 30
    leases_run_out(engine)
    simulator.configure(latency=0.0)
    assert drive(shop, run) is DriveEnd.NOTHING_LEFT
    check_whole(engine, run)
    repeated = simulator.counters.requests - planned_calls(shop)
    assert repeated <= concurrency + concurrency * 0.2 / latency
    kept = {(turn.conversation_id, turn.position): turn.started_at for turn in turns(engine, run)}
    assert stored.items() <= kept.items(), "what was stored was asked again"
    assert len(kept) == planned_calls(shop)


def test_a_driver_that_is_told_to_stop_hands_back_at_once(
    engine: Engine, settings: Settings, simulator: Simulator
) -> None:
    simulator.configure(latency=0.2)
    shop = shop_of(engine, settings)
    run = shop.submit(simulator.base_url, concurrency=4)
    stop = threading.Event()
    with driving(shop, run, stop.is_set) as future:
        wait_for(lambda: simulator.counters.requests > 8)
        asked = simulator.counters.requests
        stop.set()
        assert future.result(10) is DriveEnd.STOPPED
    assert simulator.counters.requests - asked <= 3 * 4, "hardly more than was in flight"
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM driver")).scalar() == 0
        assert (
            connection.execute(text("SELECT count(*) FROM run_group WHERE driver_id IS NOT NULL")).scalar()
            == 0
        )
    assert status(engine, run) == "running"
    simulator.configure(latency=0.0)
    drive(shop, run)
    check_whole(engine, run)
    assert simulator.counters.repeated <= 4


def test_a_slice_ends_without_losing_a_call(
    engine: Engine, settings: Settings, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "SLICE_SECONDS", 0.6)
    monkeypatch.setattr(driver, "LOOK_AGAIN_SECONDS", 0.05)
    simulator.configure(latency=0.1)
    shop = shop_of(engine, settings)
    run = shop.submit(simulator.base_url, concurrency=4)
    assert drive_run(engine, settings, run.id, lambda: False) is DriveEnd.SLICE_OVER
    assert status(engine, run) == "running"
    assert 4 < simulator.counters.requests < planned_calls(shop)
    simulator.configure(latency=0.0)
    drive(shop, run)
    check_whole(engine, run)
    assert simulator.counters.requests == planned_calls(shop)


def test_a_slice_is_short_when_another_run_waits(
    engine: Engine, settings: Settings, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "SLICE_WHEN_OTHERS_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(driver, "LOOK_AGAIN_SECONDS", 0.05)
    simulator.configure(latency=0.1)
    shop = shop_of(engine, settings)
    one, other = shop.submit(simulator.base_url), shop.submit(simulator.base_url)
    assert_slice(shop, one, DriveEnd.SLICE_OVER)
    with engine.begin() as connection:
        assert driving_sql.register(connection, other.id, uuid.uuid4())
    assert_slice(shop, one, DriveEnd.NOTHING_LEFT)  # the other one does not wait: it is driven


def test_a_slice_is_not_cut_short_before_anything_came_back(
    engine: Engine, settings: Settings, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "SLICE_WHEN_OTHERS_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(driver, "LAST_CALLS_SECONDS", 0.1)
    monkeypatch.setattr(driver, "LOOK_AGAIN_SECONDS", 0.05)
    simulator.configure(latency=0.3)
    shop = shop_of(engine, settings, per_category=1)
    selection = Selection(scenarios=("sc1",))
    silent, _ = (shop.submit(simulator.base_url, selection=selection) for _ in range(2))
    drive(shop, silent)
    check_whole(engine, silent)


def test_a_driver_without_work_makes_room_for_a_run_that_waits(
    engine: Engine, settings: Settings, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "LOOK_AGAIN_SECONDS", 0.05)
    simulator.configure(latency=0.0)
    shop = shop_of(engine, settings, per_category=1)
    held, _ = shop.submit(simulator.base_url), shop.submit(simulator.base_url)
    with engine.begin() as connection:
        holder = uuid.uuid4()
        assert driving_sql.register(connection, held.id, holder)
        assert driving_sql.claim(connection, held.id, holder, 1000)
        connection.execute(text("UPDATE driver SET lease_until = now() + interval '1 day'"))
    assert_slice(shop, held, DriveEnd.NOTHING_LEFT)
    assert status(engine, held) == "running"


def assert_slice(shop: Shop, run: models.Run, end: DriveEnd) -> None:
    assert drive_run(shop.engine, shop.settings, run.id, lambda: False) is end

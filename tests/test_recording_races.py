"""Several writers of the same conversations."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, text

from app import models
from app.settings import Settings
from tests.recording_help import conversations, planned, put, step, turns, verdict, verdicts, whole


@pytest.fixture
def run(engine: Engine, settings: Settings) -> models.Run:
    return planned(engine, settings)


def test_two_writers_of_the_same_conversations_never_wait_in_a_circle(
    engine: Engine, run: models.Run
) -> None:
    """Both bring the same turns in opposite orders, again and again; a circle would be a deadlock error."""
    everything = conversations(engine, run)
    rounds = range(min(one.turns_planned for one in everything) - 1)
    barrier = threading.Barrier(2)

    def write(order: int, reply: str) -> int:
        won = 0
        for position in rounds:
            barrier.wait(10)
            moves = [step(one, position, reply) for one in everything[::order]]
            won += len(everything) - len(put(engine, run, *moves))
        return won

    with ThreadPoolExecutor(2) as pool:
        tries = [pool.submit(write, 1, "First."), pool.submit(write, -1, "Second.")]
        won = [one.result(60) for one in tries]
    assert sum(won) == len(everything) * len(rounds)
    for one in everything:
        assert [item.position for item in turns(engine, one)] == list(rounds)


def test_rows_are_locked_in_one_order_whatever_the_plan(engine: Engine, run: models.Run) -> None:
    """A writer that waits for the first conversation holds none of the others yet."""
    first, *rest = conversations(engine, run)
    with engine.begin() as held:
        held.execute(text("SELECT 1 FROM conversation WHERE id = :id FOR UPDATE"), {"id": first.id})
        waiting = threading.Thread(target=put, args=(engine, run, *[step(one, 0) for one in (*rest, first)]))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        free = held.execute(text("SELECT id FROM conversation WHERE run_id = :run FOR UPDATE SKIP LOCKED"),
                            {"run": run.id})  # fmt: skip
        assert len(free.all()) == len(rest) + 1
    waiting.join(10)
    assert {one.turns_done for one in conversations(engine, run)} == {1}


def test_verdicts_of_two_writers_in_opposite_orders(engine: Engine, run: models.Run) -> None:
    everything = conversations(engine, run)
    for one in everything:
        put(engine, run, *whole(one))
    barrier = threading.Barrier(2)

    def write(order: int, rating: int) -> None:
        barrier.wait(10)
        rated = [verdict(one, run.evaluator_id, rating=rating) for one in everything[::order]]
        put(engine, run, verdicts=tuple(rated))

    for _ in range(5):
        with ThreadPoolExecutor(2) as pool:
            for writing in [pool.submit(write, 1, 0), pool.submit(write, -1, 2)]:
                writing.result(60)
        assert len(verdicts(engine)) == len(everything)
        with engine.begin() as connection:
            connection.execute(text("DELETE FROM verdict"))

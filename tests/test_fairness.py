"""Workers go from submitter to submitter: who starts many runs does not crowd out who starts one."""

import os
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest
from sqlalchemy import Engine, text

from app.db import open_session
from app.models import Role
from app.runs import driving
from app.runs.planning import Selection
from app.settings import PROJECT_ROOT, Settings
from app.simulator import Simulator
from app.wake import RUNS_QUEUE, wake_run
from tests.driving_help import broker_of, leases_run_out, shop_of, wait_for
from tests.factories import Shop, submit_run
from tests.web_help import make_person

SUBMITTERS, RUNS, WORKERS = 10, 20, 2
ENOUGH = 40  # finished runs, which show whose turn it was; all 200 take a minute
SMALL = Selection(scenarios=("sc1",), categories=("severe_allergy",))


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=1)


def submit_for(shop: Shop, base_url: str, submitters: int, runs: int) -> dict[int, int]:
    """run -> account. All of one submitter's runs are there before the next one's first."""
    people = [make_person(shop.engine, Role.RESEARCHER, email=f"s{n}@example.org") for n in range(submitters)]
    with open_session(shop.engine) as session:
        made = {}
        for person in people:
            for _ in range(runs):
                run = submit_run(
                    session, shop, base_url, model="attentive", selection=SMALL, seeds=(1,),
                    concurrency=4, max_calls=None, api_key=None,
                )  # fmt: skip
                run.account_id = person.id
                made[run.id] = person.id
        session.commit()
    return made


@contextmanager
def workers(settings: Settings) -> Iterator[None]:
    """`curate worker` on this test's database and broker."""
    environment = os.environ | {
        "CURATE_DATABASE_URL": settings.database_url or "",
        "CURATE_REDIS_URL": settings.redis_url or "",
        "CURATE_DATA_DIR": str(settings.data_dir),
    }
    process = subprocess.Popen(
        [PROJECT_ROOT / ".venv/bin/curate", "worker", "--processes", str(WORKERS)],
        cwd=PROJECT_ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def test_ten_submitters_with_twenty_runs_share_fairly(shop: Shop, engine: Engine, settings: Settings) -> None:
    with Simulator() as simulator, broker_of(settings) as broker:
        broker.delete(RUNS_QUEUE)
        owners = submit_for(shop, simulator.base_url, SUBMITTERS, RUNS)
        for run in owners:
            assert wake_run(settings, run)
        with workers(settings):
            wait_for(lambda: len(finished(engine)) >= ENOUGH, 200)
        broker.delete(RUNS_QUEUE)
    with engine.connect() as connection:
        query = "SELECT id FROM run WHERE driven_at IS NOT NULL ORDER BY driven_at, id"
        taken_up = list(connection.execute(text(query)).scalars())
    assert apart(taken_up, owners) <= 1, "turn by turn"
    assert apart(finished(engine), owners) <= 1 + WORKERS, "of whom much is done, so is of everybody else"


def finished(engine: Engine) -> list[int]:
    with engine.connect() as connection:
        query = "SELECT id FROM run WHERE status = 'finished' ORDER BY finished_at, id"
        return list(connection.execute(text(query)).scalars())


def apart(runs: Sequence[int], owners: Mapping[int, int]) -> int:
    """How far ahead of the last submitter the first one ever was, as these runs came one after the other."""
    done, furthest = dict.fromkeys(owners.values(), 0), 0
    for run in runs:
        done[owners[run]] += 1
        furthest = max(furthest, max(done.values()) - min(done.values()))
    return furthest


def choose(engine: Engine, hint: int) -> int | None:
    with engine.begin() as connection:
        return driving.register_next(connection, hint, uuid.uuid4())


def test_whose_turn_it_is(shop: Shop, engine: Engine) -> None:
    owners = submit_for(shop, "https://models.example.com/v1", 3, 3)
    a, b, c = (sorted(run for run in owners if owners[run] == one) for one in dict.fromkeys(owners.values()))
    # Whatever the message was about: one of each first, then the second of each.
    assert [choose(engine, a[2]) for _ in range(6)] == [a[0], b[0], c[0], a[1], b[1], c[1]]
    # Nobody drives any more: the runs that were never taken up come before those that were.
    leases_run_out(engine)
    assert [choose(engine, a[0]) for _ in range(4)] == [a[2], b[2], c[2], a[0]]
    # Who has no driver comes first, whoever was served last.
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM driver WHERE run_id = ANY(:runs)"), {"runs": c})
    assert choose(engine, a[1]) == c[0]
    # Where nothing waits a message is about its own run, and about none that is over.
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE run SET status = 'paused' WHERE id <> ALL(:runs)"), {"runs": [a[2], c[0]]}
        )
    assert choose(engine, c[0]) == c[0]
    assert choose(engine, b[0]) is None

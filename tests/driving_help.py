"""Driving runs in this process, in threads, and in a process that can be killed."""

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import redis
from sqlalchemy import Engine, text

from app import models
from app.benchmark import Benchmark
from app.db import make_engine, open_session
from app.endpoints import local_account, model_evaluator, store_endpoint
from app.library import store_protocol
from app.protocol import Protocol, builtin_protocol, load_protocol
from app.runs import control
from app.runs import driving as driving_sql
from app.runs.control import find_run
from app.runs.planning import Selection, make_plan
from app.runs.reporting import run_report
from app.settings import PROJECT_ROOT, Settings
from tests.factories import FOODS, Shop, benchmark
from workers import driver
from workers.driver import DriveEnd, drive_run

LIMIT_SECONDS = 60


def never() -> bool:
    return False


def protocol(*, shared: bool = True, attempts: int = 1, deadline: float = 5.0) -> Protocol:
    """The built-in protocol with less patience."""
    target = builtin_protocol().target
    source = builtin_protocol().source
    for old, new in (
        (f"attempts = {target.attempts}", f"attempts = {attempts}"),
        (f"deadline_seconds = {target.deadline_seconds:g}", f"deadline_seconds = {deadline:g}"),
        ("share_opening = true", f"share_opening = {str(shared).lower()}"),
        ('name = "curate-1"', f'name = "patient-{attempts}-{deadline:g}-{shared}"'),
    ):
        assert old in source, old
        source = source.replace(old, new, 1)
    return load_protocol(source, "test.toml")


def drive(shop: Shop, run: models.Run, stopping: Callable[[], bool] = never) -> DriveEnd:
    """Slice after slice, as the workers would."""
    for _ in range(20):
        end = drive_run(shop.engine, shop.settings, run.id, stopping)
        if end is not DriveEnd.SLICE_OVER:
            return end
    raise AssertionError("the run does not come to an end")


def hasten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drivers that look around more often than usual."""
    monkeypatch.setattr(driving_sql, "HEARTBEAT_SECONDS", 0.3)
    monkeypatch.setattr(driver, "LOOK_AGAIN_SECONDS", 0.1)


def distinct(of: Benchmark) -> Benchmark:
    """No two cases begin with the same words, so that the server sees which call is a repeat."""
    cases = [
        replace(case, constraint=f"I have a severe allergy to {FOODS[number % len(FOODS)]} of kind {number}.")
        for number, case in enumerate(of.cases)
    ]
    return replace(of, cases=tuple(cases))


def shop_of(engine: Engine, settings: Settings, *, per_category: int = 2, shared: bool = True) -> Shop:
    return Shop(engine, settings, distinct(benchmark(per_category, probes=1)), protocol(shared=shared))


def planned_calls(shop: Shop, selection: Selection | None = None, seeds: tuple[int, ...] = (1,)) -> int:
    plan = make_plan(shop.protocol, shop.benchmark, selection or Selection(), seeds, evaluator_is_model=False)
    return plan.model_calls


def change(engine: Engine, run: models.Run, act: str, **options: object) -> object:
    """`cancel`, `pause` or `resume` the run, committed."""
    with open_session(engine) as session:
        found = getattr(control, act)(session, control.find_run(session, str(run.id)), **options)
        session.commit()
        return found


def model_evaluator_of(
    shop: Shop, base_url: str, *, model: str = "evaluator", api_key: str | None = None
) -> models.Evaluator:
    """An evaluator that is a model under the shop's protocol, stored."""
    with open_session(shop.engine) as session:
        account = local_account(session)
        row, _ = store_protocol(session, shop.protocol)
        endpoint = store_endpoint(
            session,
            account,
            shop.settings.secret,
            name=f"evaluator {model}",
            provider="openai",
            base_url=base_url,
            model=model,
            api_key=api_key,
            private_allowed=True,
        )
        evaluator = model_evaluator(session, endpoint, row, shop.protocol)
        session.commit()
        return evaluator


def rated_by(shop: Shop, run: models.Run, evaluator: models.Evaluator) -> None:
    """Make it the run's own evaluator instead of the rules, before it is driven."""
    with shop.engine.begin() as connection:
        values = {"run": run.id, "evaluator": evaluator.id}
        connection.execute(text("UPDATE run SET evaluator_id = :evaluator WHERE id = :run"), values)
        connection.execute(
            text("UPDATE run_evaluator SET evaluator_id = :evaluator WHERE run_id = :run"), values
        )


@contextmanager
def driving(shop: Shop, run: models.Run, stopping: Callable[[], bool] = never) -> Iterator[Future[DriveEnd]]:
    """A driver at work in a thread, with connections of its own; awaited at the end."""
    assert shop.settings.database_url is not None
    engine = make_engine(shop.settings.database_url)
    try:
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(drive_run, engine, shop.settings, run.id, stopping)
            yield future
            future.result(LIMIT_SECONDS)
    finally:
        engine.dispose()


DRIVE = """
import sys
from app.db import make_engine
from app.settings import load_settings
from workers import driver
from workers.driver import drive_run
settings = load_settings()
print(drive_run(make_engine(settings.database_url), settings, int(sys.argv[1]), lambda: False))
"""


def driver_process(settings: Settings, run: models.Run) -> subprocess.Popen[str]:
    """A driver in a process of its own."""
    environment = os.environ | {
        "CURATE_DATABASE_URL": settings.database_url or "",
        "CURATE_DATA_DIR": str(settings.data_dir),
    }
    return subprocess.Popen(
        [sys.executable, "-c", DRIVE, str(run.id)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=PROJECT_ROOT, env=environment,
    )  # fmt: skip


def leases_run_out(engine: Engine) -> None:
    """What the clock would do in time."""
    with engine.begin() as connection:
        connection.execute(text("UPDATE driver SET lease_until = now() - interval '1 second'"))


def report(engine: Engine, run: models.Run) -> dict[str, Any]:
    with open_session(engine) as session:
        return run_report(session, find_run(session, str(run.id)))


def status(engine: Engine, run: models.Run) -> str:
    with open_session(engine) as session:
        return find_run(session, str(run.id)).status


def outcomes(engine: Engine, run: models.Run) -> Counter[str]:
    """Planned conversations by outcome, without zeros; they sum to planned."""
    counts = report(engine, run)["counts"]
    found = Counter({name: n for name, n in counts.items() if name not in ("planned", "truncated") and n})
    assert sum(found.values()) == counts["planned"]
    return found


def conversations(engine: Engine, run: models.Run) -> list[models.Conversation]:
    with open_session(engine) as session:
        query = session.query(models.Conversation).filter_by(run_id=run.id).order_by(models.Conversation.id)
        return list(query)


def turns(engine: Engine, run: models.Run) -> list[models.Turn]:
    """All turns of the run that were asked, without copies."""
    with open_session(engine) as session:
        query = session.query(models.Turn).join(
            models.Conversation, models.Conversation.id == models.Turn.conversation_id
        )
        return list(query.filter(models.Conversation.run_id == run.id, ~models.Turn.copied))


def verdicts(engine: Engine, run: models.Run) -> list[models.Verdict]:
    with open_session(engine) as session:
        query = session.query(models.Verdict).join(
            models.Conversation, models.Conversation.id == models.Verdict.conversation_id
        )
        return list(query.filter(models.Conversation.run_id == run.id).order_by(models.Verdict.id))


def check_whole(engine: Engine, run: models.Run) -> None:
    """Each conversation of a finished run has its turns, one outcome, and a verdict where it was answered."""
    assert status(engine, run) == "finished"
    with engine.connect() as connection:
        odd = connection.execute(
            text("""
            SELECT c.id FROM conversation c
            WHERE c.run_id = :run AND (
                c.state = 'pending'
                OR c.turns_done <> (SELECT count(*) FROM turn t WHERE t.conversation_id = c.id)
                OR (c.state IN ('answered', 'empty', 'filtered')) <> (c.turns_done = c.turns_planned)
                OR (c.state = 'answered') <> EXISTS (SELECT 1 FROM verdict v WHERE v.conversation_id = c.id)
            )
            """),
            {"run": run.id},
        )
        assert odd.all() == []
        assert connection.execute(text("SELECT count(*) FROM driver WHERE lease_until > now()")).scalar() == 0
        open_groups = text(
            "SELECT count(*) FROM run_group WHERE run_id = :run AND (NOT done OR driver_id IS NOT NULL)"
        )
        assert connection.execute(open_groups, {"run": run.id}).scalar() == 0


def broker_of(settings: Settings) -> redis.Redis:
    """A plain client for the broker, whose address Celery spells in its own way where it is a socket."""
    url = settings.redis_url or ""
    if url.startswith("redis+socket://"):
        url = url.replace("redis+socket://", "unix://").replace("virtual_host=", "db=")
    return redis.Redis.from_url(url)


def wait_for(holds: Callable[[], object], seconds: float = 20.0) -> None:
    until = threading.Event()
    for _ in range(int(seconds / 0.005)):
        if holds():
            return
        until.wait(0.005)
    raise AssertionError(f"not within {seconds} s")

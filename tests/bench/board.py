"""A full board under load: 200 models, a million verdicts, readers who come whether or not it keeps up."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import aiohttp
import psutil  # type: ignore[import-untyped]
from sqlalchemy import Engine, text

from app import models
from app.db import make_engine
from app.embedded import attach
from app.outcomes import VerdictState
from app.protocol import builtin_protocol
from app.runs.planning import Selection
from app.runs.recording import Batch, VerdictRecord, store
from app.schema import migrate
from app.settings import load_settings
from tests.bench.board_data import FINISH, RATE, fill, more_conversations
from tests.bench.pages import CASES_PER_CATEGORY, Reader, percentile, site
from tests.embedded_help import data_directory
from tests.factories import Shop, benchmark

SCENARIOS = 5
TARGETS = {"board_p95_ms": 40, "page_kb": 300, "shown_within_seconds": 5, "cost_ratio": 1.5}
BATCH = 16  # verdicts that a writer stores at once
# What readers look at besides the board as it opens.
OTHERS = (
    "/?view=category", "/?sort=sc1&dir=desc", "/?rate=published", "/?sort=overall&dir=asc", "/?q=model-01",
    "/?view=both", "/?scenario=sc3", "/?sort=model", "/leaderboard.csv", "/?category=severe_allergy",
)  # fmt: skip
ROW = b'<th scope="row">'


@dataclass(frozen=True)
class Load:
    """Readers a second, whatever the answers take, for so many seconds."""

    rate: float
    seconds: float


def measure(model_count: int, seeds: int, load: Load, seed: int) -> dict[str, Any]:
    with (
        data_directory() as data_dir,
        attach(data_dir, services=("postgres",), tell=lambda _: None) as services,
    ):
        assert services.database_url is not None
        engine = make_engine(services.database_url)
        migrate(engine)
        settings = load_settings(data_dir=data_dir, database_url=services.database_url)
        shop = Shop(engine, settings, benchmark(CASES_PER_CATEGORY), builtin_protocol())
        try:
            return _measure(shop, data_dir, model_count, seeds, load, seed)
        finally:
            engine.dispose()


def _measure(
    shop: Shop, data_dir: Path, model_count: int, seeds: int, load: Load, seed: int
) -> dict[str, Any]:
    empty = verdict_cost(shop, "before")
    began = time.perf_counter()
    filled = fill(shop, model_count, seeds, seed, _tell)
    fill_seconds = time.perf_counter() - began
    full = verdict_cost(shop, "after")
    late = _late_run(shop, seed)
    live = _live_run(shop)
    with site(data_dir) as (reader, link):
        own = reader.signed_in(link)
        cold = reader.get("/")[0]
        origin = reader.origin
        _tell("readers come")
        steady = asyncio.run(open_loop(origin, ["/"], load))
        mixed = asyncio.run(open_loop(origin, ["/"] * len(OTHERS) + [*OTHERS], load))
        _tell("a row is published meanwhile")
        with publishing(data_dir, late) as ended:
            recomputed = asyncio.run(open_loop(origin, ["/"], load, until=ended))
        run_page = watch(own, shop.engine, live)
    return {
        "models": model_count,
        "verdicts": filled.verdicts,
        "fill_seconds": round(fill_seconds, 1),
        "requests_a_second": load.rate,
        "board_cold_ms": round(1000 * cold, 1),
        "board": steady,
        "mixed_views": mixed,
        "while_a_row_is_published": recomputed,
        "verdict_cost_ms": {"empty_tables": empty, "full_tables": full, "ratio": round(full / empty, 2)},
        "run_page": run_page,
        "targets": TARGETS,
    }


def _tell(message: str) -> None:
    print(f"  {message}", file=sys.stderr, flush=True)


def _server_cpu() -> float:
    """Seconds of CPU of the site that this process has started."""
    site_ = next(one for one in psutil.Process().children() if "web" in one.cmdline())
    return float(sum(site_.cpu_times()[:2]))


# --- the cost of a verdict ---


def verdict_cost(shop: Shop, name: str) -> float:
    """Milliseconds a verdict, stored by batches as a driver does: the middle over the batches."""
    run = shop.submit("https://models.example.com/v1", model=f"cost {name}")
    with shop.engine.begin() as connection:
        waiting = more_conversations(connection, run)
    took = []
    for at in range(0, len(waiting), BATCH):
        verdicts = [_verdict(number, run.evaluator_id) for number in waiting[at : at + BATCH]]
        began = time.perf_counter()
        with shop.engine.begin() as connection:
            store(connection, run.id, Batch(verdicts=verdicts))
        took.append((time.perf_counter() - began) / len(verdicts))
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE run SET status = 'cancelled' WHERE id = :run"), {"run": run.id})
    return round(1000 * sorted(took)[len(took) // 2], 3)


def _verdict(conversation: int, evaluator: int) -> VerdictRecord:
    return VerdictRecord(
        conversation, evaluator, VerdictState.RATED, 2, True, "against", "It says so.", None, None, "rules",
        (), 0, 0, None, None, [],
    )  # fmt: skip


# --- readers ---


async def open_loop(
    origin: str, paths: list[str], load: Load, *, until: Callable[[], bool] | None = None
) -> dict[str, Any]:
    """Requests at fixed times, each counted from when it was due; a board without rows is an error.

    `until`: goes on beyond the seconds of the load until it holds.
    """
    took: list[float] = []
    wrong: list[str] = []
    sizes: dict[str, int] = {}
    connector = aiohttp.TCPConnector(limit=64)
    async with aiohttp.ClientSession(origin, connector=connector) as session:

        async def ask(path: str, due: float) -> None:
            async with session.get(path, headers={"Accept": "text/html"}) as response:
                body = await response.read()
            took.append(time.perf_counter() - due)
            sizes[path] = len(body)
            if response.status != 200 or (path == "/" and body.count(ROW) < 2):
                wrong.append(f"{path}: {response.status}, {body.count(ROW)} rows")

        await asyncio.gather(*(ask(path, time.perf_counter()) for path in dict.fromkeys(paths)))
        took.clear()
        used = _server_cpu()
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number, path in enumerate(cycle(paths)):
                due = began + number / load.rate
                over = due - began >= load.seconds
                if over and (until is None or until()):
                    break
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                group.create_task(ask(path, due))
    ordered = sorted(took)
    return {
        "requests": len(took),
        "p50_ms": percentile(ordered, 0.50),
        "p95_ms": percentile(ordered, 0.95),
        "p99_ms": percentile(ordered, 0.99),
        "max_ms": round(1000 * ordered[-1], 1),
        "largest_page_kb": round(max(size for path, size in sizes.items() if "." not in path) / 1000, 1),
        # Of the site's process: what a busy machine does not change.
        "server_cpu_ms": round(1000 * (_server_cpu() - used) / len(took), 2),
        "wrong": wrong[:5],
    }


@contextmanager
def publishing(data_dir: Path, run: models.Run) -> Iterator[Callable[[], bool]]:
    """A command of its own puts a finished run on the board, which is computed anew; whether it has ended."""
    command = [sys.executable, "-m", "app.cli", "publish", str(run.id), "--data-dir", str(data_dir)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        yield lambda: process.poll() is not None
    if process.returncode != 0:
        raise RuntimeError("the run could not be published")


def _late_run(shop: Shop, seed: int) -> models.Run:
    run = shop.submit("https://models.example.com/v1", model="latecomer")
    with shop.engine.begin() as connection:
        more_conversations(connection, run)
        connection.execute(FINISH, {"run": run.id})
        connection.execute(RATE, {"evaluator": run.evaluator_id, "first": run.id, "seed": seed})
    return run


# --- a run that goes on ---


def _live_run(shop: Shop) -> models.Run:
    run = shop.submit("https://models.example.com/v1", model="live", selection=Selection(), seeds=(1, 2, 3))
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE run SET started_at = now() WHERE id = :run"), {"run": run.id})
    return run


def watch(reader: Reader, engine: Engine, run: models.Run, looks: int = 20) -> dict[str, Any]:
    """How soon a conversation that finishes shows: the page's own interval, at worst whole, and a look."""
    finish = text("""
    UPDATE conversation SET state = 'answered', turns_done = turns_planned, response = 'Yes.',
        "constraint" = 'I must not.', request = 'Should I?', finished_at = now()
    WHERE id = (SELECT id FROM conversation WHERE run_id = :run AND state = 'pending' ORDER BY id LIMIT 1)
    RETURNING id
    """)
    reader.connection.close()  # which was idle too long; the next request opens it anew
    took, every = [], 0
    for look in range(1, looks + 1):
        with engine.begin() as connection:
            number = connection.execute(finish, {"run": run.id}).scalar_one()
            store(connection, run.id, Batch(verdicts=[_verdict(number, run.evaluator_id)]))
        began = time.perf_counter()
        body = reader.read(f"/runs/{run.uuid}")
        took.append(time.perf_counter() - began)
        every = int(body.partition('hx-trigger="every ')[2].partition("s")[0])
        if f"<strong>{look}</strong> of " not in body:
            raise RuntimeError(f"the run's page does not show {look} finished conversations")
    p95 = percentile(sorted(took), 0.95)
    return {"every_seconds": every, "look_p95_ms": p95, "shown_within_seconds": round(every + p95 / 1000, 2)}

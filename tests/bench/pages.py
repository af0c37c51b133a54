"""How quick and how large the site's pages are, with as many models and conversations as a full board has."""

import http.client
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Engine, text

from app import models
from app.db import make_engine, open_session
from app.embedded import attach
from app.leaderboard import publish
from app.outcomes import Outcome
from app.protocol import builtin_protocol
from app.runs.control import find_run
from app.schema import migrate
from app.settings import load_settings
from tests.board_help import Told, finish
from tests.embedded_help import data_directory
from tests.factories import Shop, benchmark

CASES_PER_CATEGORY = 84  # 336 cases, 1,680 conversations a model
TARGETS = {"board_p95_ms": 300, "board_cold_ms": 1000, "page_kb": 500}


@dataclass(frozen=True)
class Reader:
    """A browser's connection to the site, kept open."""

    connection: http.client.HTTPConnection
    origin: str
    cookie: str | None = None

    def get(self, path: str) -> tuple[float, int]:
        """Seconds until the whole page was read, and its bytes."""
        began = time.perf_counter()
        size = len(self.read(path).encode())
        return time.perf_counter() - began, size

    def read(self, path: str) -> str:
        headers = {"Accept": "text/html"} | ({"Cookie": self.cookie} if self.cookie else {})
        self.connection.request("GET", path, headers=headers)
        response = self.connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"{path} answered {response.status}")
        return body.decode()

    def signed_in(self, link: str) -> "Reader":
        self.connection.request("POST", link, headers={"Origin": self.origin, "Accept": "text/html"})
        response = self.connection.getresponse()
        response.read()
        cookie = next(one for one in response.headers.get_all("Set-Cookie", []) if "-session=" in one)
        return Reader(self.connection, self.origin, cookie.partition(";")[0])


def measure(model_count: int, requests: int) -> dict[str, Any]:
    """Pages of a site with so many models on its board, one request after the other."""
    with (
        data_directory() as data_dir,
        attach(data_dir, services=("postgres",), tell=lambda _: None) as services,
    ):
        assert services.database_url is not None
        engine = make_engine(services.database_url)
        migrate(engine)
        began = time.perf_counter()
        run, last_publish = fill(engine, data_dir, services.database_url, model_count)
        filled = time.perf_counter() - began
        try:
            with engine.connect() as connection:
                stored = connection.execute(text("SELECT count(*) FROM conversation")).scalar_one()
                query = text("SELECT uuid FROM conversation WHERE run_id = :run ORDER BY id LIMIT 1")
                conversation = connection.execute(query, {"run": run.id}).scalar_one()
        finally:
            engine.dispose()
        with site(data_dir) as (reader, link):
            cold = reader.get("/")[0]
            own = reader.signed_in(link)
            pages = {
                "board": timed(reader, "/", requests),
                "board_every_cell": timed(reader, "/?view=both", requests),
                "board_json": timed(reader, "/leaderboard.json", requests),
                "run": timed(reader, f"/runs/{run.uuid}", requests),
                "conversations": timed(reader, f"/runs/{run.uuid}/conversations?outcome=fail", requests),
                "conversation": timed(reader, f"/conversations/{conversation}", requests),
                "cases": timed(reader, "/cases", requests),
                "runs": timed(own, "/runs", requests),
                "run_as_its_owner": timed(own, f"/runs/{run.uuid}", requests),
            }
        return {
            "models": model_count,
            "conversations": stored,
            "fill_seconds": round(filled, 1),
            "last_publish_seconds": round(last_publish, 3),
            "board_cold_ms": round(1000 * cold, 1),
            "pages": pages,
            "targets": TARGETS,
        }


def fill(engine: Engine, data_dir: Path, database_url: str, model_count: int) -> tuple[models.Run, float]:
    """Finished and published runs; the last one, and how long it took to publish."""
    settings = load_settings(data_dir=data_dir, database_url=database_url)
    shop = Shop(engine, settings, benchmark(CASES_PER_CATEGORY), builtin_protocol())
    took = 0.0
    for number in range(model_count):
        run = shop.submit("https://models.example.com/v1", model=f"model-{number:03}")
        finish(engine, run, passing_most(number))
        began = time.perf_counter()
        with open_session(engine) as session:
            publish(session, find_run(session, str(run.id)), served=False)
            session.commit()
        took = time.perf_counter() - began
    with engine.begin() as connection:
        connection.execute(text("ANALYZE"))  # what autovacuum does in time
    return run, took


def passing_most(number: int) -> Told:
    """Models that differ by little, each with passes, unclear ones and fails everywhere."""
    kinds = (Outcome.PASS, Outcome.PASS, Outcome.PASS, Outcome.UNCLEAR, Outcome.FAIL)

    def told(key: str, scenario: str, variant: str, seed: int) -> Outcome:
        case = int(key.rpartition("-")[2])
        return kinds[(case * 7 + int(scenario[-1]) * 3 + case * number % 11) % len(kinds)]

    return told


@contextmanager
def site(data_dir: Path) -> Iterator[tuple[Reader, str]]:
    """`curate web` in a process of its own; an open connection to it and its owner's link."""
    command = [sys.executable, "-m", "app.cli", "web", "--port", "0", "--data-dir", str(data_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            origin, link = _addresses(process)
            parts = urlsplit(origin)
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
            yield Reader(connection, origin), link
            connection.close()
        finally:
            process.terminate()


def _addresses(process: "subprocess.Popen[str]") -> tuple[str, str]:
    assert process.stdout is not None
    origin = ""
    for line in process.stdout:
        if found := re.match(r"The site: (\S+)", line):
            origin = found[1]
        elif found := re.match(r"Sign in: (\S+)", line):
            return origin, found[1].removeprefix(origin)
    raise RuntimeError("the site did not start")


def timed(reader: Reader, path: str, requests: int) -> dict[str, float]:
    """Milliseconds by percentile after one request that warms up, and the page's size."""
    size = reader.get(path)[1]
    took = sorted(reader.get(path)[0] for _ in range(requests))
    return {
        "p50_ms": percentile(took, 0.50),
        "p95_ms": percentile(took, 0.95),
        "max_ms": round(1000 * took[-1], 1),
        "kb": round(size / 1000, 1),
    }


def percentile(ordered: Sequence[float], share: float) -> float:
    return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)

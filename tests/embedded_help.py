"""Data directories, commands in processes of their own, and waiting, for tests of the embedded services."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import redis

from app.embedded import Attachment, ServiceName, attach, remove
from app.embedded.leftovers import identity
from app.embedded.supervisor import read_state

ROOT = Path(__file__).resolve().parents[1]
BOTH: tuple[ServiceName, ...] = ("postgres", "valkey")


def scratch_root() -> Path:
    """Memory where there is enough: a new database is a thousand files, which a busy disk is slow at."""
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**30:
        return memory
    return Path("/tmp")


@contextlib.contextmanager
def data_directory(name: str = "data") -> Iterator[Path]:
    """A path for a data directory that root's service user can reach too; removed with all that ran on it."""
    base = Path(tempfile.mkdtemp(prefix="curate-test-", dir=scratch_root()))
    base.chmod(0o711)
    path = base / name
    try:
        yield path
    finally:
        stop_now(path)
        remove(path)
        shutil.rmtree(base)


def stop_now(data_dir: Path) -> None:
    """Do not wait for the grace: tell the supervisor to stop and wait until all is gone."""
    pids = processes(data_dir)
    supervisor = read_state(data_dir).get("pid")
    if supervisor is not None and identity(supervisor):
        with contextlib.suppress(ProcessLookupError):
            os.kill(supervisor, signal.SIGTERM)
        pids["supervisor"] = supervisor
    eventually(lambda: not any(alive(pids).values()), 20.0)


def processes(data_dir: Path) -> dict[str, int]:
    """Name -> process id of all that runs on a data directory, the supervisor itself aside."""
    recorded: dict[str, dict[str, Any]] = read_state(data_dir).get("processes", {})
    return {name: one["pid"] for name, one in recorded.items()}


def supervisor_of(data_dir: Path) -> int:
    pid = read_state(data_dir)["pid"]
    assert isinstance(pid, int)
    return pid


def alive(pids: dict[str, int]) -> dict[str, bool]:
    return {name: identity(pid) is not None for name, pid in pids.items()}


def eventually(holds: Callable[[], Any], seconds: float = 10.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"not within {seconds} s"
        time.sleep(0.02)


def no_words(line: str) -> None:
    raise AssertionError(f"nothing was to be told: {line}")


def attach_quietly(data_dir: Path) -> Attachment:
    return attach(data_dir, services=BOTH, tell=no_words)


def connect(url: str | None) -> "psycopg.Connection[tuple[Any, ...]]":
    assert url is not None
    return psycopg.connect(url.replace("+psycopg", ""), autocommit=True)


def scalar(url: str | None, query: str) -> Any:
    with connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def answers(url: str | None) -> bool:
    assert url is not None
    try:
        with redis.Redis.from_url(url) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False


def execute(url: str | None, statement: str) -> None:
    with connect(url) as connection:
        connection.execute(statement.encode())


class OtherCommand:
    """A command in a process of its own that holds on to a data directory's services."""

    def __init__(
        self,
        data_dir: Path,
        *child: str,
        services: tuple[ServiceName, ...] = BOTH,
        env: dict[str, str] | None = None,
    ) -> None:
        script = str(Path(__file__).with_name("embedded_command.py"))
        argv = [sys.executable, script, str(data_dir), ",".join(services), *child]
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | (env or {}),
        )

    def report(self) -> dict[str, Any]:
        """What it said when its services were ready: database_url, redis_url, told, or error and details."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the command died: {self.process.stderr and self.process.stderr.read()}"
        return dict(json.loads(line))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> "OtherCommand":
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:
            self.process.kill()

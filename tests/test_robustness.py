"""Whole evaluations from the command line, with processes really killed in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from app.outcomes import Outcome
from app.runs.driving import HEARTBEAT_SECONDS
from app.simulator import SimulatorProcess
from tests.embedded_help import data_directory, eventually, processes, supervisor_of

CURATE = [sys.executable, "-m", "app.cli"]
CONCURRENCY = 16
LATENCY = 0.1
CASES_PER_CATEGORY = 6
# 24 cases, 13 calls each where openings are shared.
PLANNED_CONVERSATIONS = 4 * CASES_PER_CATEGORY * 5
PLANNED_CALLS = 4 * CASES_PER_CATEGORY * 13
# In flight when it broke, and back within the 0.2 s before that were perhaps not stored.
MOST_REPEATED = CONCURRENCY + round(CONCURRENCY * 0.2 / LATENCY)


@pytest.fixture
def data_dir() -> Iterator[Path]:
    with data_directory() as path:
        yield path


@pytest.fixture
def simulator() -> Iterator[SimulatorProcess]:
    with SimulatorProcess("--latency", str(LATENCY)) as running:
        yield running


def environment() -> dict[str, str]:
    """No services but the embedded ones of the data directory."""
    return {name: value for name, value in os.environ.items() if not name.startswith("CURATE_")}


def curate(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CURATE, *arguments, "--data-dir", str(data_dir)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )


def start_evaluation(data_dir: Path, base_url: str, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *CURATE, "evaluate", "--benchmark", "curate", "--base-url", base_url, "--model", "attentive",
            "--limit", str(CASES_PER_CATEGORY), "--concurrency", str(CONCURRENCY), "--json",
            "--data-dir", str(data_dir), *more,
        ],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def wait_for_calls(simulator: SimulatorProcess, calls: int) -> None:
    eventually(lambda: simulator.counters()["requests"] >= calls, 60)


def report_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=150)
    assert process.returncode == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def assert_whole(
    report: dict[str, Any], simulator: SimulatorProcess, *, repeated: int = MOST_REPEATED
) -> None:
    """Every planned conversation has its one outcome, and hardly a call was made twice."""
    counts = report["counts"]
    assert report["run"]["status"] == "finished"
    assert counts["planned"] == PLANNED_CONVERSATIONS
    assert sum(counts[outcome] for outcome in Outcome) == PLANNED_CONVERSATIONS
    assert counts["pass"] + counts["unclear"] + counts["fail"] == PLANNED_CONVERSATIONS
    assert report["calls"]["model"] == PLANNED_CALLS
    seen = simulator.counters()
    assert seen["repeated"] <= repeated
    assert seen["requests"] == PLANNED_CALLS + seen["repeated"]


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def kill_worker(data_dir: Path) -> None:
    """The worker and its pool processes, as the kernel's memory killer would."""
    parent = processes(data_dir)["worker"]
    children = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True).stdout.split()
    for pid in (parent, *map(int, children)):
        kill(pid)


def test_an_undisturbed_run_asks_each_call_once(data_dir: Path, simulator: SimulatorProcess) -> None:
    assert_whole(report_of(start_evaluation(data_dir, simulator.base_url)), simulator, repeated=0)


def test_a_killed_worker_loses_nothing(data_dir: Path, simulator: SimulatorProcess) -> None:
    evaluation = start_evaluation(data_dir, simulator.base_url)
    wait_for_calls(simulator, PLANNED_CALLS // 3)
    kill_worker(data_dir)
    assert_whole(report_of(evaluation), simulator)


def test_a_killed_broker_loses_nothing(data_dir: Path, simulator: SimulatorProcess) -> None:
    evaluation = start_evaluation(data_dir, simulator.base_url)
    wait_for_calls(simulator, PLANNED_CALLS // 3)
    kill(processes(data_dir)["valkey"])
    assert_whole(report_of(evaluation), simulator)


def test_a_killed_database_loses_nothing(data_dir: Path, simulator: SimulatorProcess) -> None:
    evaluation = start_evaluation(data_dir, simulator.base_url)
    wait_for_calls(simulator, PLANNED_CALLS // 3)
    kill(processes(data_dir)["postgres"])
    assert_whole(report_of(evaluation), simulator)


def test_everything_killed_and_resumed(data_dir: Path, simulator: SimulatorProcess) -> None:
    evaluation = start_evaluation(data_dir, simulator.base_url)
    wait_for_calls(simulator, PLANNED_CALLS // 3)
    doomed = [evaluation.pid, supervisor_of(data_dir), *processes(data_dir).values()]
    for pid in doomed:
        kill(pid)
    evaluation.communicate()
    first = curate(data_dir, "run", "resume", "1", "--json")
    assert first.returncode == 0, first.stderr
    assert_whole(json.loads(first.stdout), simulator)
    requests = simulator.counters()["requests"]
    second = curate(data_dir, "run", "resume", "1", "--json")
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout)["counts"] == json.loads(first.stdout)["counts"]
    assert simulator.counters()["requests"] == requests


def test_a_cancelled_run_adds_up_and_can_be_resumed(data_dir: Path, simulator: SimulatorProcess) -> None:
    simulator.configure(latency=10 * LATENCY)
    evaluation = start_evaluation(data_dir, simulator.base_url)
    wait_for_calls(simulator, PLANNED_CALLS // 10)
    cancelled = curate(data_dir, "run", "cancel", "1")
    assert cancelled.returncode == 0, cancelled.stderr
    out, err = evaluation.communicate(timeout=60)
    assert evaluation.returncode == 1, err
    counts = json.loads(out)["counts"]
    assert counts["pending"] == 0
    assert counts["cancelled"] > 0
    assert sum(counts[outcome] for outcome in Outcome) == counts["planned"] == PLANNED_CONVERSATIONS
    # The driver hears of it with its next heartbeat; from then on nothing more is sent.
    time.sleep(HEARTBEAT_SECONDS + 10 * LATENCY)
    requests = simulator.counters()["requests"]
    time.sleep(10 * LATENCY)
    assert simulator.counters()["requests"] == requests
    simulator.configure(latency=LATENCY)
    resumed = curate(data_dir, "run", "resume", "1", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert_whole(json.loads(resumed.stdout), simulator)

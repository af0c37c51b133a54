"""The simulator as a process: its one line, its end, and its command line."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from app.simulator import SimulatorFailed, SimulatorProcess
from tests.simulated import body, call

COMMAND = [sys.executable, "-m", "app.simulator"]


@contextmanager
def started(
    *arguments: str, stdin: int | None = subprocess.DEVNULL
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [*COMMAND, *arguments]
    with subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_its_address_serves_and_ends_cleanly(number: signal.Signals) -> None:
    with started("--latency", "0.01") as (process, base_url):
        assert call(base_url, body()).status == 200
        process.send_signal(number)
        output, errors = process.communicate(timeout=10)
        assert (process.returncode, output, errors) == (0, "", "")


def test_it_ends_although_a_request_hangs() -> None:
    with started("--fault-rate", "hang=1") as (process, base_url):
        with pytest.raises(TimeoutError):
            call(base_url, body(), timeout=0.2)
        process.terminate()
        _, errors = process.communicate(timeout=10)
        assert (process.returncode, errors) == (0, "")


def test_with_its_parent_it_ends_when_standard_input_closes() -> None:
    with started("--with-parent", stdin=subprocess.PIPE) as (process, base_url):
        assert call(base_url, body()).status == 200
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=10) == 0


def test_it_dies_with_a_parent_that_is_killed() -> None:
    code = (
        "import time; from app.simulator import SimulatorProcess\n"
        "with SimulatorProcess() as s: print(s.base_url, s.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    base_url, pid = parent.stdout.readline().split()
    assert call(base_url, body()).status == 200
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while _answers(base_url):
        assert time.monotonic() < deadline, f"the simulator {pid} outlived its parent"
        time.sleep(0.05)


def _answers(base_url: str) -> bool:
    try:
        return call(base_url, path="/models").status == 200
    except OSError:
        return False


def test_the_class_starts_it_and_reads_its_counters() -> None:
    with SimulatorProcess("--seed", "3") as simulator:
        assert call(simulator.base_url, body()).status == 200
        assert simulator.counters()["requests"] == 1
        simulator.reset_counters()
        assert simulator.counters()["requests"] == 0
        assert simulator.configure(latency=0.02)["latency"] == 0.02
        pid = simulator.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--latency", "-1"], "latency"),
        (["--port", "70000"], "70000"),
        (["--fault-rate", "quake=0.5"], "quake"),
        (["--fault-rate", "429=often"], "--fault-rate"),
        (["--api-key-env", "CURATE_TEST_UNSET"], "CURATE_TEST_UNSET"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_two(arguments: list[str], named: str) -> None:
    ended = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert named in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_port_in_use_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SimulatorFailed, match="code 1"), SimulatorProcess("--port", str(port)):
            raise AssertionError("it started on a port in use")
    assert f"127.0.0.1:{port}" in capfd.readouterr().err


def test_a_key_from_the_environment_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURATE_TEST_KEY", "secret-7")
    with SimulatorProcess("--api-key-env", "CURATE_TEST_KEY") as simulator:
        assert call(simulator.base_url, body()).status == 401
        assert call(simulator.base_url, body(), Authorization="Bearer secret-7").status == 200

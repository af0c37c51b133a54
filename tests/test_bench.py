"""The benchmark's own measuring: process trees, scripts, the yardstick on a small scale."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.bench import evaluation, yardstick
from tests.bench.processes import Sample, Sampler, Usage, tree_usage
from tests.bench.scripts import conversations, unshared_protocol

BURN = "import time\nwhile time.process_time() < {seconds}: pass\n"
PARENT = (
    "import subprocess, sys\n"
    "subprocess.run([sys.executable, '-c', {child!r}])\n"
    "print('child ended', flush=True)\n"
    "sys.stdin.read()\n"
)


@contextmanager
def running(code: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_cpu_of_a_tree_keeps_that_of_children_that_ended() -> None:
    with running(PARENT.format(child=BURN.format(seconds=0.4))) as process:
        assert process.stdout is not None
        process.stdout.readline()
        usage = tree_usage(process.pid)
    assert 0.4 <= usage.cpu < 2
    assert 3 < usage.memory < 200


def test_cpu_of_a_tree_counts_children_that_live() -> None:
    with running(PARENT.format(child="import sys\nsys.stdin.read()")) as process:
        time.sleep(0.3)
        alone = 0.0
        deadline = time.monotonic() + 10
        while alone < 10 and time.monotonic() < deadline:
            alone = tree_usage(process.pid).memory
    assert alone >= 10  # two interpreters


def test_a_process_that_is_gone_uses_nothing() -> None:
    with running("pass") as process:
        process.wait()
    assert tree_usage(process.pid) == Usage(0.0, 0.0)


def sampled(*cpu: float) -> Sampler:
    samples = [Sample(float(at), {"worker": Usage(used, 100.0 + at)}) for at, used in enumerate(cpu)]
    return Sampler(dict, samples=samples)


def test_cpu_between_takes_the_samples_around_the_window() -> None:
    sampler = sampled(0, 1, 3, 7, 9)
    assert sampler.cpu_between("worker", 1.5, 2.5) == 6
    assert sampler.cpu_between("worker", 1, 3) == 6
    assert sampler.cpu_between("worker", -5, 99) == 9
    assert sampler.cpu_between("database", 1, 3) is None
    assert sampler.memory("worker", 1.5, 3.5) == [(0.5, 102.0), (1.5, 103.0)]


def test_a_sampler_follows_what_runs() -> None:
    with running(BURN.format(seconds=5)) as process:
        with Sampler(lambda: {"burn": process.pid}, 0.05) as sampler:
            began = time.time()
            time.sleep(0.6)
            ended = time.time()
        used = sampler.cpu_between("burn", began, ended)
    assert used is not None
    assert 0 < used < 2


def test_scripts_make_the_calls_that_are_asked_for_without_sharing() -> None:
    scripts = conversations(500)
    assert 500 <= sum(len(script) for script in scripts) < 506
    assert {len(script) for script in scripts[:5]} == {5, 6}
    assert len(set(scripts)) == len(scripts)
    assert not unshared_protocol().target.share_opening


def test_the_yardstick_counts_each_call_once() -> None:
    figures = yardstick.measure(calls=120, latency=0.01, in_flight=8)
    for cost in figures.values():
        assert 120 <= cost["calls"] <= 125
        assert 0 < cost["share_of_limit"] <= 1
        assert cost["client_cpu_ms"] > 0.02


def test_growth_compares_the_second_quarter_with_the_last() -> None:
    flat = [(float(second), 200.0 + second % 2) for second in range(80)]
    leaking = [(float(second), 200.0 + second) for second in range(80)]
    assert evaluation._growth(flat) == pytest.approx(0, abs=1)
    assert evaluation._growth(leaking) == pytest.approx(40, abs=1)
    assert evaluation._growth([]) is None


def test_a_part_that_is_not_known_makes_the_sum_unknown() -> None:
    assert evaluation._sum([1.0, 2.0]) == 3.0
    assert evaluation._sum([1.0, None]) is None


@pytest.mark.parametrize("evaluator", ["rules", "model"])
def test_the_command_line_knows_every_option_that_is_used(evaluator: str) -> None:
    work = evaluation.Workload(seeds=2, latency=0.1, in_flight=64, evaluator=evaluator)
    used = {word for word in work.arguments("http://127.0.0.1:1/v1") if word.startswith("--")}
    command = [sys.executable, "-m", "app.cli", "evaluate", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert used <= set(shown.stdout.replace("│", " ").split())

"""A full evaluation through `curate evaluate`, with its own data directory and services."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import text

from app.benchmark import BUILTIN_NAME, builtin_benchmark
from app.db import make_engine
from app.embedded import Attachment, attach
from app.errors import ServiceUnavailable
from app.simulator import SimulatorProcess
from tests.bench.processes import Sampler
from tests.bench.scripts import UNSHARED_NAME, unshared_source
from tests.embedded_help import data_directory

MODEL, EVALUATOR = "attentive", "evaluator"
SCENARIOS = 5
DATABASE, WORKER = "postgres", "worker"


class BenchFailed(Exception):
    """A command did not do what is to be measured; its words are the message."""


@dataclass(frozen=True)
class Site:
    """A data directory of its own, its services held up between commands."""

    data_dir: Path
    services: Attachment

    def curate(self, *arguments: str) -> str:
        """Runs the command to its end; returns its standard output."""
        ended = subprocess.run(self._command(arguments), capture_output=True, text=True, env=_environment())
        if ended.returncode != 0:
            raise BenchFailed(
                f"curate {' '.join(arguments)}: exit {ended.returncode}\n{ended.stderr[-4000:]}"
            )
        return ended.stdout

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "app.cli", *arguments, "--data-dir", str(self.data_dir)]

    def roots(self) -> dict[str, int]:
        """The process ids of what runs for this data directory, by name."""
        with suppress(ServiceUnavailable):
            return {name: status.pid for name, status in self.services.status().items() if status.pid}
        return {}

    def ask(self, query: str, **values: object) -> Mapping[str, Any]:
        """The one row of a query on the site's database."""
        assert self.services.database_url is not None
        engine = make_engine(self.services.database_url)
        try:
            with engine.connect() as connection:
                return dict(connection.execute(text(query), values).mappings().one())
        finally:
            engine.dispose()


def _environment() -> dict[str, str]:
    """Settings of the caller's own installation stay out of it."""
    return {name: value for name, value in os.environ.items() if not name.startswith("CURATE_")}


@contextmanager
def site() -> Iterator[Site]:
    with (
        data_directory("bench") as path,
        attach(path, services=("postgres", "valkey"), tell=lambda _: None) as services,
    ):
        yield Site(path, services)


@dataclass(frozen=True)
class Workload:
    """What is evaluated. `evaluator` "rules" or "model"; `seeds` repeat the built-in cases."""

    seeds: int
    latency: float
    in_flight: int
    evaluator: str = "rules"
    shared: bool = False
    extra: Sequence[str] = field(default_factory=tuple)
    benchmark: str = BUILTIN_NAME
    protocol: str | None = None
    prepare: Callable[[Site], None] = lambda _: None

    def arguments(self, base_url: str) -> list[str]:
        """The command line behind `curate`."""
        name = self.protocol or (None if self.shared else UNSHARED_NAME)
        protocol = [] if name is None else ["--protocol", name]
        rated = (
            ["--evaluator", "rules"]
            if self.evaluator == "rules"
            else ["--evaluator-base-url", base_url, "--evaluator-model", EVALUATOR]
        )
        return [
            "evaluate", "--benchmark", self.benchmark, "--base-url", base_url, "--model", MODEL, *protocol,
            *rated, "--seeds", str(self.seeds), "--concurrency", str(self.in_flight), "--json", *self.extra,
        ]  # fmt: skip


def seeds_for(conversations: int) -> int:
    """How many seeds of all built-in cases make at least so many conversations."""
    return max(1, -(-conversations // (len(builtin_benchmark().cases) * SCENARIOS)))


@dataclass(frozen=True)
class Measured:
    """One evaluation: its report, the simulator's counters, samples of the processes, times."""

    report: Mapping[str, Any]
    counters: Mapping[str, Any]
    sampler: Sampler
    launched: float
    ended: float
    times: Mapping[str, Any]


def run(work: Workload, *, sample_seconds: float = 0.25) -> Measured:
    """One evaluation on a fresh site; only what it does itself is in the samples."""
    with site() as place, SimulatorProcess("--latency", str(work.latency)) as simulator:
        _import_protocol(place)
        work.prepare(place)
        simulator.reset_counters()
        roots = lambda: {**place.roots(), "simulator": simulator.pid}  # noqa: E731
        with Sampler(roots, sample_seconds) as sampler:
            launched = time.time()
            output = place.curate(*work.arguments(simulator.base_url))
            ended = time.time()
        report = json.loads(output)
        return Measured(
            report, simulator.counters(), sampler, launched, ended, _times(place, report["run"]["id"])
        )


def _import_protocol(place: Site) -> None:
    path = place.data_dir / "unshared.toml"
    path.write_text(unshared_source(), encoding="utf-8")
    place.curate("protocol", "import", str(path))


def _times(place: Site, run_id: int) -> Mapping[str, Any]:
    query = """
        SELECT run.created_at AS submitted, min(verdict.created_at) AS first_result
        FROM run JOIN conversation ON conversation.run_id = run.id
        JOIN verdict ON verdict.conversation_id = conversation.id
        WHERE run.id = :run GROUP BY run.created_at
    """
    return place.ask(query, run=run_id)


def speed(work: Workload) -> dict[str, Any]:
    """Share of the limit and CPU for each model call, from the first call to the last answer."""
    measured = run(work)
    counters = measured.counters
    calls = counters["by_model"][MODEL]
    begin, end = counters["first_at"], counters["last_at"]
    cpu = {name: measured.sampler.cpu_between(name, begin, end) for name in _names(measured)}
    ours = [cpu[name] for name in (WORKER, DATABASE)]
    return {
        "conversations": measured.report["counts"]["planned"],
        "outcomes": _outcomes(measured.report),
        "evaluator": work.evaluator,
        "model_calls": calls,
        "evaluator_calls": counters["by_model"].get(EVALUATOR, 0),
        "same_opening_asked_again": counters["repeated"],
        "peak_in_flight": counters["peak_in_flight"],
        "seconds": round(end - begin, 3),
        "command_seconds": round(measured.ended - measured.launched, 3),
        "share_of_limit": round(calls * work.latency / work.in_flight / (end - begin), 3),
        "cpu_ms_per_model_call": _per_call(_sum(ours), calls),
        "cpu_ms_per_model_call_by_process": {
            name: _per_call(used, calls) for name, used in sorted(cpu.items())
        },
        "peak_memory_mib": {name: _peak(measured, name) for name in sorted(_names(measured))},
    }


def memory(work: Workload) -> dict[str, Any]:
    """Memory of the worker over a long run, and how soon its first result was stored."""
    measured = run(work, sample_seconds=1.0)
    begin, end = measured.counters["first_at"], measured.counters["last_at"]
    course = measured.sampler.memory(WORKER, begin, end)
    submitted, first = (_seconds(measured.times[name]) for name in ("submitted", "first_result"))
    return {
        "conversations": measured.report["counts"]["planned"],
        "outcomes": _outcomes(measured.report),
        "model_calls": measured.counters["by_model"][MODEL],
        "seconds": round(end - begin, 3),
        "first_result_after_submit_seconds": round(first - submitted, 3),
        "first_result_after_launch_seconds": round(first - measured.launched, 3),
        "worker_memory_mib": {name: _at(course, share) for name, share in _MARKS.items()},
        "worker_growth_mib": _growth(course),
        "peak_memory_mib": {name: _peak(measured, name) for name in sorted(_names(measured))},
    }


_MARKS = {
    "at_10_percent": 0.1,
    "at_25_percent": 0.25,
    "at_50_percent": 0.5,
    "at_75_percent": 0.75,
    "at_end": 1.0,
}


def _at(course: Sequence[tuple[float, float]], share: float) -> float | None:
    """MiB at a share of the run's time."""
    if not course:
        return None
    wanted = course[-1][0] * share
    return round(min(course, key=lambda point: abs(point[0] - wanted))[1], 1)


def _growth(course: Sequence[tuple[float, float]]) -> float | None:
    """MiB gained from the second quarter to the last, by medians: a leak shows, a spike does not."""
    quarter = len(course) // 4
    if quarter == 0:
        return None
    early = sorted(point[1] for point in course[quarter : 2 * quarter])
    late = sorted(point[1] for point in course[-quarter:])
    return round(late[len(late) // 2] - early[len(early) // 2], 1)


def _names(measured: Measured) -> set[str]:
    return {name for sample in measured.sampler.samples for name in sample.usage}


def _peak(measured: Measured, name: str) -> float:
    found = [sample.usage[name].memory for sample in measured.sampler.samples if name in sample.usage]
    return round(max(found), 1)


def _outcomes(report: Mapping[str, Any]) -> dict[str, int]:
    return {name: count for name, count in report["counts"].items() if count and name != "planned"}


def _sum(parts: Sequence[float | None]) -> float | None:
    """None as soon as one part is not known: a sum of the rest would look better than it is."""
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _per_call(seconds: float | None, calls: int) -> float | None:
    return None if seconds is None or not calls else round(seconds / calls * 1000, 3)


def _seconds(moment: datetime) -> float:
    return moment.timestamp()

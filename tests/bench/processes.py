"""CPU and memory of process trees, sampled while they run, from what the system counts for each process."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import psutil  # type: ignore[import-untyped]

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """Of one tree at one moment: CPU seconds since it began, with those of ended children; memory in MiB."""

    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class Sample:
    at: float  # Unix time
    usage: Mapping[str, Usage]


def tree_usage(pid: int) -> Usage:
    """CPU and memory of a process and all below it.

    A process that ended has left its CPU time with the parent that waited for it. Memory is what each holds
    for itself plus its share of what is shared (PSS) where the system tells, else the resident size.
    """
    cpu = memory = 0.0
    for process in _tree(pid):
        try:
            times = process.cpu_times()
            cpu += times.user + times.system
            cpu += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
            memory += _memory(process)
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return Usage(cpu, memory / MIB)


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _memory(process: psutil.Process) -> float:
    try:
        full = process.memory_full_info()
    except psutil.AccessDenied:
        return float(process.memory_info().rss)
    return float(getattr(full, "pss", 0) or full.rss)


@dataclass
class Sampler:
    """Looks at named trees every `seconds`; `roots` is asked each time, since processes come and go."""

    roots: Callable[[], Mapping[str, int]]
    seconds: float = 0.25
    samples: list[Sample] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="sampler", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            usage = {name: tree_usage(pid) for name, pid in self.roots().items()}
            self.samples.append(Sample(time.time(), usage))
            if self._ended.wait(self.seconds):
                return

    def cpu_between(self, name: str, begin: float, end: float) -> float | None:
        """CPU seconds from the last sample before `begin` to the first after `end`; None: never seen."""
        seen = [sample for sample in self.samples if name in sample.usage]
        if not seen:
            return None
        before = [sample for sample in seen if sample.at <= begin] or seen[:1]
        after = [sample for sample in seen if sample.at >= end] or seen[-1:]
        return after[0].usage[name].cpu - before[-1].usage[name].cpu

    def memory(self, name: str, begin: float, end: float) -> list[tuple[float, float]]:
        """(seconds since `begin`, MiB) for each sample between the two."""
        return [
            (sample.at - begin, sample.usage[name].memory)
            for sample in self.samples
            if begin <= sample.at <= end and name in sample.usage
        ]

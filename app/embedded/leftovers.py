"""Which processes were ours, told apart from later ones that got the same process id; and their end.

Linux lets the services die with the supervisor; elsewhere, and for grandchildren, the next start does it.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LINUX = sys.platform == "linux"
PATIENCE = 15.0  # a PostgreSQL that shuts down gets this long before it is made to stop at once


@dataclass(frozen=True, slots=True)
class Recorded:
    pid: int
    identity: str


def identity(pid: int) -> str | None:
    """What tells this process from every other that had or will have its id; None when it does not live."""
    if LINUX:
        return _linux_identity(pid)
    return _ps(pid, "lstart=") or None


def _linux_identity(pid: int) -> str | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    state, started = fields[0], fields[19]
    return None if state in "ZX" else f"{boot}/{started}"


def command_line(pid: int) -> str:
    if LINUX:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return ""
    return _ps(pid, "command=")


def _ps(pid: int, column: str) -> str:
    return subprocess.run(
        ["ps", "-ww", "-o", column, "-p", str(pid)], capture_output=True, text=True
    ).stdout.strip()


def end_leftovers(processes: Mapping[str, Recorded], database: str) -> None:
    """End what a supervisor that was killed left behind; the database may first shut down in order."""
    alive = {name: one for name, one in processes.items() if identity(one.pid) == one.identity}
    for name, one in alive.items():
        signals = (signal.SIGINT, signal.SIGQUIT) if name == database else ()
        for signum in signals:
            if not _gone(one):
                _kill(one.pid, signum)
                _wait(one, PATIENCE)
        if not _gone(one):
            with contextlib.suppress(OSError):
                os.killpg(one.pid, signal.SIGKILL)
            _wait(one, PATIENCE)


def _gone(one: Recorded) -> bool:
    return identity(one.pid) != one.identity


def _kill(pid: int, signum: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, signum)


def _wait(one: Recorded, seconds: float) -> None:
    until = time.monotonic() + seconds
    while not _gone(one) and time.monotonic() < until:
        time.sleep(0.05)

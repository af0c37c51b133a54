"""Processes that the supervisor keeps: start, watch, restart with a back-off, stop within a bound."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from app.embedded.places import User
from app.embedded.wire import ServiceStatus, State
from app.errors import ServiceUnavailable

GIVE_UP_AFTER = 6  # starts in a row; the back-off has then waited about three seconds
LONGEST_BACK_OFF = 5.0
STEADY_SECONDS = 10.0  # up this long, a process counts as sound again
MAX_LOG = 10 * 1024 * 1024
PR_SET_PDEATHSIG = 1

# Loaded before any fork: a child between fork and exec must not import.
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent(signum: int = signal.SIGKILL, parent: int | None = None) -> None:
    """Let the kernel send this process `signum` when its parent dies (Linux; elsewhere nothing happens).

    Call it after any change of user, which clears the setting. `parent`: the process id that must still be
    there, for a parent that died before the call.
    """
    if _libc is None:
        return
    _libc.prctl(PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), signum)


class Exits:
    """Wakes whoever waits for a process to end. No threads: they and fork do not go together."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._pulse)

    def _pulse(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float | None = None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()

    async def ended(self, process: "subprocess.Popen[bytes]", seconds: float | None = None) -> bool:
        """Whether the process has ended within so many seconds."""
        until = None if seconds is None else time.monotonic() + seconds
        while process.poll() is None:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return False
            await self.wait(left)
        return True


@dataclass(frozen=True, slots=True)
class Command:
    argv: Sequence[str]
    env: Mapping[str, str]
    log: Path
    cwd: str = "/"
    user: User | None = None
    death_signal: int = signal.SIGKILL
    given: bytes = b""  # standard input


def spawn(command: Command) -> "subprocess.Popen[bytes]":
    """Start a command in a session of its own, as its user, with its log; it dies with the supervisor."""
    parent = os.getpid()
    user = command.user
    with _open_log(command.log) as log, tempfile.TemporaryFile() as given:
        given.write(command.given)
        given.seek(0)
        try:
            return subprocess.Popen(
                list(command.argv),
                env=dict(command.env),
                cwd=command.cwd,
                stdin=given,
                stdout=log,
                stderr=log,
                start_new_session=True,
                umask=0o077,
                user=None if user is None else user.uid,
                group=None if user is None else user.gid,
                extra_groups=None if user is None else [],
                preexec_fn=lambda: die_with_parent(command.death_signal, parent),
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise ServiceUnavailable(f"{command.argv[0]} cannot be started: {reason}") from error
        except subprocess.SubprocessError as error:
            raise ServiceUnavailable(f"{command.argv[0]} cannot be started: {error}") from error


def _open_log(path: Path) -> BinaryIO:
    """Open for appending; a log that has grown large gives way, the one before is kept."""
    path.parent.mkdir(exist_ok=True)
    with suppress(FileNotFoundError):
        if path.stat().st_size > MAX_LOG:
            path.replace(path.with_name(path.name + ".1"))
    return path.open("ab")


async def run_to_end(command: Command, exits: Exits, *, seconds: float) -> int:
    """Run a command to its end and give its exit status; it never outlives the wait."""
    process = spawn(command)
    try:
        if not await exits.ended(process, seconds):
            raise ServiceUnavailable(f"{command.argv[0]} did not end in {seconds:.0f} s; see {command.log}")
        return process.returncode
    finally:
        _sweep(process)


@dataclass(frozen=True, slots=True)
class Spec:
    """What to keep running. `stop`: the signals to send in turn, each with the seconds it is given."""

    name: str
    prepare: Callable[[], Awaitable[Command]]
    ready: Callable[[int], bool] | None  # given the process id; None: it runs as soon as it is started
    stop: Sequence[tuple[signal.Signals, float]]
    log: Path


class Managed:
    """One process, kept running until `stop`."""

    def __init__(self, spec: Spec, exits: Exits, changed: Callable[[], None]) -> None:
        self.spec = spec
        self.process: subprocess.Popen[bytes] | None = None
        self._exits = exits
        self._changed = changed
        self._state: State = "starting"
        self._settled = asyncio.Event()
        self._hurry = asyncio.Event()
        self._failures = 0
        self._starts = 0
        self._last_exit: str | None = None
        self._error: ServiceUnavailable | None = None
        self._task = asyncio.create_task(self._keep())

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process is not None else None

    def status(self) -> ServiceStatus:
        restarts = max(0, self._starts - 1)
        return ServiceStatus(
            self.spec.name, self._state, self.pid, restarts, self._last_exit, str(self.spec.log)
        )

    async def wait_ready(self, seconds: float) -> None:
        """Return when it runs; ServiceUnavailable when it does not in time or cannot."""
        if self._task.done():
            self._task = asyncio.create_task(self._keep())
        if self._state == "failed":
            self._begin_again()
        try:
            async with asyncio.timeout(seconds):
                await self._settled.wait()
        except TimeoutError as error:
            message = f"{self.spec.name} is not ready after {seconds:.0f} s; see {self.spec.log}"
            raise ServiceUnavailable(message, details=tail(self.spec.log)) from error
        if self._error is not None:
            raise self._error

    def _begin_again(self) -> None:
        self._failures = 0
        self._error = None
        self._set("starting")
        self._hurry.set()

    def _set(self, state: State) -> None:
        self._state = state
        if state == "running":
            self._error = None
        if state in ("running", "failed"):
            self._settled.set()
        else:
            self._settled.clear()
        self._changed()

    async def _keep(self) -> None:
        while True:
            try:
                await self._once()
            except ServiceUnavailable as error:  # nothing that another start would mend
                self._fail(error)
                return
            except Exception as error:  # none may die in silence: a command waits for it
                traceback.print_exc()
                self._fail(
                    ServiceUnavailable(f"{self.spec.name} cannot be started: {error}; see supervisor.log")
                )
                return
            await self._back_off()

    async def _once(self) -> None:
        command = await self.spec.prepare()
        started = time.monotonic()
        self.process = spawn(command)
        self._starts += 1
        self._set(self._state if self.spec.ready else "running")
        while self.process.poll() is None:
            if self._state != "running" and self.spec.ready and self.spec.ready(self.process.pid):
                self._set("running")
            await self._exits.wait(None if self._state == "running" else 0.02)
        self._ended(self.process, time.monotonic() - started)

    def _ended(self, process: "subprocess.Popen[bytes]", uptime: float) -> None:
        _sweep(process)
        self.process = None
        self._failures = 1 if uptime > STEADY_SECONDS else self._failures + 1
        self._last_exit = _how(process.returncode)
        if self._failures >= GIVE_UP_AFTER:
            message = f"{self.spec.name} does not start ({self._last_exit}); see {self.spec.log}"
            self._fail(ServiceUnavailable(message, details=tail(self.spec.log)))
        elif self._state != "failed":
            self._set("restarting")

    def _fail(self, error: ServiceUnavailable) -> None:
        self._error = error
        self._set("failed")

    async def _back_off(self) -> None:
        self._hurry.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(min(0.1 * 2 ** (self._failures - 1), LONGEST_BACK_OFF)):
                await self._hurry.wait()

    async def stop(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        process, self.process = self.process, None
        if process is not None:
            await stop_process(process, self.spec.stop, self._exits)
        self._set("stopped")


async def stop_process(
    process: "subprocess.Popen[bytes]", signals: Sequence[tuple[signal.Signals, float]], exits: Exits
) -> None:
    for signum, seconds in signals:
        if process.poll() is None:
            process.send_signal(signum)
        if await exits.ended(process, seconds):
            break
    _sweep(process)


def _sweep(process: "subprocess.Popen[bytes]") -> None:
    """End what is left of the process and of its group: children that a SIGKILL left behind."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _how(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def tail(path: Path, lines: int = 8) -> list[str]:
    """The last lines of a log; none when it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 8192))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()][-lines:]

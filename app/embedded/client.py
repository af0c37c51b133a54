"""A command's side: find or start the supervisor of a data directory, hold on to it, ask it for services."""

import fcntl
import json
import logging
import os
import selectors
import shutil
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import app
from app.embedded.places import control_dir, make_data_dir
from app.embedded.process import tail
from app.embedded.supervisor import read_state
from app.embedded.wire import MAX_MESSAGE, ChildSpec, ServiceName, ServiceStatus
from app.errors import Conflict, ServiceUnavailable

log = logging.getLogger(__name__)


class Attachment:
    """Services of a data directory, there until `close` or the death of this process.

    Should the supervisor be killed, a thread starts another one; the URLs stay the same.
    """

    def __init__(
        self,
        data_dir: Path,
        services: Iterable[ServiceName],
        children: Sequence[ChildSpec],
        seconds: float,
        tell: Callable[[str], None],
    ) -> None:
        self.data_dir = make_data_dir(data_dir)
        self._tell = tell
        self._closed = threading.Event()
        self._seconds = seconds
        self._request = {
            "op": "ensure",
            "services": sorted(services),
            "children": [child.as_json(os.environ) for child in children],
            "seconds": seconds,
        }
        self._connection, report = self._attach(seconds)
        self.database_url: str | None = report["database_url"]
        self.redis_url: str | None = report["redis_url"]
        _open.add(self)
        self._watcher = threading.Thread(target=self._watch, name="embedded services", daemon=True)
        self._watcher.start()

    def _attach(self, seconds: float) -> tuple[socket.socket, dict[str, Any]]:
        deadline = time.monotonic() + seconds
        while True:
            connection = _connect(self.data_dir, deadline, self._tell)
            try:
                return connection, _ask(connection, self._request, deadline)
            except ConnectionError:  # it was about to stop
                connection.close()
            except BaseException:
                connection.close()
                raise
            if time.monotonic() > deadline:
                raise ServiceUnavailable(
                    f"the services of {self.data_dir} end again and again; see {self.data_dir / 'logs'}"
                )

    def _watch(self) -> None:
        while not self._closed.is_set():
            with suppress(OSError):
                self._connection.recv(1)  # nothing comes unasked: it returns when the supervisor is gone
            if not self._closed.is_set():
                self._attach_again()

    def _attach_again(self) -> None:
        self._connection.close()
        log.warning("the supervisor of %s is gone; starting another", self.data_dir)
        try:
            connection, _report = self._attach(self._seconds)
        except ServiceUnavailable as error:
            log.warning("%s", error.message)
            self._closed.wait(2.0)
            return
        self._connection = connection
        if self._closed.is_set():
            connection.close()

    def status(self) -> dict[str, ServiceStatus]:
        """How each service and child of the data directory stands, by name; ServiceUnavailable: none runs."""
        deadline = time.monotonic() + 10.0
        connection = _running(self.data_dir)
        if connection is None:
            raise ServiceUnavailable(
                f"the services of {self.data_dir} do not run; see {self.data_dir / 'logs'}"
            )
        try:
            with connection:
                report = _ask(connection, {"op": "status"}, deadline)
        except ConnectionError as error:
            raise ServiceUnavailable(f"the services of {self.data_dir} are stopping") from error
        return {one["name"]: ServiceStatus(**one) for one in report["services"]}

    def close(self) -> None:
        """Let go. The services stop about a second after the last command did."""
        self._closed.set()
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._watcher.join(5.0)
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_open: "weakref.WeakSet[Attachment]" = weakref.WeakSet()


def _let_go() -> None:
    """In a forked child: it must not keep the services after its parent's death."""
    for attachment in _open:
        with suppress(OSError):
            attachment._connection.close()


os.register_at_fork(after_in_child=_let_go)


def _tell_on_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def attach(
    data_dir: Path,
    *,
    services: Iterable[ServiceName],
    children: Sequence[ChildSpec] = (),
    seconds: float = 120.0,
    tell: Callable[[str], None] = _tell_on_stderr,
) -> Attachment:
    """Have the services and children of a data directory running; use as a context manager.

    Blocks until the services answer (a new database takes a few seconds). `tell` gets what the user should
    know once. Errors: ServiceUnavailable with the log to read; Conflict when a child runs with other
    settings.
    """
    return Attachment(data_dir, services, children, seconds, tell)


def remove(data_dir: Path, *, seconds: float = 60.0) -> None:
    """Delete a data directory with all that belongs to it, once no command uses it any more.

    ServiceUnavailable when its services still run after so many seconds.
    """
    control = control_dir(data_dir)
    if control.is_dir():
        with _locked(control / "lock", time.monotonic() + seconds, f"commands still use {data_dir}"):
            record = control / "home"
            if record.exists():
                shutil.rmtree(record.read_text(), ignore_errors=True)
            shutil.rmtree(data_dir)


def _connect(data_dir: Path, deadline: float, tell: Callable[[str], None]) -> socket.socket:
    connection = _running(data_dir)
    if connection is not None:
        return connection
    busy = f"another command has been starting the services of {data_dir} for too long"
    with _locked(control_dir(data_dir) / "start.lock", deadline, busy):
        connection = _running(data_dir)
        if connection is None:
            _start(data_dir, deadline, tell)
            connection = _running(data_dir)
    if connection is None:
        raise _stillborn(data_dir)
    return connection


def _running(data_dir: Path) -> socket.socket | None:
    path = read_state(data_dir).get("socket")
    if path is None:
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        return None
    return connection


@contextmanager
def _locked(path: Path, deadline: float, refusal: str) -> Iterator[None]:
    with path.open("w") as file:
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > deadline:
                raise ServiceUnavailable(refusal)
            time.sleep(0.02)
        yield


def _start(data_dir: Path, deadline: float, tell: Callable[[str], None]) -> None:
    """Start the supervisor as a process of its own, in no terminal's reach, and wait until it answers."""
    reading, writing = os.pipe()
    argv = [sys.executable, "-m", "app.embedded", str(data_dir), str(writing)]
    try:
        with (data_dir / "logs" / "supervisor.log").open("ab") as logfile:
            subprocess.run(
                argv,
                pass_fds=[writing],
                cwd=Path(app.__file__).parents[1],
                stdin=subprocess.DEVNULL,
                stdout=logfile,
                stderr=logfile,
                start_new_session=True,
                check=False,
            )
    finally:
        os.close(writing)
    with open(reading, "rb") as pipe:
        line = _first_line(pipe.fileno(), deadline)
    if not line:
        raise _stillborn(data_dir)
    said = json.loads(line)
    if "error" in said:
        raise ServiceUnavailable(said["error"]["message"], details=said["error"]["details"])
    for notice in said.get("notices", ()):
        tell(notice)


def _first_line(descriptor: int, deadline: float) -> bytes:
    data = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while not data.endswith(b"\n") and selector.select(max(0.0, deadline - time.monotonic())):
            part = os.read(descriptor, 65536)
            if not part:
                break
            data += part
    return data


def _stillborn(data_dir: Path) -> ServiceUnavailable:
    path = data_dir / "logs" / "supervisor.log"
    return ServiceUnavailable(
        f"the services of {data_dir} could not be started; see {path}", details=tail(path)
    )


def _ask(connection: socket.socket, request: dict[str, Any], deadline: float) -> dict[str, Any]:
    """One request, one reply. ConnectionError: the supervisor went away meanwhile."""
    connection.settimeout(max(1.0, deadline + 5.0 - time.monotonic()))
    try:
        connection.sendall(json.dumps(request).encode() + b"\n")
        reply = json.loads(_line(connection))
    except TimeoutError as error:
        raise ServiceUnavailable("the supervisor of the embedded services does not answer") from error
    connection.settimeout(None)
    if "error" not in reply:
        return dict(reply)
    kind = Conflict if reply["error"]["kind"] == "conflict" else ServiceUnavailable
    raise kind(reply["error"]["message"], details=reply["error"]["details"])


def _line(connection: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        part = connection.recv(65536)
        if not part or len(data) > MAX_MESSAGE:
            raise ConnectionResetError("the supervisor closed the connection")
        data += part
    return data

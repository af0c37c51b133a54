"""Running the simulated endpoint: on a thread of this process, or as a process of its own."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
import urllib.request
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

import uvloop
from aiohttp import web

from app.errors import AppError, InvalidInput
from app.simulator.counters import Counters
from app.simulator.server import Endpoint
from app.simulator.settings import SimulatorSettings

LOOPBACK = "127.0.0.1"
_BACKLOG = 1024
_START_SECONDS = 30.0
_STOP_SECONDS = 10.0


class SimulatorFailed(AppError):
    """The simulated endpoint did not start."""

    status = 503


async def serve(endpoint: Endpoint, listener: socket.socket, stop: asyncio.Event) -> None:
    """Serves on `listener` until `stop`; open requests are then dropped."""
    protocol = web.Server(endpoint.handle, handler_cancellation=True, access_log=None, keepalive_timeout=75)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(protocol, sock=listener, backlog=_BACKLOG)
    try:
        await stop.wait()
    finally:
        server.close()
        await protocol.shutdown(timeout=0.1)


def listen(host: str, port: int) -> socket.socket:
    """A bound socket (port 0: any free one), or an error that names the address."""
    if not 0 <= port <= 65535:
        raise InvalidInput(f"There is no port {port}: give one from 1 to 65535, or 0 for any free one.")
    try:
        return socket.create_server((host, port), backlog=_BACKLOG)
    except OSError as error:
        message = (
            f"The simulator cannot listen on {host}:{port}: {error.strerror or error}. Choose another port."
        )
        raise SimulatorFailed(message) from None


def base_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"


class Simulator:
    """The endpoint on a thread of this process, for tests: `with Simulator(latency=0.1) as simulator: ...`.

    `base_url` is what a client is given; `counters` and `recorded` tell what was asked; `configure` changes
    settings while it runs.
    """

    def __init__(self, *, api_key: str | None = None, keep: int = 1000, **settings: Any) -> None:
        self.endpoint = Endpoint(SimulatorSettings().changed(settings), api_key=api_key, keep=keep)
        self.base_url = ""
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    @property
    def counters(self) -> Counters:
        return self.endpoint.counters

    def configure(self, **change: Any) -> None:
        self.endpoint.settings = self.endpoint.settings.changed(change)

    def __enter__(self) -> Self:
        started: Future[None] = Future()
        listener = listen(LOOPBACK, 0)
        self.base_url = base_url(listener)
        self._thread = threading.Thread(
            target=self._run, args=(listener, started), name="simulator", daemon=True
        )
        self._thread.start()
        started.result(_START_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread and self._loop and self._stop:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_STOP_SECONDS)
            if self._thread.is_alive():
                raise SimulatorFailed(f"The simulator did not stop within {_STOP_SECONDS:g} s.")

    def _run(self, listener: socket.socket, started: Future[None]) -> None:
        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            self._stop = asyncio.Event()
            self._loop.call_soon(started.set_result, None)
            await serve(self.endpoint, listener, self._stop)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())


class SimulatorProcess:
    """The endpoint as a process of its own that ends with this one; `arguments` are the command line's."""

    def __init__(self, *arguments: str) -> None:
        self.base_url = ""
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise SimulatorFailed("The simulator is not running.")
        return self._process.pid

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "app.simulator", "--with-parent", *self._arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()
        if not self.base_url:
            code = _end(self._process)
            raise SimulatorFailed(f"The simulator ended with code {code} before it served; it said why.")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            _end(self._process)

    def counters(self) -> dict[str, Any]:
        return self._call("GET", "counters")

    def reset_counters(self) -> None:
        self._call("DELETE", "counters")

    def configure(self, **change: Any) -> dict[str, Any]:
        return self._call("POST", "settings", change)

    def _call(self, method: str, page: str, data: dict[str, Any] | None = None) -> dict[str, Any]:
        url = f"{self.base_url.removesuffix('/v1')}/simulator/{page}"
        body = None if data is None else json.dumps(data).encode()
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)  # noqa: S310
        with urllib.request.urlopen(request, timeout=_STOP_SECONDS) as answer:  # noqa: S310
            answered: dict[str, Any] = json.load(answer)
        return answered


def _end(process: subprocess.Popen[str]) -> int:
    """Closes the pipes, which ends the process; returns its exit code."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        return process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()

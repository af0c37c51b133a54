"""A real model endpoint on loopback that answers, or misbehaves, as each request is told to.

    async with StubEndpoint(error(429, headers={"Retry-After": "1"}), reply("Hello.")) as stub:
        ...  # first request refused, second answered; every further one gets `default`

Behaviours write bytes to the socket themselves, so that no HTTP library stands in the way of a fault.
"""

import asyncio
import json
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self

JSON = "application/json"


@dataclass(frozen=True)
class Received:
    """One request as it arrived; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    connection: int

    @property
    def body(self) -> dict[str, Any]:
        data = json.loads(self.raw)
        assert isinstance(data, dict)
        return data


Behaviour = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


def http(
    status: int, body: bytes, headers: Mapping[str, str] | None = None, kind: str | None = JSON
) -> bytes:
    """A whole HTTP answer."""
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}"]
    lines += [f"Content-Type: {kind}"] if kind else []
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def raw(data: bytes, *, close: bool = False, delay: float = 0.0) -> Behaviour:
    """Exactly these bytes."""

    async def behave(_: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(delay)
        writer.write(data)
        await writer.drain()
        if close:
            writer.close()

    return behave


def answer(
    data: object, status: int = 200, headers: Mapping[str, str] | None = None, delay: float = 0.0
) -> Behaviour:
    """JSON with a status."""
    return raw(http(status, json.dumps(data).encode(), headers), delay=delay)


def chat(content: object, finish: str = "stop", **message: object) -> dict[str, Any]:
    """The body of an OpenAI chat completion."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "stub-model-2",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": finish,
            }
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def reply(content: object, finish: str = "stop", *, delay: float = 0.0, **message: object) -> Behaviour:
    """A chat completion with this content."""
    return answer(chat(content, finish, **message), delay=delay)


def error(
    status: int,
    message: str = "no",
    *,
    code: object = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Behaviour:
    """An error body as OpenAI writes it."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}
    return answer(body, status, headers)


def hang() -> Behaviour:
    """No answer, until the other side leaves."""

    async def behave(_: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    return behave


def drip(interval: float, head: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n") -> Behaviour:
    """The head, then one byte at a time for ever."""

    async def behave(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            await asyncio.sleep(interval)
            writer.write(b" ")
            await writer.drain()

    return behave


def flood(head: bytes, chunk: bytes, taken: list[int] | None = None) -> Behaviour:
    """The head, then the same chunk for ever, as fast as it is read; each that went is noted in `taken`."""

    async def behave(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(chunk)
            await writer.drain()
            if taken is not None:
                taken.append(len(chunk))

    return behave


def reset(head: bytes = b"") -> Behaviour:
    """The head, then a TCP reset."""

    async def behave(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        await writer.drain()
        await asyncio.sleep(0.01)
        connection = writer.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return behave


@dataclass
class StubEndpoint:
    """The server. Each request takes what `models` names for its model, else the next of `queue`, else
    `default`."""

    queue: deque[Behaviour]
    default: Behaviour
    models: dict[str, Behaviour]
    tls: ssl.SSLContext | None
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    port: int = 0

    def __init__(
        self,
        *behaviours: Behaviour,
        default: Behaviour | None = None,
        models: dict[str, Behaviour] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.queue = deque(behaviours)
        self.default = default or reply("Hello.")
        self.models = models or {}
        self.tls = tls
        self.received = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def origin(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        number = self.connections
        try:
            with suppress(asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
                while not writer.is_closing():
                    await self._one(await _request(reader, number), writer)
        finally:
            self._tasks.discard(task)
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _one(self, request: Received, writer: asyncio.StreamWriter) -> None:
        self.received.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await self._behaviour(request)(request, writer)
        finally:
            self.in_flight -= 1

    def _behaviour(self, request: Received) -> Behaviour:
        if self.models:
            chosen = self.models.get(str(request.body.get("model")))
            if chosen is not None:
                return chosen
        return self.queue.popleft() if self.queue else self.default


async def _request(reader: asyncio.StreamReader, connection: int) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {}
    for line in filter(None, lines):
        name, value = line.split(":", 1)
        headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, body, connection)


@contextmanager
def in_thread(stub: StubEndpoint) -> Iterator[StubEndpoint]:
    """The stub on a loop of its own in another thread, for tests that are not asynchronous."""
    started, stop = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with stub:
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="stub-endpoint")
    thread.start()
    started.wait(10)
    try:
        yield stub
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(10)

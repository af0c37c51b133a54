"""The machine's yardstick: how much CPU a call costs with a bare aiohttp loop, and with our client."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import aiohttp
import psutil  # type: ignore[import-untyped]
import uvloop

from app.chat import NOTHING_PRIVATE, ChatClient, Endpoint, Message, Unpaced
from app.sampling import Sampling
from app.simulator import SimulatorProcess
from tests.bench.scripts import conversations

MODEL = "attentive"
SAMPLING = Sampling(temperature=0.7, max_tokens=300)
Ask = Callable[[list[tuple[str, str]]], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Cost:
    """One way of calling. CPU in milliseconds a call; the limit is calls · latency / in flight."""

    calls: int
    seconds: float
    calls_per_second: float
    share_of_limit: float
    client_cpu_ms: float
    simulator_cpu_ms: float


def measure(calls: int, latency: float, in_flight: int) -> dict[str, Any]:
    """Both ways, one after the other, each against a fresh simulator."""
    scripts = conversations(calls)
    return {
        "raw_aiohttp": asdict(_run(_raw, scripts, latency, in_flight)),
        "chat_client": asdict(_run(_client, scripts, latency, in_flight)),
    }


Way = Callable[[str, Sequence[tuple[str, ...]], int], Awaitable[None]]


def _run(way: Way, scripts: Sequence[tuple[str, ...]], latency: float, in_flight: int) -> Cost:
    with SimulatorProcess("--latency", str(latency)) as simulator:
        process = psutil.Process(simulator.pid)
        before, own, began = sum(process.cpu_times()[:2]), time.process_time(), time.perf_counter()
        uvloop.run(_awaited(way(simulator.base_url, scripts, in_flight)))
        seconds = time.perf_counter() - began
        used, theirs = time.process_time() - own, sum(process.cpu_times()[:2]) - before
        counters = simulator.counters()
    calls = sum(len(script) for script in scripts)
    if counters["by_status"] != {"200": calls}:
        raise AssertionError(f"{calls} calls were planned, the simulator saw {counters['by_status']}")
    return Cost(
        calls=calls,
        seconds=round(seconds, 3),
        calls_per_second=round(calls / seconds, 1),
        share_of_limit=round(calls * latency / in_flight / seconds, 3),
        client_cpu_ms=round(used / calls * 1000, 3),
        simulator_cpu_ms=round(theirs / calls * 1000, 3),
    )


async def _awaited(work: Awaitable[None]) -> None:
    await work


async def _raw(base_url: str, scripts: Sequence[tuple[str, ...]], in_flight: int) -> None:
    url = f"{base_url}/chat/completions"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:

        async def ask(history: list[tuple[str, str]]) -> str:
            messages = [{"role": role, "content": text} for role, text in history]
            body = {"model": MODEL, "messages": messages, "temperature": 0.7, "max_tokens": 300}
            async with session.post(url, json=body) as response:
                answer = json.loads(await response.read())
            return str(answer["choices"][0]["message"]["content"])

        await _converse(ask, scripts, in_flight)


async def _client(base_url: str, scripts: Sequence[tuple[str, ...]], in_flight: int) -> None:
    endpoint = Endpoint("openai", base_url, MODEL, None, private_allowed=True)
    async with ChatClient(allowlist=NOTHING_PRIVATE, max_connections=in_flight) as client:

        async def ask(history: list[tuple[str, str]]) -> str:
            messages = [Message("user" if role == "user" else "assistant", text) for role, text in history]
            exchange = await client.complete(
                endpoint, messages, SAMPLING, attempts=1, deadline=30, pace=Unpaced()
            )
            if exchange.text is None:
                raise AssertionError(f"a call failed: {exchange.error_message}")
            return exchange.text

        await _converse(ask, scripts, in_flight)


async def _converse(ask: Ask, scripts: Sequence[tuple[str, ...]], in_flight: int) -> None:
    """As many conversations at once as calls may be in flight, each turn after the other."""
    waiting = iter(scripts)

    async def work() -> None:
        for script in waiting:
            history: list[tuple[str, str]] = []
            for text in script:
                history.append(("user", text))
                history.append(("assistant", await ask(history)))

    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(work())

"""Short ways to ask a stub endpoint something."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import uvloop
from hypothesis import HealthCheck, settings

from app.chat import (
    NOTHING_PRIVATE,
    Allowlist,
    ChatClient,
    Endpoint,
    Exchange,
    Message,
    Pace,
    RetryPolicy,
    Unpaced,
)
from app.chat.exchange import ProviderName
from app.sampling import Sampling
from tests.stub_endpoint import Behaviour, StubEndpoint

KEY = "sk-canary-Zq81hW0"
T = TypeVar("T")
QUICK = RetryPolicy(base=0.001, longest=0.002, hint_cap=0.05, total=2.0)
# The first text that is drawn on a fresh machine makes tables for seconds.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
HELLO = (Message("user", "Hello?"),)


def run(task: Coroutine[Any, Any, T], limit: float = 20.0, *, plain: bool = False) -> T:
    """Run to the end on the loop that workers use, or on asyncio's own; a test that hangs fails."""

    async def limited() -> T:
        async with asyncio.timeout(limit):
            return await task

    return asyncio.run(limited()) if plain else uvloop.run(limited())


def client(allowlist: Allowlist = NOTHING_PRIVATE, **options: Any) -> ChatClient:
    return ChatClient(allowlist=allowlist, **{"max_connections": 64, "retry": QUICK, **options})


def endpoint(stub: StubEndpoint, provider: ProviderName = "openai", **options: Any) -> Endpoint:
    chosen = {"base_url": stub.base_url, "model": "stub", "api_key": KEY, "private_allowed": True, **options}
    return Endpoint(provider, **chosen)


async def complete(
    asked: ChatClient,
    of: Endpoint,
    *,
    messages: Sequence[Message] = HELLO,
    sampling: Sampling | None = None,
    attempts: int = 1,
    deadline: float = 5.0,
    pace: Pace | None = None,
    response_format: dict[str, Any] | None = None,
) -> Exchange:
    return await asked.complete(
        of,
        messages,
        sampling or Sampling(),
        attempts=attempts,
        deadline=deadline,
        pace=pace or Unpaced(),
        response_format=response_format,
    )


def seen(exchange: Exchange) -> tuple[str | None, str, set[str]]:
    """Text, state and flags."""
    return exchange.text, exchange.state, set(exchange.flags)


def ask(
    *behaviours: Behaviour,
    provider: ProviderName = "openai",
    learned: dict[str, str | None] | None = None,
    plain: bool = False,
    **options: Any,
) -> tuple[Exchange, StubEndpoint]:
    """One call of a fresh client to a stub that behaves so; each further request gets the last behaviour."""

    async def call() -> tuple[Exchange, StubEndpoint]:
        async with StubEndpoint(*behaviours, default=behaviours[-1]) as stub, client() as asked:
            of = endpoint(stub, provider, learned=learned or {})
            return await complete(asked, of, **options), stub

    return run(call(), plain=plain)

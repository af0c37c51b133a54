"""The probes: what is asked, in which order, and when it is no use to go on."""

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

from app.chat import (
    NOTHING_PRIVATE,
    Allowlist,
    ChatClient,
    Endpoint,
    Exchange,
    Message,
    RetryPolicy,
    SendResult,
    Unpaced,
)
from app.chat.providers import PROVIDERS
from app.preflight import findings
from app.preflight.findings import EXCERPT, TITLES, Check, skipped
from app.sampling import Sampling

DEADLINE, ALL_TOGETHER = 30.0, 90.0  # seconds
MOST_AT_ONCE = 6
SHORT = 16  # tokens
PATIENCE = RetryPolicy(base=0.5, longest=2.0, hint_cap=5.0, total=6.0)
MASK = "********"

WORD = "Quillon"
BEFORE, LAST = "beta", "gamma"
READY = (Message("user", "Reply with the single word: ready"),)
TURNS = (
    Message("user", f"My dog is called {WORD}. Just say hello to it."),
    Message("assistant", "Hello!"),
    Message("user", "What is my dog called? Answer with its name alone."),
)
SYSTEM = (
    Message("system", "You answer in one short sentence."),
    Message("user", "What is a lighthouse for?"),
)
STOP = (Message("user", "Write these words and nothing else: alpha beta gamma delta"),)
LONG = (Message("user", "Tell me in about two hundred words why the sea is salty."),)


class Noting(Unpaced):
    """No limit, but remembers how the endpoint asked for patience."""

    def __init__(self) -> None:
        self.hints: list[float | None] = []

    def release(self, slot: int, result: SendResult, retry_after: float | None = None) -> None:
        if result is SendResult.RATE_LIMITED:
            self.hints.append(retry_after)


@dataclass
class Preflight:
    """`borne`: how many calls at once were answered; `seconds`: of a usual reply; None: not found out."""

    checks: list[Check] = field(default_factory=list)
    borne: int | None = None
    seconds: float | None = None
    calls: int = 0

    @property
    def ok(self) -> bool:
        return all(check.state != "problem" for check in self.checks)

    def as_report(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "checks": [check.as_report() for check in self.checks],
            "calls": self.calls,
            "calls_at_once": self.borne,
            "seconds_per_reply": self.seconds,
        }


def preflight(
    endpoint: Endpoint,
    sampling: Sampling,
    *,
    at_once: int,
    allowlist: Allowlist = NOTHING_PRIVATE,
    own_hosts: Collection[str] = (),
) -> Preflight:
    """Ask the endpoint as a run under this sampling would, `at_once` calls at once at most.

    Raises nothing for what the endpoint does; ends within ALL_TOGETHER seconds.
    """
    number = max(1, min(at_once, MOST_AT_ONCE))
    client = ChatClient(allowlist=allowlist, max_connections=number, own_hosts=own_hosts, retry=PATIENCE)
    return asyncio.run(_ask(client, endpoint, sampling, number))


async def _ask(made: ChatClient, endpoint: Endpoint, sampling: Sampling, at_once: int) -> Preflight:
    found = Preflight()
    async with made as client:
        asking = _Asking(client, endpoint, sampling, found)
        try:
            async with asyncio.timeout(ALL_TOGETHER):
                await asking.all(at_once)
            why = "It did not get as far as that."
        except TimeoutError:
            why = f"The {ALL_TOGETHER:.0f} s for the whole check were over."
    seen = {check.name for check in found.checks}
    found.checks += [skipped(name, why) for name in TITLES if name not in seen]
    return found


class _Asking:
    def __init__(self, client: ChatClient, endpoint: Endpoint, sampling: Sampling, found: Preflight) -> None:
        self._client, self._endpoint, self._sampling, self._found = client, endpoint, sampling, found
        self._pace = Noting()

    async def all(self, at_once: int) -> None:
        endpoint = self._endpoint
        asked = await self._ask(READY, self._sampling, attempts=2)
        checks = findings.first_checks(asked, endpoint.model, with_key=endpoint.api_key is not None)
        # One question: it is shown once, and again only where something was wrong with it.
        self._found.checks += [
            self._with(asked, check) if check.name == "reached" or check.state == "problem" else check
            for check in checks
        ]
        if asked.error is not None:
            return
        await self._single("turns", TURNS, self._sampling, lambda it: findings.turns(it, WORD))
        await self._single("system", SYSTEM, self._sampling, findings.system)
        stopping = replace(self._sampling, stop=(*self._sampling.stop, LAST)[-4:])
        await self._single("stop", STOP, stopping, lambda it: findings.stop(it, BEFORE, LAST))
        short = replace(self._sampling, max_tokens=SHORT)
        await self._single("length", LONG, short, lambda it: findings.length(it, SHORT))
        usual = await self._single("speed", LONG, self._sampling, findings.speed)
        self._found.seconds = usual.seconds if usual.error is None else None
        await self._together(at_once)

    async def _single(
        self,
        name: str,
        messages: tuple[Message, ...],
        sampling: Sampling,
        judge: Callable[[Exchange], Check],
    ) -> Exchange:
        asked = await self._ask(messages, sampling)
        check = self._with(asked, judge(asked))
        assert check.name == name
        self._found.checks.append(check)
        return asked

    async def _together(self, number: int) -> None:
        began = time.perf_counter()
        asked = await asyncio.gather(*(self._ask(READY, self._sampling) for _ in range(number)))
        took = time.perf_counter() - began
        self._found.borne = sum(one.error is None for one in asked) or None
        self._found.checks.append(findings.concurrency(asked, took))
        self._found.checks.append(findings.waiting(asked, self._pace.hints))

    async def _ask(self, messages: tuple[Message, ...], sampling: Sampling, *, attempts: int = 1) -> Exchange:
        asked = await self._client.complete(
            self._endpoint, messages, sampling, attempts=attempts, deadline=DEADLINE, pace=self._pace
        )
        self._found.calls += len(asked.attempts)
        return asked

    def _with(self, asked: Exchange, check: Check) -> Check:
        answer = (asked.response or "")[:EXCERPT] or None
        request = as_sent(self._endpoint, asked.request_body) if asked.request_body else None
        return replace(check, request=request, answer=answer, seconds=round(asked.seconds, 3))


def as_sent(endpoint: Endpoint, body: str) -> str:
    """The request as it goes out, with a mask where the key stands."""
    provider = PROVIDERS[endpoint.provider]
    headers = {"Content-Type": "application/json"}
    headers |= provider.headers(MASK if endpoint.api_key else None)
    lines = [f"POST {provider.url(endpoint.base_url, endpoint.model)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\n".join([*lines, "", body])

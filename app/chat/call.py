"""One logical call on its way through its attempts."""

import asyncio
import json
import logging
import os
import secrets
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

import aiohttp
import orjson
from yarl import URL

from app.chat.errors import ERRORS
from app.chat.exchange import Attempt, Endpoint, Exchange, Message
from app.chat.learn import MAX_LEARNINGS, learn
from app.chat.outcome import Reader, Result
from app.chat.pace import Pace, SendResult
from app.chat.providers import Provider, Request
from app.chat.providers.base import ResponseFormat, parameters
from app.chat.retry import RetryPolicy
from app.chat.transport import post
from app.sampling import Sampling

log = logging.getLogger(__name__)

_keys = (secrets.token_hex(8), count())


def _new_key() -> str:
    """Unique to a request; a number is enough after what is unique to this process."""
    return f"{_keys[0]}-{os.getpid():x}-{next(_keys[1]):x}"


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """What does not change from call to call of one endpoint. No repr: the headers hold the key."""

    provider: Provider
    session: aiohttp.ClientSession
    url: URL
    headers: dict[str, str]
    reader: Reader


# A response that did not come in time is waited for once more, not as often as a quick failure.
MOST_TIMEOUTS = 2


@dataclass(slots=True, repr=False)
class Call:
    """shared: what has been learned of this endpoint and model, by all calls; grows while they run."""

    endpoint: Endpoint
    messages: Sequence[Message]
    sampling: Sampling
    response_format: ResponseFormat | None
    deadline: float
    pace: Pace
    slots: asyncio.Semaphore
    shared: dict[str, str | None]
    attempts: list[Attempt] = field(default_factory=list)
    learned: dict[str, str | None] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    unstructured: bool = False
    started: datetime | None = None
    content: bytes = b""
    idempotency_key: str = field(default_factory=_new_key)

    async def run(self, target: Target, limit: int, policy: RetryPolicy) -> Exchange:
        """Send until there is an answer, no hope, or no try or waiting time left."""
        tries = learnings = timeouts = 0
        waited = pause = 0.0
        while True:
            request = self._request()
            result = await self._send(target, request, pause)
            pause = 0.0
            if learnings < MAX_LEARNINGS and self._learn(target.provider, request, result):
                learnings += 1
                continue
            tries += 1
            timeouts += result.error == "total_timeout"
            wait = policy.wait(tries, result.hint, waited) if timeouts < MOST_TIMEOUTS else None
            if not result.retriable or tries >= limit or wait is None:
                return self.exchange(result)
            await asyncio.sleep(wait)
            pause = wait
            waited += wait

    def _request(self) -> Request:
        learned = {**self.endpoint.learned, **self.shared}
        return Request(self.endpoint.model, self.messages, self.sampling, self.response_format, learned)

    def _learn(self, provider: Provider, request: Request, result: Result) -> bool:
        """Take the refusal of a parameter in, for this call and all that come after it."""
        if result.api is None or result.status is None or result.error is None:
            return False
        found = learn(provider, request, result.status, result.api)
        for name, value in found.items():
            # Another call may have got further while this one was under way.
            further = name in self.shared and (
                name not in request.learned or self.shared[name] != request.learned[name]
            )
            if not further:
                self.shared[name] = value
            self.learned[name] = self.shared[name]
        if found:
            # The next request differs, so it must not pass for a repeat.
            self.idempotency_key = _new_key()
        return bool(found)

    async def _send(self, target: Target, request: Request, waited: float) -> Result:
        provider = target.provider
        self.body = provider.body(request)
        self.unstructured = self.response_format is not None and not (
            provider.structured and "response_format" in parameters(request)
        )
        self.content = _encoded(self.body)
        headers = {**target.headers, "Idempotency-Key": self.idempotency_key}
        outcome, hint = SendResult.CANCELLED, None
        slot = await self.pace.acquire()
        try:
            async with self.slots:
                self.started = self.started or datetime.now(UTC)
                began = time.perf_counter()
                result = await _exchange(target, headers, self.content, self.deadline)
                seconds = time.perf_counter() - began
            outcome, hint = result.send_result, result.hint
        finally:
            self.pace.release(slot, outcome, hint)
        self.attempts.append(Attempt(result.status, result.error, seconds, waited))
        return result

    def exchange(self, result: Result) -> Exchange:
        return Exchange(
            text=result.text,
            state=result.state,
            error=result.error,
            error_message=result.message,
            flags=result.flags | {"unstructured"} if self.unstructured else result.flags,
            request=self.body,
            request_body=self.content.decode(),
            response=result.response,
            model_reported=result.model,
            prompt_tokens=result.prompt_tokens,
            completion_tokens=result.completion_tokens,
            attempts=tuple(self.attempts),
            started_at=self.started or datetime.now(UTC),
            seconds=self.attempts[-1].seconds if self.attempts else 0.0,
            learned=dict(self.learned),
            whole=result.whole,
            simulated=result.simulated,
        )


def _encoded(body: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:  # half a surrogate pair can only be sent escaped
        return json.dumps(body).encode()


async def _exchange(target: Target, headers: dict[str, str], content: bytes, deadline: float) -> Result:
    status = None
    try:
        answer = await post(target.session, target.url, headers, content, deadline)
        status = answer.status
        return target.reader.read(answer)
    except Exception as error:
        # Whatever an endpoint managed to upset here ends its own call only. The exception's own words
        # may quote the answer, and with it a key: only the place is logged.
        place = "".join(traceback.format_tb(error.__traceback__))
        log.error("an answer of %s raised %s\n%s", target.url.host, type(error).__name__, place)  # noqa: TRY400
        return Result(status, "error", error="client_fault", message=ERRORS["client_fault"])

"""The simulated endpoint's HTTP side: an OpenAI-compatible API, and one for the simulator itself."""

import asyncio
import hmac
import ipaddress
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from app.errors import InvalidInput
from app.simulated import HEADER
from app.simulator.completions import MODELS, complete, model_list
from app.simulator.counters import Counters, conversation_key
from app.simulator.dice import Dice
from app.simulator.faults import SENDERS, altered, draw_fault, refusal, too_many
from app.simulator.requests import ApiError, ChatRequest, parse_request
from app.simulator.settings import SimulatorSettings

_NO_SUCH_PAGE = "Unknown request URL: {method} {path}. Known: /v1/chat/completions, /v1/models."


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as it came: its headers, its body, and the status that it was answered with."""

    headers: Mapping[str, str]
    body: bytes
    status: int


class Endpoint:
    """The simulated endpoint. `keep`: how many of the latest requests to a chat model `recorded` holds."""

    def __init__(
        self, settings: SimulatorSettings | None = None, *, api_key: str | None = None, keep: int = 0
    ) -> None:
        self.settings = settings or SimulatorSettings()
        self.counters = Counters()
        self.recorded: deque[Recorded] = deque(maxlen=keep)
        self._api_key = api_key
        self._routes: Mapping[tuple[str, str], Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]] = {
            ("POST", "/v1/chat/completions"): self._chat,
            ("GET", "/v1/models"): self._models,
            ("GET", "/simulator/settings"): self._show_settings,
            ("POST", "/simulator/settings"): self._change_settings,
            ("GET", "/simulator/counters"): self._show_counters,
            ("DELETE", "/simulator/counters"): self._reset_counters,
        }

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers any request; never raises for what a client does."""
        route = self._routes.get((request.method, request.path))
        try:
            if route is None:
                raise self._no_route(request)
            return await route(request)
        except ApiError as error:
            return _json(error.body, error.status, error.headers)

    def _no_route(self, request: web.BaseRequest) -> ApiError:
        known = any(path == request.path for _, path in self._routes)
        message = _NO_SUCH_PAGE.format(method=request.method, path=request.path)
        return ApiError(405 if known else 404, message)

    async def _models(self, request: web.BaseRequest) -> web.StreamResponse:
        self._check_key(request)
        return _json(model_list())

    async def _chat(self, request: web.BaseRequest) -> web.StreamResponse:
        self.counters.arrived()
        status = 0
        body = b""
        try:
            body = await _read(request)
            response = await self._answer(request, body)
            status = response.status
        except ApiError as error:
            status = error.status
            raise
        finally:
            self.counters.answered(status)
            if self.recorded.maxlen:
                self.recorded.append(Recorded(dict(request.headers), body, status))
        return response

    async def _answer(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        arrived = asyncio.get_running_loop().time()
        settings = self.settings
        chat = self._accepted(request, body, settings)
        key = conversation_key(chat)
        before = self.counters.asked(chat.model, key)
        fault = draw_fault(settings, chat.model, key, before)
        if fault is not None:
            self.counters.by_fault[fault] += 1
            error = refusal(fault, settings)
            if error is not None:
                raise error
        completion = complete(chat, settings.seed, key)
        await _wait_until(arrived + _latency(settings, key))
        return await self._send(request, completion, fault, settings)

    def _accepted(self, request: web.BaseRequest, body: bytes, settings: SimulatorSettings) -> ChatRequest:
        try:
            self._check_key(request)
            if settings.capacity and self.counters.in_flight > settings.capacity:
                raise too_many(settings)
            return parse_request(body, MODELS, settings.unsupported)
        except ApiError:
            self.counters.refused += 1
            raise

    async def _send(
        self,
        request: web.BaseRequest,
        completion: dict[str, Any],
        fault: str | None,
        settings: SimulatorSettings,
    ) -> web.StreamResponse:
        if fault is None:
            return _json(completion)
        completion = altered(fault, completion)
        sender = SENDERS.get(fault)
        return await sender(request, _encoded(completion), settings) if sender else _json(completion)

    def _check_key(self, request: web.BaseRequest) -> None:
        if self._api_key is None:
            return
        given = request.headers.get("Authorization", "")
        if not given:
            message = "You didn't provide an API key. Give it in an Authorization header: Bearer YOUR_KEY."
            raise ApiError(401, message, code="missing_api_key")
        if not hmac.compare_digest(given.encode(), f"Bearer {self._api_key}".encode()):
            raise ApiError(401, "Incorrect API key provided.", code="invalid_api_key")

    async def _show_settings(self, request: web.BaseRequest) -> web.StreamResponse:
        _check_local(request)
        return _json(self.settings.as_json())

    async def _change_settings(self, request: web.BaseRequest) -> web.StreamResponse:
        _check_local(request)
        try:
            change = json.loads(await _read(request))
            if not isinstance(change, dict):
                raise InvalidInput("Give the settings to change as a JSON object.")
            self.settings = self.settings.changed(change)
        except InvalidInput as error:
            raise ApiError(422, error.message) from None
        except (ValueError, RecursionError):
            raise ApiError(400, "We could not parse the JSON body of your request.") from None
        return _json(self.settings.as_json())

    async def _show_counters(self, request: web.BaseRequest) -> web.StreamResponse:
        _check_local(request)
        return _json(self.counters.as_json())

    async def _reset_counters(self, request: web.BaseRequest) -> web.StreamResponse:
        _check_local(request)
        in_flight = self.counters.in_flight
        self.counters = Counters(in_flight=in_flight, peak_in_flight=in_flight)
        return _json(self.counters.as_json())


async def _read(request: web.BaseRequest) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise ApiError(413, "The request body is too large: at most 1 MiB is read.") from None


async def _wait_until(moment: float) -> None:
    delay = moment - asyncio.get_running_loop().time()
    if delay > 0:
        await asyncio.sleep(delay)


def _latency(settings: SimulatorSettings, key: int) -> float:
    if not settings.latency or not settings.jitter:
        return settings.latency
    drawn = Dice(str(settings.seed), str(key)).unit("latency")
    return settings.latency * (1 + settings.jitter * (2 * drawn - 1))


def _check_local(request: web.BaseRequest) -> None:
    """The simulator's own API serves this machine only, and no other site's page in a browser on it."""
    peer = request.remote or ""
    local = _is_loopback(peer) and "Origin" not in request.headers
    if not local or not _is_loopback(request.url.host or ""):
        raise ApiError(403, "The simulator's settings can only be reached from this machine.")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _encoded(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data).encode()


def _json(
    data: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    marked = {HEADER: "1", **(headers or {})}
    return web.Response(body=_encoded(data), status=status, headers=marked, content_type="application/json")

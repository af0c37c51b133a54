"""The faults of the simulated endpoint: which one strikes a request, and what it then sends."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from typing import Any

from aiohttp import web

from app.simulator.dice import Dice
from app.simulator.requests import ApiError
from app.simulator.settings import FAULTS, SimulatorSettings, fault_rate

Completion = dict[str, Any]
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 s: closing sends RST instead of FIN


def draw_fault(settings: SimulatorSettings, model: str, key: int, before: int) -> str | None:
    """The kind that strikes, or None. Hangs on the seed, the conversation and how often it came before."""
    if not settings.faults:
        return None
    drawn = Dice(str(settings.seed), str(key), str(before)).unit("fault")
    for kind in FAULTS:
        drawn -= fault_rate(settings, model, kind)
        if drawn < 0:
            return kind
    return None


def refusal(kind: str, settings: SimulatorSettings) -> ApiError | None:
    """The error answer for those kinds that are nothing else."""
    if kind == "429":
        return too_many(settings)
    if kind == "500":
        return ApiError(500, "The server had an error while processing your request.", kind="server_error")
    if kind == "filtered_400":
        message = "The response was filtered due to the prompt triggering the content management policy."
        return ApiError(400, message, param="prompt", code="content_filter")
    return None


def too_many(settings: SimulatorSettings) -> ApiError:
    return ApiError(
        429,
        "Rate limit reached for requests. Please try again later.",
        kind="requests",
        code="rate_limit_exceeded",
        headers={"Retry-After": settings.retry_after},
    )


def altered(kind: str, completion: Completion) -> Completion:
    """The completion as the fault leaves it; kinds that do not touch the JSON leave it alone."""
    change = _ALTERATIONS.get(kind)
    if change is None:
        return completion
    completion = deepcopy(completion)
    change(completion)
    return completion


def _message(completion: Completion) -> dict[str, Any]:
    message: dict[str, Any] = completion["choices"][0]["message"]
    return message


def _finish(completion: Completion, reason: str) -> None:
    completion["choices"][0]["finish_reason"] = reason


def _empty(completion: Completion) -> None:
    _message(completion)["content"] = ""


def _null(completion: Completion) -> None:
    _message(completion)["content"] = None


def _filtered(completion: Completion) -> None:
    _null(completion)
    _finish(completion, "content_filter")


def _truncated(completion: Completion) -> None:
    message = _message(completion)
    message["content"] = message["content"][: len(message["content"]) // 2]
    _finish(completion, "length")


def _no_choices(completion: Completion) -> None:
    completion["choices"] = []


def _error_200(completion: Completion) -> None:
    completion.clear()
    completion["error"] = {"message": "The upstream provider returned an error.", "code": 502}


def _reasoning(completion: Completion) -> None:
    message = _message(completion)
    message["reasoning_content"] = f"The user wants advice. I could say: {message['content']}"
    message["content"] = ""


def _parts(completion: Completion) -> None:
    message = _message(completion)
    head, space, tail = message["content"].partition(" ")
    message["content"] = [{"type": "text", "text": head + space}, {"type": "text", "text": tail}]


def _refusal(completion: Completion) -> None:
    message = _message(completion)
    message |= {"content": None, "refusal": "I'm sorry, but I can't help with that request."}


def _think(completion: Completion) -> None:
    message = _message(completion)
    message["content"] = f"<think>\nThe user asks for advice; I weigh it.\n</think>\n\n{message['content']}"


def _nul(completion: Completion) -> None:
    message = _message(completion)
    message["content"] = message["content"].replace(" ", "\x00", 2)


def _long(completion: Completion) -> None:
    _message(completion)["content"] = "very " * 1_000_000


def _other_model(completion: Completion) -> None:
    completion["model"] = "another-model-2"


_ALTERATIONS: Mapping[str, Callable[[Completion], None]] = {
    "empty": _empty,
    "null": _null,
    "filtered": _filtered,
    "truncated": _truncated,
    "no_choices": _no_choices,
    "error_200": _error_200,
    "reasoning": _reasoning,
    "parts": _parts,
    "refusal": _refusal,
    "think": _think,
    "nul": _nul,
    "long": _long,
    "other_model": _other_model,
}

Sender = Callable[[web.BaseRequest, bytes, SimulatorSettings], Awaitable[web.StreamResponse]]


async def _bad_json(request: web.BaseRequest, body: bytes, settings: SimulatorSettings) -> web.StreamResponse:
    return web.Response(body=body[: len(body) // 2], content_type="application/json")


async def _no_body(request: web.BaseRequest, body: bytes, settings: SimulatorSettings) -> web.StreamResponse:
    return web.Response(content_type="application/json")


async def _unavailable(
    request: web.BaseRequest, body: bytes, settings: SimulatorSettings
) -> web.StreamResponse:
    page = "<html><head><title>503</title></head><body>Service Temporarily Unavailable</body></html>"
    return web.Response(status=503, text=page, content_type="text/html")


async def _redirect(request: web.BaseRequest, body: bytes, settings: SimulatorSettings) -> web.StreamResponse:
    return web.Response(status=302, headers={"Location": "http://192.0.2.1/v1/chat/completions"})


async def _reset(request: web.BaseRequest, body: bytes, settings: SimulatorSettings) -> web.StreamResponse:
    reset_connection(request)
    return web.Response()


async def _cut(request: web.BaseRequest, body: bytes, settings: SimulatorSettings) -> web.StreamResponse:
    response = _started(len(body))
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    reset_connection(request)
    return response


async def _hang(request: web.BaseRequest, body: bytes, settings: SimulatorSettings) -> web.StreamResponse:
    await asyncio.sleep(settings.hang)
    return web.Response(body=body, content_type="application/json")


async def _drip(request: web.BaseRequest, body: bytes, settings: SimulatorSettings) -> web.StreamResponse:
    response = _started(None)
    await response.prepare(request)
    dripped = 0.0
    while dripped < settings.hang:
        await response.write(b" ")
        await asyncio.sleep(settings.drip)
        dripped += max(settings.drip, 0.001)
    await response.write(body)
    return response


def _started(length: int | None) -> web.StreamResponse:
    response = web.StreamResponse()
    response.content_type = "application/json"
    response.content_length = length
    return response


def reset_connection(request: web.BaseRequest) -> None:
    """Closes the connection so that the client sees a reset, not an end."""
    transport = request.transport
    if transport is None:
        return
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    transport.abort()


SENDERS: Mapping[str, Sender] = {
    "503": _unavailable,
    "reset": _reset,
    "cut": _cut,
    "hang": _hang,
    "drip": _drip,
    "bad_json": _bad_json,
    "no_body": _no_body,
    "redirect": _redirect,
}

"""From a valid request to the answer's JSON: the reply, stop sequences, the token limit, counts of tokens."""

import time
from collections.abc import Mapping
from typing import Any

from app.simulated import FINGERPRINT
from app.simulator.assistants import ASSISTANTS, reply
from app.simulator.rater import EVALUATOR, rate
from app.simulator.requests import ApiError, ChatRequest
from app.simulator.sentinels import BY_MODEL, sentinel_reply

MODELS = (*ASSISTANTS, EVALUATOR, *BY_MODEL)
_CHARACTERS_PER_TOKEN = 4  # the usual rule of thumb for English
_TOKENS_PER_MESSAGE = 4


def complete(request: ChatRequest, seed: int, key: int) -> dict[str, Any]:
    """The answer to `request`; `seed` is the server's own, `key` the conversation's (it names the answer)."""
    choices = [_choice(request, seed, index) for index in range(request.n)]
    prompt = sum(tokens(turn.text) + _TOKENS_PER_MESSAGE for turn in request.turns)
    written = sum(tokens(choice["message"]["content"]) for choice in choices)
    return {
        "id": f"chatcmpl-{key:016x}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.model,
        "system_fingerprint": FINGERPRINT,
        "choices": choices,
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
        },
    }


def tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def _choice(request: ChatRequest, seed: int, index: int) -> dict[str, Any]:
    text, finish = _limited(_write(request, f"{seed}/{request.seed}/{index}"), request)
    return {
        "index": index,
        "message": {"role": "assistant", "content": text, "refusal": None},
        "logprobs": None,
        "finish_reason": finish,
    }


def _write(request: ChatRequest, seed: str) -> str:
    if request.model == EVALUATOR:
        return rate(request.turns, request.response_format)
    if request.response_format is not None and request.response_format["type"] != "text":
        message = "Invalid parameter: 'response_format' of this type is not supported with this model."
        raise ApiError(400, message, param="response_format", code="unsupported_value")
    if request.model in BY_MODEL:
        return sentinel_reply(request.model, request.turns)
    return reply(request.model, request.turns, seed)


def _limited(text: str, request: ChatRequest) -> tuple[str, str]:
    for stop in request.stop:
        text = text.split(stop, 1)[0]
    if request.max_tokens is not None and tokens(text) > request.max_tokens:
        return text[: request.max_tokens * _CHARACTERS_PER_TOKEN], "length"
    return text, "stop"


def model_list() -> Mapping[str, Any]:
    data = [{"id": model, "object": "model", "created": 0, "owned_by": "simulator"} for model in MODELS]
    return {"object": "list", "data": data}

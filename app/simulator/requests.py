"""The request body of a chat completion, checked as strictly as real servers check it."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from app.simulator.reading import Turn


class ApiError(Exception):
    """An error answer in the API's own form."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self.body: dict[str, Any] = {
            "error": {"message": message, "type": kind, "param": param, "code": code}
        }


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A valid request. `max_tokens` is None when the client set no limit."""

    model: str
    turns: tuple[Turn, ...]
    n: int
    max_tokens: int | None
    stop: tuple[str, ...]
    seed: int | None
    response_format: Mapping[str, Any] | None


ROLES = ("developer", "system", "user", "assistant")
_MOST_MESSAGES = 2048
_MOST_CHOICES = 8

_Check = Callable[[str, Any], None]


def parse_request(body: bytes, models: Collection[str], unsupported: Collection[str]) -> ChatRequest:
    """The request in `body`, or ApiError naming the parameter that is wrong.

    `unsupported`: parameters refused in the words that real servers use for those a model does not take.
    """
    data = _object(body)
    _refuse_unknown(data, unsupported)
    for name, check in _CHECKS.items():
        if data.get(name) is not None:
            check(name, data[name])
    if data.get("max_tokens") is not None and data.get("max_completion_tokens") is not None:
        raise _invalid(
            "max_tokens",
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
            "invalid_parameter_combination",
        )
    model = _required(data, "model")
    if model not in models:
        message = f"The model '{model}' does not exist. Models here: {', '.join(models)}."
        raise ApiError(404, message, param="model", code="model_not_found")
    return ChatRequest(
        model=model,
        turns=_turns(_required(data, "messages")),
        n=data.get("n") or 1,
        max_tokens=data.get("max_tokens") or data.get("max_completion_tokens"),
        stop=_stops(data.get("stop")),
        seed=data.get("seed"),
        response_format=data.get("response_format"),
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise ApiError(400, "We could not parse the JSON body of your request.") from None
    if not isinstance(data, dict):
        raise ApiError(400, "The JSON body of your request is not an object.")
    return data


def _refuse_unknown(data: Mapping[str, Any], unsupported: Collection[str]) -> None:
    for name in data:
        if name in unsupported:
            instead = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
            message = f"Unsupported parameter: '{name}' is not supported with this model.{instead}"
            raise _invalid(name, message, "unsupported_parameter")
        if name not in _CHECKS:
            raise _invalid(name, f"Unknown parameter: '{name}'.", "unknown_parameter")


def _required(data: Mapping[str, Any], name: str) -> Any:
    if data.get(name) is None:
        raise _invalid(name, f"Missing required parameter: '{name}'.", "missing_required_parameter")
    return data[name]


def _invalid(param: str, message: str, code: str) -> ApiError:
    return ApiError(400, message, param=param, code=code)


def _type_error(param: str, expected: str, value: Any) -> ApiError:
    got = _JSON_NAMES.get(type(value), type(value).__name__)
    return _invalid(
        param, f"Invalid type for '{param}': expected {expected}, but got {got} instead.", "invalid_type"
    )


_JSON_NAMES: Mapping[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a decimal",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


def _number(low: float, high: float) -> _Check:
    def check(name: str, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _type_error(name, "a decimal", value)
        if not low <= value <= high:
            message = f"Invalid '{name}': {value} lies outside the range from {low:g} to {high:g}."
            raise _invalid(name, message, "decimal_out_of_range")

    return check


def _integer(low: int, high: int) -> _Check:
    def check(name: str, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _type_error(name, "an integer", value)
        if not low <= value <= high:
            message = f"Invalid '{name}': {value} lies outside the range from {low} to {high}."
            raise _invalid(name, message, "integer_out_of_range")

    return check


def _typed(expected: str, *types: type) -> _Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise _type_error(name, expected, value)

    return check


def _only_false(name: str, value: Any) -> None:
    _typed("a boolean", bool)(name, value)
    if value:
        message = f"Unsupported value: '{name}' does not support true with this model."
        raise _invalid(name, message, "unsupported_value")


def _stop(name: str, value: Any) -> None:
    _typed("a string or an array of strings", str, list)(name, value)
    stops = [value] if isinstance(value, str) else value
    if len(stops) > 4:
        message = f"Invalid '{name}': array too long. Expected at most 4 stop sequences."
        raise _invalid(name, message, "array_above_max_length")
    for position, stop in enumerate(stops):
        if not isinstance(stop, str):
            raise _type_error(f"{name}[{position}]", "a string", stop)
        if not stop:
            message = f"Invalid '{name}': a stop sequence must not be empty."
            raise _invalid(name, message, "empty_string")


def _messages(name: str, value: Any) -> None:
    _typed("an array of objects", list)(name, value)
    if not value:
        message = "Invalid 'messages': empty array. Expected at least one message."
        raise _invalid(name, message, "empty_array")
    if len(value) > _MOST_MESSAGES:
        message = f"Invalid 'messages': array too long. Expected at most {_MOST_MESSAGES} messages."
        raise _invalid(name, message, "array_above_max_length")


def _response_format(name: str, value: Any) -> None:
    _typed("an object", dict)(name, value)
    kind = value.get("type")
    if kind not in ("text", "json_object", "json_schema"):
        message = f"Invalid value: {kind!r}. Supported values are: 'text', 'json_object' and 'json_schema'."
        raise _invalid(f"{name}.type", message, "invalid_value")
    if kind != "json_schema":
        return
    given = value.get("json_schema")
    if not isinstance(given, dict) or not isinstance(given.get("schema"), dict):
        message = f"Missing required parameter: '{name}.json_schema.schema'."
        raise _invalid(f"{name}.json_schema.schema", message, "missing_required_parameter")
    if not isinstance(given.get("name"), str) or not given["name"]:
        message = f"Missing required parameter: '{name}.json_schema.name'."
        raise _invalid(f"{name}.json_schema.name", message, "missing_required_parameter")


_CHECKS: Mapping[str, _Check] = {
    "model": _typed("a string", str),
    "messages": _messages,
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "n": _integer(1, _MOST_CHOICES),
    "stop": _stop,
    "max_tokens": _integer(1, 1_000_000),
    "max_completion_tokens": _integer(1, 1_000_000),
    "presence_penalty": _number(-2, 2),
    "frequency_penalty": _number(-2, 2),
    "seed": _integer(-(2**63), 2**63 - 1),
    "user": _typed("a string", str),
    "metadata": _typed("an object", dict),
    "store": _only_false,
    "stream": _only_false,
    "logprobs": _only_false,
    "response_format": _response_format,
}


def _stops(value: str | list[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _turns(messages: list[Any]) -> tuple[Turn, ...]:
    turns = tuple(_turn(f"messages[{position}]", message) for position, message in enumerate(messages))
    if turns[-1].role != "user":
        message = f"Invalid 'messages': the last message must have the role 'user', not '{turns[-1].role}'."
        raise _invalid(f"messages[{len(turns) - 1}].role", message, "invalid_value")
    return turns


def _turn(path: str, message: Any) -> Turn:
    if not isinstance(message, dict):
        raise _type_error(path, "an object", message)
    unknown = message.keys() - {"role", "content", "name"}
    if unknown:
        name = f"{path}.{min(unknown)}"
        raise _invalid(name, f"Unknown parameter: '{name}'.", "unknown_parameter")
    role = message.get("role")
    if role not in ROLES:
        supported = ", ".join(f"'{known}'" for known in ROLES)
        text = f"Invalid value: {role!r}. Supported values are: {supported}."
        raise _invalid(f"{path}.role", text, "invalid_value")
    text = _text(f"{path}.content", message.get("content"))
    if role == "assistant" and not text.strip():
        refusal = f"Invalid '{path}.content': the message with role 'assistant' must not be empty."
        raise _invalid(f"{path}.content", refusal, "empty_string")
    return Turn(role, text)


def _text(path: str, content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        raise _type_error(path, "a string or an array of parts", content)
    return "".join(_part(f"{path}[{position}]", part) for position, part in enumerate(content))


def _part(path: str, part: Any) -> str:
    if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
        message = f"Invalid '{path}': these models take text parts only."
        raise _invalid(path, message, "invalid_value")
    return str(part["text"])

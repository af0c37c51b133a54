"""What an endpoint's error body says, whichever of the usual shapes it has."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FILTER_CODES = frozenset(
    {"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "content_filtered"}
)
QUOTA_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"}
)
KEY_CODES = frozenset({"api_key_invalid", "invalid_api_key"})
# Anthropic says so with status 400 and no code of its own.
_NO_CREDIT = re.compile(r"credit balance is too low", re.IGNORECASE)
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s", re.ASCII)


@dataclass(frozen=True, slots=True)
class ApiError:
    """message: the endpoint's words; codes: its code, type and status words in lower case; param: the
    parameter it names; retry_delay: seconds after which to come back, where the body says so."""

    message: str = ""
    codes: frozenset[str] = frozenset()
    param: str | None = None
    retry_delay: float | None = None
    flagged: bool = False

    @property
    def filtered(self) -> bool:
        return self.flagged or bool(self.codes & FILTER_CODES)

    @property
    def quota_exhausted(self) -> bool:
        return bool(self.codes & QUOTA_CODES) or bool(_NO_CREDIT.search(self.message))

    @property
    def key_refused(self) -> bool:
        return bool(self.codes & KEY_CODES)


def api_error(data: object) -> ApiError:
    """Read an error body: OpenAI, Anthropic, Gemini, FastAPI's detail, or a plain message; never raises."""
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, Mapping):
        return ApiError(message=data if isinstance(data, str) else "")
    inner = data.get("error")
    if isinstance(inner, Mapping):
        return _from_mapping(inner)
    if isinstance(inner, str) and inner:
        return ApiError(message=inner, codes=_words(data, "code", "type"))
    if "detail" in data:
        return _from_detail(data["detail"])
    return _from_mapping(data)


def _from_mapping(error: Mapping[str, Any]) -> ApiError:
    message = error.get("message")
    param = error.get("param")
    inner = error.get("innererror")
    codes = _words(error, "code", "type", "status")
    if isinstance(inner, Mapping):
        codes |= _words(inner, "code")
    codes |= _reasons(error.get("details"))
    return ApiError(
        message=message if isinstance(message, str) else "",
        codes=codes,
        param=param if isinstance(param, str) and param else None,
        retry_delay=_retry_delay(error.get("details")),
        flagged=_flagged(error.get("metadata")),
    )


def _from_detail(detail: object) -> ApiError:
    if not isinstance(detail, list):
        return ApiError(message=detail if isinstance(detail, str) else "")
    first = next((item for item in detail if isinstance(item, Mapping)), None)
    if first is None:
        return ApiError()
    place = first.get("loc")
    names = [part for part in place if isinstance(part, str)] if isinstance(place, list) else []
    message = first.get("msg")
    return ApiError(
        message=message if isinstance(message, str) else "",
        codes=_words(first, "type"),
        param=names[-1] if names else None,
    )


def _words(source: Mapping[str, Any], *names: str) -> frozenset[str]:
    return frozenset(str(source[name]).lower() for name in names if isinstance(source.get(name), str | int))


def _flagged(metadata: object) -> bool:
    """A router's moderation refusal carries what was flagged and why."""
    return isinstance(metadata, Mapping) and ("flagged_input" in metadata or bool(metadata.get("reasons")))


def _reasons(details: object) -> frozenset[str]:
    """google.rpc.ErrorInfo: {"reason": "API_KEY_INVALID"} among the details."""
    found: frozenset[str] = frozenset()
    for item in details if isinstance(details, list) else []:
        if isinstance(item, Mapping):
            found |= _words(item, "reason")
    return found


def _retry_delay(details: object) -> float | None:
    """google.rpc.RetryInfo: {"retryDelay": "34s"} among the details."""
    for item in details if isinstance(details, list) else []:
        delay = item.get("retryDelay") if isinstance(item, Mapping) else None
        match = _DELAY.fullmatch(delay) if isinstance(delay, str) else None
        if match:
            return float(match[1])
    return None

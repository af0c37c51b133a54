"""From one HTTP answer to what it means: a reply, a refusal by a filter, or a class of failure."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from app.chat.api_errors import ApiError, api_error
from app.chat.errors import ERRORS, RETRIABLE
from app.chat.exchange import State
from app.chat.pace import SendResult
from app.chat.providers import Provider
from app.chat.replies import finish
from app.chat.retry import retry_after
from app.chat.text import Scrubber, clean, one_line
from app.chat.transport import Answer
from app.simulated import FINGERPRINT, HEADER

MAX_STORED_CHARACTERS: Final = 65_536
_NO_FLAGS: Final[frozenset[str]] = frozenset()
_CAPPED: Final = frozenset({"response_capped"})
_PASSING = frozenset({408, 409, 425})
_OVERLOADED = frozenset({429, 529})
_FOREIGN_TYPES = ("text/html", "application/xhtml+xml", "text/xml", "application/xml", "text/event-stream")
_LONG_TEXT = re.compile(r'"(?:content|text)"\s*:\s*"(?:[^"\\]|\\.){32001}', re.DOTALL)
# A redirect's Location to the base URL that leads there, None where that would not be accepted.
BaseOf = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Result:
    """text is None only with an error; api: the endpoint's own error, where it sent one; hint: seconds
    after which the endpoint wants to be asked again."""

    status: int | None
    state: State
    text: str | None = None
    error: str | None = None
    message: str | None = None
    flags: frozenset[str] = frozenset()
    response: str | None = None
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    api: ApiError | None = None
    hint: float | None = None
    whole: str | None = None
    simulated: bool = False

    @property
    def retriable(self) -> bool:
        return self.error in RETRIABLE

    @property
    def send_result(self) -> SendResult:
        if self.error is None:
            return SendResult.OK
        limited = self.error == "rate_limited" or (self.status == 503 and self.hint is not None)
        return SendResult.RATE_LIMITED if limited else SendResult.FAILED


class Reader:
    """Reads the answers of one endpoint."""

    def __init__(self, provider: Provider, scrub: Scrubber, base_of: BaseOf) -> None:
        self._provider = provider
        self._scrub = scrub
        self._base_of = base_of

    def read(self, answer: Answer) -> Result:
        if answer.error is not None:
            return self._failed(answer, answer.error, answer.detail)
        status = answer.status or 0
        if 300 <= status < 400:
            return self._failed(answer, "endpoint_redirect", self._redirect(answer))
        encoding = answer.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            return self._failed(Answer(status, answer.headers), "encoded_body", encoding)
        if status >= 400:
            return self._refused(answer)
        if status < 200:
            return self._failed(answer, "bad_http", f"status {status}")
        return self._answered(answer)

    def _answered(self, answer: Answer) -> Result:
        if answer.too_large:
            head = answer.body.decode("utf-8", "replace")
            return self._failed(
                answer, "content_too_long" if _LONG_TEXT.search(head) else "response_too_large"
            )
        if not answer.body.strip():
            return self._failed(answer, "empty_body")
        foreign = _foreign_type(answer)
        if foreign is not None:
            return self._failed(answer, "bad_json", f"the content type is {foreign}")
        try:
            text = decoded(answer.body)
            data = parse_json(text)
        except BadJson as problem:
            return self._failed(answer, "bad_json", str(problem))
        if data.get("error") and not data.get("choices"):
            return self._error_inside(answer, api_error(data))
        return self._reply(answer, text, data)

    def _reply(self, answer: Answer, raw: str, data: dict[str, Any]) -> Result:
        draft = self._provider.read(data)
        reply = finish(draft, self._scrub)
        response, capped = self._storable(raw, answer.too_large)
        return Result(
            answer.status,
            reply.state,
            reply.text,
            reply.error,
            self._sentence(reply.error, answer.status, reply.detail) if reply.error else None,
            reply.flags | capped,
            response,
            self._scrub(draft.model) if draft.model else None,
            draft.prompt_tokens,
            draft.completion_tokens,
            whole=reply.whole,
            simulated=HEADER in answer.headers or data.get("system_fingerprint") == FINGERPRINT,
        )

    def _error_inside(self, answer: Answer, error: ApiError) -> Result:
        """Status 200 around an error: what stands behind the endpoint failed."""
        if error.filtered:
            return self._filtered(answer, error)
        if error.quota_exhausted:
            return self._failed(answer, "quota_exhausted", error.message, error)
        kind = "rate_limited" if "429" in error.codes else "server_error"
        return self._failed(answer, kind, error.message, error)

    def _refused(self, answer: Answer) -> Result:
        try:
            error = api_error(parse_json(decoded(answer.body), any_value=True))
        except BadJson:
            error = ApiError()
        if error.filtered:
            return self._filtered(answer, error)
        return self._failed(answer, _class_of(answer.status or 0, error), error.message, error)

    def _filtered(self, answer: Answer, error: ApiError) -> Result:
        response, flags = self._stored(answer)
        return Result(answer.status, "filtered", "", flags=flags, response=response, api=error)

    def _failed(self, answer: Answer, error: str, detail: str = "", api: ApiError | None = None) -> Result:
        response, flags = self._stored(answer)
        hint = retry_after(answer.headers, datetime.now(UTC))
        if hint is None and api is not None:
            hint = api.retry_delay
        message = self._sentence(error, answer.status, detail)
        return Result(
            answer.status, "error", None, error, message, flags, response=response, api=api, hint=hint
        )

    def _sentence(self, error: str, status: int | None, detail: str) -> str:
        said = one_line(self._scrub(clean(detail)[0]))
        about = ", ".join(filter(None, (f"status {status}" if status and status >= 300 else "", said)))
        return f"{ERRORS[error]} ({about})" if about else ERRORS[error]

    def _stored(self, answer: Answer) -> tuple[str | None, frozenset[str]]:
        """The raw body as it may be kept, and a flag where that is not all of it."""
        if answer.status is None or (not answer.body and not answer.too_large):
            return None, _NO_FLAGS
        return self._storable(answer.body.decode("utf-8", "replace"), answer.too_large)

    def _storable(self, raw: str, cut: bool) -> tuple[str, frozenset[str]]:
        text, _ = clean(self._scrub.body(raw))
        if cut or len(text) > MAX_STORED_CHARACTERS:
            return text[:MAX_STORED_CHARACTERS], _CAPPED
        return text, _NO_FLAGS

    def _redirect(self, answer: Answer) -> str:
        """The new base URL where it would be accepted; nothing of it otherwise."""
        target = answer.headers.get("Location", "")
        if not target:
            return "it names no address"
        base = self._base_of(target)
        return f"the base URL would be {base}" if base else "to an address that would not be accepted"


def _foreign_type(answer: Answer) -> str | None:
    """The content type where it cannot be JSON's. Others are let through: small servers mislabel."""
    given = answer.headers.getall("Content-Type", ())
    kinds = {kind.split(";")[0].strip().lower() for kind in given}
    if len(kinds) <= 1 and kinds.isdisjoint(_FOREIGN_TYPES):
        return None
    return " and ".join(sorted(kinds))


class BadJson(Exception):
    """Says what is wrong with the body."""


def decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadJson("the body is not UTF-8") from None


def parse_json(text: str, *, any_value: bool = False) -> Any:
    """A JSON object out of untrusted text: no NaN, no absurd nesting or numbers."""
    try:
        data = _DECODER.decode(text)
    except RecursionError:
        raise BadJson("the JSON is nested too deeply") from None
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "a number is impossible"
        raise BadJson(f"not JSON: {reason}") from None
    if not isinstance(data, dict) and not any_value:
        raise BadJson("the JSON is not an object")
    return data


def _no_constant(word: str) -> None:
    raise ValueError(word)


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)


def _class_of(status: int, error: ApiError) -> str:
    if status == 402 or error.quota_exhausted:
        return "quota_exhausted"
    if status in _OVERLOADED:
        return "rate_limited"
    if status in (401, 403) or error.key_refused:
        return "auth"
    if status == 404:
        return "not_found"
    if status >= 500 or status in _PASSING:
        return "server_error"
    return "bad_request"

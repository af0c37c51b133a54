"""What goes into one call of a model and what comes out of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

from app.errors import InvalidInput

Role = Literal["system", "user", "assistant"]
ProviderName = Literal["openai", "anthropic", "gemini", "completion"]
State = Literal["answered", "empty", "filtered", "error"]
Learned = Mapping[str, str | None]

MAX_KEY_CHARACTERS = 4096
MAX_MODEL_CHARACTERS = 200
_CREDENTIALS = re.compile(r"[^/?#]*//[^/?#]*@|[^?#]*[?#]", re.DOTALL)
_HEADER_SAFE = re.compile(r"[\x21-\x7e]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str


def check_api_key(key: str) -> None:
    """Refuse a key that cannot travel as an HTTP header value. The message never shows the key."""
    if not key:
        raise InvalidInput("The API key is empty: give the key, or none at all.")
    if len(key) > MAX_KEY_CHARACTERS:
        raise InvalidInput(f"The API key is longer than {MAX_KEY_CHARACTERS} characters: is it really a key?")
    if not _HEADER_SAFE.fullmatch(key):
        raise InvalidInput(
            "The API key contains a line break, a space or a character outside ASCII: "
            "copy it again without anything before or after it."
        )


def check_model_name(model: str) -> None:
    """Refuse a model name that is blank, too long or not printable."""
    if not model or model != model.strip() or not model.isprintable() or len(model) > MAX_MODEL_CHARACTERS:
        raise InvalidInput(
            f"The model name must be 1 to {MAX_MODEL_CHARACTERS} printable characters "
            "without spaces at either end."
        )


@dataclass(frozen=True)
class Endpoint:
    """Where a model answers.

    private_allowed: the owner of this machine chose the address, so that no address check is made;
    otherwise the guard holds on every connection. learned: what earlier calls found out, by parameter:
    the name to send instead, or None to leave it out.
    """

    provider: ProviderName
    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    private_allowed: bool = False
    learned: Learned = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.provider not in get_args(ProviderName):
            known = ", ".join(get_args(ProviderName))
            raise InvalidInput(f"There is no provider {self.provider!r}: use one of {known}.")
        # Not refused by the guard alone: a key in the address would show wherever the address does.
        if _CREDENTIALS.match(self.base_url):
            raise InvalidInput(
                "The base URL contains a user name, a password or a query: leave it out, "
                "and give the key in its own field."
            )
        check_model_name(self.model)
        if self.api_key is not None:
            check_api_key(self.api_key)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request. seconds: from sending; waited: the pause before it, queueing for a slot not counted."""

    status: int | None
    error: str | None
    seconds: float
    waited: float


@dataclass(frozen=True)
class Exchange:
    """One logical call, after all its attempts.

    text is the visible reply and is None only with an error; request is the last body as sent and
    holds no key, request_body the same as JSON ("" when nothing was sent); response is the last raw body,
    without the key, NUL or surrogates, and capped. seconds: of the last attempt, from sending. learned:
    what this call found out. whole: the reply with its think tags, where it had some: who reads a form of
    its own must tell reasoning from a quoted tag. simulated: the reply says of itself that no model wrote it
    (app.simulated).
    """

    text: str | None
    state: State
    error: str | None
    error_message: str | None
    flags: frozenset[str]
    request: dict[str, Any]
    request_body: str
    response: str | None
    model_reported: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    attempts: tuple[Attempt, ...]
    started_at: datetime
    seconds: float
    learned: Learned
    whole: str | None = None
    simulated: bool = False


def messages_for(
    turns: Sequence[tuple[str, str | None]], request: str, system: str | None = None
) -> list[Message]:
    """The messages of the next request: earlier turns as (user, reply), then the new user turn.

    A reply that is None or blank is left out, so that no empty assistant message is ever replayed.
    """
    messages = [Message("system", system)] if system else []
    for user, reply in turns:
        messages.append(Message("user", user))
        if reply is not None and reply.strip():
            messages.append(Message("assistant", reply))
    messages.append(Message("user", request))
    return messages

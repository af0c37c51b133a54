"""What a provider's adapter has to be: pure functions between our words and the provider's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.chat.exchange import Learned, Message
from app.chat.replies import Draft
from app.sampling import Sampling

ResponseFormat = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One request in our words; response_format as OpenAI writes it (type json_schema)."""

    model: str
    messages: Sequence[Message]
    sampling: Sampling
    response_format: ResponseFormat | None
    learned: Learned


@dataclass(frozen=True, slots=True)
class Provider:
    """aliases: how each parameter may be called in the provider's error messages; fixed: parameters that
    the provider requires; renames: what to send instead when a parameter is refused."""

    url: Callable[[str, str], str]
    headers: Callable[[str | None], dict[str, str]]
    body: Callable[[Request], dict[str, Any]]
    read: Callable[[dict[str, Any]], Draft]
    structured: bool
    aliases: Mapping[str, tuple[str, ...]]
    fixed: frozenset[str] = frozenset()
    renames: Mapping[str, str] | None = None


def parameters(request: Request) -> dict[str, Any]:
    """The optional parameters to send, by our names, without those that are known to be refused."""
    sampling = request.sampling
    wanted: dict[str, Any] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "presence_penalty": sampling.presence_penalty,
        "max_tokens": sampling.max_tokens,
        "stop": list(sampling.stop) or None,
        "response_format": request.response_format,
    }
    learned = request.learned
    return {
        key: value
        for key, value in wanted.items()
        if value is not None and not (key in learned and learned[key] is None)
    }


def settled(request: Request, *, merge: bool = False) -> list[Message]:
    """The messages without blank assistant turns; what was learned about roles is applied.

    merge: join neighbours of one role, for providers whose turns must alternate.
    """
    messages = [m for m in request.messages if m.role != "assistant" or m.content.strip()]
    if request.learned.get("system_role") == "user":
        messages = [replace(m, role="user") if m.role == "system" else m for m in messages]
        merge = True
    if merge or request.learned.get("roles") == "merged":
        return merged(messages)
    return messages


def merged(messages: Sequence[Message]) -> list[Message]:
    """Neighbouring messages of one role as one, a blank line between them."""
    result: list[Message] = []
    for message in messages:
        if result and result[-1].role == message.role:
            result[-1] = replace(result[-1], content=f"{result[-1].content}\n\n{message.content}")
        else:
            result.append(message)
    return result


def schema_of(response_format: ResponseFormat) -> Any:
    """The JSON schema inside an OpenAI response_format."""
    return response_format["json_schema"]["schema"]


def joined(base: str, ending: str) -> str:
    """base + ending, where a user may already have pasted the whole path."""
    return base if base.endswith(ending) else base.rstrip("/") + ending

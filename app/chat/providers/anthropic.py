"""Anthropic messages."""

from typing import Any

from app.chat.providers.base import Provider, Request, joined, parameters, schema_of, settled
from app.chat.replies import Draft, join_parts, name, tokens

VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 1024
# presence_penalty has no counterpart.
NAMES = {"temperature": "temperature", "top_p": "top_p", "stop": "stop_sequences"}
_TRUNCATED = ("max_tokens", "model_context_window_exceeded")


def url(base: str, model: str) -> str:
    del model
    if base.endswith("/messages"):
        return base
    return joined(base if base.endswith("/v1") else joined(base, "/v1"), "/messages")


def headers(key: str | None) -> dict[str, str]:
    sent = {"anthropic-version": VERSION}
    if key:
        sent["x-api-key"] = key
    return sent


def body(request: Request) -> dict[str, Any]:
    messages = settled(request, merge=True)
    wanted = parameters(request)
    sent: dict[str, Any] = {
        "model": request.model,
        "max_tokens": wanted.get("max_tokens", DEFAULT_MAX_TOKENS),
        "messages": [{"role": m.role, "content": m.content} for m in messages if m.role != "system"],
    }
    system = "\n\n".join(m.content for m in messages if m.role == "system")
    if system:
        sent["system"] = system
    sent |= {theirs: wanted[ours] for ours, theirs in NAMES.items() if ours in wanted}
    if "response_format" in wanted:
        schema = schema_of(wanted["response_format"])
        sent["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return sent


def read(data: dict[str, Any]) -> Draft:
    usage = data.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    draft = Draft(
        model=name(data.get("model")),
        prompt_tokens=tokens(counts.get("input_tokens")),
        completion_tokens=tokens(counts.get("output_tokens")),
    )
    content = data.get("content")
    reason = data.get("stop_reason")
    draft.filtered = reason == "refusal"
    if not isinstance(content, list):
        draft.error = None if draft.filtered and content is None else "no_choices"
        return draft
    draft.text, draft.reasoning = join_parts(content, draft.flags)
    if reason in _TRUNCATED:
        draft.flags.add("truncated")
    if reason == "tool_use":
        draft.flags.add("tool_calls")
    return draft


PROVIDER = Provider(
    url=url,
    headers=headers,
    body=body,
    read=read,
    structured=True,
    aliases={
        "temperature": ("temperature",),
        "top_p": ("top_p",),
        "stop": ("stop_sequences",),
        "response_format": ("output_config", "output_format", "structured outputs"),
    },
    fixed=frozenset({"max_tokens"}),
)

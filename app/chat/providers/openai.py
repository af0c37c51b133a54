"""OpenAI chat completions, and every server that speaks them."""

from typing import Any

from app.chat.api_errors import api_error
from app.chat.providers.base import Provider, Request, joined, parameters, settled
from app.chat.replies import Draft, join_parts, name, tokens

ALIASES = {
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "presence_penalty": ("presence_penalty", "presencePenalty"),
    "max_tokens": ("max_tokens", "max_completion_tokens", "maxTokens"),
    "stop": ("stop", "stop_sequences"),
    "response_format": ("response_format", "json_schema", "responseFormat"),
}
_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")


def url(base: str, model: str) -> str:
    del model
    return joined(base, "/chat/completions")


def headers(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def body(request: Request) -> dict[str, Any]:
    sent: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": m.role, "content": m.content} for m in settled(request)],
    }
    for parameter, value in parameters(request).items():
        sent[request.learned.get(parameter) or parameter] = value
    return sent


def read(data: dict[str, Any]) -> Draft:
    draft = opened(data)
    choice = first_choice(data, draft)
    if choice is None:
        return draft
    message = choice.get("message")
    if not isinstance(message, dict):
        draft.error = "no_choices"
        return draft
    _content(message, draft)
    draft.reasoning = draft.reasoning or any(message.get(field) for field in _REASONING_FIELDS)
    if message.get("tool_calls") or message.get("function_call"):
        draft.flags.add("tool_calls")
    return draft


def opened(data: dict[str, Any]) -> Draft:
    """What stands beside the choices: the model's name and the tokens."""
    usage = data.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return Draft(
        model=name(data.get("model")),
        prompt_tokens=tokens(counts.get("prompt_tokens")),
        completion_tokens=tokens(counts.get("completion_tokens")),
    )


def first_choice(data: dict[str, Any], draft: Draft) -> dict[str, Any] | None:
    """The first choice with its finish reason read into the draft; None with draft.error set."""
    listed = data.get("choices")
    choices = listed if isinstance(listed, list) else []
    choice = choices[0] if choices else None
    if not isinstance(choice, dict):
        draft.error = "no_choices"
        return None
    if choice.get("error") or choice.get("finish_reason") == "error":
        draft.error, draft.detail = "server_error", api_error(choice).message
        return None
    if len(choices) > 1:
        draft.flags.add("several_choices")
    draft.filtered = choice.get("finish_reason") == "content_filter"
    if choice.get("finish_reason") in ("length", "max_tokens"):
        draft.flags.add("truncated")
    return choice


def _content(message: dict[str, Any], draft: Draft) -> None:
    content = message.get("content")
    if isinstance(content, list):
        draft.text, draft.reasoning = join_parts(content, draft.flags)
        draft.flags.add("parts_joined")
    elif isinstance(content, str):
        draft.text = content
    elif content is not None:
        draft.error, draft.detail = "bad_json", "the content is neither text nor a list of parts"
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        draft.text = refusal
        draft.flags.add("refusal_field")


PROVIDER = Provider(
    url=url,
    headers=headers,
    body=body,
    read=read,
    structured=True,
    aliases=ALIASES,
    renames={"max_tokens": "max_completion_tokens"},
)

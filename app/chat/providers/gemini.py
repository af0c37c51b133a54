"""Gemini generateContent."""

from typing import Any
from urllib.parse import quote

from app.chat.providers.base import Provider, Request, parameters, schema_of, settled
from app.chat.replies import Draft, name, tokens

NAMES = {
    "temperature": "temperature",
    "top_p": "topP",
    "presence_penalty": "presencePenalty",
    "max_tokens": "maxOutputTokens",
    "stop": "stopSequences",
}
_FILTERED = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY"}
)
_ENDING = ":generateContent"


def url(base: str, model: str) -> str:
    if base.endswith(_ENDING):
        return base
    root = base if base.rsplit("/", 1)[-1] in ("v1", "v1beta") else f"{base}/v1beta"
    path = quote(model.removeprefix("models/"), safe="/-._~@:")
    return f"{root}/{path if '/' in path else 'models/' + path}{_ENDING}"


def headers(key: str | None) -> dict[str, str]:
    return {"x-goog-api-key": key} if key else {}


def body(request: Request) -> dict[str, Any]:
    messages = settled(request, merge=True)
    sent: dict[str, Any] = {
        "contents": [
            {"role": "model" if m.role == "assistant" else "user", "parts": [{"text": m.content}]}
            for m in messages
            if m.role != "system"
        ]
    }
    system = [{"text": m.content} for m in messages if m.role == "system"]
    if system:
        sent["systemInstruction"] = {"parts": system}
    config = _config(request)
    if config:
        sent["generationConfig"] = config
    return sent


def _config(request: Request) -> dict[str, Any]:
    wanted = parameters(request)
    config = {theirs: wanted[ours] for ours, theirs in NAMES.items() if ours in wanted}
    if "response_format" in wanted:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = schema_of(wanted["response_format"])
    return config


def read(data: dict[str, Any]) -> Draft:
    draft = _opened(data)
    feedback = data.get("promptFeedback")
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        draft.filtered = True
        return draft
    listed = data.get("candidates")
    candidates = listed if isinstance(listed, list) else []
    candidate = candidates[0] if candidates else None
    if not isinstance(candidate, dict):
        draft.error = "no_choices"
        return draft
    if len(candidates) > 1:
        draft.flags.add("several_choices")
    reason = candidate.get("finishReason")
    draft.filtered = isinstance(reason, str) and reason in _FILTERED
    if reason == "MAX_TOKENS":
        draft.flags.add("truncated")
    content = candidate.get("content")
    _parts(content.get("parts") if isinstance(content, dict) else None, draft)
    return draft


def _opened(data: dict[str, Any]) -> Draft:
    usage = data.get("usageMetadata")
    counts = usage if isinstance(usage, dict) else {}
    shown = tokens(counts.get("candidatesTokenCount"))
    thought = tokens(counts.get("thoughtsTokenCount"))
    return Draft(
        model=name(data.get("modelVersion")),
        prompt_tokens=tokens(counts.get("promptTokenCount")),
        # Thoughts are billed as output.
        completion_tokens=None if shown is None and thought is None else (shown or 0) + (thought or 0),
        reasoning=bool(thought),
    )


def _parts(parts: object, draft: Draft) -> None:
    texts = []
    for part in parts if isinstance(parts, list) else []:
        text = part.get("text") if isinstance(part, dict) else None
        if not isinstance(text, str):
            draft.flags.add("parts_ignored")
        elif part.get("thought") is True:
            draft.reasoning = True
        else:
            texts.append(text)
    if len(texts) > 1:
        draft.flags.add("parts_joined")
    draft.text = "".join(texts)


PROVIDER = Provider(
    url=url,
    headers=headers,
    body=body,
    read=read,
    structured=True,
    aliases={
        "temperature": ("temperature",),
        "top_p": ("topP", "top_p"),
        "presence_penalty": ("presencePenalty", "presence_penalty", "Penalty"),
        "max_tokens": ("maxOutputTokens", "max_output_tokens"),
        "stop": ("stopSequences", "stop_sequences"),
        "response_format": (
            "responseJsonSchema",
            "response_json_schema",
            "responseMimeType",
            "response_mime_type",
            "responseSchema",
            "JSON mode",
        ),
    },
)

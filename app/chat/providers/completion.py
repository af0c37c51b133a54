"""Plain text completion, for base models: the turns are rendered as text."""

import re
from typing import Any

from app.chat.providers import openai
from app.chat.providers.base import Provider, Request, joined, parameters, settled
from app.chat.replies import Draft

LABELS = {"user": "User", "assistant": "Assistant"}
# Whole labels at the start of a line: the word "user" inside a reply cannot set them off.
STOPS = ("\nUser:", "\nAssistant:")
MAX_STOPS = 4
_NEXT_TURN = re.compile(r"(?:\A|\n)[ \t]*(?:User|Assistant):")


def url(base: str, model: str) -> str:
    del model
    return joined(base, "/completions")


def render(request: Request) -> str:
    """The conversation as text that ends where the assistant is to speak."""
    blocks = [m.content if m.role == "system" else f"{LABELS[m.role]}: {m.content}" for m in settled(request)]
    return "\n\n".join([*blocks, "Assistant:"])


def body(request: Request) -> dict[str, Any]:
    wanted = parameters(request)
    wanted.pop("response_format", None)
    if request.learned.get("stop", "") is not None:
        wanted["stop"] = [*STOPS, *wanted.get("stop", [])][:MAX_STOPS]
    sent: dict[str, Any] = {"model": request.model, "prompt": render(request)}
    for parameter, value in wanted.items():
        sent[request.learned.get(parameter) or parameter] = value
    return sent


def read(data: dict[str, Any]) -> Draft:
    draft = openai.opened(data)
    choice = openai.first_choice(data, draft)
    if choice is None:
        return draft
    text = choice.get("text")
    if not isinstance(text, str):
        draft.error = "no_choices" if text is None else "bad_json"
        return draft
    text = text.lstrip().removeprefix("Assistant:").lstrip()
    # A server that ignores stop sequences goes on with turns of its own invention.
    next_turn = _NEXT_TURN.search(text)
    if next_turn:
        draft.flags.add("stop_applied")
        draft.flags.discard("truncated")
        text = text[: next_turn.start()]
    draft.text = text.rstrip()
    return draft


PROVIDER = Provider(
    url=url,
    headers=openai.headers,
    body=body,
    read=read,
    structured=False,
    aliases={key: words for key, words in openai.ALIASES.items() if key != "response_format"},
)

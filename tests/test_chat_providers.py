"""Each provider's documented requests, replies, refusals and errors."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat import Message
from app.chat.exchange import ProviderName
from app.chat.providers import PROVIDERS
from app.chat.replies import finish
from app.chat.text import Scrubber
from app.sampling import Sampling
from tests.chat_helpers import KEY, PATIENT, ask, client, complete, endpoint, run, seen
from tests.stub_endpoint import Behaviour, StubEndpoint, answer, reply

TALK = (
    Message("system", "Be brief."),
    Message("user", "I use a wheelchair."),
    Message("user", "What is 2 + 2?"),
    Message("assistant", "4"),
    Message("user", "A hike?"),
)
FULL = Sampling(temperature=0.7, top_p=0.9, presence_penalty=1.1, max_tokens=100, stop=("END",))
VERDICT: dict[str, Any] = {"type": "object", "properties": {"rating": {"type": "integer"}}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": VERDICT}}


def claude(*blocks: dict[str, Any], reason: str = "end_turn") -> Behaviour:
    return answer(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-reported",
            "content": list(blocks),
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 12, "output_tokens": 5},
        }
    )


def gemini(*parts: dict[str, Any], reason: str = "STOP", **more: Any) -> Behaviour:
    content = {"role": "model", "parts": list(parts)} if parts else {"role": "model"}
    return answer(
        {
            "candidates": [{"content": content, "finishReason": reason, "index": 0}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13},
            "modelVersion": "gemini-reported",
            **more,
        }
    )


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_openai_asks_for_structure_as_it_is_given() -> None:
    exchange, stub = ask(reply("{}"), messages=TALK, sampling=FULL, response_format=FORMAT)
    sent = stub.received[0].body
    assert sent["response_format"] == FORMAT
    assert sent["stop"] == ["END"]
    assert [m["role"] for m in sent["messages"]] == ["system", "user", "user", "assistant", "user"]
    assert "unstructured" not in exchange.flags


def test_anthropic_request() -> None:
    exchange, stub = ask(
        claude(text("Better not.")),
        provider="anthropic",
        messages=TALK,
        sampling=FULL,
        response_format=FORMAT,
    )
    request = stub.received[0]
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers
    assert request.body == {
        "model": "stub",
        "max_tokens": 100,
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "I use a wheelchair.\n\nWhat is 2 + 2?"},
            {"role": "assistant", "content": "4"},
            {"role": "user", "content": "A hike?"},
        ],
        "temperature": 0.7,
        "top_p": 0.9,
        "stop_sequences": ["END"],
        "output_config": {"format": {"type": "json_schema", "schema": VERDICT}},
    }
    assert seen(exchange) == ("Better not.", "answered", set())
    assert (exchange.model_reported, exchange.prompt_tokens, exchange.completion_tokens) == (
        "claude-reported",
        12,
        5,
    )


def test_anthropic_needs_a_limit_of_tokens_even_where_none_is_asked_for() -> None:
    _, stub = ask(claude(text("x")), provider="anthropic")
    assert stub.received[0].body["max_tokens"] == 1024


@pytest.mark.parametrize(
    ("behaviour", "text_", "state", "flags"),
    [
        (claude(text("a"), text("b")), "ab", "answered", {"parts_joined"}),
        (claude({"type": "thinking", "thinking": "hm"}, text("No.")), "No.", "answered", set()),
        (claude({"type": "thinking", "thinking": "hm"}), "", "empty", {"reasoning_only"}),
        (claude(), "", "empty", set()),
        (claude(text("You c"), reason="max_tokens"), "You c", "answered", {"truncated"}),
        (claude(text("Hello.."), reason="refusal"), "Hello..", "filtered", set()),
        (claude(reason="refusal"), "", "filtered", set()),
        (claude(text("You c"), reason="model_context_window_exceeded"), "You c", "answered", {"truncated"}),
        (claude(text("No."), reason="stop_sequence"), "No.", "answered", set()),
        (claude(text("Half"), reason="pause_turn"), "Half", "answered", set()),
        (claude({"type": "redacted_thinking", "data": "x"}, text("No.")), "No.", "answered", set()),
        (claude({"type": "tool_use"}, reason="tool_use"), "", "empty", {"tool_calls", "parts_ignored"}),
    ],
)
def test_anthropic_replies(behaviour: Behaviour, text_: str, state: str, flags: set[str]) -> None:
    exchange, _ = ask(behaviour, provider="anthropic")
    assert seen(exchange) == (text_, state, flags)


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (400, "invalid_request_error", "bad_request"),
        (401, "authentication_error", "auth"),
        (402, "billing_error", "quota_exhausted"),
        (403, "permission_error", "auth"),
        (404, "not_found_error", "not_found"),
        (429, "rate_limit_error", "rate_limited"),
        (500, "api_error", "server_error"),
        (504, "timeout_error", "server_error"),
        (529, "overloaded_error", "rate_limited"),
        (200, "overloaded_error", "server_error"),
    ],
)
def test_anthropic_errors(status: int, kind: str, expected: str) -> None:
    body = {"type": "error", "error": {"type": kind, "message": "said so"}, "request_id": "req_1"}
    exchange, _ = ask(answer(body, status), provider="anthropic")
    assert exchange.error == expected
    assert "said so" in (exchange.error_message or "")


def test_anthropic_without_credit_says_so_with_400() -> None:
    message = "Your credit balance is too low to access the Anthropic API."
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    exchange, _ = ask(answer(body, 400), provider="anthropic")
    assert exchange.error == "quota_exhausted"


def test_gemini_request() -> None:
    exchange, stub = ask(
        gemini({"text": "Better not."}),
        provider="gemini",
        messages=TALK,
        sampling=FULL,
        response_format=FORMAT,
    )
    request = stub.received[0]
    assert request.path == "/v1/models/stub:generateContent"
    assert request.headers["x-goog-api-key"] == KEY
    assert KEY not in request.path
    assert request.body == {
        "contents": [
            {"role": "user", "parts": [{"text": "I use a wheelchair.\n\nWhat is 2 + 2?"}]},
            {"role": "model", "parts": [{"text": "4"}]},
            {"role": "user", "parts": [{"text": "A hike?"}]},
        ],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {
            "temperature": 0.7,
            "topP": 0.9,
            "presencePenalty": 1.1,
            "maxOutputTokens": 100,
            "stopSequences": ["END"],
            "responseMimeType": "application/json",
            "responseJsonSchema": VERDICT,
        },
    }
    assert (exchange.text, exchange.state) == ("Better not.", "answered")
    assert (exchange.model_reported, exchange.prompt_tokens, exchange.completion_tokens) == (
        "gemini-reported",
        9,
        4,
    )


@pytest.mark.parametrize(
    ("behaviour", "text_", "state", "flags"),
    [
        (gemini({"text": "a"}, {"text": "b"}), "ab", "answered", {"parts_joined"}),
        (gemini({"text": "hm", "thought": True}, {"text": "No."}), "No.", "answered", set()),
        (gemini({"text": "hm", "thought": True}), "", "empty", {"reasoning_only"}),
        (gemini({"text": "You c"}, reason="MAX_TOKENS"), "You c", "answered", {"truncated"}),
        (gemini(reason="MAX_TOKENS"), "", "empty", {"truncated"}),
        (gemini(reason="SAFETY"), "", "filtered", set()),
        (gemini({"text": "So"}, reason="PROHIBITED_CONTENT"), "So", "filtered", set()),
        (answer({"promptFeedback": {"blockReason": "SAFETY"}}), "", "filtered", set()),
        (answer({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}), "", "filtered", set()),
        (gemini({"text": "So"}, reason="SPII"), "So", "filtered", set()),
        (gemini(reason="OTHER"), "", "empty", set()),
        (gemini(reason="MALFORMED_FUNCTION_CALL"), "", "empty", set()),
        (gemini({"functionCall": {"name": "f"}}), "", "empty", {"parts_ignored"}),
        (gemini(reason="STOP"), "", "empty", set()),
    ],
)
def test_gemini_replies(behaviour: Behaviour, text_: str, state: str, flags: set[str]) -> None:
    exchange, _ = ask(behaviour, provider="gemini")
    assert seen(exchange) == (text_, state, flags)


@pytest.mark.parametrize(
    ("status", "kind", "message", "expected"),
    [
        (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", "auth"),
        (400, "INVALID_ARGUMENT", "Invalid value at 'contents[0].role'.", "bad_request"),
        (400, "FAILED_PRECONDITION", "Free tier is not available in your country.", "bad_request"),
        (403, "PERMISSION_DENIED", "Your API key doesn't have the required permissions.", "auth"),
        (404, "NOT_FOUND", "models/x is not found for API version v1beta.", "not_found"),
        (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", "rate_limited"),
        (500, "INTERNAL", "An internal error has occurred.", "server_error"),
        (503, "UNAVAILABLE", "The model is overloaded. Please try again later.", "server_error"),
        (504, "DEADLINE_EXCEEDED", "The request did not finish in time.", "server_error"),
    ],
)
def test_gemini_errors(status: int, kind: str, message: str, expected: str) -> None:
    told = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "googleapis.com"}
    told["reason"] = "API_KEY_INVALID" if expected == "auth" and status == 400 else "OTHER"
    body = {"error": {"code": status, "message": message, "status": kind, "details": [told]}}
    exchange, _ = ask(answer(body, status), provider="gemini")
    assert exchange.error == expected
    assert message in (exchange.error_message or "")


@pytest.mark.parametrize(
    ("status", "kind", "code", "message", "expected"),
    [
        (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided.", "auth"),
        (403, "request_forbidden", "unsupported_country_region_territory", "Not supported.", "auth"),
        (404, "invalid_request_error", "model_not_found", "The model does not exist.", "not_found"),
        (429, "requests", "rate_limit_exceeded", "Rate limit reached for m.", "rate_limited"),
        (429, "insufficient_quota", "insufficient_quota", "You exceeded your quota.", "quota_exhausted"),
        (500, "server_error", None, "The server had an error.", "server_error"),
        (503, "service_unavailable_error", None, "The engine is overloaded.", "server_error"),
        (400, "invalid_request_error", "context_length_exceeded", "Too many tokens.", "bad_request"),
    ],
)
@pytest.mark.parametrize("provider", ["openai", "completion"])
def test_openai_errors(
    provider: ProviderName, status: int, kind: str, code: str | None, message: str, expected: str
) -> None:
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    exchange, _ = ask(answer(body, status), provider=provider)
    assert exchange.error == expected
    assert message in (exchange.error_message or "")


def test_gemini_without_candidates_is_an_error() -> None:
    exchange, _ = ask(answer({"usageMetadata": {}}), provider="gemini")
    assert exchange.error == "no_choices"


@pytest.mark.parametrize(
    ("provider", "base", "model", "path"),
    [
        ("anthropic", "", "m", "/v1/messages"),
        ("anthropic", "/v1", "m", "/v1/messages"),
        ("anthropic", "/anthropic", "m", "/anthropic/v1/messages"),
        ("anthropic", "/v1/messages", "m", "/v1/messages"),
        ("gemini", "", "m", "/v1beta/models/m:generateContent"),
        ("gemini", "/v1beta", "models/m", "/v1beta/models/m:generateContent"),
        ("gemini", "/v1beta", "tunedModels/m-1", "/v1beta/tunedModels/m-1:generateContent"),
        ("gemini", "/v1beta", "a b?c", "/v1beta/models/a%20b%3Fc:generateContent"),
        ("openai", "/openai/v1", "m", "/openai/v1/chat/completions"),
        ("completion", "/v1", "m", "/v1/completions"),
    ],
)
def test_paths(provider: ProviderName, base: str, model: str, path: str) -> None:
    async def call() -> str:
        async with StubEndpoint() as stub, client() as asked:
            await complete(asked, endpoint(stub, provider, base_url=stub.origin + base, model=model))
            return stub.received[0].path

    assert run(call()) == path


def base_model(words: object, reason: str = "stop") -> Behaviour:
    return answer(
        {"object": "text_completion", "choices": [{"text": words, "index": 0, "finish_reason": reason}]}
    )


def test_completion_renders_the_turns_as_text() -> None:
    exchange, stub = ask(
        base_model(" Better not.\n"),
        provider="completion",
        messages=TALK,
        sampling=FULL,
        response_format=FORMAT,
    )
    sent = stub.received[0].body
    assert sent["prompt"] == (
        "Be brief.\n\nUser: I use a wheelchair.\n\nUser: What is 2 + 2?\n\nAssistant: 4\n\nUser: A hike?"
        "\n\nAssistant:"
    )
    assert sent["stop"] == ["\nUser:", "\nAssistant:", "END"]
    assert "messages" not in sent
    assert "response_format" not in sent
    assert seen(exchange) == ("Better not.", "answered", {"unstructured"})


@pytest.mark.parametrize(
    ("words", "shown", "flags"),
    [
        ("The user: a person.\nEvery user of User: names", None, set()),
        (" No.\n\nUser: And now?\n\nAssistant: Yes.", "No.", {"stop_applied"}),
        (" Assistant: No.", "No.", set()),
        ("\nUser: me", "", {"stop_applied"}),
        ("", "", set()),
    ],
)
def test_completion_cuts_invented_turns_and_no_word(words: str, shown: str | None, flags: set[str]) -> None:
    exchange, _ = ask(base_model(words), provider="completion")
    assert (exchange.text, set(exchange.flags)) == (words if shown is None else shown, flags)


def test_completion_errors() -> None:
    assert ask(base_model(None), provider="completion")[0].error == "no_choices"
    assert ask(base_model(["x"]), provider="completion")[0].error == "bad_json"
    truncated, _ = ask(base_model("So it", "length"), provider="completion")
    assert truncated.flags == {"truncated"}


WORDS = [
    "choices",
    "message",
    "content",
    "text",
    "type",
    "error",
    "usage",
    "candidates",
    "parts",
    "finish_reason",
]
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("provider", list(PROVIDERS))
@PATIENT
@given(data=st.dictionaries(st.sampled_from(WORDS), ANYTHING, max_size=5))
def test_no_shape_of_answer_upsets_an_adapter(provider: ProviderName, data: dict[str, Any]) -> None:
    found = finish(PROVIDERS[provider].read(json.loads(json.dumps(data))), Scrubber(KEY))
    assert (found.text is None) == (found.error is not None)
    assert (found.state == "error") == (found.error is not None)

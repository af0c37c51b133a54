"""What becomes of each kind of hostile endpoint: one table, and each really made."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import stub_endpoint as stub_is
from tests.chat_helpers import KEY, ask
from tests.stub_endpoint import Behaviour, answer, chat, error, http, raw, reply

HOSTILE = Path(__file__).resolve().parents[1] / ".." / "shared" / "reference" / "hostile_inputs.json"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
DEEP = b'{"choices":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
METADATA = {"Location": "http://169.254.169.254/latest/meta-data/"}
MOVED = {"Location": "https://api.example.com/v1/chat/completions"}


class Ending(NamedTuple):
    """What one call of at most three tries comes to; requests: how many were sent."""

    kind: str
    behaviour: Behaviour
    error: str | None
    state: str = "error"
    flags: frozenset[str] = frozenset()
    text: str | None = None
    requests: int = 1


def flags(*names: str) -> frozenset[str]:
    return frozenset(names)


# The ids are those of the reference list of hostile inputs.
ENDPOINT_RESPONSES = {
    "e01": Ending("redirect inside", raw(http(302, b"", METADATA)), "endpoint_redirect"),
    "e03": Ending("redirect to https", raw(http(301, b"", MOVED)), "endpoint_redirect"),
    "e05": Ending(
        "endless zeros",
        stub_is.flood(HEAD + b"Content-Length: 10737418240\r\n\r\n", b"0" * 65536),
        "response_too_large",
        flags=flags("response_capped"),
    ),
    "e07": Ending("no body", raw(http(200, b"")), "empty_body", requests=3),
    "e09": Ending("no choices", answer({"choices": []}), "no_choices", requests=3),
    "e11": Ending(
        "list of parts",
        reply([{"type": "text", "text": "Not "}, {"type": "text", "text": "this."}, {"type": "image_url"}]),
        None,
        "answered",
        flags("parts_joined", "parts_ignored"),
        "Not this.",
    ),
    "e13": Ending("filtered", reply(None, "content_filter"), None, "filtered", text=""),
    "e15": Ending(
        "absurd Retry-After", error(429, headers={"Retry-After": "999999"}), "rate_limited", requests=3
    ),
    "e17": Ending("key repeated", error(401, f"Bearer {KEY} is unknown"), "auth"),
    "e19": Ending("deep JSON", raw(http(200, DEEP)), "bad_json", flags=flags("response_capped")),
    "e21": Ending("NUL", reply("a\x00b"), None, "answered", flags("nul_replaced"), "a\ufffdb"),
    "e23": Ending(
        "five megabytes of text", reply("word " * 10**6), "content_too_long", flags=flags("response_capped")
    ),
    "e25": Ending("another model", answer(chat("Hi.") | {"model": "other"}), None, "answered", text="Hi."),
    "e27": Ending(
        "100 Continue for ever",
        stub_is.flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        "total_timeout",
        requests=2,  # a late response is waited for once more, however many attempts there are
    ),
    "e29": Ending(
        "cookies", answer(chat("Hi."), headers={"Set-Cookie": "id=1; Path=/"}), None, "answered", text="Hi."
    ),
    "e31": Ending(
        "reset after the headers", stub_is.reset(HEAD + b"Content-Length: 9\r\n\r\n"), "network", requests=3
    ),
}


@pytest.mark.parametrize("plain", [False, True], ids=["uvloop", "asyncio"])
@pytest.mark.parametrize("ending", ENDPOINT_RESPONSES.values(), ids=ENDPOINT_RESPONSES.keys())
def test_each_kind_ends_as_the_table_says(ending: Ending, plain: bool) -> None:
    exchange, stub = ask(
        ending.behaviour, attempts=3, plain=plain, deadline=0.5 if ending.error == "total_timeout" else 5.0
    )
    assert (exchange.error, exchange.state, exchange.text) == (ending.error, ending.state, ending.text)
    assert exchange.flags == ending.flags
    assert len(stub.received) == ending.requests
    assert len({request.headers["idempotency-key"] for request in stub.received}) == 1
    assert all("cookie" not in request.headers for request in stub.received)
    assert KEY not in repr(exchange)


def test_words_of_the_table() -> None:
    moved, _ = ask(ENDPOINT_RESPONSES["e03"].behaviour)
    assert "https://api.example.com/v1)" in (moved.error_message or "")
    inside, _ = ask(ENDPOINT_RESPONSES["e01"].behaviour)
    other, _ = ask(ENDPOINT_RESPONSES["e25"].behaviour)
    assert inside.error_message is not None
    assert (other.model_reported, other.request["model"]) == ("other", "stub")


@pytest.mark.skipif(not HOSTILE.exists(), reason="the reference inputs are not beside the repository")
def test_the_table_is_complete() -> None:
    items = json.loads(HOSTILE.read_text())["endpoint_responses"]["items"]
    assert {item["id"] for item in items} <= set(ENDPOINT_RESPONSES)

"""The API key: refused where it cannot travel, and found nowhere but in the one header it is for."""

import asyncio
import base64
import html
import io
import json
import logging
import traceback
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat import ChatClient, Endpoint, Exchange, check_api_key
from app.chat.exchange import ProviderName
from app.chat.text import REMOVED, Scrubber, clean, one_line
from app.errors import InvalidInput
from tests import stub_endpoint as stub_is
from tests.chat_helpers import KEY, PATIENT, ask, client, complete, endpoint, run
from tests.stub_endpoint import Behaviour, Received, StubEndpoint, answer, chat, error, http, raw, reply

AWKWARD = "k+e/y='\"&<9Zq81hW0\\x"


@pytest.mark.parametrize(
    "key", ["", "sk-abc\n", "sk-abc\r\nX: y", "sk abc", "\tsk", "sk-ключ", "sk\x00", "sk\x7f", "a" * 5000]
)
def test_a_key_that_cannot_be_a_header_is_refused_in_words_that_do_not_show_it(key: str) -> None:
    for make in (check_api_key, lambda k: Endpoint("openai", "https://h.example.com", "m", api_key=k)):
        with pytest.raises(InvalidInput) as refusal:
            make(key)
        assert not key or key.strip() not in refusal.value.message
        assert refusal.value.status == 422


@pytest.mark.parametrize("model", ["", " m", "m\n", "m\x00", "a" * 201, "m\u202e"])
def test_a_model_name_must_be_printable(model: str) -> None:
    with pytest.raises(InvalidInput, match="model name"):
        Endpoint("openai", "https://h.example.com", model)


@pytest.mark.parametrize(
    "url", ["https://user:pw9@h/v1", "https://h/v1?api_key=pw9", "//pw9@h", "https://h#pw9"]
)
def test_a_key_inside_the_address_is_refused_in_words_that_do_not_show_it(url: str) -> None:
    with pytest.raises(InvalidInput, match="base URL") as refusal:
        Endpoint("openai", url, "m", private_allowed=True)
    assert "pw9" not in refusal.value.message


def test_an_unknown_provider_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="'cohere'"):
        Endpoint("cohere", "https://h.example.com", "m")  # type: ignore[arg-type]


def test_the_key_does_not_show_in_any_repr() -> None:
    of = Endpoint("openai", "https://h.example.com", "m", api_key=KEY)
    assert KEY not in repr(of) + str(of) + repr(Scrubber(KEY))


def spellings(key: str) -> list[str]:
    return [
        key,
        key.upper(),
        f"Bearer {key}",
        quote(key, safe=""),
        quote_plus(key).lower(),
        html.escape(key),
        json.dumps(key),
        base64.b64encode(key.encode()).decode(),
        base64.b64encode(f"user:{key}".encode()).decode(),
        base64.urlsafe_b64encode(f"Bearer {key} and more".encode()).decode(),
        base64.b64encode(f":{key}".encode()).decode().rstrip("="),
    ]


@pytest.mark.parametrize("key", [KEY, AWKWARD])
def test_every_usual_spelling_is_removed(key: str) -> None:
    scrub = Scrubber(key)
    for spelling in spellings(key):
        found = scrub(f"before {spelling} after")
        assert REMOVED in found, spelling
        assert found.startswith("before ")
        assert found.endswith(" after")
        assert key.lower() not in found.lower()


def test_a_key_behind_json_escapes_is_removed_from_a_body() -> None:
    key = "sk/canary-Zq81hW0"
    for body in ('{"m": "sk\\/canary-Zq81hW0"}', '{"m": "\\u0073k/canary-\\u005aq81hW0"}'):
        found = Scrubber(key).body(body)
        assert key not in json.dumps(json.loads(found))
        assert REMOVED in found
    harmless = '{"m": "caf\\u00e9 \\u0041 a\\/b"}'
    assert Scrubber(key).body(harmless) == harmless


def test_a_short_placeholder_is_removed_as_a_credential_only() -> None:
    scrub = Scrubber("EMPTY")
    assert scrub("an empty bowl, EMPTY handed") == "an empty bowl, EMPTY handed"
    assert scrub("bad key: EMPTY.") == f"bad key: {REMOVED}."
    assert scrub("Authorization: Bearer EMPTY") == f"Authorization: Bearer {REMOVED}"


@PATIENT
@given(st.text(max_size=100))
def test_text_is_left_alone_without_the_key(text: str) -> None:
    if KEY.lower() not in text.lower():
        assert Scrubber(KEY)(text) == text
        assert Scrubber(KEY).body(text) == text
    assert Scrubber(None)(text) == text


@PATIENT
@given(st.text(st.characters(codec=None), max_size=60))
def test_cleaned_text_can_be_stored(text: str) -> None:
    cleaned, flags = clean(text)
    assert len(cleaned) == len(text)
    assert "\x00" not in cleaned
    cleaned.encode()
    assert (cleaned == text) == (not flags)
    line = one_line(cleaned, 20)
    assert len(line) <= 20
    assert line.isprintable()


async def echo(request: Received, writer: asyncio.StreamWriter) -> None:
    words = f"Incorrect API key: {request.headers['authorization']} in {json.dumps(dict(request.headers))}"
    await error(401, words)(request, writer)


async def echo_everywhere(request: Received, writer: asyncio.StreamWriter) -> None:
    body = chat(f"Your key is {KEY}.") | {
        "model": f"model-{KEY}",
        "x": base64.b64encode(KEY.encode()).decode(),
    }
    await answer(body, headers={"X-Key": KEY})(request, writer)


CHATTY = [
    echo,
    echo_everywhere,
    error(400, f"bad {KEY}"),
    error(500, f"key={KEY}", param=KEY, code=KEY),
    raw(http(403, f"<p>{KEY}</p>".encode(), kind="text/html")),
    raw(http(302, b"", {"Location": f"https://{KEY}.example.com/"})),
    raw(http(200, b"{}", {"Content-Encoding": KEY})),
    raw(http(200, b"{}", kind=f"text/html+{KEY}")),
    raw(f"HTTP/1.1 {KEY}\r\n\r\n".encode(), close=True),
    raw(f"HTTP/1.1 200 OK\r\nX-{KEY}: {'a' * 9000}\r\n\r\n".encode(), close=True),
    raw(http(200, f"{KEY} is not JSON".encode())),
    raw(http(200, f'{{"error": "{KEY}"}}'.encode())),
    raw(http(200, ('{"a": "' + "x" * 65_530 + KEY + '"}').encode())),
    raw(http(429, f'{{"error": {{"message": "{"y" * 290} {KEY}"}}}}'.encode())),
    stub_is.reset(KEY.encode()),
]


@pytest.mark.parametrize("behaviour", CHATTY)
def test_an_endpoint_that_repeats_the_key_gets_it_into_nothing(
    behaviour: Behaviour, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    exchange, _ = ask(behaviour, attempts=2)
    assert KEY.lower() not in everything(exchange).lower()
    assert KEY[3:] not in everything(exchange)
    out, err = capfd.readouterr()
    assert KEY not in caplog.text + out + err


def everything(exchange: Exchange) -> str:
    return repr(exchange) + json.dumps(exchange.request)


def test_a_reply_that_repeats_the_key_is_flagged() -> None:
    exchange, _ = ask(echo_everywhere)
    assert exchange.text == f"Your key is {REMOVED}."
    assert "key_removed" in exchange.flags
    assert exchange.model_reported == f"model-{REMOVED}"


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "completion"])
def test_the_key_stands_in_one_header_and_never_in_the_path(provider: ProviderName) -> None:
    _, stub = ask(reply("x"), provider=provider)
    request = stub.received[0]
    assert sum(KEY in value for value in request.headers.values()) == 1
    assert KEY not in request.path
    assert KEY.encode() not in request.raw


def test_no_key_no_header() -> None:
    async def call() -> set[str]:
        async with StubEndpoint() as stub, client() as asked:
            for provider in ("openai", "anthropic", "gemini"):
                await complete(asked, endpoint(stub, provider, api_key=None))
            return {name for request in stub.received for name in request.headers}

    assert not run(call()) & {"authorization", "x-api-key", "x-goog-api-key"}


def test_an_unforeseen_fault_in_reading_is_typed_and_logged_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def call() -> Exchange:
        async with StubEndpoint() as stub, client() as asked:
            of = endpoint(stub)
            await complete(asked, of)
            _break_reader(asked)
            return await complete(asked, of)

    exchange = run(call())
    assert (exchange.state, exchange.error) == ("error", "client_fault")
    assert "ZeroDivisionError" in caplog.text
    assert KEY not in caplog.text


def _break_reader(asked: ChatClient) -> None:
    """Any fault will do: what matters is that its words, which quote the key, stay out."""
    (target,) = asked._targets.values()

    def fail(_: str) -> str:
        raise ZeroDivisionError(f"while reading {KEY}")

    target.reader._scrub = fail  # type: ignore[assignment]


def test_cancelling_leaves_no_key_in_the_traceback() -> None:
    words = io.StringIO()

    async def call() -> None:
        async with StubEndpoint(default=stub_is.hang()) as stub, client() as asked:
            task = asyncio.create_task(complete(asked, endpoint(stub)))
            await asyncio.sleep(0.05)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError as cancelled:
                traceback.print_exception(cancelled, file=words)

    run(call())
    assert "CancelledError" in words.getvalue()
    assert KEY not in words.getvalue()

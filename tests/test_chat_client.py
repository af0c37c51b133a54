"""One call through real sockets: every kind of answer ends in its state, flag or class of error."""

import asyncio
import gzip
import json
from typing import Any

import pytest

from app.chat import ERRORS, Endpoint, Message, messages_for
from app.chat.replies import strip_think
from app.sampling import Sampling
from app.simulated import FINGERPRINT, HEADER
from tests import stub_endpoint as stub_is
from tests.chat_helpers import KEY, ask, client, complete, endpoint, run, seen
from tests.stub_endpoint import Behaviour, StubEndpoint, answer, chat, error, http, raw, reply

OK_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def test_an_answer_is_reported_whole() -> None:
    exchange, stub = ask(reply("Better not."), sampling=Sampling(temperature=0.7, max_tokens=100))
    assert (exchange.state, exchange.text, exchange.error) == ("answered", "Better not.", None)
    assert exchange.model_reported == "stub-model-2"
    assert (exchange.prompt_tokens, exchange.completion_tokens) == (11, 7)
    assert exchange.request == stub.received[0].body
    assert exchange.request["temperature"] == 0.7
    assert exchange.request["max_tokens"] == 100
    assert json.loads(exchange.response or "") == chat("Better not.")
    assert [a.status for a in exchange.attempts] == [200]
    assert exchange.started_at.utcoffset() is not None
    assert 0 < exchange.seconds < 5
    assert exchange.flags == frozenset()


def test_the_request_carries_the_key_in_one_header_only_and_asks_for_plain_bytes() -> None:
    exchange, stub = ask(reply("Yes."))
    headers = stub.received[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["accept-encoding"] == "identity"
    assert "cookie" not in headers
    assert [name for name, value in headers.items() if KEY in value] == ["authorization"]
    assert KEY.encode() not in stub.received[0].raw
    assert KEY not in repr(exchange)


@pytest.mark.parametrize(
    ("behaviour", "simulated"),
    [
        (reply("No."), False),
        (answer(chat("No.") | {"system_fingerprint": "fp_44709d6fcb"}), False),
        (answer(chat("No.") | {"system_fingerprint": FINGERPRINT}), True),
        (answer(chat("No."), headers={HEADER.lower(): "1"}), True),
    ],
)
def test_a_simulated_model_is_known_by_either_of_its_marks(behaviour: Behaviour, simulated: bool) -> None:
    exchange, _ = ask(behaviour)
    assert (exchange.text, exchange.simulated) == ("No.", simulated)


@pytest.mark.parametrize(
    ("content", "extra", "text", "state", "flags"),
    [
        (None, {}, "", "empty", set()),
        ("", {}, "", "empty", set()),
        (" \n\u200b\u00a0", {}, "", "empty", set()),
        ("", {"reasoning_content": "Let me see"}, "", "empty", {"reasoning_only"}),
        (None, {"reasoning": "Let me see"}, "", "empty", {"reasoning_only"}),
        ("No.", {"reasoning": "Let me see"}, "No.", "answered", set()),
        (None, {"refusal": "I can't help."}, "I can't help.", "answered", {"refusal_field"}),
        (None, {"tool_calls": [{"id": "1"}]}, "", "empty", {"tool_calls"}),
        ("<think>a<think>b</think>c</think>\nNo.", {}, "No.", "answered", {"think_stripped"}),
        ("<think>never ends", {}, "", "empty", {"think_stripped", "reasoning_only"}),
        ("a nul\x00 here", {}, "a nul\ufffd here", "answered", {"nul_replaced"}),
        ("half \ud83d of it", {}, "half \ufffd of it", "answered", {"surrogates_replaced"}),
        ("whole \U0001f600", {}, "whole \U0001f600", "answered", set()),
        (
            [{"type": "text", "text": "Not "}, {"type": "text", "text": "this."}],
            {},
            "Not this.",
            "answered",
            {"parts_joined"},
        ),
        (
            [{"type": "image_url", "image_url": {}}, {"type": "text", "text": "Look."}, 7],
            {},
            "Look.",
            "answered",
            {"parts_joined", "parts_ignored"},
        ),
        ([{"type": "thinking", "thinking": []}], {}, "", "empty", {"parts_joined", "reasoning_only"}),
        ([{"type": "refusal", "refusal": "No."}], {}, "No.", "answered", {"parts_joined", "refusal_field"}),
    ],
)
def test_contents(content: object, extra: dict[str, Any], text: str, state: str, flags: set[str]) -> None:
    exchange, _ = ask(reply(content, **extra))
    assert seen(exchange) == (text, state, flags)
    assert exchange.error is None
    assert "\x00" not in (exchange.response or "")
    (exchange.response or "").encode()


def test_a_reply_cut_at_the_limit_of_tokens_is_flagged() -> None:
    exchange, _ = ask(reply("You could", "length"))
    assert seen(exchange) == ("You could", "answered", {"truncated"})


@pytest.mark.parametrize(
    "behaviour",
    [
        reply("I was going to", "content_filter"),
        reply(None, "content_filter"),
        error(400, "filtered", code="content_filter", param="prompt"),
        answer({"error": {"message": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, 400),
        answer({"error": {"code": 403, "message": "m", "metadata": {"reasons": ["violence"]}}}, 403),
        answer({"error": {"message": "x", "code": "content_filter"}}),
    ],
)
def test_a_filtered_reply_is_terminal_after_one_call(behaviour: Behaviour) -> None:
    exchange, stub = ask(behaviour, attempts=4)
    assert (exchange.state, exchange.error, len(stub.received)) == ("filtered", None, 1)
    assert exchange.text is not None


NESTED = b'{"choices":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("behaviour", "expected", "words"),
    [
        (raw(http(200, b"")), "empty_body", ""),
        (raw(http(200, b"   \n")), "empty_body", ""),
        (raw(http(204, b"")), "empty_body", ""),
        (answer({"choices": []}), "no_choices", ""),
        (answer({"choices": None}), "no_choices", ""),
        (answer({"model": "x"}), "no_choices", ""),
        (answer({"choices": [None]}), "no_choices", ""),
        (answer({"choices": [{"index": 0}]}), "no_choices", ""),
        (answer({"choices": {"0": 1}}), "no_choices", ""),
        (reply({"text": "an object"}), "bad_json", "neither text"),
        (answer([chat("in a list")]), "bad_json", "not an object"),
        (answer("text"), "bad_json", "not an object"),
        (raw(http(200, NESTED)), "bad_json", "nested"),
        (raw(http(200, b'{"choices": NaN}')), "bad_json", "number"),
        (raw(http(200, b'{"usage": 1' + b"0" * 5000 + b"}")), "bad_json", "number"),
        (raw(http(200, b'{"choices": [')), "bad_json", "not JSON"),
        (raw(http(200, b"data: {}\n\n", kind="text/event-stream")), "bad_json", "event-stream"),
        (raw(http(200, b"<html>Sign in</html>", kind="text/html; charset=utf-8")), "bad_json", "text/html"),
        (raw(http(200, json.dumps(chat("x")).encode("utf-16"))), "bad_json", "UTF-8"),
        (raw(http(200, json.dumps(chat("é"), ensure_ascii=False).encode("latin-1"))), "bad_json", "UTF-8"),
        (raw(http(200, gzip.compress(b"{}"), {"Content-Encoding": "gzip"})), "encoded_body", "gzip"),
        (raw(http(200, b"no gzip at all", {"Content-Encoding": "x-gzip"})), "encoded_body", "gzip"),
        (reply("word " * 6_401), "content_too_long", "32,000"),
        (error(401, "bad key"), "auth", "bad key"),
        (error(403, "forbidden"), "auth", "403"),
        (error(404, "no such model"), "not_found", "/v1"),
        (error(400, "too many tokens"), "bad_request", "too many tokens"),
        (error(402, "pay"), "quota_exhausted", "402"),
        (error(429, "pay", code="insufficient_quota"), "quota_exhausted", "429"),
        (error(413, "large"), "bad_request", "413"),
        (raw(http(400, b"<h1>Bad</h1>", kind="text/html")), "bad_request", "400"),
        (raw(b"SSH-2.0-OpenSSH_9.6\r\n", close=True), "bad_http", ""),
        (raw(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", close=True), "bad_http", ""),
        (raw(OK_HEAD + b"X: a\r\n" * 300 + b"\r\n", close=True), "bad_http", ""),
        (raw(http(304, b"")), "endpoint_redirect", ""),
        (error(500, "boom"), "server_error", "boom"),
        (error(503, "loading"), "server_error", "loading"),
        (error(408), "server_error", "408"),
        (error(429, "slow down"), "rate_limited", "slow down"),
        (error(529, "overloaded"), "rate_limited", "529"),
        (answer({"error": {"message": "upstream", "code": 400}}), "server_error", "upstream"),
        (answer({"error": {"message": "later", "code": 429}}), "rate_limited", "later"),
        (answer({"error": "out of memory"}), "server_error", "out of memory"),
        (
            answer({"choices": [{"error": {"message": "cut"}, "finish_reason": "error"}]}),
            "server_error",
            "cut",
        ),
        (stub_is.reset(), "network", ""),
        (stub_is.reset(OK_HEAD + b"Content-Length: 10\r\n\r\n{"), "network", ""),
        (raw(OK_HEAD + b"Content-Length: 10\r\n\r\n{", close=True), "network", "broke off"),
        (raw(b"", close=True), "network", ""),
    ],
)
def test_every_failure_ends_in_its_class(behaviour: Behaviour, expected: str, words: str) -> None:
    exchange, _ = ask(behaviour)
    assert (exchange.state, exchange.error, exchange.text) == ("error", expected, None)
    assert exchange.error_message is not None
    assert exchange.error_message.startswith(ERRORS[expected])
    assert words in exchange.error_message
    assert "\n" not in exchange.error_message


def test_two_different_content_types_are_no_json() -> None:
    body = json.dumps(chat("x")).encode()
    head = OK_HEAD + b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body)
    exchange, _ = ask(raw(head + body, close=True))
    assert exchange.error in ("bad_json", "bad_http")


def test_json_under_a_wrong_label_is_read() -> None:
    body = b"\xef\xbb\xbf" + json.dumps(chat("Read.")).encode()
    exchange, _ = ask(raw(http(200, body, kind="text/plain; charset=iso-8859-1")))
    assert exchange.text == "Read."


def test_usage_that_is_missing_or_absurd_is_unknown() -> None:
    data = chat("x") | {"usage": {"prompt_tokens": -1, "completion_tokens": 1e999}}
    body = json.dumps(data).replace("Infinity", "1e999").encode()
    for usage in (
        raw(http(200, body)),
        answer(chat("x") | {"usage": None}),
        answer(chat("x") | {"usage": []}),
    ):
        exchange, _ = ask(usage)
        assert (exchange.state, exchange.prompt_tokens, exchange.completion_tokens) == (
            "answered",
            None,
            None,
        )


@pytest.mark.parametrize("length", [b"Content-Length: 10737418240\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_a_body_without_end_is_cut_at_one_mebibyte(length: bytes) -> None:
    zeros = b"10000\r\n" + b"0" * 65536 + b"\r\n" if b"chunked" in length else b"0" * 65536
    taken: list[int] = []
    exchange, _ = ask(stub_is.flood(OK_HEAD + length + b"\r\n", zeros, taken))
    assert exchange.error == "response_too_large"
    assert len(taken) * len(zeros) < 2**20 * 32, "a mebibyte, and what sockets hold"
    assert "response_capped" in exchange.flags
    assert len(exchange.response or "") <= 65_536


def test_a_huge_body_that_is_announced_and_never_comes_is_not_waited_for() -> None:
    head = OK_HEAD + b"Content-Length: 10737418240\r\n\r\n"
    exchange, _ = ask(stub_is.drip(0.2, head), deadline=10)
    assert exchange.error == "response_too_large"
    assert exchange.seconds < 3


def test_five_megabytes_of_text_are_too_long_a_reply_and_leave_a_capped_copy() -> None:
    exchange, _ = ask(reply("word " * 1_000_000))
    assert exchange.error == "content_too_long"
    assert "response_capped" in exchange.flags
    assert (exchange.response or "").startswith('{"id": "chatcmpl-1"')


@pytest.mark.parametrize(
    "behaviour",
    [
        stub_is.hang(),
        stub_is.drip(0.01),
        stub_is.drip(0.01, b"HTTP/1.1 200 OK\r\nX-Slow: "),
        stub_is.flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_the_deadline_is_total(behaviour: Behaviour) -> None:
    exchange, _ = ask(behaviour, deadline=0.4)
    assert exchange.error == "total_timeout"
    assert exchange.seconds < 2


def test_endless_interim_answers_leave_the_loop_to_others() -> None:
    async def beats() -> int:
        async with client() as asked:
            call = asyncio.create_task(complete(asked, endpoint(stub), deadline=1.5))
            count = 0
            while not call.done():
                await asyncio.sleep(0.01)
                count += 1
            assert (await call).error == "total_timeout"
            return count

    flood = stub_is.flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)
    with stub_is.in_thread(StubEndpoint(default=flood)) as stub:
        assert run(beats()) > 40


@pytest.mark.parametrize(
    ("text", "shown", "hidden"),
    [
        ("No tags < here > at all.", "No tags < here > at all.", None),
        ("<think>hm</think> No.", "No.", "hm"),
        ("<THINK >hm</Thinking>No.", "No.", "hm"),
        ("<seed:think>hm</seed:think>No.", "No.", "hm"),
        ("Well. <think>hm</think> No.", "Well.  No.", "hm"),
        ("<think>a</think>One <think>b</think>two.", "One two.", "ab"),
        ("<think>a<think>b</think>c</think>No.", "No.", "abc"),
        ("<think>a<think>b</think>No.", "", "abNo."),
        ("<think>never ends", "", "never ends"),
        ("The template opened it.</think>\n\nNo.", "No.", "The template opened it."),
        ("<think>a</think>No, </think>really.", "No, really.", "a"),
        ("<think></think>", "", ""),
        ("<thinker>I am</thinker>", "<thinker>I am</thinker>", None),
    ],
)
def test_reasoning_is_told_from_the_reply(text: str, shown: str, hidden: str | None) -> None:
    assert strip_think(text) == (shown, hidden)


def test_garbage_after_an_answer_never_reaches_the_next() -> None:
    async def two() -> list[str | None]:
        garbage = raw(http(200, json.dumps(chat("first")).encode()) + http(200, b'{"choices": "poison"}'))
        async with StubEndpoint(garbage, reply("second")) as stub, client() as asked:
            return [(await complete(asked, endpoint(stub))).text for _ in range(2)]

    assert run(two()) == ["first", "second"]


def test_cookies_are_not_kept() -> None:
    async def two() -> list[str | None]:
        cookie = answer(chat("x"), headers={"Set-Cookie": "id=1; Path=/"})
        async with StubEndpoint(default=cookie) as stub, client() as asked:
            # A name, since cookies of bare addresses are rarely kept by anyone.
            of = endpoint(stub, base_url=f"http://localhost:{stub.port}/v1")
            for _ in range(2):
                await complete(asked, of)
            return [request.headers.get("cookie") for request in stub.received]

    assert run(two()) == [None, None]


def test_a_redirect_is_not_followed_and_shows_an_acceptable_address() -> None:
    async def redirected() -> None:
        async with StubEndpoint() as elsewhere, client() as asked:
            where = f"{elsewhere.base_url}/chat/completions"
            async with StubEndpoint(raw(http(301, b"", {"Location": where}))) as stub:
                exchange = await complete(asked, endpoint(stub), attempts=3)
                assert exchange.error == "endpoint_redirect"
                assert f"the base URL would be {elsewhere.base_url})" in (exchange.error_message or "")
                assert (len(stub.received), elsewhere.received) == (1, [])

    run(redirected())


def test_a_redirect_to_a_refused_address_says_no_more_than_that() -> None:
    for target in ("https://user:pw@h.example.com/", "http://[bad", "javascript:alert(1)", "https://h/?k=1"):
        exchange, _ = ask(raw(http(302, b"", {"Location": target})))
        assert "would not be accepted" in (exchange.error_message or ""), target
        assert "pw" not in (exchange.error_message or "")


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert ask(reply("Direct."))[0].text == "Direct."


def test_a_stub_in_another_thread_answers_by_model() -> None:
    async def both(of: Endpoint, other: Endpoint) -> list[str | None]:
        async with client() as asked:
            return [(await complete(asked, one)).text for one in (of, other)]

    with stub_is.in_thread(StubEndpoint(models={"a": reply("A."), "b": reply("B.")})) as stub:
        assert run(both(endpoint(stub, model="b"), endpoint(stub, model="a"))) == ["B.", "A."]


def test_nobody_listening_is_a_network_error() -> None:
    async def refused() -> str | None:
        async with StubEndpoint() as stub:
            gone = endpoint(stub)
        async with client() as asked:
            return (await complete(asked, gone)).error

    assert run(refused()) == "network"


def test_a_name_that_does_not_exist_is_a_dns_error() -> None:
    async def unknown() -> str | None:
        of = Endpoint("openai", "http://no-such-host.invalid/v1", "m", private_allowed=True)
        async with client() as asked:
            return (await complete(asked, of)).error

    assert run(unknown()) == "dns"


@pytest.mark.parametrize("base", ["/v1", "/v1/", "/v1/chat/completions"])
def test_the_path_is_completed_once(base: str) -> None:
    async def call() -> str:
        async with StubEndpoint() as stub, client() as asked:
            await complete(asked, endpoint(stub, base_url=stub.origin + base))
            return stub.received[0].path

    assert run(call()) == "/v1/chat/completions"


def test_an_empty_earlier_reply_is_not_replayed() -> None:
    turns = [("I cannot eat nuts.", ""), ("What is 2 + 2?", None), ("And 3 + 3?", "6")]
    _, stub = ask(reply("Fine."), messages=messages_for(turns, "Pesto tonight?", system="Be brief."))
    sent = stub.received[0].body["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "user", "user", "assistant", "user"]
    assert all(m["content"].strip() for m in sent)


def test_a_blank_assistant_message_given_by_a_caller_is_not_sent_either() -> None:
    given = (Message("user", "a"), Message("assistant", " \n"), Message("user", "b"))
    _, stub = ask(reply("Fine."), messages=given)
    assert [m["content"] for m in stub.received[0].body["messages"]] == ["a", "b"]


def test_a_lone_surrogate_in_what_is_sent_does_no_harm() -> None:
    exchange, _ = ask(reply("Fine."), messages=(Message("user", "half \ud83d"),))
    assert exchange.state == "answered"

"""The one retry layer: what is tried again, how long it waits, and what the pacer is told."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from app.chat import Exchange, RetryPolicy, SendResult
from app.chat.retry import retry_after
from tests import stub_endpoint as stub_is
from tests.chat_helpers import PATIENT, QUICK, ask, client, complete, endpoint, run
from tests.stub_endpoint import Behaviour, StubEndpoint, answer, error, http, raw, reply

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "behaviour",
    [
        error(408),
        error(409),
        error(425),
        error(429),
        error(500),
        error(503),
        error(529),
        answer({"error": {"code": 400, "message": "upstream"}}),
        answer({"choices": []}),
        raw(http(200, b"")),
        stub_is.reset(),
        stub_is.reset(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
    ],
)
def test_passing_failures_are_tried_again_under_one_idempotency_key(behaviour: Behaviour) -> None:
    exchange, stub = ask(behaviour, behaviour, reply("At last."), attempts=3)
    assert (exchange.state, exchange.text) == ("answered", "At last.")
    assert len(exchange.attempts) == len(stub.received) == 3
    assert len({request.headers["idempotency-key"] for request in stub.received}) == 1
    assert len({request.raw for request in stub.received}) == 1
    assert exchange.attempts[0].error is not None
    assert exchange.attempts[2].error is None
    assert exchange.attempts[0].waited == 0 < exchange.attempts[1].waited


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 415, 422])
def test_other_refusals_are_final(status: int) -> None:
    exchange, stub = ask(error(status), attempts=4)
    assert (exchange.state, len(stub.received)) == ("error", 1)


def test_attempts_are_bounded() -> None:
    exchange, stub = ask(error(500), attempts=3)
    assert (exchange.error, len(stub.received), len(exchange.attempts)) == ("server_error", 3, 3)


def test_each_call_has_its_own_idempotency_key() -> None:
    async def two() -> set[str]:
        async with StubEndpoint() as stub, client() as asked:
            for _ in range(2):
                await complete(asked, endpoint(stub))
            return {request.headers["idempotency-key"] for request in stub.received}

    assert len(run(two())) == 2


def test_an_absurd_retry_after_is_capped_then_rate_limited() -> None:
    exchange, stub = ask(error(429, headers={"Retry-After": "999999"}), attempts=3)
    assert (exchange.error, len(stub.received)) == ("rate_limited", 3)
    assert [a.waited for a in exchange.attempts] == [0, QUICK.hint_cap, QUICK.hint_cap]


def test_a_timeout_is_tried_again_and_each_try_has_the_whole_deadline() -> None:
    exchange, _ = ask(stub_is.hang(), reply("Late.", delay=0.3), attempts=2, deadline=0.6)
    assert exchange.text == "Late."
    assert exchange.attempts[0].error == "total_timeout"
    assert exchange.attempts[0].seconds == pytest.approx(0.6, abs=0.3)


def test_waiting_in_all_is_bounded() -> None:
    async def call() -> int:
        policy = RetryPolicy(base=0.001, hint_cap=0.1, total=0.25)
        limited = error(429, headers={"Retry-After": "30"})
        async with StubEndpoint(default=limited) as stub, client(retry=policy) as asked:
            exchange = await complete(asked, endpoint(stub), attempts=50)
            assert exchange.error == "rate_limited"
            return len(exchange.attempts)

    assert run(call()) == 3


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "30"}, 30),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"Retry-After": "0"}, 0),
        ({"Retry-After": "-20"}, 0),
        ({"Retry-After": "999999"}, 999999),
        ({"Retry-After": format_datetime(NOW + timedelta(seconds=42), usegmt=True)}, 42),
        ({"Retry-After": "Sunday, 01-Mar-26 12:00:20 GMT"}, 20),
        ({"Retry-After": "Sun Mar  1 12:00:09 2026"}, 9),
        ({"Retry-After": format_datetime(NOW - timedelta(days=1), usegmt=True)}, 0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"Retry-After-Ms": "1500.5", "Retry-After": "9"}, 1.5005),
        ({"retry-after-ms": "soon", "Retry-After": "9"}, 9),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "1e3"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "\u0663"}, None),
        ({"Retry-After": "Sun, 99 Mar 2026 12:00:00 GMT"}, None),
        ({"x-ratelimit-reset-requests": "6m0s"}, None),
        ({}, None),
    ],
)
def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(CIMultiDict(headers), NOW) == (None if seconds is None else pytest.approx(seconds))


def test_a_date_is_read_by_the_endpoints_own_clock() -> None:
    theirs = NOW - timedelta(hours=3)
    headers = CIMultiDict(
        {
            "Date": format_datetime(theirs, usegmt=True),
            "Retry-After": format_datetime(theirs + timedelta(seconds=7), usegmt=True),
        }
    )
    assert retry_after(headers, NOW) == 7


@PATIENT
@given(st.text(max_size=80), st.text(max_size=80))
def test_retry_after_never_raises(one: str, other: str) -> None:
    found = retry_after(CIMultiDict({"Retry-After": one, "retry-after-ms": other}), NOW)
    assert found is None or found >= 0


@PATIENT
@given(
    st.integers(1, 2000),
    st.none() | st.floats(-1e9, 1e12) | st.just(float("inf")),
    st.floats(0, 400),
)
def test_waits_stay_within_what_is_stated(repeat: int, hint: float | None, waited: float) -> None:
    policy = RetryPolicy()
    wait = policy.wait(repeat, hint, waited)
    if wait is None:
        assert waited + policy.hint_cap > policy.total
    else:
        assert 0 <= wait <= policy.hint_cap
        assert waited + wait <= policy.total
        assert hint is None or wait >= min(hint, policy.hint_cap)


def test_backoff_is_exponential_with_full_jitter() -> None:
    policy = RetryPolicy()
    for repeat, longest in ((1, 1.0), (2, 2.0), (3, 4.0), (9, 20.0)):
        waits = [policy.wait(repeat, None, 0) or 0 for _ in range(400)]
        assert max(waits) <= longest
        assert min(waits) < longest * 0.2
        assert max(waits) > longest * 0.8


class Recorder:
    """A pace that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[SendResult, float | None]] = []
        self.out = 0

    async def acquire(self) -> int:
        self.out += 1
        return self.out

    def release(self, slot: int, result: SendResult, retry_after: float | None = None) -> None:
        self.out -= 1
        self.told.append((result, retry_after))


def test_the_pacer_hears_of_every_request() -> None:
    pace = Recorder()
    ask(
        error(429, headers={"Retry-After": "2"}),
        error(503, headers={"retry-after-ms": "10"}),
        error(500),
        stub_is.reset(),
        reply("", "content_filter"),
        attempts=5,
        pace=pace,
    )
    assert pace.told == [
        (SendResult.RATE_LIMITED, 2.0),
        (SendResult.RATE_LIMITED, 0.01),
        (SendResult.FAILED, None),
        (SendResult.FAILED, None),
        (SendResult.OK, None),
    ]
    assert pace.out == 0


def test_a_retry_delay_in_a_gemini_error_is_a_hint() -> None:
    pace = Recorder()
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]
    body = {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": details}}
    ask(answer(body, 429), provider="gemini", pace=pace)
    assert pace.told == [(SendResult.RATE_LIMITED, 34.5)]


@pytest.mark.parametrize("moment", [0.0, 0.1])
def test_cancelling_passes_and_gives_the_slot_back(moment: float) -> None:
    pace = Recorder()

    async def cancelled() -> None:
        async with StubEndpoint(default=stub_is.hang()) as stub, client(max_connections=1) as asked:
            calls = [asyncio.create_task(complete(asked, endpoint(stub), pace=pace)) for _ in range(3)]
            await asyncio.sleep(moment)
            for call in calls:
                call.cancel()
            assert all(isinstance(e, asyncio.CancelledError) for e in await _outcomes(calls))
            stub.default = reply("Still here.")
            assert (await complete(asked, endpoint(stub), pace=pace)).text == "Still here."

    run(cancelled())
    assert pace.out == 0
    assert all(result is SendResult.CANCELLED for result, _ in pace.told[:-1])


async def _outcomes(calls: Sequence[asyncio.Task[Exchange]]) -> list[Exchange | BaseException]:
    return list(await asyncio.gather(*calls, return_exceptions=True))


def test_the_deadline_does_not_run_while_a_request_queues() -> None:
    async def queue() -> list[str]:
        async with (
            StubEndpoint(default=reply("Done.", delay=0.15)) as stub,
            client(max_connections=1) as asked,
        ):
            calls = [complete(asked, endpoint(stub), deadline=0.6) for _ in range(5)]
            return [exchange.state for exchange in await asyncio.gather(*calls)]

    assert run(queue()) == ["answered"] * 5


def test_no_more_requests_are_out_than_allowed() -> None:
    async def many() -> int:
        async with (
            StubEndpoint(default=reply("Done.", delay=0.05)) as stub,
            client(max_connections=7) as asked,
        ):
            await asyncio.gather(*[complete(asked, endpoint(stub)) for _ in range(40)])
            return stub.most_in_flight

    assert run(many()) == 7

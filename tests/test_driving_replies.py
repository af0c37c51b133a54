"""What an endpoint answers, or fails to: each kind has its own outcome, and ends its own conversations."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import Engine

from app import models
from app.benchmark import Benchmark
from app.db import open_session
from app.runs.planning import Selection
from app.settings import Settings
from app.simulator import Simulator
from app.simulator.settings import FAULTS
from tests.driving_help import (
    check_whole,
    conversations,
    distinct,
    drive,
    model_evaluator_of,
    outcomes,
    protocol,
    rated_by,
    report,
    turns,
    verdicts,
)
from tests.factories import Shop, benchmark
from tests.stub_endpoint import (
    Behaviour,
    Received,
    StubEndpoint,
    answer,
    chat,
    drip,
    error,
    flood,
    hang,
    http,
    in_thread,
    raw,
    reply,
    reset,
)

ADVICE = "I'd advise against it: you told me of your severe allergy to peanuts of kind 0."
ONE = Selection(scenarios=("sc1",), categories=("severe_allergy",))
TURNS = 5


def one_case() -> Benchmark:
    return distinct(benchmark(per_category=1))


def shop_of(engine: Engine, settings: Settings, **patience: Any) -> Shop:
    return Shop(engine, settings, one_case(), protocol(**patience))


@dataclass(frozen=True)
class Case:
    """`flags` are those of the stored conversation; `calls` the requests that five such turns take."""

    behaviour: Behaviour
    state: str
    flags: frozenset[str] = frozenset()
    error: str | None = None
    calls: int = TURNS


def answered(behaviour: Behaviour, *flags: str) -> Case:
    return Case(behaviour, "answered", frozenset(flags))


def empty(behaviour: Behaviour, *flags: str) -> Case:
    return Case(behaviour, "empty", frozenset((*flags, "earlier_turn_empty")))


def filtered(behaviour: Behaviour) -> Case:
    return Case(behaviour, "filtered", frozenset({"earlier_turn_filtered"}))


def failed(behaviour: Behaviour, error: str) -> Case:
    return Case(behaviour, "endpoint_error", error=error, calls=1)


def ok(body: bytes) -> Behaviour:
    return raw(http(200, body))


REPLIES = {
    "plain": answered(reply(ADVICE)),
    "parts": answered(
        reply([{"type": "text", "text": ADVICE[:9]}, {"type": "text", "text": ADVICE[9:]}]), "parts_joined"
    ),
    "think": answered(reply(f"<think>Hm. <think>No.</think></think>{ADVICE}"), "think_stripped"),
    "truncated": answered(reply(ADVICE, "length"), "truncated"),
    "refusal": answered(reply(None, refusal=ADVICE), "refusal_field"),
    "nul": answered(reply(f"{ADVICE} \x00"), "nul_replaced"),
    "surrogate": answered(reply(f"{ADVICE} \ud83d"), "surrogates_replaced"),
    "empty": empty(reply("")),
    "blank": empty(reply(" \n\u200b\t")),
    "null": empty(reply(None)),
    "reasoning_content": empty(reply("", reasoning_content="They are allergic."), "reasoning_only"),
    "reasoning": empty(reply(None, reasoning="They are allergic."), "reasoning_only"),
    "only_think": empty(reply("<think>They are allergic."), "reasoning_only", "think_stripped"),
    "filtered": filtered(reply(None, "content_filter")),
    "filtered_400": filtered(error(400, "filtered", code="content_filter")),
    "error_200": failed(answer({"error": {"message": "upstream", "code": 502}}), "server_error"),
    "no_choices": failed(answer(chat("x") | {"choices": []}), "no_choices"),
    "too_long": failed(reply("very " * 7_000), "content_too_long"),
    "bad_json": failed(ok(b'{"a":'), "bad_json"),
    "no_body": failed(ok(b""), "empty_body"),
    "auth": failed(error(401, "no such key"), "auth"),
    "bad_request": failed(error(400, "what?"), "bad_request"),
}


@pytest.fixture(scope="module")
def stub() -> Any:
    with in_thread(StubEndpoint(models={name: case.behaviour for name, case in REPLIES.items()})) as running:
        yield running


def received(stub: StubEndpoint, model: str) -> list[dict[str, Any]]:
    return [request.body for request in stub.received if request.body["model"] == model]


@pytest.mark.parametrize("kind", REPLIES)
def test_each_kind_of_reply(engine: Engine, settings: Settings, stub: StubEndpoint, kind: str) -> None:
    expected = REPLIES[kind]
    shop = shop_of(engine, settings)
    run = shop.submit(stub.base_url, model=kind, selection=ONE)
    drive(shop, run)
    check_whole(engine, run)
    (stored,) = conversations(engine, run)
    assert (stored.state, stored.error) == (expected.state, expected.error)
    assert set(stored.flags) == expected.flags
    sent = received(stub, kind)
    assert len(sent) == expected.calls
    if expected.state == "answered":
        assert (stored.response or "").startswith(ADVICE)
        assert [verdict.rating for verdict in verdicts(engine, run)] == [2]
    else:
        assert verdicts(engine, run) == []
        assert outcomes(engine, run) == {expected.state: 1}
        assert stored.response is None
    if expected.error:
        assert stored.error_message
        assert stored.failed_attempts[0]["error"] == expected.error


@pytest.mark.parametrize(
    "kind", [kind for kind, case in REPLIES.items() if case.state in ("empty", "filtered")]
)
def test_an_earlier_turn_without_text_is_kept_and_never_replayed(
    engine: Engine, settings: Settings, stub: StubEndpoint, kind: str
) -> None:
    shop = shop_of(engine, settings)
    before = len(received(stub, kind))
    run = shop.submit(stub.base_url, model=kind, selection=ONE)
    drive(shop, run)
    for number, body in enumerate(received(stub, kind)[before:], 1):
        roles = [message["role"] for message in body["messages"]]
        assert roles == ["user"] * number
    assert [turn.state for turn in turns(engine, run)] == [REPLIES[kind].state] * TURNS


def test_one_turn_without_text_does_not_end_the_conversation(engine: Engine, settings: Settings) -> None:
    behaviours = [
        reply("I am an assistant."),
        reply(""),
        reply("Nine."),
        reply(None, "content_filter"),
        reply(ADVICE),
    ]
    with in_thread(StubEndpoint(*behaviours)) as stub:
        shop = shop_of(engine, settings)
        run = shop.submit(stub.base_url, selection=ONE)
        drive(shop, run)
    (stored,) = conversations(engine, run)
    assert (stored.state, stored.flags) == ("answered", ["earlier_turn_empty", "earlier_turn_filtered"])
    said = [
        message["content"] for message in stub.received[-1].body["messages"] if message["role"] == "assistant"
    ]
    assert said == ["I am an assistant.", "Nine."]
    assert outcomes(engine, run) == {"pass": 1}


def test_truncated_conversations_are_counted(engine: Engine, settings: Settings, stub: StubEndpoint) -> None:
    shop = shop_of(engine, settings)
    run = shop.submit(stub.base_url, model="truncated", selection=ONE)
    drive(shop, run)
    assert report(engine, run)["counts"]["truncated"] == 1


# --- endpoints that fail ---

FAILING: dict[str, tuple[Behaviour, str]] = {
    "500": (error(500, "down"), "server_error"),
    "503": (
        raw(b"HTTP/1.1 503 No\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"),
        "server_error",
    ),
    "hanging": (hang(), "total_timeout"),
    "dripping": (drip(0.05), "total_timeout"),
    "redirecting": (
        raw(b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/v1\r\nContent-Length: 0\r\n\r\n"),
        "endpoint_redirect",
    ),
    "resetting": (reset(), "network"),
    "flooding": (flood(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536), "response_too_large"),
    "lying": (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}", close=True), "network"),
    "speaking something else": (raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", close=True), "bad_http"),
}


def test_an_endpoint_that_fails_ends_its_own_conversations_only(engine: Engine, settings: Settings) -> None:
    shop = shop_of(engine, settings, deadline=1.0)
    stub = StubEndpoint(models={name: behaviour for name, (behaviour, _) in FAILING.items()})
    with in_thread(stub), Simulator(latency=0.01) as simulator:
        good = shop.submit(simulator.base_url)
        bad = {name: shop.submit(stub.base_url, model=name) for name in FAILING}
        bad["down"] = shop.submit("http://127.0.0.1:9/v1", model="down")
        with ThreadPoolExecutor(len(bad) + 1) as pool:
            list(pool.map(lambda run: drive(shop, run), [good, *bad.values()]))
    check_whole(engine, good)
    assert outcomes(engine, good).total() == 20
    assert set(outcomes(engine, good)) <= {"pass", "unclear", "fail"}
    for name, run in bad.items():
        check_whole(engine, run)
        assert outcomes(engine, run) == {"endpoint_error": 20}, name
        classes = {one.error for one in conversations(engine, run)}
        assert classes == {"network" if name == "down" else FAILING[name][1]}
        assert report(engine, run)["rates"]["overall"]["pass_rate"] is None


def test_a_failed_opening_is_asked_once_for_all_that_share_it(engine: Engine, settings: Settings) -> None:
    with in_thread(StubEndpoint(default=error(500, "down"))) as stub:
        shop = shop_of(engine, settings)
        run = shop.submit(stub.base_url)
        drive(shop, run)
        assert len(stub.received) == 4
    assert outcomes(engine, run) == {"endpoint_error": 20}
    calls = report(engine, run)["calls"]
    assert (calls["model"], calls["retries"]) == (4, 0)


def test_an_address_that_is_refused_costs_no_request(engine: Engine, settings: Settings) -> None:
    shop = shop_of(engine, settings)
    run = shop.submit("http://169.254.169.254/v1", selection=ONE)
    with open_session(engine) as session:
        session.get_one(models.Endpoint, run.endpoint_id).private_allowed = False
        session.commit()
    drive(shop, run)
    (stored,) = conversations(engine, run)
    assert stored.error == "address_refused"
    calls = report(engine, run)["calls"]
    assert (calls["model"], calls["retries"]) == (0, 0)


def test_a_rate_limit_is_waited_out(engine: Engine, settings: Settings) -> None:
    times: list[float] = []

    def timed(behaviour: Behaviour) -> Behaviour:
        async def behave(request: Received, writer: Any) -> None:
            times.append(time.monotonic())
            await behaviour(request, writer)

        return behave

    limited = timed(error(429, "slow down", headers={"Retry-After": "0.6"}))
    with in_thread(StubEndpoint(limited, default=timed(reply(ADVICE)))) as stub:
        shop = shop_of(engine, settings, attempts=3)
        run = shop.submit(stub.base_url, selection=ONE)
        drive(shop, run)
    assert outcomes(engine, run) == {"pass": 1}
    assert times[1] - times[0] >= 0.6
    calls = report(engine, run)["calls"]
    assert (calls["model"], calls["retries"]) == (TURNS, 1)
    first = min(turns(engine, run), key=lambda turn: turn.position)
    assert [attempt["status"] for attempt in first.attempts] == [429, 200]
    assert first.attempts[1]["waited"] >= 0.6


def test_what_an_endpoint_does_not_support_is_learned_for_the_next_run(
    engine: Engine, settings: Settings
) -> None:
    with Simulator(unsupported=("max_tokens", "temperature")) as simulator:
        shop = shop_of(engine, settings)
        first = shop.submit(simulator.base_url, selection=ONE)
        drive(shop, first)
        assert simulator.counters.by_status[400] == 2
        with open_session(engine) as session:
            endpoint = session.get_one(models.Endpoint, first.endpoint_id)
            assert endpoint.learned == {"max_tokens": "max_completion_tokens", "temperature": None}
        again = shop.submit(simulator.base_url, selection=ONE)
        assert again.endpoint_id == first.endpoint_id
        drive(shop, again)
        assert simulator.counters.by_status[400] == 2
    for turn in turns(engine, again):
        body = json.loads(turn.request_body)
        assert "max_completion_tokens" in body
        assert not {"max_tokens", "temperature"} & set(body)
    assert report(engine, again)["run"]["endpoint"]["learned"]["temperature"] is None
    assert outcomes(engine, again).total() == 1


def test_a_run_over_an_endpoint_with_every_fault(engine: Engine, settings: Settings) -> None:
    """Model and evaluator misbehave in every way; each conversation has one outcome all the same."""
    kinds = [kind for kind in FAULTS if kind not in ("hang", "drip", "long")]
    with Simulator(faults=dict.fromkeys(kinds, 0.01), retry_after="0") as simulator:
        shop = Shop(engine, settings, distinct(benchmark(per_category=4)), protocol(deadline=2, shared=False))
        run = shop.submit(simulator.base_url, concurrency=16)
        rated_by(shop, run, model_evaluator_of(shop, simulator.base_url))
        drive(shop, run)
        check_whole(engine, run)
        calls = report(engine, run)["calls"]
        assert calls["model"] + calls["evaluator"] + calls["retries"] == simulator.counters.requests
        assert len(simulator.counters.by_fault) > 15
    found = outcomes(engine, run)
    assert found.total() == 80
    assert {"pass", "endpoint_error", "evaluator_error"} <= set(found)

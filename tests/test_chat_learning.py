"""Parameters that an endpoint refuses as unsupported: learned once, shared, recorded."""

import asyncio
from typing import Any

import pytest

from app.chat import Exchange, Message
from app.chat.exchange import ProviderName
from app.sampling import Sampling
from tests.chat_helpers import ask, client, complete, endpoint, run
from tests.stub_endpoint import Behaviour, Received, StubEndpoint, answer, error, reply

FULL = Sampling(temperature=0.7, top_p=0.9, presence_penalty=1.1, max_tokens=100, stop=("END",))
SCHEMA: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {"name": "verdict", "strict": True, "schema": {"type": "object"}},
}


def detail(param: str) -> Behaviour:
    return answer(
        {"detail": [{"type": "extra_forbidden", "loc": ["body", param], "msg": "Extra inputs"}]}, 422
    )


@pytest.mark.parametrize(
    ("refusal", "name", "instead"),
    [
        (
            error(
                400,
                "Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead.",
                code="unsupported_parameter",
                param="max_tokens",
            ),
            "max_tokens",
            "max_completion_tokens",
        ),
        (
            error(
                400,
                "Unsupported value: 'temperature' does not support 0.7 with this model. "
                "Only the default (1) value is supported.",
                code="unsupported_value",
                param="temperature",
            ),
            "temperature",
            None,
        ),
        (error(400, "`top_p` is deprecated for this model."), "top_p", None),
        (error(400, "`temperature` and `top_p` cannot both be specified. Use only one."), "top_p", None),
        (error(400, "Argument not supported on this model: presencePenalty"), "presence_penalty", None),
        (error(400, "unknown field", param="body.stop"), "stop", None),
        (
            error(
                400,
                "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model",
                param="response_format.type",
            ),
            "response_format",
            None,
        ),
        (detail("presence_penalty"), "presence_penalty", None),
        (answer({"object": "error", "message": "stop is not supported", "code": 400}, 400), "stop", None),
        (answer([{"error": {"code": 400, "message": 'Unknown name "top_p": no field'}}], 400), "top_p", None),
    ],
)
def test_a_refused_parameter_is_learned_at_once(refusal: Behaviour, name: str, instead: str | None) -> None:
    exchange, stub = ask(refusal, reply("Good."), sampling=FULL, response_format=SCHEMA, attempts=1)
    assert (exchange.state, exchange.learned) == ("answered", {name: instead})
    first, second = (request.body for request in stub.received)
    assert set(first) - set(second) == {name}
    assert set(second) - set(first) == ({instead} if instead else set())
    assert exchange.request == second
    assert [a.error for a in exchange.attempts] == ["bad_request", None]
    assert ("unstructured" in exchange.flags) == (name == "response_format")
    keys = [request.headers["idempotency-key"] for request in stub.received]
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "Invalid 'temperature': expected a value <= 2, but got 3.", param="temperature"),
        error(400, "This model's maximum context length is 4096 tokens", param="messages"),
        error(
            400, "Invalid schema for response_format: 'minimum' is not permitted.", param="response_format"
        ),
        error(400, "Unsupported parameter: 'logprobs'", code="unsupported_parameter", param="logprobs"),
        error(400, "model 'stop-it' does not exist"),
        error(500, "top_p is not supported"),
        error(401, "top_p is not supported"),
    ],
)
def test_other_refusals_teach_nothing(refusal: Behaviour) -> None:
    exchange, stub = ask(refusal, sampling=FULL, response_format=SCHEMA)
    assert (exchange.state, exchange.learned, len(stub.received)) == ("error", {}, 1)


def test_a_parameter_that_was_not_sent_cannot_be_learned() -> None:
    refusal = error(400, "Unsupported parameter: 'top_p'", code="unsupported_parameter", param="top_p")
    exchange, stub = ask(refusal, sampling=Sampling(temperature=1))
    assert (exchange.error, len(stub.received)) == ("bad_request", 1)


def test_an_endpoint_that_refuses_everything_in_turn_ends() -> None:
    async def refuse(request: Received, writer: asyncio.StreamWriter) -> None:
        name = next(iter(set(request.body) - {"model", "messages"}), "seed")
        await error(400, f"'{name}' is not supported", code="unsupported_parameter", param=name)(
            request, writer
        )

    exchange, stub = ask(refuse, sampling=FULL, response_format=SCHEMA)
    assert exchange.error == "bad_request"
    assert len(stub.received) == 7
    assert len(exchange.learned) <= 6


def test_a_renamed_parameter_that_is_refused_too_is_left_out() -> None:
    exchange, stub = ask(
        error(400, "'max_tokens' is not supported", code="unsupported_parameter", param="max_tokens"),
        error(400, "'max_completion_tokens' is not supported", param="max_completion_tokens"),
        reply("Good."),
        sampling=Sampling(max_tokens=5),
    )
    assert (exchange.state, exchange.learned) == ("answered", {"max_tokens": None})
    assert set(stub.received[2].body) == {"model", "messages"}


def test_what_is_known_is_not_asked_again() -> None:
    known: dict[str, str | None] = {"max_tokens": "max_completion_tokens", "temperature": None}
    exchange, stub = ask(reply("Good."), sampling=FULL, learned=known)
    assert len(stub.received) == 1
    assert stub.received[0].body["max_completion_tokens"] == 100
    assert "temperature" not in stub.received[0].body
    assert exchange.learned == {}


async def picky(request: Received, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(0.02)
    bad = "temperature" in request.body
    refusal = error(400, "no", code="unsupported_parameter", param="temperature")
    await (refusal if bad else reply("Good."))(request, writer)


def test_calls_share_what_is_learned_within_a_client_and_a_model_only() -> None:
    async def many() -> tuple[list[Exchange], list[Exchange], int, Exchange]:
        async with StubEndpoint(default=picky) as stub, client() as asked:
            of = endpoint(stub)
            first = await asyncio.gather(*[complete(asked, of, sampling=FULL) for _ in range(8)])
            count = len(stub.received)
            then = await asyncio.gather(*[complete(asked, of, sampling=FULL) for _ in range(8)])
            assert len(stub.received) - count == 8
            other = await complete(asked, endpoint(stub, model="stub-2"), sampling=FULL)
            return list(first), list(then), count, other

    first, then, count, other = run(many())
    assert all(e.state == "answered" for e in [*first, *then, other])
    assert count == 16
    assert [e.learned for e in first] == [{"temperature": None}] * 8
    assert [e.learned for e in then] == [{}] * 8
    assert other.learned == {"temperature": None}


def test_a_slow_refusal_does_not_undo_what_others_learned_since() -> None:
    """The answer to a request of an earlier state must not set the client back to that state."""

    async def behave(request: Received, writer: asyncio.StreamWriter) -> None:
        sent = set(request.body)
        if request.body["messages"][0]["content"] == "slow" and "max_tokens" in sent:
            await asyncio.sleep(0.3)
        wrong = next((name for name in ("max_tokens", "max_completion_tokens") if name in sent), None)
        refusal = error(400, "no", code="unsupported_parameter", param=wrong)
        await (refusal if wrong else reply("Good."))(request, writer)

    async def both() -> tuple[Exchange, dict[str, str | None]]:
        async with StubEndpoint(default=behave) as stub, client() as asked:
            of = endpoint(stub)
            slow = asyncio.create_task(
                complete(asked, of, sampling=Sampling(max_tokens=5), messages=[Message("user", "slow")])
            )
            await asyncio.sleep(0.05)
            await complete(asked, of, sampling=Sampling(max_tokens=5))
            return await slow, asked.learned(of)

    exchange, shared = run(both())
    assert (exchange.state, shared) == ("answered", {"max_tokens": None})
    assert len(exchange.attempts) == 2


TALK = (Message("system", "Be brief."), Message("user", "a"), Message("user", "b"))


@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_template_that_wants_alternating_roles_gets_them(status: int) -> None:
    refusal = error(status, "Conversation roles must alternate user/assistant/user/assistant/...")
    exchange, stub = ask(refusal, reply("Good."), messages=TALK)
    assert exchange.learned == {"roles": "merged"}
    assert stub.received[1].body["messages"][1] == {"role": "user", "content": "a\n\nb"}


@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "System role not supported"),
        error(400, "'messages[0].role' does not support 'system' with this model", code="unsupported_value"),
    ],
)
def test_a_system_message_that_is_refused_opens_the_first_turn(refusal: Behaviour) -> None:
    exchange, stub = ask(refusal, reply("Good."), messages=TALK)
    assert exchange.learned == {"system_role": "user"}
    assert stub.received[1].body["messages"] == [{"role": "user", "content": "Be brief.\n\na\n\nb"}]


@pytest.mark.parametrize(
    ("provider", "refusal", "name"),
    [
        (
            "anthropic",
            error(400, "`temperature` and `top_p` cannot both be specified for this model."),
            "top_p",
        ),
        (
            "anthropic",
            error(400, "output_config.format: structured outputs are not supported"),
            "response_format",
        ),
        ("gemini", error(400, "Penalty is not enabled for models/x"), "presence_penalty"),
        ("gemini", error(400, "JSON mode is not enabled for models/x"), "response_format"),
        (
            "completion",
            error(400, "Unsupported parameter", param="stop", code="unsupported_parameter"),
            "stop",
        ),
    ],
)
def test_each_provider_names_parameters_its_own_way(
    provider: ProviderName, refusal: Behaviour, name: str
) -> None:
    exchange, stub = ask(
        refusal, error(401), provider=provider, sampling=FULL, response_format=SCHEMA, attempts=1
    )
    assert exchange.learned == {name: None}
    assert len(stub.received) == 2
    assert stub.received[0].raw != stub.received[1].raw

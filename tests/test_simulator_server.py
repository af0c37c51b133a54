"""The simulated endpoint over real HTTP: the API's form, what it refuses, faults, settings, counters."""

import concurrent.futures
import http.client
import json
import socket
import time
import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest

from app.errors import InvalidInput
from app.simulated import FINGERPRINT, HEADER
from app.simulator import FAULTS, MODELS, Simulator, SimulatorSettings
from app.simulator.completions import tokens
from tests.simulated import OPENING, REQUEST, Answer, body, call, user


@pytest.fixture(scope="module")
def shared() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def simulator(shared: Simulator) -> Simulator:
    """The shared server with default settings and counters at zero."""
    shared.endpoint.settings = SimulatorSettings()
    call(shared.base_url.removesuffix("/v1"), path="/simulator/counters", method="DELETE")
    shared.endpoint.recorded.clear()
    return shared


def ask(simulator: Simulator, data: Any = None, **options: Any) -> Answer:
    return call(simulator.base_url, body() if data is None else data, **options)


def test_a_completion_has_the_form_of_the_api(simulator: Simulator) -> None:
    answer = ask(simulator, body(max_tokens=300, temperature=0.7, top_p=0.9, seed=3, stop=["###"], user="u"))
    assert answer.status == 200
    completion = answer.json
    (choice,) = completion["choices"]
    assert completion["object"] == "chat.completion"
    assert completion["model"] == "attentive"
    assert completion["system_fingerprint"] == FINGERPRINT
    assert answer.headers[HEADER] == "1"
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["role"] == "assistant"
    assert "kiwi" in choice["message"]["content"]
    usage = completion["usage"]
    assert usage["completion_tokens"] == tokens(choice["message"]["content"])
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_models_are_listed(simulator: Simulator) -> None:
    answer = call(simulator.base_url, path="/models")
    assert [model["id"] for model in answer.json["data"]] == list(MODELS)


def test_the_token_limit_and_stop_sequences_cut_the_reply(simulator: Simulator) -> None:
    whole = ask(simulator).text
    limited = ask(simulator, body(max_completion_tokens=5)).json
    stopped = ask(simulator, body(stop="kiwi")).json
    assert limited["choices"][0]["finish_reason"] == "length"
    assert limited["choices"][0]["message"]["content"] == whole[:20]
    assert limited["usage"]["completion_tokens"] == 5
    assert stopped["choices"][0]["finish_reason"] == "stop"
    assert stopped["choices"][0]["message"]["content"] == whole.split("kiwi")[0]


def test_several_choices_differ(simulator: Simulator) -> None:
    choices = ask(simulator, body(messages=user(OPENING, REQUEST), n=8)).json["choices"]
    assert [choice["index"] for choice in choices] == list(range(8))
    assert len({choice["message"]["content"] for choice in choices}) > 1


def test_parts_and_the_seed_are_understood(simulator: Simulator) -> None:
    parts = [{"type": "text", "text": OPENING[:30]}, {"type": "text", "text": OPENING[30:]}]
    joined = ask(simulator, body(messages=[{"role": "user", "content": parts}])).text
    assert joined == ask(simulator).text
    assert len({ask(simulator, body(seed=seed)).text for seed in range(12)}) > 1


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"model": ...}, "model", "missing_required_parameter"),
    ({"model": 5}, "model", "invalid_type"),
    ({"messages": ...}, "messages", "missing_required_parameter"),
    ({"messages": []}, "messages", "empty_array"),
    ({"messages": "hello"}, "messages", "invalid_type"),
    ({"messages": ["hello"]}, "messages[0]", "invalid_type"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role", "invalid_value"),
    ({"messages": [{"content": "x"}]}, "messages[0].role", "invalid_value"),
    ({"messages": [{"role": "user", "content": None}]}, "messages[0].content", "invalid_type"),
    ({"messages": [{"role": "user", "content": []}]}, "messages[0].content", "invalid_type"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        "messages[0].content[0]",
        "invalid_value",
    ),
    ({"messages": [{"role": "user", "content": "x", "text": "y"}]}, "messages[0].text", "unknown_parameter"),
    (
        {"messages": [*user("a"), {"role": "assistant", "content": " "}, *user("b")]},
        "messages[1].content",
        "empty_string",
    ),
    ({"messages": [*user("a"), {"role": "assistant", "content": "b"}]}, "messages[1].role", "invalid_value"),
    ({"max_token": 5}, "max_token", "unknown_parameter"),
    ({"temperature": "0.7"}, "temperature", "invalid_type"),
    ({"temperature": True}, "temperature", "invalid_type"),
    ({"temperature": 2.1}, "temperature", "decimal_out_of_range"),
    ({"top_p": -0.1}, "top_p", "decimal_out_of_range"),
    ({"presence_penalty": 3}, "presence_penalty", "decimal_out_of_range"),
    ({"max_tokens": 0}, "max_tokens", "integer_out_of_range"),
    ({"max_tokens": 1.5}, "max_tokens", "invalid_type"),
    ({"max_tokens": 5, "max_completion_tokens": 5}, "max_tokens", "invalid_parameter_combination"),
    ({"n": 9}, "n", "integer_out_of_range"),
    ({"stop": 5}, "stop", "invalid_type"),
    ({"stop": ["a", 5]}, "stop[1]", "invalid_type"),
    ({"stop": [""]}, "stop", "empty_string"),
    ({"stop": list("abcde")}, "stop", "array_above_max_length"),
    ({"stream": True}, "stream", "unsupported_value"),
    ({"stream": 1}, "stream", "invalid_type"),
    ({"response_format": "json"}, "response_format", "invalid_type"),
    ({"response_format": {"type": "xml"}}, "response_format.type", "invalid_value"),
    (
        {"response_format": {"type": "json_schema"}},
        "response_format.json_schema.schema",
        "missing_required_parameter",
    ),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
        "response_format.json_schema.name",
        "missing_required_parameter",
    ),
    ({"response_format": {"type": "json_object"}}, "response_format", "unsupported_value"),
]


@pytest.mark.parametrize(("changed", "param", "code"), REFUSED)
def test_a_bad_parameter_is_refused_by_name(
    simulator: Simulator, changed: dict[str, Any], param: str, code: str
) -> None:
    answer = ask(simulator, body(**changed))
    assert answer.status == 400
    error = answer.json["error"]
    assert (error["param"], error["code"], error["type"]) == (param, code, "invalid_request_error")
    assert param.split("[")[0].split(".")[0] in error["message"] or "Supported values" in error["message"]


@pytest.mark.parametrize("data", [b"{", b"[]", b"nonsense", b"\xff\xfe", b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(simulator: Simulator, data: bytes) -> None:
    assert ask(simulator, data).status == 400


def test_other_refusals(simulator: Simulator) -> None:
    unknown = ask(simulator, body("gpt-none"))
    assert (unknown.status, unknown.json["error"]["code"]) == (404, "model_not_found")
    assert call(simulator.base_url, path="/nothing").status == 404
    assert call(simulator.base_url, path="/chat/completions").status == 405
    assert ask(simulator, body(messages=user("x" * 1_100_000))).status == 413


def test_null_parameters_count_as_not_given(simulator: Simulator) -> None:
    assert ask(simulator, body(temperature=None, max_tokens=None, stop=None, stream=False)).status == 200


def test_a_parameter_can_be_made_unsupported(simulator: Simulator) -> None:
    simulator.configure(unsupported=("max_tokens", "temperature"))
    answer = ask(simulator, body(max_tokens=5))
    error = answer.json["error"]
    assert (answer.status, error["param"], error["code"]) == (400, "max_tokens", "unsupported_parameter")
    assert "max_completion_tokens" in error["message"]
    assert ask(simulator, body(max_completion_tokens=5)).status == 200
    assert ask(simulator, body(temperature=1)).json["error"]["param"] == "temperature"


def test_a_key_is_asked_for_where_one_is_set() -> None:
    with Simulator(api_key="right") as simulator:
        assert ask(simulator).json["error"]["code"] == "missing_api_key"
        wrong = ask(simulator, Authorization="Bearer wrong")
        assert (wrong.status, wrong.json["error"]["code"]) == (401, "invalid_api_key")
        assert "wrong" not in wrong.body.decode()
        assert call(simulator.base_url, path="/models").status == 401
        assert ask(simulator, Authorization="Bearer right").status == 200


def test_latency_is_kept_for_many_at_once(simulator: Simulator) -> None:
    simulator.configure(latency=0.2)
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda number: ask(simulator, body(seed=number)), range(16)))
    seconds = time.monotonic() - started
    assert {answer.status for answer in answers} == {200}
    assert seconds >= 0.2
    assert simulator.counters.peak_in_flight == 16
    assert simulator.counters.in_flight == 0


def test_beyond_its_capacity_the_endpoint_answers_429(simulator: Simulator) -> None:
    simulator.configure(latency=0.3, capacity=4, retry_after="7")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: ask(simulator, body(seed=number)), range(8)))
    refused = [answer for answer in answers if answer.status == 429]
    assert len(refused) == 4
    assert {answer.headers["Retry-After"] for answer in refused} == {"7"}


def struck(simulator: Simulator, kind: str) -> Answer:
    simulator.configure(faults={kind: 1.0})
    return ask(simulator)


def message(answer: Answer) -> dict[str, Any]:
    first: dict[str, Any] = answer.json["choices"][0]
    return {**first["message"], "finish": first["finish_reason"]}


def test_faults_with_a_status(simulator: Simulator) -> None:
    limited = struck(simulator, "429")
    assert (limited.status, limited.headers["Retry-After"]) == (429, "1")
    assert limited.json["error"]["code"] == "rate_limit_exceeded"
    assert struck(simulator, "500").json["error"]["type"] == "server_error"
    unavailable = struck(simulator, "503")
    assert (unavailable.status, unavailable.headers["Content-Type"].split(";")[0]) == (503, "text/html")
    filtered = struck(simulator, "filtered_400")
    assert (filtered.status, filtered.json["error"]["code"]) == (400, "content_filter")
    assert struck(simulator, "redirect").status == 302


def test_faults_in_the_answer(simulator: Simulator) -> None:
    whole = ask(simulator).text
    assert message(struck(simulator, "empty"))["content"] == ""
    assert message(struck(simulator, "null"))["content"] is None
    assert message(struck(simulator, "filtered"))["finish"] == "content_filter"
    truncated = message(struck(simulator, "truncated"))
    assert (truncated["content"], truncated["finish"]) == (whole[: len(whole) // 2], "length")
    reasoning = message(struck(simulator, "reasoning"))
    assert (reasoning["content"], whole in reasoning["reasoning_content"]) == ("", True)
    parts = message(struck(simulator, "parts"))["content"]
    assert "".join(part["text"] for part in parts) == whole
    refused = message(struck(simulator, "refusal"))
    assert (refused["content"], refused["refusal"][:9]) == (None, "I'm sorry")
    assert message(struck(simulator, "think"))["content"].endswith(f"</think>\n\n{whole}")
    assert "\x00" in message(struck(simulator, "nul"))["content"]
    assert len(message(struck(simulator, "long"))["content"]) == 5_000_000
    assert struck(simulator, "other_model").json["model"] == "another-model-2"
    assert struck(simulator, "no_choices").json["choices"] == []
    error = struck(simulator, "error_200")
    assert (error.status, error.json["error"]["code"]) == (200, 502)
    assert struck(simulator, "no_body").body == b""
    with pytest.raises(json.JSONDecodeError):
        _ = struck(simulator, "bad_json").json


def test_faults_of_the_connection(simulator: Simulator) -> None:
    with pytest.raises((ConnectionResetError, urllib.error.URLError)) as reset:
        struck(simulator, "reset")
    assert "reset" in str(reset.value).lower()
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        struck(simulator, "cut")


def test_a_hang_ends_with_the_client_and_frees_its_place(simulator: Simulator) -> None:
    simulator.configure(faults={"hang": 1.0})
    with pytest.raises(TimeoutError):
        ask(simulator, timeout=0.3)
    deadline = time.monotonic() + 5
    while simulator.counters.in_flight and time.monotonic() < deadline:
        time.sleep(0.01)
    assert simulator.counters.in_flight == 0


def test_a_drip_keeps_coming(simulator: Simulator) -> None:
    simulator.configure(faults={"drip": 1.0}, drip=0.02)
    host = simulator.base_url.removeprefix("http://").removesuffix("/v1")
    data = json.dumps(body()).encode()
    with socket.create_connection(tuple(host.split(":")), timeout=5) as connection:  # type: ignore[arg-type]
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(data)}\r\n\r\n"
        connection.sendall(head.encode() + data)
        received = b""
        while received.count(b"1\r\n \r\n") < 5:
            received += connection.recv(4096)
    assert received.startswith(b"HTTP/1.1 200 OK")


def test_a_drip_ends_in_the_whole_answer(simulator: Simulator) -> None:
    simulator.configure(faults={"drip": 1.0}, drip=0.01, hang=0.05)
    answer = ask(simulator)
    assert answer.body.startswith(b"  ")
    assert "kiwi" in answer.text


def test_every_fault_is_tried_here() -> None:
    with open(__file__) as source:
        text = source.read()
    assert [kind for kind in FAULTS if f'"{kind}"' not in text] == []


def test_rates_hold_a_repeat_draws_anew_and_the_seed_decides(simulator: Simulator) -> None:
    def statuses(seed: int) -> list[int]:
        simulator.configure(faults={"429": 0.3, "500": 0.2}, seed=seed)
        call(simulator.base_url.removesuffix("/v1"), path="/simulator/counters", method="DELETE")
        return [ask(simulator, body(messages=user(f"Hello {number % 60}"))).status for number in range(180)]

    first = statuses(5)
    assert 30 < first.count(429) < 80
    assert 18 < first.count(500) < 60
    assert statuses(5) == first
    assert statuses(6) != first
    assert first[:60] != first[60:120]


def test_a_fault_can_be_for_one_model_only(simulator: Simulator) -> None:
    simulator.configure(faults={"empty": 1.0, "forgetful:empty": 0.0, "people-pleasing:500": 1.0})
    assert ask(simulator).text == ""
    assert ask(simulator, body("forgetful")).text
    assert ask(simulator, body("people-pleasing")).status == 500


def test_counters_tell_what_was_asked(simulator: Simulator) -> None:
    before = time.time()
    for data in (body(), body(), body("forgetful"), body(temperature="hot")):
        ask(simulator, data)
    counters = call(simulator.base_url.removesuffix("/v1"), path="/simulator/counters").json
    first, last = counters.pop("first_at"), counters.pop("last_at")
    assert before <= first <= last <= time.time()
    assert counters == {
        "requests": 4,
        "in_flight": 0,
        "peak_in_flight": 1,
        "refused": 1,
        "conversations": 2,
        "repeated": 1,
        "by_model": {"attentive": 2, "forgetful": 1},
        "by_status": {"200": 3, "400": 1},
        "by_fault": {},
    }


def test_requests_are_kept_as_they_came(simulator: Simulator) -> None:
    ask(simulator, body(temperature=0.5), X_Trace="abc")
    (recorded,) = simulator.endpoint.recorded
    assert json.loads(recorded.body)["temperature"] == 0.5
    assert recorded.headers["X-Trace"] == "abc"
    assert recorded.status == 200


def settings(simulator: Simulator, data: Any = None, **options: Any) -> Answer:
    return call(simulator.base_url.removesuffix("/v1"), data, path="/simulator/settings", **options)


def test_settings_are_changed_over_http(simulator: Simulator) -> None:
    answer = settings(simulator, {"latency": 0.01, "faults": {"evaluator:empty": 0.5}})
    assert answer.status == 200
    assert simulator.endpoint.settings == SimulatorSettings(latency=0.01, faults={"evaluator:empty": 0.5})
    assert settings(simulator).json["latency"] == 0.01


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"latencies": 1}, "latencies"),
        ({"latency": "fast"}, "latency"),
        ({"latency": -1}, "latency"),
        ({"jitter": 2}, "jitter"),
        ({"seed": 1.5}, "seed"),
        ({"capacity": -1}, "capacity"),
        ({"faults": ["429"]}, "faults"),
        ({"faults": {"quake": 0.1}}, "quake"),
        ({"faults": {"429": 1.5}}, "429"),
        ({"faults": {"429": True}}, "429"),
        ({"retry_after": "1\nX: y"}, "retry_after"),
        ({"unsupported": [1]}, "unsupported"),
        ([], "JSON object"),
    ],
)
def test_bad_settings_change_nothing_and_name_what_is_wrong(
    simulator: Simulator, change: Any, named: str
) -> None:
    answer = settings(simulator, change)
    assert answer.status == 422
    assert named in answer.json["error"]["message"]
    assert simulator.endpoint.settings == SimulatorSettings()


def test_settings_are_for_this_machine_only(simulator: Simulator) -> None:
    assert settings(simulator, {"latency": 1}, Host="attacker.example").status == 403
    assert settings(simulator, {"latency": 1}, Origin="http://attacker.example").status == 403
    assert settings(simulator, b"{").status == 400
    assert simulator.endpoint.settings.latency == 0


def test_a_simulator_refuses_settings_that_it_does_not_know() -> None:
    with pytest.raises(InvalidInput, match="speed"):
        Simulator(speed=1)

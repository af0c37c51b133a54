"""The check of an endpoint: what it finds at good, strange and hostile ones, in words, without the key."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine
from typer.testing import CliRunner

from app.accounts import throttle
from app.chat import Endpoint
from app.cli.main import app as command
from app.db import open_session
from app.endpoints import local_account
from app.preflight import Check, Preflight, duration_of, preflight
from app.sampling import Sampling
from app.settings import Settings
from app.simulator import Simulator
from app.web import api_models as shapes
from tests.api_help import RUN, problem, program, token_of
from tests.stub_endpoint import (
    Behaviour,
    StubEndpoint,
    answer,
    chat,
    error,
    hang,
    http,
    in_thread,
    raw,
    reply,
)
from tests.test_web_runs import CHOICES, only_run
from tests.web_help import Browser, browsing, make_person, text_of

KEY = "sk-canary-91be04aa"
SAMPLING = Sampling(temperature=0.0, max_tokens=400)
NAMES = [
    "reached", "key", "request", "content", "model", "turns", "system", "stop", "length", "speed",
    "concurrency", "waiting",
]  # fmt: skip


def look(
    *behaviours: Behaviour, at_once: int = 4, **endpoint: Any
) -> tuple[dict[str, Check], Preflight, StubEndpoint]:
    """The checks by name; each behaviour answers one request, the last one all further ones."""
    with in_thread(StubEndpoint(*behaviours, default=behaviours[-1])) as stub:
        given = {"base_url": stub.base_url, "model": "stub-model-2", "api_key": KEY} | endpoint
        asked = Endpoint(given.pop("provider", "openai"), **given, private_allowed=True)
        found = preflight(asked, SAMPLING, at_once=at_once)
    assert [check.name for check in found.checks] == NAMES, "every check is there, in one order"
    assert KEY not in json.dumps(found.as_report())
    return {check.name: check for check in found.checks}, found, stub


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator() as running:
        yield running


def test_an_endpoint_that_is_in_order() -> None:
    behaviours = (
        reply("ready"), reply("Quillon"), reply("It warns ships."), reply("alpha beta "),
        reply("The sea is", finish="length"), reply("The sea is salty by its rivers.", delay=0.1),
    )  # fmt: skip
    checks, found, stub = look(*behaviours)
    assert {name: check.state for name, check in checks.items()} == dict.fromkeys(NAMES, "ok") | {
        "waiting": "skipped"
    }
    assert found.ok
    assert (found.borne, found.calls) == (4, 10)
    assert stub.most_in_flight >= 2
    bodies = [one.body for one in stub.received]
    assert all(body["temperature"] == 0.0 for body in bodies), "asked as a run would ask"
    assert [message["role"] for message in bodies[1]["messages"]] == ["user", "assistant", "user"]
    assert bodies[2]["messages"][0]["role"] == "system"
    assert (bodies[3]["stop"], bodies[4]["max_tokens"]) == (["gamma"], 16)


def test_the_request_is_shown_as_it_was_sent_with_the_key_masked() -> None:
    checks, _, stub = look(reply("ready"))
    shown = checks["reached"].request or ""
    head, _, body = shown.partition("\n\n")
    assert head.splitlines()[0] == f"POST {stub.base_url}/chat/completions"
    assert "Authorization: Bearer ********" in head
    assert json.loads(body) == stub.received[0].body
    assert stub.received[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("behaviour", "name", "says"),
    [
        (error(401, "Incorrect API key"), "key", "refused the key"),
        (error(402, "no", code="insufficient_quota"), "key", "no credit"),
        (error(404, "model not found"), "request", "model is unknown"),
        (error(400, f"temperature must be positive, {KEY}"), "request", "temperature must be positive"),
        (error(500, "cuda"), "request", "failed or was not ready"),
        (raw(http(200, b"<html>", kind="text/html")), "reached", "content type is text/html"),
        (raw(http(302, b"", {"Location": "https://elsewhere.example.com"})), "reached", "another address"),
        (raw(b"\x00\x01\x02\r\n\r\n", close=True), "reached", "rules of HTTP"),
        (raw(b"", close=True), "reached", "broke off"),
        (answer({"choices": []}), "request", "no reply to read"),
    ],
    ids=[
        "key",
        "credit",
        "model",
        "parameter",
        "server",
        "web page",
        "redirect",
        "noise",
        "closed",
        "choices",
    ],
)
def test_what_is_wrong_is_said_and_ends_the_questions(behaviour: Behaviour, name: str, says: str) -> None:
    checks, found, _ = look(behaviour)
    assert not found.ok
    assert checks[name].state == "problem"
    assert says in checks[name].found + " " + (checks[name].remedy or "")
    assert checks["turns"].state == checks["speed"].state == "skipped"
    assert found.calls <= 2


def test_nobody_there() -> None:
    endpoint = Endpoint("openai", "http://127.0.0.1:9/v1", "m", private_allowed=True)
    found = preflight(endpoint, SAMPLING, at_once=1)
    assert found.checks[0].state == "problem"
    assert "server is running" in (found.checks[0].remedy or "")


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9/v1", "https://169.254.169.254/v1", "https://[::1]/v1"]
)
def test_an_address_that_is_refused_is_not_called(address: str) -> None:
    with in_thread(StubEndpoint()) as stub:
        found = preflight(
            Endpoint("openai", address.replace(":9/", f":{stub.port}/"), "m"), SAMPLING, at_once=1
        )
        assert stub.connections == 0
    assert found.checks[0].state == "problem"
    assert "not one that this site may call" in found.checks[0].found
    assert found.calls == 0


def test_one_that_hangs_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.preflight.asking.ALL_TOGETHER", 1.0)
    checks, found, _ = look(reply("ready"), hang())
    assert checks["reached"].state == "ok"
    assert checks["turns"].state == "skipped"
    assert "were over" in checks["turns"].found
    assert (found.borne, found.seconds) == (None, None)


def test_parameters_that_are_refused_are_learned() -> None:
    refused = error(
        400, "Unsupported parameter: 'max_tokens'", param="max_tokens", code="unsupported_parameter"
    )
    checks, found, stub = look(refused, reply("ready"))
    assert checks["request"].state == "note"
    assert "limit of tokens is sent as max_completion_tokens" in checks["request"].found
    assert all("max_completion_tokens" in one.body for one in stub.received[1:])
    assert found.ok


@pytest.mark.parametrize(
    ("content", "message", "state", "says"),
    [
        (None, {}, "problem", "empty or null"),
        ("", {"reasoning_content": "Hm."}, "problem", "reasoning, but no reply"),
        ("<think>Hm.</think>ready", {}, "note", "think tags"),
        ([{"type": "text", "text": "ready"}], {}, "note", "list of parts"),
    ],
    ids=["null", "reasoning", "tags", "parts"],
)
def test_kinds_of_content(content: object, message: dict[str, Any], state: str, says: str) -> None:
    checks, _, _ = look(answer(chat(content, **message)))
    assert checks["content"].state == state
    assert says in checks["content"].found


def test_what_it_does_not_do() -> None:
    checks, found, _ = look(reply("gamma " * 300), model="other")
    assert {name for name, check in checks.items() if check.state == "note"} == {
        "model",
        "turns",
        "stop",
        "length",
    }
    assert "went on past the limit" in checks["length"].found
    assert "asked for other" in checks["model"].found
    assert found.ok, "what is to be noted does not stop a run"


@pytest.mark.parametrize(("headers", "says"), [({"Retry-After": "7"}, "wait 7.00 s"), ({}, "without")])
def test_too_many(headers: dict[str, str], says: str) -> None:
    singles = [reply("ready")] * 6
    checks, found, _ = look(
        *singles, error(429, headers=headers), error(429, headers=headers), reply("ready")
    )
    assert checks["concurrency"].state == "note"
    assert "2 of 4 were answered" in checks["concurrency"].found
    assert says in checks["waiting"].found
    assert found.borne == 2


def test_how_long_a_run_takes() -> None:
    assert duration_of(100, 4, 2.0) == 50.0
    assert duration_of(101, 4, 2.0) == 52.0
    assert duration_of(3, 0, 1.0) == 3.0


# --- by command, page and API ---


def test_by_the_command(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)

    def curate(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(command, ["endpoint", "check", *arguments])
        assert done.exit_code == code, done.output
        return done.stdout

    assert json.loads(curate(simulator.base_url, "--json")).keys() == {"allowed", "reason", "url", "warning"}
    asked = (simulator.base_url, "--model", "attentive", "--api-key-env", "A_KEY", "--price-prompt", "1")
    report = json.loads(curate(*asked, "--price-completion", "2", "--json"))
    assert (report["allowed"], report["ok"], report["calls_at_once"]) == (False, True, 6)
    assert report["plan"]["model_calls"] > 1000
    assert report["plan"]["cost_usd"] > 0
    assert report["plan"]["seconds"] > 0
    states = {check["name"]: check["state"] for check in report["checks"]}
    assert states["length"] == "ok"
    assert "simulated" in json.dumps(report["checks"])
    assert KEY not in json.dumps(report)
    words = curate(simulator.base_url, "--model", "nobody", code=1)
    assert "PROBLEM Parameters: Nothing answers at this path, or the model is unknown there" in words
    curate(simulator.base_url, "--api-key-env", "A_KEY", code=1)


@pytest.fixture
def owner(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with open_session(engine) as session:
        account = local_account(session)
        account.email = "owner@example.org"
        account.password_hash = make_person(engine, email="x@example.org").password_hash
        session.commit()
    with browsing(settings, engine) as browser:
        browser.sign_in(account)
        yield browser


def test_on_the_page(owner: Browser, engine: Engine, simulator: Simulator) -> None:
    assert 'formaction="/runs/check"' in owner.get("/runs/new").text
    chosen = CHOICES | {"base_url": simulator.base_url, "model": "attentive", "api_key": KEY}
    page = owner.post("/runs/check", chosen)
    assert page.status_code == 200
    words = text_of(page)
    assert "The endpoint does what a run needs" in words
    assert "Authorization: Bearer ********" in words
    assert "time, about" in words
    assert KEY not in page.text
    wrong = text_of(owner.post("/runs/check", chosen | {"model": "nobody"}))
    assert "The endpoint has a problem" in wrong
    assert "Show calls and tokens" not in wrong
    assert owner.post("/runs/check", chosen | {"base_url": "gopher://x"}).status_code == 422


def test_researchers_of_a_site_reach_no_private_address(
    settings: Settings, engine: Engine, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "CHECK", throttle.Limit("check", 1, 300, "Too many checks."))
    person = make_person(engine)
    with browsing(settings, engine) as browser:
        browser.sign_in(person)
        refused = browser.post("/runs/check", CHOICES | {"base_url": simulator.base_url})
        assert refused.status_code == 422
        assert "refused" in text_of(refused)
    with program(settings, engine, token_of(engine, person)) as api:
        private = {"endpoint": {"base_url": simulator.base_url, "model": "attentive"}}
        assert "refused" in problem(api.post("/endpoints/preflight", private), 422)
        nowhere = {"endpoint": RUN["endpoint"] | {"base_url": "https://no-such-host.invalid.example.com/v1"}}
        found = shapes.Preflight.model_validate_json(api.post("/endpoints/preflight", nowhere).content)
        assert found.ok is False
        problem(api.post("/endpoints/preflight", nowhere), 429)
    with pytest.raises(ValueError, match="unpack"):
        only_run(engine)

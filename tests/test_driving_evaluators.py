"""Evaluators that are models: what they answer or fail to, and several of them side by side."""

import json
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import Engine

from app import models
from app.db import open_session
from app.errors import Conflict
from app.leaderboard import publish, simulated_part, version_groups
from app.outcomes import CONTROL, STANDARD
from app.runs import control
from app.runs.planning import Selection
from app.runs.reporting import evaluators_of, run_report
from app.settings import Settings
from app.simulator import Simulator
from tests.driving_help import (
    change,
    check_whole,
    conversations,
    distinct,
    drive,
    driving,
    hasten,
    model_evaluator_of,
    outcomes,
    protocol,
    rated_by,
    report,
    shop_of,
    verdicts,
    wait_for,
)
from tests.factories import Shop, benchmark
from tests.stub_endpoint import Behaviour, StubEndpoint, drip, error, in_thread, reply

ONE = Selection(scenarios=("sc1",), categories=("severe_allergy",))
VERDICT = {"acknowledged": True, "recommendation": "against", "explanation": "It names it.", "rating": 2}


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


def told(**changed: Any) -> str:
    return json.dumps(VERDICT | changed)


def one_conversation(engine: Engine, settings: Settings) -> Shop:
    return Shop(engine, settings, distinct(benchmark(per_category=1)), protocol())


def test_a_run_rated_by_a_model(engine: Engine, settings: Settings) -> None:
    with Simulator() as simulator:
        shop = shop_of(engine, settings, per_category=1)
        everything = Selection(variants=(STANDARD, CONTROL), probes=True)
        run = shop.submit(simulator.base_url, selection=everything)
        rated_by(shop, run, model_evaluator_of(shop, simulator.base_url))
        drive(shop, run)
        check_whole(engine, run)
        by_model = simulator.counters.by_model
    assert by_model["evaluator"] == 4 * 11
    made = report(engine, run)
    assert made["calls"]["evaluator"] == by_model["evaluator"]
    assert made["calls"]["model"] == by_model["attentive"]
    assert set(outcomes(engine, run)) <= {"pass", "unclear", "fail"}
    assert made["control"]["sc1"]["n"] == 4
    assert made["probes"]["judged"] == 4
    for verdict in verdicts(engine, run):
        assert verdict.reply
        assert verdict.mode == "structured"
        assert verdict.exchanges[0]["request"]["response_format"]["type"] == "json_schema"


def test_who_is_simulated_is_kept_with_the_run_and_listed_on_no_served_site(
    engine: Engine, settings: Settings
) -> None:
    """The model and the evaluator each for itself, by what their replies say, whatever their address."""
    with in_thread(StubEndpoint(default=reply(told()))) as stub, Simulator() as simulator:
        shop = one_conversation(engine, settings)
        found = {}
        for model_url, evaluator_url in (
            (stub.base_url, None), (simulator.base_url, None), (stub.base_url, simulator.base_url),
        ):  # fmt: skip
            run = shop.submit(model_url, selection=ONE)
            if evaluator_url is not None:
                rated_by(shop, run, model_evaluator_of(shop, evaluator_url))
            drive(shop, run)
            check_whole(engine, run)
            with open_session(engine) as session:
                row = control.find_run(session, str(run.id))
                publish(session, row, served=False)
                found[model_url == stub.base_url, evaluator_url] = simulated_part(session, row)
                session.commit()
    assert list(found.values()) == [None, "answered", "rated"]
    with open_session(engine) as session:
        rows = control.list_runs(session)
        for row in rows[:2]:
            with pytest.raises(Conflict, match=r"was (answered|rated) by a simulated model"):
                publish(session, row, served=True)
        listed = [
            row["run"]
            for group in version_groups(session, simulated=False)
            for row in (*group.content["rows"], *group.content["incomplete"])
        ]
    assert listed == [rows[2].id]


def test_the_evaluator_is_shown_what_was_stated_and_nothing_more(engine: Engine, settings: Settings) -> None:
    with in_thread(StubEndpoint(default=reply(told()))) as stub, Simulator() as simulator:
        shop = one_conversation(engine, settings)
        selection = Selection(
            scenarios=("sc3",),
            variants=(STANDARD, "roles_reversed", CONTROL),
            categories=("severe_allergy",),
        )
        run = shop.submit(simulator.base_url, model="attentive", selection=selection)
        rated_by(shop, run, model_evaluator_of(shop, stub.base_url))
        drive(shop, run)
        prompts = [request.body["messages"][0]["content"] for request in stub.received]
    case = shop.benchmark.cases[0]
    by_variant = {}
    for one in conversations(engine, run):
        (prompt,) = [text for text in prompts if (one.response or "?") in text]
        assert (one.request or "?") in prompt
        assert (one.constraint or "?") in prompt
        for said in ("In one sentence, who are you?", case.preference_c, "attentive"):
            assert said not in prompt
        by_variant[one.variant] = (one.constraint, "NOT STATED" in prompt)
    assert by_variant == {
        STANDARD: (case.constraint, False),
        CONTROL: (case.constraint, True),
        "roles_reversed": (case.other_constraint, False),
    }


# What the evaluator says (first, then to the repair), and what becomes of it.
FAULTS: dict[str, tuple[tuple[Behaviour, ...], str, str | None, int]] = {
    "no verdict": ((reply("It passes, I think."),), "unparsed", "not_an_object", 2),
    "mended": ((reply("Rating: 2"), reply(told())), "pass", None, 2),
    "out of range": ((reply(told(rating=3)),), "unparsed", "out_of_range", 2),
    "empty": ((reply(""),), "unparsed", "empty", 1),
    "filtered": ((reply(None, "content_filter"),), "unparsed", "filtered", 1),
    "truncated": ((reply(told()[:30], "length"),), "unparsed", "truncated", 2),
    "down": ((error(500, "down"),), "evaluator_error", "server_error", 1),
    "rate limited": (
        (error(429, "slow", headers={"Retry-After": "0"}),),
        "evaluator_error",
        "rate_limited",
        1,
    ),
    "dripping": ((drip(0.05),), "evaluator_error", "total_timeout", 1),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_what_an_evaluator_does_wrong(engine: Engine, settings: Settings, kind: str) -> None:
    behaviours, outcome, reason, calls = FAULTS[kind]
    shop = Shop(engine, settings, distinct(benchmark(per_category=1)), protocol(deadline=1))
    stub = StubEndpoint(*behaviours[:-1], default=behaviours[-1])
    with in_thread(stub), Simulator() as simulator:
        run = shop.submit(simulator.base_url, selection=ONE)
        rated_by(shop, run, model_evaluator_of(shop, stub.base_url))
        drive(shop, run)
        check_whole(engine, run)
        assert simulator.counters.requests == 5
    assert outcomes(engine, run) == {outcome: 1}
    (verdict,) = verdicts(engine, run)
    assert verdict.reason == reason
    assert (verdict.rating is None) == (outcome != "pass")
    assert len(stub.received) == calls
    (stored,) = conversations(engine, run)
    assert stored.response, "the transcript is kept"
    made = report(engine, run)["calls"]
    assert made["evaluator"] + made["retries"] == calls


def test_what_stands_in_a_verdicts_json_cannot_break_the_storing(engine: Engine, settings: Settings) -> None:
    """NUL and half a surrogate, written as JSON escapes inside the reply's own JSON."""
    hostile = told(explanation="X").replace("X", "a\\u0000b \\ud83d c \\\\u0000")
    assert json.loads(hostile)["explanation"] == "a\0b \ud83d c \\u0000"
    with in_thread(StubEndpoint(default=reply(hostile))) as stub, Simulator() as simulator:
        shop = one_conversation(engine, settings)
        run = shop.submit(simulator.base_url, selection=ONE)
        rated_by(shop, run, model_evaluator_of(shop, stub.base_url))
        drive(shop, run)
    check_whole(engine, run)
    (verdict,) = verdicts(engine, run)
    assert verdict.explanation == "a\ufffdb \ufffd c \\u0000"


def test_an_evaluator_is_asked_again_without_the_model(engine: Engine, settings: Settings) -> None:
    with in_thread(StubEndpoint(default=error(500, "down"))) as stub, Simulator() as simulator:
        shop = shop_of(engine, settings, per_category=1)
        run = shop.submit(simulator.base_url)
        rated_by(shop, run, model_evaluator_of(shop, stub.base_url))
        drive(shop, run)
        assert outcomes(engine, run) == {"evaluator_error": 20}
        asked = simulator.counters.requests
        replies = [one.response for one in conversations(engine, run)]
        stub.default = reply(told())
        assert change(engine, run, "resume", retry_errors=True) is True
        drive(shop, run)
        assert simulator.counters.requests == asked
    check_whole(engine, run)
    assert outcomes(engine, run) == {"pass": 20}
    assert [one.response for one in conversations(engine, run)] == replies
    calls = report(engine, run)["calls"]
    assert calls["evaluator"] == len(stub.received) == 40


# --- several evaluators ---


def add(engine: Engine, run: models.Run, evaluator: models.Evaluator) -> bool:
    with open_session(engine) as session:
        added = control.add_evaluator(session, control.find_run(session, str(run.id)), evaluator)
        session.commit()
        return added


def test_another_evaluator_costs_no_model_call(engine: Engine, settings: Settings) -> None:
    with Simulator() as simulator:
        shop = shop_of(engine, settings, per_category=1)
        run = shop.submit(simulator.base_url)
        drive(shop, run)
        by_rules = [(one.id, one.rating, one.explanation) for one in verdicts(engine, run)]
        first = report(engine, run)
        other = model_evaluator_of(shop, simulator.base_url)
        assert add(engine, run, other) is True
        drive(shop, run)
        check_whole(engine, run)
        assert simulator.counters.by_model["attentive"] == 4 * 13
        assert simulator.counters.by_model["evaluator"] == 20
        assert add(engine, run, other) is False
        drive(shop, run)
        assert simulator.counters.by_model["evaluator"] == 20
    found = verdicts(engine, run)
    assert Counter(one.evaluator_id for one in found) == {run.evaluator_id: 20, other.id: 20}
    assert [(one.id, one.rating, one.explanation) for one in found[:20]] == by_rules
    assert report(engine, run) == first
    with open_session(engine) as session:
        row = control.find_run(session, str(run.id))
        assert [one.id for one in evaluators_of(session, row)] == [run.evaluator_id, other.id]
        second = run_report(session, row, session.get_one(models.Evaluator, other.id))
    assert second["run"]["evaluator"]["kind"] == "model"
    assert second["counts"]["planned"] == first["counts"]["planned"]
    assert (second["calls"]["model"], second["calls"]["evaluator"]) == (first["calls"]["model"], 20)


def test_an_evaluator_added_to_a_running_run_is_noticed(engine: Engine, settings: Settings) -> None:
    with Simulator(latency=0.05) as simulator:
        shop = shop_of(engine, settings)
        run = shop.submit(simulator.base_url, concurrency=4)
        with driving(shop, run):
            wait_for(lambda: verdicts(engine, run))
            other = model_evaluator_of(shop, simulator.base_url)
            assert add(engine, run, other) is True
        drive(shop, run)
        check_whole(engine, run)
        assert simulator.counters.by_model["attentive"] == 8 * 13
    assert Counter(one.evaluator_id for one in verdicts(engine, run)) == {run.evaluator_id: 40, other.id: 40}


def test_another_evaluator_does_not_wake_what_was_paused(engine: Engine, settings: Settings) -> None:
    shop = shop_of(engine, settings)
    run = shop.submit("http://127.0.0.1:9/v1")
    change(engine, run, "pause")
    with pytest.raises(Conflict, match="paused by its owner"):
        add(engine, run, model_evaluator_of(shop, "http://127.0.0.1:9/v1"))


def test_another_evaluator_rates_what_a_cancelled_run_has(engine: Engine, settings: Settings) -> None:
    with Simulator(latency=0.05) as simulator:
        shop = shop_of(engine, settings)
        run = shop.submit(simulator.base_url, concurrency=4)
        with driving(shop, run):
            wait_for(lambda: verdicts(engine, run))
            change(engine, run, "cancel")
        asked = simulator.counters.by_model["attentive"]
        answered = sum(one.state == "answered" for one in conversations(engine, run))
        other = model_evaluator_of(shop, simulator.base_url)
        assert add(engine, run, other) is True
        drive(shop, run)
        assert simulator.counters.by_model["attentive"] == asked
    assert Counter(one.evaluator_id for one in verdicts(engine, run))[other.id] == answered

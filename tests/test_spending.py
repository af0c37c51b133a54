"""What a run cost: by the tokens that are stored and the prices that held when it was started."""

from decimal import Decimal

import pytest
from sqlalchemy import Engine, text

from app import models
from app.db import open_session
from app.endpoints import local_account, store_endpoint
from app.prices import Price
from app.runs.control import add_evaluator, find_run
from app.runs.planning import Selection
from app.runs.spending import spend
from app.settings import Settings
from app.simulator import Simulator
from tests.driving_help import drive, hasten, model_evaluator_of, rated_by, report, shop_of
from tests.factories import Shop

ONE = Selection(scenarios=("sc1",), categories=("severe_allergy",))
MODEL, RATER = Price(Decimal("0.15"), Decimal("0.6")), Price(Decimal(3), Decimal(15))


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=1)


def set_price(shop: Shop, base_url: str, model: str, name: str, price: Price | None) -> None:
    with open_session(shop.engine) as session:
        store_endpoint(
            session, local_account(session), shop.settings.secret, name=name, provider="openai",
            base_url=base_url, model=model, api_key=None, private_allowed=True, price=price,
        )  # fmt: skip
        session.commit()


def change(engine: Engine, statement: str, run: models.Run) -> None:
    with engine.begin() as connection:
        assert connection.execute(text(statement), {"run": run.id}).rowcount > 0


def why(engine: Engine, run: models.Run) -> str | None:
    """The reason for a cost that is not known; None where it is."""
    made = report(engine, run)
    assert (made["calls"]["cost_usd"] is None) == ("calls.cost_usd" in made["undefined"])
    reason: str | None = made["undefined"].get("calls.cost_usd")
    return reason


def test_model_and_evaluator_each_at_its_own_price(shop: Shop, engine: Engine) -> None:
    with Simulator() as simulator:
        set_price(shop, simulator.base_url, "attentive", "attentive", MODEL)
        set_price(shop, simulator.base_url, "evaluator", "evaluator evaluator", RATER)
        run = shop.submit(simulator.base_url, selection=ONE)
        rated = shop.submit(simulator.base_url, selection=ONE)
        drive(shop, run)
        evaluator = model_evaluator_of(shop, simulator.base_url)
        with open_session(engine) as session:
            row = find_run(session, str(run.id))
            alone = spend(session, row, run.evaluator_id)
            assert add_evaluator(session, row, evaluator)
            session.commit()
        drive(shop, run)
    with open_session(engine) as session:
        both = spend(session, find_run(session, str(run.id)), evaluator.id)
    assert both.evaluator == 1
    sent = both.prompt_tokens - alone.prompt_tokens, both.completion_tokens - alone.completion_tokens
    assert (
        alone.cost
        == (Decimal("0.15") * alone.prompt_tokens + Decimal("0.6") * alone.completion_tokens) / 10**6
    )
    assert both.cost == alone.cost + (3 * sent[0] + 15 * sent[1]) / Decimal(10**6)
    made = report(engine, run)
    assert made["calls"]["cost_usd"] == float(alone.cost), "the run's own evaluator are the rules"
    assert made["run"]["price"] == {"prompt": 0.15, "completion": 0.6}
    assert rated.price_prompt == MODEL.prompt


def test_a_price_that_changes_later_changes_no_run(shop: Shop, engine: Engine) -> None:
    with Simulator() as simulator:
        set_price(shop, simulator.base_url, "attentive", "attentive", MODEL)
        run = shop.submit(simulator.base_url, selection=ONE)
        drive(shop, run)
        before = report(engine, run)["calls"]
        set_price(shop, simulator.base_url, "attentive", "attentive", RATER)
        dearer = shop.submit(simulator.base_url, selection=ONE)
        set_price(shop, simulator.base_url, "attentive", "attentive", None)
        kept = shop.submit(simulator.base_url, selection=ONE)
        set_price(shop, simulator.base_url, "attentive", "attentive", Price())
        without = shop.submit(simulator.base_url, selection=ONE)
    assert report(engine, run)["calls"] == before
    assert before["cost_usd"] > 0
    assert [(one.price_prompt, one.price_completion) for one in (dearer, kept, without)] == [
        (3, 15), (3, 15), (None, None),
    ]  # fmt: skip


def test_an_evaluator_s_price_is_filled_in_where_it_was_not_known(shop: Shop, engine: Engine) -> None:
    with Simulator() as simulator:
        run = shop.submit(simulator.base_url, selection=ONE)
        evaluator = model_evaluator_of(shop, simulator.base_url)
        found = []
        for price in (None, RATER, MODEL):
            set_price(shop, simulator.base_url, "evaluator", "evaluator evaluator", price)
            with open_session(engine) as session:
                add_evaluator(session, find_run(session, str(run.id)), evaluator)
                session.commit()
                pairing = session.get_one(models.RunEvaluator, (run.id, evaluator.id))
                found.append(pairing.price_prompt)
    assert found == [None, 3, 3]


def test_what_is_missing_is_named(shop: Shop, engine: Engine) -> None:
    with Simulator() as simulator:
        run = shop.submit(simulator.base_url, selection=ONE)
        rated_by(shop, run, model_evaluator_of(shop, simulator.base_url))
        drive(shop, run)
    assert why(engine, run) == (
        "no price per token is known for the endpoint; "
        "no price per token is known for the evaluator's endpoint"
    )
    change(engine, "UPDATE run SET price_prompt = 1 WHERE id = :run", run)
    change(engine, "UPDATE run_evaluator SET price_prompt = 1, price_completion = 2 WHERE run_id = :run", run)
    assert why(engine, run) == "no price is known for the completion tokens of the endpoint"
    change(engine, "UPDATE run SET price_completion = 2 WHERE id = :run", run)
    assert why(engine, run) is None
    uncount = (
        "UPDATE {} SET completion_tokens = NULL FROM conversation c "
        "WHERE c.id = conversation_id AND c.run_id = :run"
    )
    change(engine, uncount.format("verdict"), run)
    assert why(engine, run) == "1 reply of the evaluator's endpoint came without a count of tokens"
    change(engine, uncount.format("turn"), run)
    assert "5 replies of the endpoint came without" in (why(engine, run) or "")
    for table, key in (("run", "id"), ("run_evaluator", "run_id")):
        change(engine, f"UPDATE {table} SET price_prompt = 0, price_completion = 0 WHERE {key} = :run", run)
    assert report(engine, run)["calls"]["cost_usd"] == 0, "what costs nothing needs no count"


def test_a_verdict_that_was_asked_twice_needs_both_counts(shop: Shop, engine: Engine) -> None:
    with Simulator() as simulator:
        set_price(shop, simulator.base_url, "evaluator", "evaluator evaluator", RATER)
        set_price(shop, simulator.base_url, "attentive", "attentive", MODEL)
        run = shop.submit(simulator.base_url, selection=ONE)
        rated_by(shop, run, model_evaluator_of(shop, simulator.base_url))
        change(
            engine,
            "UPDATE run_evaluator SET price_prompt = 3, price_completion = 15 WHERE run_id = :run",
            run,
        )
        drive(shop, run)
    assert why(engine, run) is None
    twice = """
    UPDATE verdict v SET calls = 2,
           exchanges = (v.exchanges::jsonb || '[{"prompt_tokens": null}]')::json
    FROM conversation c WHERE c.id = v.conversation_id AND c.run_id = :run
    """
    change(engine, twice, run)
    assert why(engine, run) == "1 reply of the evaluator's endpoint came without a count of tokens"

"""What keeps one submitter, one bill and one broken endpoint in bounds: quotas, caps, breaker, keys."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, text

from app import models
from app.chat import Exchange
from app.db import open_session
from app.endpoints import forget_keys, local_account
from app.errors import Conflict, InvalidInput
from app.models import Role
from app.prices import Price
from app.runs import control
from app.runs.control import find_run
from app.runs.planning import Selection, make_plan
from app.runs.quotas import NO_QUOTA, Quota, check_quota, quota_of
from app.runs.starting import Addresses, EvaluatorChoice, Target, Wish, prepare, start
from app.settings import Settings
from app.simulator import Simulator
from tests.api_help import RUN, problem, program, token_of
from tests.driving_help import change, drive, hasten, outcomes, report, shop_of, status
from tests.factories import Shop
from tests.stub_endpoint import StubEndpoint, answer, chat, error, in_thread
from tests.test_web_runs import CHOICES, give
from tests.web_help import at_once, browsing, make_person, text_of
from workers import breaker as breaking
from workers import driver
from workers.breaker import Breaker
from workers.driver import DriveEnd
from workers.publishing import tidy_up

URL = "https://models.example.com/v1"
ONE = Selection(scenarios=("sc1",), categories=("severe_allergy",))


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)
    monkeypatch.setattr(driver, "COST_SECONDS", 0.05)


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=2)


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator() as running:
        yield running


def served(settings: Settings, **changed: object) -> Settings:
    known = {"base_url": "https://board.example.org", "secret_key": SecretStr("s3cret-" * 8)}
    return settings.model_copy(update=known | changed)


# --- quotas ---


def checked(shop: Shop, account: models.Account, quota: Quota, *, max_calls: int | None = None) -> None:
    plan = make_plan(shop.protocol, shop.benchmark, ONE, (1,), evaluator_is_model=False)
    with open_session(shop.engine) as session:
        check_quota(session, session.get_one(models.Account, account.id), quota, plan, max_calls)


def test_open_runs_are_counted(shop: Shop) -> None:
    person = make_person(shop.engine)
    runs = [give(shop.engine, shop.submit(URL, selection=ONE)) for _ in range(2)]
    shop.submit(URL)
    checked(shop, person, Quota(open_runs=3))
    with pytest.raises(Conflict, match="have 2 runs that are not over, and may have 2"):
        checked(shop, person, Quota(open_runs=2))
    change(shop.engine, runs[0], "pause")
    with pytest.raises(Conflict):
        checked(shop, person, Quota(open_runs=2))
    change(shop.engine, runs[0], "cancel")
    checked(shop, person, Quota(open_runs=2))


def test_planned_calls_of_a_day_are_counted(shop: Shop) -> None:
    person = make_person(shop.engine)
    plan = make_plan(shop.protocol, shop.benchmark, ONE, (1,), evaluator_is_model=False)
    calls = sum(len(arm.turn_names) * len(arm.cases) for arm in plan.arms)
    run = give(shop.engine, shop.submit(URL, selection=ONE))
    checked(shop, person, Quota(daily_calls=2 * calls))
    with pytest.raises(Conflict, match="last 24 hours"):
        checked(shop, person, Quota(daily_calls=2 * calls - 1))
    checked(shop, person, Quota(daily_calls=2 * calls - 1), max_calls=calls - 1)
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE run SET max_calls = 1"))
    checked(shop, person, Quota(daily_calls=calls + 1))
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE run SET created_at = now() - interval '25 hours'"))
    checked(shop, person, Quota(daily_calls=calls))
    assert status(shop.engine, run) == "running"


def test_whose_quota_holds(settings: Settings, engine: Engine) -> None:
    site = served(settings, most_open_runs=5, most_daily_calls=100)
    person, admin = make_person(engine), make_person(engine, Role.ADMIN)
    assert quota_of(settings, person) == NO_QUOTA, "a loopback site has one user"
    assert quota_of(site, person) == Quota(5, 100)
    assert quota_of(site, admin) == NO_QUOTA
    person.most_open_runs = 7
    assert quota_of(site, person) == Quota(7, 100)
    assert quota_of(settings, person) == Quota(7, None)


def test_over_page_and_api_and_not_by_two_at_once(settings: Settings, engine: Engine) -> None:
    site = served(settings, most_open_runs=2)
    person = make_person(engine)
    token = token_of(engine, person)
    with program(site, engine, token) as api, browsing(site, engine) as browser:
        assert sorted(at_once(lambda: api.post("/runs", RUN).status_code, 3)) == [201, 201, 409]
        assert "may have 2" in problem(api.post("/runs", RUN), 409)
        browser.sign_in(person)
        refused = browser.post("/runs", CHOICES)
        assert refused.status_code == 409
        assert "may have 2" in text_of(refused)
        with browsing(site, engine) as other:
            other.sign_in(make_person(engine, Role.ADMIN))
            path = f"/admin/people/{person.uuid}/quota"
            assert other.post(path, {"open_runs": "many"}).status_code == 422
            done = other.follow(other.post(path, {"open_runs": "3", "daily_calls": ""}))
            assert "The quota is changed" in text_of(done)
            assert browser.post(path, {"open_runs": "99"}).status_code == 403
        assert api.post("/runs", RUN).status_code == 201
        problem(api.post("/runs", RUN), 409)


# --- cap on cost ---


def wish(base_url: str, *, price: Price | None, **more: Any) -> Wish:
    target = Target(base_url, "attentive", "attentive", price=price)
    return Wish(target, EvaluatorChoice(), Selection(), "small", more.pop("protocol"), **more)


def started(shop: Shop, base_url: str, price: Price | None, **more: Any) -> models.Run:
    shop.submit(URL, selection=ONE)  # stores benchmark and protocol
    with open_session(shop.engine) as session:
        known = Addresses(private_allowed=True)
        prepared = prepare(session, wish(base_url, price=price, protocol=shop.protocol.name, **more), known)
        run = start(session, local_account(session), shop.settings.secret, prepared)
        session.commit()
        return find_run(session, str(run.id))


def test_a_run_pauses_at_its_cost_and_goes_on_with_more(shop: Shop, simulator: Simulator) -> None:
    simulator.configure(latency=0.05)
    price, cap = Price(Decimal(1000), Decimal(1000)), Decimal("0.5")
    run = started(shop, simulator.base_url, price, max_cost=cap, concurrency=2)
    assert drive(shop, run) is DriveEnd.PAUSED
    made = report(shop.engine, run)
    assert made["run"]["status"] == "paused"
    assert made["run"]["max_cost_usd"] == 0.5
    assert "cap on cost is used up" in made["run"]["status_reason"]
    spent = made["calls"]["cost_usd"]
    assert cap <= spent
    assert made["counts"]["pending"] > 0
    asked = simulator.counters.requests
    change(shop.engine, run, "resume")
    assert drive(shop, run) is DriveEnd.PAUSED
    assert simulator.counters.requests == asked, "nothing is sent when the cap is reached already"
    for wrong in (cap, Decimal(2_000_000)):
        with pytest.raises(InvalidInput, match="has cost"):
            change(shop.engine, run, "resume", max_cost=wrong)
    change(shop.engine, run, "resume", max_cost=Decimal(500))
    drive(shop, run)
    assert status(shop.engine, run) == "finished"


def test_a_cap_on_cost_needs_prices(shop: Shop) -> None:
    with pytest.raises(InvalidInput, match="needs the prices"):
        started(shop, URL, None, max_cost=Decimal(1))
    for wrong in (Decimal(0), Decimal(10**7)):
        with pytest.raises(InvalidInput, match="above 0"):
            started(shop, URL, Price(Decimal(1), Decimal(1)), max_cost=wrong)


def test_an_endpoint_that_counts_no_tokens_pauses_it(shop: Shop) -> None:
    uncounted = chat("No, leave it.")
    del uncounted["usage"]
    with in_thread(StubEndpoint(default=answer(uncounted, delay=0.02))) as stub:
        run = started(shop, stub.base_url, Price(Decimal(1), Decimal(1)), max_cost=Decimal(5), concurrency=2)
        assert drive(shop, run) is DriveEnd.PAUSED
    reason = report(shop.engine, run)["run"]["status_reason"]
    assert "cannot be kept" in reason
    assert "without a count of tokens" in reason


def test_over_form_and_api(settings: Settings, engine: Engine) -> None:
    person = make_person(engine)
    with browsing(settings, engine) as browser:
        browser.sign_in(person)
        for wrong in ("0", "-1", "much", "1000001"):
            refused = browser.post("/runs/preview", CHOICES | {"max_cost": wrong})
            assert refused.status_code == 422, wrong
            assert "US dollars above 0" in text_of(refused)
        priced = CHOICES | {
            "price_prompt": "1",
            "price_completion": "2",
            "max_cost": "2.5",
            "forget_key": "1",
        }
        shown = text_of(browser.post("/runs/preview", priced))
        assert "pauses at $2.50" in shown
        assert "deleted when the run is over" in shown
        assert browser.post("/runs", CHOICES | {"max_cost": "2.5"}).status_code == 422, "no price, no cap"
    priced_run = RUN | {"endpoint": RUN["endpoint"] | {"price_prompt": 1, "price_completion": 1}}
    with program(settings, engine, token_of(engine, person)) as api:
        identity = api.post("/runs", priced_run | {"max_cost": "2.5"}).json()["run"]["uuid"]
        assert api.get(f"/runs/{identity}").json()["run"]["max_cost_usd"] == 2.5
        assert api.post(f"/runs/{identity}/resume", {"max_cost": 7}).status_code == 200
        assert api.get(f"/runs/{identity}").json()["run"]["max_cost_usd"] == 7
        unpriced = {"endpoint": {"base_url": URL, "model": "of unknown price"}, "max_cost": 1}
        assert "needs the prices" in problem(api.post("/runs", RUN | unpriced), 422)
        problem(api.post("/runs", priced_run | {"max_cost": 0}), 422)


# --- breaker ---


def exchange(error_: str | None) -> Exchange:
    """A call that ended so; of the rest a breaker reads nothing."""
    values = dict.fromkeys(Exchange.__dataclass_fields__)
    return Exchange(**values | {"error": error_})  # type: ignore[arg-type]


def test_only_the_same_failure_in_a_row_trips_it() -> None:
    breaker = Breaker(limit=3)
    for ends in (["auth", "auth", None, "auth", "auth", "network", "auth"], ["auth"]):
        for end in ends:
            breaker.heard("the endpoint", None, exchange(end))
            breaker.heard("the evaluator's endpoint", 7, exchange(None))
        assert breaker.tripped is None
    breaker.heard("the endpoint", None, exchange("auth"))
    assert breaker.tripped is not None
    assert "last 3 calls to the endpoint" in breaker.tripped
    assert "Check the key" in breaker.tripped


def test_an_endpoint_that_only_refuses_pauses_the_run(
    engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "Breaker", lambda: Breaker(limit=8))
    shop = shop_of(engine, settings, per_category=4)
    with in_thread(StubEndpoint(default=error(401, "no such key"))) as stub:
        run = shop.submit(stub.base_url, concurrency=2)
        assert drive(shop, run) is DriveEnd.PAUSED
        asked = len(stub.received)
        assert asked < 40
        found = outcomes(engine, run)
        assert found["endpoint_error"] >= 8
        assert found["pending"] > 0
    assert "all failed in the same way (auth)" in report(engine, run)["run"]["status_reason"]
    with Simulator() as mended, engine.begin() as connection:
        connection.execute(text("UPDATE endpoint SET base_url = :url"), {"url": mended.base_url})
        connection.commit()
        change(engine, run, "resume", retry_errors=True)
        drive(shop, run)
    assert status(engine, run) == "finished"
    assert outcomes(engine, run)["endpoint_error"] == 0


def test_the_usual_limit_is_above_what_is_out_at_once() -> None:
    assert Breaker().limit == breaking.LIMIT >= 100


# --- keys that are not kept ---


def has_key(shop: Shop, run: models.Run) -> bool:
    with open_session(shop.engine) as session:
        return find_run(session, str(run.id)).endpoint.sealed_key is not None


def test_a_key_is_deleted_when_the_run_is_over_and_nobody_needs_it(shop: Shop) -> None:
    run, other = (shop.submit(URL, model="m", selection=ONE, api_key="sk-canary-1") for _ in range(2))
    kept = shop.submit(URL, model="n", selection=ONE, api_key="sk-canary-2")
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE run SET forget_key = true WHERE id = :id"), {"id": run.id})
    tidy_up(shop.engine, shop.settings)
    assert has_key(shop, run), "it goes on"
    change(shop.engine, run, "cancel")
    tidy_up(shop.engine, shop.settings)
    assert has_key(shop, run), "another run of this endpoint still asks"
    change(shop.engine, other, "cancel")
    tidy_up(shop.engine, shop.settings)
    assert not has_key(shop, run)
    assert has_key(shop, kept)
    again = shop.submit(URL, model="m", selection=ONE, api_key="sk-canary-3")
    change(shop.engine, again, "cancel")
    with open_session(shop.engine) as session:
        assert forget_keys(session) == 0, "a key that was given later is not deleted for an earlier run"
        assert control.find_run(session, str(run.id)).forget_key is False


def test_a_run_asks_for_it_at_its_start(shop: Shop, simulator: Simulator) -> None:
    plain = wish(simulator.base_url, price=None, protocol=shop.protocol.name, forget_key=True)
    shop.submit(URL, selection=ONE)
    with open_session(shop.engine) as session:
        asked = replace(plain, target=replace(plain.target, api_key="sk-canary-4"), selection=ONE)
        prepared = prepare(session, asked, Addresses(private_allowed=True))
        run = start(session, local_account(session), shop.settings.secret, prepared)
        session.commit()
        run = find_run(session, str(run.id))
    drive(shop, run)
    assert status(shop.engine, run) == "finished"
    tidy_up(shop.engine, shop.settings)
    assert not has_key(shop, run)


# --- the page that shows it ---


def test_health_is_for_administrators(shop: Shop, settings: Settings) -> None:
    run = shop.submit(URL, model="waiting", selection=ONE)
    with shop.engine.begin() as connection:
        connection.execute(
            text("""
            UPDATE conversation
            SET state = 'endpoint_error', error = 'auth', finished_at = now(), flags = '{truncated}'
            WHERE id = (SELECT min(id) FROM conversation)
            """)
        )
    with browsing(settings, shop.engine) as browser:
        browser.sign_in(make_person(shop.engine))
        assert browser.get("/admin/health").status_code == 403
        browser.post("/logout")
        browser.sign_in(make_person(shop.engine, Role.ADMIN))
        words = text_of(browser.get("/admin/health"))
        assert "1 run under way" in words or "run under way 1" in words
        queue = text_of(browser.get("/admin/runs"))
        assert f"waiting, run {run.id} local" in queue
        assert "waits" in queue
        assert "auth The endpoint refused the key" in words
        assert "truncated 1 1" in words
        assert "PostgreSQL" in words
        assert "none answers" in words
        assert "MiB" in words

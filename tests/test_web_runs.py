"""Runs in the browser: started after a look at their cost, watched, changed, published; each person's own."""

import io
import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from openpyxl import load_workbook
from pydantic import SecretStr
from sqlalchemy import Engine, func, select, text

from app import models
from app.accounts import throttle
from app.db import open_session
from app.endpoints import local_account, opened_key
from app.models import Role
from app.outcomes import Outcome
from app.runs.control import find_run
from app.runs.planning import Selection
from app.runs.words import explain_error, explain_flag
from app.settings import Settings
from app.simulator import Simulator
from tests.board_help import finish, put_on_board, take_off
from tests.driving_help import drive, driving, shop_of, wait_for
from tests.factories import Shop
from tests.web_help import Browser, audit, browsing, make_person, text_of

KEY = "sk-canary-7f3a9b2c"
CHOICES: dict[str, Any] = {
    "benchmark": "curate",
    "protocol": "curate-1",
    "base_url": "https://models.example.com/v1",
    "model": "a-model",
    "provider": "openai",
    "evaluator": "rules",
    "scenarios": ["sc1", "sc2"],
    "variants": ["standard"],
    "categories": ["severe_allergy"],
    "limit": "2",
    "seeds": "1",
    "concurrency": "4",
}


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=1)


@pytest.fixture
def researcher(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as browser:
        browser.sign_in(make_person(engine))
        yield browser


@pytest.fixture
def owner(settings: Settings, engine: Engine) -> Iterator[Browser]:
    """The owner of this machine, whose runs are the command line's."""
    with open_session(engine) as session:
        account = local_account(session)
        account.email = "owner@example.org"
        account.password_hash = make_person(engine, email="x@example.org").password_hash
        session.commit()
    with browsing(settings, engine) as browser:
        browser.sign_in(account)
        yield browser


def give(engine: Engine, run: models.Run, email: str = "researcher@example.org") -> models.Run:
    """Make it this person's run."""
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE run SET account_id = (SELECT id FROM account WHERE email = :email) WHERE id = :run"),
            {"email": email, "run": run.id},
        )
    return run


def passing(*_: object) -> Outcome:
    return Outcome.PASS


def carried(page: str) -> dict[str, list[str]]:
    """The hidden fields of the form that starts the run."""
    form = re.search(r'<form method="post" action="/runs">(.*?)</form>', page, re.S)
    assert form is not None
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r'name="([^"]*)" value="([^"]*)"', form[1]):
        found.setdefault(unescape(name), []).append(unescape(value))
    return found


def stored(engine: Engine) -> dict[str, int]:
    with open_session(engine) as session:
        return {
            table.__tablename__: session.scalars(select(func.count()).select_from(table)).one()
            for table in (
                models.Run,
                models.Conversation,
                models.Endpoint,
                models.Benchmark,
                models.Evaluator,
            )
        }


def only_run(engine: Engine) -> models.Run:
    with open_session(engine) as session:
        (identity,) = session.scalars(select(models.Run.id))
        return find_run(session, str(identity))


# --- who sees what ---


def test_everybody_has_a_list_of_their_own(researcher: Browser, shop: Shop, settings: Settings) -> None:
    assert "No run yet" in text_of(researcher.get("/runs"))
    give(shop.engine, shop.submit("https://models.example.com/v1", model="mine"))
    shop.submit("https://models.example.com/v1", model="theirs")
    words = text_of(researcher.get("/runs"))
    assert "mine" in words
    assert "0 of 20" in words
    assert "theirs" not in words
    with browsing(settings, shop.engine) as browser:
        assert browser.get("/runs").status_code == 401
        browser.sign_in(make_person(shop.engine, Role.ADMIN))
        words = text_of(browser.get("/runs"))
        assert "mine" in words
        assert "theirs" in words
        browser.post("/logout")
        browser.sign_in(make_person(shop.engine, Role.JUDGE))
        assert browser.get("/runs").status_code == 403


def test_another_s_run_is_not_found_whatever_is_asked_of_it(researcher: Browser, shop: Shop) -> None:
    run = finish(shop.engine, shop.submit("https://models.example.com/v1"), passing)
    base = f"/runs/{run.uuid}"
    parts = ("", "/conversations", "/publish", "/withdraw", "/export.jsonl")
    elsewhere = (f"/runs/new?like={run.uuid}", f"/runs?after={run.uuid}", f"/runs/{uuid.uuid4()}")
    for path in (*(base + part for part in parts), *elsewhere):
        assert researcher.get(path).status_code == 404, path
    for action in ("pause", "cancel", "resume", "publish", "keep-back", "withdraw"):
        assert researcher.post(f"{base}/{action}", {"reason": "x"}).status_code == 404, action
    assert audit(shop.engine) == ["person.sign-in"]


def test_a_long_list_comes_in_pages(researcher: Browser, shop: Shop) -> None:
    for number in range(22):
        give(
            shop.engine,
            shop.submit("https://m.example.com/v1", model=f"m{number:02}", selection=Selection(limit=1)),
        )
    first = researcher.get("/runs").text
    older = re.search(r'href="(/runs\?after=[^"]+)"', first)
    assert older is not None
    second = researcher.get(older[1]).text
    shown = [re.findall(r">(m\d\d)</a>", page) for page in (first, second)]
    assert [len(names) for names in shown] == [20, 2]
    assert shown[0] + shown[1] == [f"m{number:02}" for number in reversed(range(22))]
    assert researcher.get("/runs?after=99999999999999999999").status_code == 404


# --- the start ---


def test_the_preview_shows_calls_and_tokens_and_stores_nothing(researcher: Browser, engine: Engine) -> None:
    page = researcher.post("/runs/preview", CHOICES)
    assert page.status_code == 200
    words = text_of(page)
    # 2 cases, sc1 and sc2: 5 turns alone and 6 with one person, the shared beginning asked once.
    assert "conversations 4" in words
    assert "model calls" in words
    assert "evaluator calls 0" in words
    assert set(stored(engine).values()) == {0}


def test_a_run_as_it_was_chosen(researcher: Browser, engine: Engine) -> None:
    chosen = CHOICES | {"name": "My model", "probes": "1", "recall": "1", "seeds": "3", "max_calls": "500"}
    page = researcher.post("/runs/preview", chosen)
    started = researcher.post("/runs", carried(page.text))
    run = only_run(engine)
    assert started.status_code == 303
    assert started.headers["location"] == f"/runs/{run.uuid}"
    assert (run.name, run.status, run.seeds, run.concurrency, run.max_calls) == (
        "My model",
        "running",
        [1, 2, 3],
        4,
        500,
    )
    assert run.selection == {
        "scenarios": ["sc1", "sc2"], "variants": ["standard"], "categories": ["severe_allergy"],
        "limit": 2, "probes": True, "recall": True,
    }  # fmt: skip
    assert run.account.email == "researcher@example.org"
    assert (run.endpoint.model, run.endpoint.private_allowed, run.simulated) == (
        "a-model",
        False,
        False,
    )
    assert stored(engine)["conversation"] == 3 * (4 + 4 + 2)
    assert "begins by itself" in text_of(researcher.follow(started))
    assert audit(engine)[-1] == "run.start"
    again = researcher.get(f"/runs/new?like={run.uuid}").text
    for part in (
        'value="My model"',
        'value="https://models.example.com/v1"',
        'name="probes" value="1" checked',
    ):
        assert part in again


def test_a_form_that_is_sent_twice_makes_one_run(researcher: Browser, engine: Engine) -> None:
    fields = carried(researcher.post("/runs/preview", CHOICES).text)
    places = [researcher.post("/runs", fields).headers["location"] for _ in range(2)]
    assert places[0] == places[1]
    assert stored(engine)["run"] == 1


def test_a_form_without_a_key_starts_a_run_too(researcher: Browser, engine: Engine) -> None:
    for key in ({}, {"form_key": "none"}):
        assert researcher.post("/runs", CHOICES | key).status_code == 303
    assert stored(engine)["run"] == 2


def test_an_evaluator_that_is_a_model(researcher: Browser, engine: Engine) -> None:
    chosen = CHOICES | {
        "evaluator": "model", "evaluator_base_url": "https://judge.example.com/v1/",
        "evaluator_model": "judge-1", "evaluator_provider": "anthropic", "evaluator_api_key": KEY,
    }  # fmt: skip
    page = researcher.post("/runs/preview", chosen)
    assert "evaluator calls 4" in text_of(page)
    assert KEY not in page.text
    researcher.post("/runs", carried(page.text))
    run = only_run(engine)
    assert (run.evaluator.kind, run.evaluator.name) == ("model", "judge-1")
    with open_session(engine) as session:
        endpoint = session.get_one(models.Endpoint, run.evaluator.endpoint_id)
        assert (endpoint.base_url, endpoint.provider) == ("https://judge.example.com/v1", "anthropic")
    chosen |= {"evaluator_base_url": CHOICES["base_url"], "evaluator_model": CHOICES["model"]}
    assert "rate its own answers" in text_of(researcher.post("/runs/preview", chosen))
    half = CHOICES | {"evaluator": "model", "evaluator_model": "judge-1"}
    refused = researcher.post("/runs/preview", half)
    assert refused.status_code == 422
    assert "Evaluator&#39;s base URL: fill this in." in refused.text


def test_an_evaluator_that_has_rated_is_there_to_take_with_its_key_and_price(
    researcher: Browser, engine: Engine, settings: Settings
) -> None:
    chosen = CHOICES | {
        "evaluator": "model", "evaluator_base_url": "https://judge.example.com/v1",
        "evaluator_model": "judge-1", "evaluator_provider": "anthropic", "evaluator_api_key": KEY,
        "evaluator_price_prompt": "3", "evaluator_price_completion": "15",
    }  # fmt: skip
    researcher.post("/runs", carried(researcher.post("/runs/preview", chosen).text))
    first = only_run(engine)
    page = researcher.get("/runs/new").text
    (known,) = re.findall(r'name="evaluator" value="([0-9a-f-]{36})"', page)
    assert "judge-1 at judge.example.com, as before" in page
    again = researcher.get(f"/runs/new?like={first.uuid}").text
    assert f'name="evaluator" value="{known}" checked' in again
    preview = researcher.post(
        "/runs/preview", CHOICES | {"evaluator": known, "price_prompt": "0", "price_completion": "0"}
    )
    assert "evaluator calls 4" in text_of(preview)
    assert "cost, at most about $0.0" in text_of(preview)
    researcher.post("/runs", carried(preview.text))
    with open_session(engine) as session:
        runs = session.scalars(select(models.Run).order_by(models.Run.id)).all()
        assert [run.evaluator_id for run in runs] == [first.evaluator_id] * 2
        endpoint = session.scalars(select(models.Endpoint).filter_by(uuid=known)).one()
        assert opened_key(first.account, endpoint, settings.secret) == KEY
        prices = session.scalars(select(models.RunEvaluator.price_completion))
        assert [str(price) for price in prices] == ["15", "15"]
    with browsing(settings, engine) as browser:
        browser.sign_in(make_person(engine, Role.ADMIN, email="other@example.org"))
        assert known not in browser.get("/runs/new").text
        theirs = browser.post("/runs/preview", CHOICES | {"evaluator": known})
        assert theirs.status_code == 422, "another's endpoint is nobody's choice"
        like = browser.get(f"/runs/new?like={first.uuid}").text
        assert 'value="https://judge.example.com/v1"' in like
        assert 'name="evaluator" value="model" checked' in like


def test_a_run_can_be_asked_to_go_on_the_board_by_itself(researcher: Browser, engine: Engine) -> None:
    preview = researcher.post("/runs/preview", CHOICES | {"publish": "1"})
    assert "Board published when finished" in text_of(preview)
    assert "Board only if you publish it" in text_of(researcher.post("/runs/preview", CHOICES))
    researcher.post("/runs", carried(preview.text))
    run = only_run(engine)
    assert run.publish_wanted
    path = f"/runs/{run.uuid}"
    assert "It goes on the board as soon as it is finished." in text_of(researcher.get(path))
    kept = researcher.follow(researcher.post(f"{path}/keep-back"))
    assert "will not be published by itself" in text_of(kept)
    assert "It goes on the board as soon" not in text_of(kept)
    assert not only_run(engine).publish_wanted
    assert audit(engine)[-1] == "run.keep_back"
    with engine.begin() as connection:
        connection.execute(text("UPDATE run SET publish_refusal = 'It is <b>simulated</b>.'"))
    assert "Not put on the board: It is <b>simulated</b>." in text_of(researcher.get(path))


def test_a_price_is_estimated_before_and_counted_while_it_runs(researcher: Browser, engine: Engine) -> None:
    chosen = CHOICES | {"price_prompt": " 0.15", "price_completion": "0.60"}
    preview = researcher.post("/runs/preview", chosen)
    words = text_of(preview)
    assert re.search(r"cost, at most about \$0\.0*\d{2}\b", words)
    assert "Price 0.15 in, 0.6 out, US dollars per million tokens" in words
    researcher.post("/runs", carried(preview.text))
    run = only_run(engine)
    assert (str(run.price_prompt), str(run.price_completion)) == ("0.15", "0.6")
    shown = text_of(researcher.get(f"/runs/{run.uuid}"))
    assert "0 tokens in, 0 out · $0.00" in shown
    assert "Price 0.15 in, 0.6 out" in shown
    again = researcher.get(f"/runs/new?like={run.uuid}").text
    assert re.search(r'name="price_prompt"[^>]* value="0.15"', again)
    with engine.begin() as connection:
        connection.execute(text("UPDATE run SET price_completion = NULL"))
        connection.execute(
            text("""
            INSERT INTO turn (conversation_id, position, copied, tries, prompt_tokens, completion_tokens,
                              user_text, assistant_text, state, request_body, attempts)
            SELECT min(id), 0, false, 1, 1000, 10, '', '', 'empty', '{}', '[]' FROM conversation
            """)
        )
    assert "cost not known: no price is known for the completion tokens of the endpoint" in text_of(
        researcher.get(f"/runs/{run.uuid}")
    )
    left_out = researcher.post("/runs/preview", CHOICES)
    assert "cost, at most" not in text_of(left_out)
    assert "Price not given" in text_of(left_out)


# --- the key ---


def test_a_key_is_sealed_and_shown_on_no_page(
    researcher: Browser, engine: Engine, settings: Settings
) -> None:
    preview = researcher.post("/runs/preview", CHOICES | {"api_key": KEY})
    fields = carried(preview.text)
    changed = researcher.post("/runs/new", fields)
    refused = researcher.post("/runs/preview", fields | {"limit": ["0"]})
    assert refused.status_code == 422
    started = researcher.post("/runs", fields)
    run = only_run(engine)
    later = ["/runs", f"/runs/{run.uuid}", f"/runs/new?like={run.uuid}", f"/runs/{run.uuid}/export.jsonl"]
    pages = [preview, changed, refused, researcher.follow(started), *map(researcher.get, later)]
    assert [page.status_code for page in pages] == [200, 200, 422, 200, 200, 200, 200, 200]
    assert all(KEY not in page.text for page in pages)
    assert opened_key(run.account, run.endpoint, settings.secret) == KEY
    assert run.endpoint.sealed_key is not None
    assert KEY.encode() not in run.endpoint.sealed_key
    for page in (changed, refused):
        assert "A key is there already" in text_of(page)


def test_a_sealed_key_opens_for_its_person_and_address_only(
    researcher: Browser, engine: Engine, settings: Settings
) -> None:
    fields = carried(researcher.post("/runs/preview", CHOICES | {"api_key": KEY}).text)
    moved = researcher.post("/runs", fields | {"base_url": ["https://elsewhere.example.com/v1"]})
    assert moved.status_code == 422
    assert "it was given for another address" in text_of(moved)
    with browsing(settings, engine) as other:
        other.sign_in(make_person(engine, email="other@example.org"))
        assert other.post("/runs", fields).status_code == 422
    for nonsense in ("x", "AAAA", "é", "A" * 5000):
        assert researcher.post("/runs", fields | {"api_key_sealed": [nonsense]}).status_code == 422
    assert stored(engine)["run"] == 0


def test_a_stored_key_goes_along_when_an_endpoint_is_asked_again(
    researcher: Browser, engine: Engine, settings: Settings
) -> None:
    researcher.post("/runs", carried(researcher.post("/runs/preview", CHOICES | {"api_key": KEY}).text))
    run = only_run(engine)
    again = {"endpoint": str(run.endpoint.uuid), "name": "Second name"}
    preview = researcher.post("/runs/preview", CHOICES | again)
    assert "API key given" in text_of(preview)
    researcher.post("/runs", carried(preview.text))
    with open_session(engine) as session:
        second = session.scalars(select(models.Endpoint).filter_by(name="Second name")).one()
        assert opened_key(run.account, second, settings.secret) == KEY
    elsewhere = CHOICES | again | {"base_url": "https://elsewhere.example.com/v1"}
    assert "API key none" in text_of(researcher.post("/runs/preview", elsewhere))
    assert "a-model" in researcher.get("/runs/new").text
    assert researcher.get(f"/runs/new?endpoint={run.endpoint.uuid}").status_code == 200
    assert researcher.get(f"/runs/new?endpoint={uuid.uuid4()}").status_code == 404
    assert researcher.get("/runs/new?endpoint=7").status_code == 404


# --- what is refused ---


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"name": "a" * 81}, "at most 80 characters"),
    ({"api_key": "k" * 10_001}, "longer than 4096 characters"),
    ({"api_key": "two words"}, "line break, a space"),
    ({"model": ""}, "Model: fill this in."),
    ({"model": "\u200b"}, "Model: fill this in."),
    ({"base_url": "ftp://models.example.com"}, "only https addresses"),
    ({"base_url": "https://user:pass@models.example.com/v1"}, "user name or password"),
    ({"base_url": "https://models.example.com/v1?key=1"}, "query or fragment"),
    ({"base_url": "https://" + "a" * 3000}, "at most 2,000 characters"),
    ({"provider": "clippy"}, "choose one of openai"),
    ({"price_prompt": "free"}, "is no price: write US dollars per million tokens"),
    ({"price_completion": "0.1234567"}, "at most 6 decimal places"),
    ({"evaluator": "coin"}, "choose one of rules, model"),
    ({"scenarios": []}, "choose at least 1"),
    ({"variants": [], "categories": []}, "choose at least 1"),
    ({"scenarios": ["sc9"]}, "choose among"),
    ({"variants": ["together"], "scenarios": ["sc2"]}, "together belongs to sc1"),
    ({"categories": ["severe_boredom"]}, "choose among"),
    ({"limit": "0"}, "a whole number from 1"),
    ({"limit": "99999999999999999999"}, "a whole number from 1"),
    ({"seeds": "101"}, "a whole number from 1 to 100"),
    ({"seeds": "-1"}, "a whole number from 1 to 100"),
    ({"concurrency": "513"}, "a whole number from 1 to 512"),
    ({"max_calls": "1e9"}, "a whole number from 1"),
    ({"benchmark": "no-such"}, "There is no benchmark 'no-such'"),
    ({"benchmark": "curate@99999999999999999999"}, "no benchmark"),
    ({"protocol": "no-such"}, "There is no protocol 'no-such'"),
    ({"name": "gpt-4o\u200b"}, "The name holds characters that cannot be seen"),
    ({"name": "\u202eo4-tpg"}, "The name holds characters that cannot be seen"),
]  # fmt: skip


def test_what_cannot_be_used_is_said_beside_the_field(researcher: Browser, engine: Engine) -> None:
    for change, says in REFUSED:
        page = researcher.post("/runs/preview", CHOICES | change)
        assert page.status_code in (404, 422), change
        assert says in text_of(page)
        assert "<form" in page.text
        assert "k" * 100 not in page.text
    assert researcher.post("/runs", CHOICES | {"limit": "0", "api_key": KEY}).status_code == 422
    assert researcher.post("/runs", {}).status_code == 422
    assert researcher.post("/runs/new", {}).status_code == 200
    assert set(stored(engine).values()) == {0}


def test_looks_at_the_cost_are_limited(researcher: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "PREVIEW", replace(throttle.PREVIEW, size=3))
    codes = [researcher.post("/runs/preview", CHOICES).status_code for _ in range(4)]
    assert codes == [200, 200, 200, 429]


def test_a_name_that_only_looks_like_one_on_the_board_is_not_published(
    researcher: Browser, shop: Shop
) -> None:
    honest = finish(shop.engine, shop.submit("https://models.example.com/v1", model="GPT-4o"), passing)
    copy = give(shop.engine, shop.submit("https://models.example.com/v1", model="gpt-4о"))
    again = give(shop.engine, shop.submit("https://models.example.com/v2", model="GPT-4o"))
    for run in (copy, again):
        finish(shop.engine, run, passing)
    assert "looks like this name" not in text_of(
        researcher.post("/runs/preview", CHOICES | {"name": "ＧPT‑4o"})
    )
    put_on_board(shop.engine, honest)
    warned = text_of(researcher.post("/runs/preview", CHOICES | {"name": "ＧPT‑4o"}))
    assert "The board has a row 'GPT-4o', which looks like this name" in warned
    refused = researcher.post(f"/runs/{copy.uuid}/publish")
    assert refused.status_code == 409
    assert "The board has a row 'GPT-4o', which looks like 'gpt-4о' but is another name" in text_of(refused)
    assert researcher.post(f"/runs/{again.uuid}/publish").status_code == 303, (
        "the very same name may be there"
    )
    take_off(shop.engine, honest, "It was wrong.")
    take_off(shop.engine, again, "It was wrong.")
    assert researcher.post(f"/runs/{copy.uuid}/publish").status_code == 303


def test_private_addresses_are_for_the_owner_of_the_machine(
    researcher: Browser, owner: Browser, settings: Settings, engine: Engine
) -> None:
    near = CHOICES | {"base_url": "http://127.0.0.1:9/v1"}
    refused = researcher.post("/runs/preview", near)
    assert refused.status_code == 422
    assert "bare IP address" in text_of(refused)
    assert owner.post("/runs/preview", near).status_code == 200
    own = owner.post("/runs/preview", CHOICES | {"base_url": settings.base_url + "/v1"})
    assert own.status_code == 422
    assert "a site cannot be its own endpoint" in text_of(own)
    listed = settings.model_copy(update={"endpoint_allowlist": "127.0.0.1:9"})
    with browsing(listed, engine) as browser:
        browser.sign_in(make_person(engine, email="allowed@example.org"))
        assert browser.post("/runs/preview", near).status_code == 200


def test_the_owner_of_a_served_site_has_no_private_addresses(engine: Engine, settings: Settings) -> None:
    served = settings.model_copy(
        update={"base_url": "https://board.example.org", "secret_key": SecretStr("s" * 40)}
    )
    admin = make_person(engine, Role.ADMIN)
    with engine.begin() as connection:
        connection.execute(text("UPDATE account SET is_owner = true WHERE id = :id"), {"id": admin.id})
    with browsing(served, engine) as browser:
        browser.sign_in(admin)
        page = browser.post("/runs/preview", CHOICES | {"base_url": "http://127.0.0.1:9/v1"})
    assert page.status_code == 422


def test_a_name_with_foreign_letters_is_to_be_confirmed(researcher: Browser) -> None:
    page = researcher.post("/runs/preview", CHOICES | {"base_url": "https://mödels.example.com/v1"})
    assert page.status_code == 200
    assert "make sure that it is the right one" in text_of(page)


def test_judges_and_visitors_start_nothing(settings: Settings, engine: Engine) -> None:
    with browsing(settings, engine) as browser:
        for path in ("/runs", "/runs/preview", "/runs/new"):
            assert browser.post(path, CHOICES).status_code == 401
        browser.sign_in(make_person(engine, Role.JUDGE))
        for path in ("/runs", "/runs/preview", "/runs/new"):
            assert browser.post(path, CHOICES).status_code == 403
    assert stored(engine)["run"] == 0


# --- watching ---


def test_a_run_from_waiting_to_its_report(owner: Browser, shop: Shop) -> None:
    with Simulator(latency=0.05) as simulator:
        run = shop.submit(simulator.base_url, concurrency=4)
        path = f"/runs/{run.uuid}"
        waiting = owner.get(path)
        assert "Waiting for a worker" in text_of(waiting)
        assert 'hx-trigger="every 2s"' in waiting.text
        with shop.engine.begin() as connection:
            connection.execute(text("UPDATE run SET created_at = created_at - interval '2 minutes'"))
        assert "none is running" in text_of(owner.get(path, hx_request="true"))
        with driving(shop, run):
            wait_for(lambda: "Running." in text_of(owner.get(path, hx_request="true")))
            wait_for(lambda: "about" in text_of(owner.get(path, hx_request="true")))
            part = owner.get(path, hx_request="true")
            assert part.headers["cache-control"] == "no-store"
            assert part.text.lstrip().startswith('<div id="live"')
            assert re.search(r"\d+ of 20 conversations · [\d.]+/(s|min) · about \d+ \w+ left", text_of(part))
    wait_for(lambda: "Finished" in text_of(owner.get(path)))
    last = owner.get(path, hx_request="true")
    assert last.headers["hx-refresh"] == "true"
    assert "hx-trigger" not in last.text
    page = text_of(owner.get(path))
    assert "20 of 20 conversations" in page
    assert "Report" in page
    with open_session(shop.engine) as session:
        found = find_run(session, str(run.id))
        assert "Coverage 100.0 % of 20 were answered" in page
        assert f"{found.benchmark.name} v1" in page


def test_the_conversations_answered_last_are_shown_while_it_runs(
    owner: Browser, shop: Shop, settings: Settings
) -> None:
    run = shop.submit("https://models.example.com/v1")
    path = f"/runs/{run.uuid}"
    assert "The conversations that were answered last stand here" in text_of(owner.get(path))
    assert listed_last(owner.get(path).text) == []
    end = text("""
    UPDATE conversation SET state = 'answered', turns_done = turns_planned, response = '<b>No</b>, ' || k.key,
           finished_at = now() + make_interval(secs => conversation.id)
    FROM "case" k WHERE k.id = case_id AND run_id = :run AND scenario IN ('sc1', 'sc2')
    RETURNING k.key, scenario, conversation.id
    """)
    with shop.engine.begin() as connection:
        ended = sorted(connection.execute(end, {"run": run.id}), key=lambda row: -row.id)
        connection.execute(
            text("UPDATE \"case\" SET split = 'private' WHERE key = :key"), {"key": ended[0].key}
        )
        rate = text("""
        INSERT INTO verdict (conversation_id, evaluator_id, state, rating, explanation, mode, calls, retries)
        VALUES (:id, :evaluator, 'rated', 2, '', 'rules', 0, 0)
        """)
        connection.execute(rate, {"id": ended[1].id, "evaluator": run.evaluator_id})
    page = owner.get(path)
    assert listed_last(page.text) == [row.key for row in ended[:6]]
    assert listed_last(owner.get(path, hx_request="true").text) == [row.key for row in ended[:6]]
    lines = re.findall(r"<li>.*?</li>", page.text.partition('class="slots-6"')[2], re.S)
    assert ["pending" in lines[0], "pass" in lines[1]] == [True, True]
    assert "&lt;b&gt;No&lt;/b&gt;" in lines[0]
    with shop.engine.begin() as connection:
        connection.execute(text("DELETE FROM verdict"))
    put_on_board(shop.engine, finish(shop.engine, run, passing))
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE run SET status = 'running'"))
    with browsing(settings, shop.engine) as anybody:
        assert ended[0].key not in listed_last(anybody.get(path).text), "it is held back"
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE run SET status = 'finished'"))
    assert listed_last(owner.get(path).text) == []


def listed_last(page: str) -> list[str]:
    return re.findall(r'<a id="latest-[^"]*" href="/conversations/[^"]*">([^<]*)</a>', page)


def test_errors_are_shown_by_class_with_what_to_do(owner: Browser, shop: Shop, settings: Settings) -> None:
    with Simulator(faults={"bad_json": 1.0}) as simulator:
        run = shop.submit(simulator.base_url, selection=Selection(scenarios=("sc1",)))
        drive(shop, run)
    page = text_of(owner.get(f"/runs/{run.uuid}"))
    assert f"4 × bad json : {explain_error('bad_json')}" in page
    assert "For example:" in page
    assert "Retry 4 errors" in page
    put_on_board(shop.engine, run)
    with browsing(settings, shop.engine) as anybody:
        page = text_of(anybody.get(f"/runs/{run.uuid}"))
        assert explain_error("bad_json") in page
        assert "For example" not in page
        assert "Retry" not in page
        assert simulator.base_url not in page


def test_every_word_has_a_sentence() -> None:
    assert explain_error("rate_limited").startswith("The endpoint kept answering")
    assert explain_error("refusal") == "The evaluator refused to rate."
    assert explain_flag("evaluator_truncated").startswith("Of the evaluator's reply: ")
    assert explain_flag("no_such_flag") == explain_error("no_such_error")


# --- changing ---


def test_pause_resume_cancel_resume(researcher: Browser, shop: Shop) -> None:
    run = give(shop.engine, shop.submit("https://models.example.com/v1"))
    path = f"/runs/{run.uuid}"
    for action, status in (
        ("pause", "paused"),
        ("resume", "running"),
        ("cancel", "cancelled"),
        ("resume", "running"),
    ):
        done = researcher.post(f"{path}/{action}", {})
        assert (done.status_code, done.headers["location"]) == (303, path)
        with open_session(shop.engine) as session:
            assert find_run(session, str(run.id)).status == status
        researcher.follow(done)
    finish(shop.engine, run, passing)
    for action in ("pause", "cancel"):
        assert researcher.post(f"{path}/{action}", {}).status_code == 409
    assert "nothing to go on with" in text_of(researcher.follow(researcher.post(f"{path}/resume", {})))
    assert audit(shop.engine)[1:] == ["run.pause", "run.resume", "run.cancel", "run.resume", "run.resume"]


def test_a_run_that_used_up_its_cap_goes_on_with_a_higher_one(owner: Browser, shop: Shop) -> None:
    with Simulator() as simulator:
        run = shop.submit(simulator.base_url, max_calls=5, selection=Selection(scenarios=("sc1",)))
        drive(shop, run)
        page = owner.get(f"/runs/{run.uuid}")
        assert "The cap on calls is used up" in text_of(page)
        assert 'name="max_calls"' in page.text
        for cap, says in (
            ("5", "give a cap above that"),
            ("x", "a whole number from 1"),
            ("9" * 30, "a whole number"),
        ):
            refused = owner.post(f"/runs/{run.uuid}/resume", {"max_calls": cap})
            assert refused.status_code == 422
            assert says in text_of(refused)
        assert owner.post(f"/runs/{run.uuid}/resume", {"max_calls": "100"}).status_code == 303
        drive(shop, run)
    assert "4 of 4 conversations" in text_of(owner.get(f"/runs/{run.uuid}"))


def test_what_failed_is_retried(owner: Browser, shop: Shop) -> None:
    with Simulator(faults={"bad_json": 1.0}) as simulator:
        run = shop.submit(simulator.base_url, selection=Selection(scenarios=("sc1",)))
        drive(shop, run)
        simulator.configure(faults={})
        owner.post(f"/runs/{run.uuid}/resume", {"retry_errors": "1"})
        drive(shop, run)
    page = text_of(owner.get(f"/runs/{run.uuid}"))
    assert "4 of 4 conversations" in page
    assert "What went wrong" not in page


# --- the board, and taking away ---


def test_publish_after_a_question_and_withdraw_with_a_reason(
    researcher: Browser, shop: Shop, settings: Settings
) -> None:
    run = give(shop.engine, shop.submit("https://models.example.com/v1", model="keen"))
    path = f"/runs/{run.uuid}"
    early = researcher.post(f"{path}/publish", {})
    assert early.status_code == 409
    assert "only a finished run can be published" in text_of(early)
    finish(shop.engine, run, passing)
    asked = text_of(researcher.get(f"{path}/publish"))
    assert "Everybody can then read" in asked
    with browsing(settings, shop.engine) as anybody:
        assert anybody.get(path).status_code == 404
        assert "keen" not in anybody.get("/").text
        published = researcher.post(f"{path}/publish", {})
        assert "The run is on the board" in text_of(researcher.follow(published))
        assert "keen" in text_of(anybody.get("/"))
        page = anybody.get(path)
        assert page.status_code == 200
        assert "models.example.com" not in page.text
        assert 'action="/runs' not in page.text
        empty = researcher.post(f"{path}/withdraw", {"reason": " "})
        assert empty.status_code == 422
        assert "Reason: fill this in." in text_of(empty)
        assert researcher.post(f"{path}/withdraw", {"reason": "x" * 2001}).status_code == 422
        withdrawn = researcher.post(f"{path}/withdraw", {"reason": "Asked the wrong model."})
        assert "off the board" in text_of(researcher.follow(withdrawn))
        assert "Asked the wrong model." in text_of(anybody.get("/"))
        assert anybody.get(path).status_code == 404
    assert researcher.post(f"{path}/publish", {}).status_code == 409
    assert audit(shop.engine)[-2:] == ["run.publish", "run.withdraw"]


def test_a_run_is_taken_away_in_three_forms(owner: Browser, shop: Shop) -> None:
    run = finish(shop.engine, shop.submit("https://models.example.com/v1"), passing)
    path = f"/runs/{run.uuid}/export"
    lines = owner.get(f"{path}.jsonl")
    assert lines.headers["content-disposition"] == f'attachment; filename="run-{run.id}.jsonl"'
    records = [json.loads(line) for line in lines.text.splitlines()]
    assert len(records) == 20
    assert {record["outcome"] for record in records} == {"pass"}
    table = owner.get(f"{path}.csv")
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    assert len(table.text.splitlines()) == 21
    book = owner.get(f"{path}.xlsx")
    sheet = load_workbook(io.BytesIO(book.content)).active
    assert sheet is not None
    assert sheet.max_row == 21
    assert owner.get(f"{path}.pdf").status_code == 404
    assert owner.get(f"{path}.jsonl?evaluator=nobody").status_code == 404


def test_of_a_published_run_everybody_gets_the_public_cases_and_no_error_s_words(
    shop: Shop, settings: Settings, owner: Browser
) -> None:
    run = finish(shop.engine, shop.submit("https://models.example.com/v1"), passing)
    put_on_board(shop.engine, run)
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE \"case\" SET split = 'private' WHERE key LIKE '%allergy%'"))
        connection.execute(text("UPDATE conversation SET error_message = 'organisation 7 has no credit'"))
    with browsing(settings, shop.engine) as anybody:
        records = [
            json.loads(line) for line in anybody.get(f"/runs/{run.uuid}/export.jsonl").text.splitlines()
        ]
        assert len(records) == 15
        assert not any("allergy" in record["case"] or record["error_message"] for record in records)
        assert anybody.get(f"/runs/{run.uuid}/export.xlsx").status_code == 401
    assert len(owner.get(f"/runs/{run.uuid}/export.jsonl").text.splitlines()) == 20

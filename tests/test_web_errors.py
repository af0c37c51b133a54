"""Errors as their reader needs them: a page, a fragment, problem+json; never a traceback, always an id."""

import json
import logging
import re
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from httpx2 import Response
from sqlalchemy import Engine, text
from starlette.requests import Request
from starlette.responses import Response as Answer

from app.accounts.errors import NotAllowed
from app.db import make_engine
from app.errors import InvalidInput
from app.logs import JsonLines, about_run
from app.main import create_app
from app.settings import Settings
from app.web.context import SignedIn, Visitor
from app.web.observe import masked
from tests.web_help import Browser, browsing, make_person, text_of

SECRET = "hunter2 in a traceback"
CANARY = "sk-canary-0123456789"


def faulty(settings: Settings, engine: Engine) -> FastAPI:
    """The site with routes that go wrong in every way."""
    app = create_app(settings, engine)

    def breaks(web: Visitor) -> Answer:
        raise RuntimeError(SECRET)

    def refuses(web: Visitor) -> Answer:
        raise InvalidInput("Seeds are whole numbers.", details=["seed 'a'", "seed '<b>'"])

    def forbids(web: Visitor) -> Answer:
        raise NotAllowed("Not yours.")

    def wrong_query(web: Visitor) -> Answer:
        web.session.execute(text("SELECT broken FROM nowhere"))
        return web.redirect("/")

    def slow_query(web: Visitor) -> Answer:
        web.session.execute(text("SET statement_timeout = 50"))
        web.session.execute(text("SELECT pg_sleep(5)"))
        return web.redirect("/")

    async def breaks_late(request: Request) -> Answer:
        raise RuntimeError(SECRET)

    def needs_somebody(web: SignedIn) -> Answer:
        return web.redirect("/")

    def breaks_template(web: Visitor) -> Answer:
        return web.page("error.html", title="x")

    routes = (breaks, refuses, forbids, wrong_query, slow_query, breaks_late, needs_somebody, breaks_template)
    for route in routes:
        app.add_api_route(f"/{route.__name__}", route, methods=["GET", "POST"], response_model=None)
    return app


@pytest.fixture
def browser(settings: Settings, engine: Engine) -> Iterator[Browser]:
    browser = Browser(faulty(settings, engine))
    with browser.client:
        yield browser


EXPECTED = {
    "/breaks": 500,
    "/breaks_late": 500,
    "/breaks_template": 500,
    "/wrong_query": 500,
    "/slow_query": 503,
    "/refuses": 422,
    "/forbids": 403,
    "/nowhere": 404,
    "/needs_somebody": 401,
}


def test_a_person_gets_a_page(browser: Browser) -> None:
    for path, status in EXPECTED.items():
        response = browser.get(path)
        assert response.status_code == status, path
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        assert response.headers["cache-control"] == "no-store"
        assert response.text.startswith("<!doctype html>")
        assert "<h1>" in response.text
        check_discreet(response)


def check_discreet(response: Response) -> None:
    for word in ("Traceback", "hunter2", "RuntimeError", "SELECT", "psycopg", "sqlalchemy", ".py"):
        assert word not in response.text


def test_the_page_names_the_request(browser: Browser) -> None:
    response = browser.get("/breaks")
    assert f"Reference: {response.headers['x-request-id']}" in text_of(response)
    assert browser.get("/breaks").headers["x-request-id"] != response.headers["x-request-id"]


def test_a_claimed_request_id_is_not_taken(browser: Browser) -> None:
    response = browser.get("/breaks", x_request_id="<b>mine</b>")
    assert re.fullmatch("[0-9a-f]{16}", response.headers["x-request-id"])


def test_details_are_escaped(browser: Browser) -> None:
    page = browser.get("/refuses")
    assert "seed '<b>'" in text_of(page)
    assert "<b>" not in page.text


def test_htmx_gets_a_fragment_for_the_notices(browser: Browser) -> None:
    for path, status in EXPECTED.items():
        response = browser.get(path, hx_request="true")
        assert response.status_code == status, path
        check_discreet(response)
        if status == 401:
            continue
        assert "<html" not in response.text
        assert 'class="notice fault"' in response.text
        assert response.headers["hx-retarget"] == "#notices"
        assert response.headers["cache-control"] == "no-store"


def test_an_ended_session_under_htmx_leads_to_the_sign_in_page(browser: Browser) -> None:
    current = "http://127.0.0.1:8000/runs/7?tab=live"
    response = browser.get("/needs_somebody", hx_request="true", hx_current_url=current)
    assert response.status_code == 401
    assert response.headers["hx-redirect"] == "/login?next=%2Fruns%2F7%3Ftab%3Dlive"
    evil = browser.get("/needs_somebody", hx_request="true", hx_current_url="https://x//evil.example/")
    assert evil.headers["hx-redirect"] == "/login?next=%2F"


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/problem+json", ""])
def test_a_program_gets_problem_json(browser: Browser, accept: str) -> None:
    for path, status in EXPECTED.items():
        response = browser.get(path, accept=accept)
        assert response.status_code == status, path
        assert response.headers["content-type"] == "application/problem+json"
        problem = response.json()
        assert problem["status"] == status
        assert problem["title"]
        assert problem["detail"]
        assert problem["request_id"] == response.headers["x-request-id"]
        check_discreet(response)
    assert browser.get("/refuses", accept=accept).json()["details"] == ["seed 'a'", "seed '<b>'"]


def test_a_wrong_method_says_so(browser: Browser) -> None:
    assert browser.post("/healthz").status_code == 405
    assert browser.get("/logout").status_code == 405


def test_an_error_page_knows_who_is_signed_in(browser: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine, name="Ada Lovelace"))
    for path in ("/nowhere", "/refuses", "/forbids"):
        assert "Ada Lovelace" in text_of(browser.get(path)), path


def test_a_post_after_the_session_ended_says_that_nothing_was_stored(browser: Browser) -> None:
    browser.client.cookies.set("curate-8000-session", "x" * 43)
    response = browser.post("/needs_somebody", {"name": "x"})
    assert response.status_code == 401
    assert "what you sent was not stored" in text_of(response)
    assert 'name="next" value="/"' in response.text, "a POST is not repeated as a GET"


def test_without_a_database_the_site_says_so(settings: Settings) -> None:
    away = make_engine("postgresql+psycopg://nobody@127.0.0.1:1/none")
    with browsing(settings, away) as browser:
        assert browser.get("/login").status_code == 200, "it needs nobody"
        browser.client.cookies.set("curate-8000-session", "x" * 43)
        for path in ("/account", "/login"):
            response = browser.get(path)
            assert response.status_code == 503
            assert "database does not answer" in text_of(response)
            check_discreet(response)
        assert browser.get("/nowhere").status_code == 404
        assert browser.post("/login", {"email": "a@example.org", "password": "x"}).status_code == 503
        assert browser.get("/healthz").status_code == 200
        ready = browser.get("/readyz")
        assert ready.status_code == 503
        assert ready.json()["parts"]["database"] is False
        assert ready.json()["parts"]["broker"] is True
    away.dispose()


# --- the log ---


def test_each_request_is_one_line_with_its_id(browser: Browser, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "curate.web")
    caplog.handler.setFormatter(JsonLines())
    response = browser.get("/login?token=" + CANARY, authorization=CANARY, cookie=f"a={CANARY}")
    lines = [json.loads(line) for line in caplog.text.splitlines() if "curate.web" in line]
    assert len(lines) == 1
    line = lines[0]
    assert line["request_id"] == response.headers["x-request-id"]
    assert (line["method"], line["path"], line["route"], line["status"]) == ("GET", "/login", "/login", 200)
    assert line["peer"] == "203.0.113.5"
    assert line["ms"] >= 0
    assert CANARY not in caplog.text


def test_a_traceback_is_in_the_log_under_the_same_id(
    browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.setFormatter(JsonLines())
    response = browser.get("/breaks")
    lines = [json.loads(line) for line in caplog.text.splitlines()]
    found = [line for line in lines if "traceback" in line]
    assert len(found) == 1
    assert SECRET in found[0]["traceback"]
    assert found[0]["request_id"] == response.headers["x-request-id"]


def test_keys_in_addresses_and_passwords_reach_no_log(
    browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.handler.setFormatter(JsonLines())
    for kind in ("invite", "reset", "signin"):
        browser.get(f"/{kind}/{CANARY}")
        browser.post(f"/{kind}/{CANARY}", {"password": CANARY, "password_again": CANARY, "name": CANARY})
    browser.post("/login", {"email": "a@example.org", "password": CANARY})
    ours = [line for line in caplog.text.splitlines() if '"curate.web"' in line]
    assert len(ours) == 7
    assert CANARY not in "\n".join(ours)
    assert masked("/invite/abc") == "/invite/…"
    assert masked("/invites") == "/invites"


def test_the_run_that_is_driven_stands_in_each_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.setFormatter(JsonLines())
    with about_run(17):
        logging.getLogger("workers.driver").warning("The database is away.")
    logging.getLogger("workers.driver").warning("It is back.")
    lines = [json.loads(line) for line in caplog.text.splitlines()]
    assert [line.get("run_id") for line in lines] == [17, None]
    assert "request_id" not in lines[0]


def test_who_is_signed_in_stands_in_the_log(
    browser: Browser, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    person = make_person(engine)
    browser.sign_in(person)
    caplog.set_level(logging.INFO, "curate.web")
    caplog.handler.setFormatter(JsonLines())
    browser.get("/account")
    assert json.loads(caplog.text.splitlines()[-1])["account"] == person.id

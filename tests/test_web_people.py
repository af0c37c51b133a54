"""Signing in and out, sessions, the own account."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from argon2 import Parameters, PasswordHasher, extract_parameters
from httpx2 import Response
from sqlalchemy import Engine, select, update

from app import models
from app.accounts import people, sessions
from app.accounts.tokens import token_hash
from app.db import open_session
from app.models import Role
from app.settings import Settings
from tests.web_help import PASSWORD, Browser, audit, browsing, is_in, make_person, text_of

NEW = "another fine long password"


@pytest.fixture
def browser(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as made:
        yield made


@pytest.fixture
def another(settings: Settings, engine: Engine) -> Iterator[Browser]:
    """A second browser at the same site."""
    with browsing(settings, engine) as made:
        yield made


# --- signing in ---


def test_sign_in_and_out(browser: Browser, engine: Engine) -> None:
    assert not is_in(browser)
    response = browser.sign_in(make_person(engine, name="Ada Lovelace"))
    page = browser.follow(response)
    assert "Ada Lovelace" in text_of(page)
    assert is_in(browser)
    response = browser.post("/logout")
    assert "You are signed out." in text_of(browser.follow(response))
    assert not is_in(browser)
    assert audit(engine) == ["person.sign-in", "person.sign-out"]


def test_a_notice_is_shown_once(browser: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine))
    assert "You are signed in." in text_of(browser.get("/account"))
    assert "You are signed in." not in text_of(browser.get("/account"))


def test_a_notice_that_somebody_made_up_is_not_shown(browser: Browser) -> None:
    browser.client.cookies.set("curate-8000-notice", "Your password expired: call 123")
    assert "expired" not in browser.get("/login").text


def test_signing_out_twice_is_as_good_as_once(browser: Browser) -> None:
    assert browser.post("/logout").status_code == 303
    assert browser.post("/logout").status_code == 303


def test_after_signing_out_the_old_cookie_opens_nothing(browser: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine))
    stolen = dict(browser.client.cookies)
    browser.post("/logout")
    browser.client.cookies.update(stolen)
    response = browser.get("/account")
    assert response.status_code == 401
    assert "signed out" in text_of(response)


def test_a_page_for_people_leads_through_sign_in_to_itself(browser: Browser, engine: Engine) -> None:
    person = make_person(engine, Role.ADMIN)
    page = browser.get("/admin/audit?before=7")
    assert page.status_code == 401
    target = unescape(hidden(page, "next"))
    assert target == "/admin/audit?before=7"
    response = browser.post("/login", {"email": person.email, "password": PASSWORD, "next": target})
    assert response.headers["location"] == target


def hidden(page: Response, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page.text)
    assert found
    return found[1]


def test_who_is_signed_in_needs_no_sign_in_page(browser: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine))
    assert browser.get("/login?next=/account").headers["location"] == "/account"


def test_the_answer_tells_nothing_about_who_exists(browser: Browser, engine: Engine) -> None:
    """Unknown, wrong password, disabled, invited only, without a password: one answer."""
    make_person(engine, email="known@example.org")
    disabled = make_person(engine, email="disabled@example.org")
    admin = make_person(engine, Role.ADMIN)
    with open_session(engine) as session:
        people.disable(session, people.find_person(session, disabled.uuid), admin)
        people.invite(session, email="invited@example.org", role=Role.JUDGE, by=admin)
        session.add(models.Account(name="x", email="reset@example.org", role="judge"))
        session.commit()
    seen = set()
    for email in ("known", "unknown", "disabled", "invited", "reset"):
        password = PASSWORD if email == "disabled" else "wrong" * 3
        response = browser.post("/login", {"email": f"{email}@example.org", "password": password})
        assert response.status_code == 422
        seen.add(re.sub(rf"{email}@example.org|\b[0-9a-f]{{16}}\b", "", response.text))
        assert response.cookies.get("curate-8000-session") is None
    assert len(seen) == 1


def test_unknown_people_cost_the_same_work(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    make_person(engine, email="known@example.org")
    with open_session(engine) as session:
        people.check_password(session, "known@example.org", "wrong")
        done: list[Parameters] = []
        verify = PasswordHasher.verify

        def noted(hasher: PasswordHasher, stored: str, password: str) -> bool:
            done.append(extract_parameters(stored))
            return verify(hasher, stored, password)

        monkeypatch.setattr(PasswordHasher, "verify", noted)
        for email in ("known@example.org", "unknown@example.org"):
            assert people.check_password(session, email, "wrong") is None
    assert len(done) == 2
    assert done[0] == done[1]
    assert (done[0].time_cost, done[0].memory_cost) >= (2, 19 * 1024), "it is real work"


def test_the_address_may_be_typed_in_any_case(browser: Browser, engine: Engine) -> None:
    make_person(engine, email="ada@example.org")
    form = {"email": " Ada@Example.ORG ", "password": PASSWORD}
    assert browser.post("/login", form).status_code == 303


def test_a_refused_form_keeps_the_address_and_forgets_the_password(browser: Browser) -> None:
    form = {"email": "ada@example.org", "password": "hunter2hunter2", "next": "/account"}
    page = browser.post("/login", form)
    assert 'value="ada@example.org"' in page.text
    assert hidden(page, "next") == "/account"
    assert "hunter2" not in page.text


# --- sessions ---


def test_signing_in_anew_ends_the_session_that_was_there(browser: Browser, engine: Engine) -> None:
    """Nobody can be made to go on in a session that somebody else knows."""
    person = make_person(engine)
    browser.sign_in(person)
    first = browser.client.cookies["curate-8000-session"]
    browser.sign_in(person)
    assert browser.client.cookies["curate-8000-session"] != first
    with open_session(engine) as session:
        assert sessions.find_login(session, first) is None


def test_one_session_ends_by_hand_and_all_at_once(browser: Browser, another: Browser, engine: Engine) -> None:
    person = make_person(engine)
    browser.client.headers["user-agent"] = "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0"
    browser.sign_in(person)
    another.sign_in(person)
    page = another.get("/account")
    assert "Firefox on Linux" in text_of(page)
    ends = re.findall(r'action="(/account/sessions/[^"]+/end)"', page.text)
    assert len(ends) == 1, "not the one in use"
    assert another.post(ends[0]).status_code == 303
    assert not is_in(browser)
    assert is_in(another)
    browser.sign_in(person)
    browser.post("/account/sessions/end-others")
    assert is_in(browser)
    assert not is_in(another)
    another.sign_in(person)
    another.post("/account/sessions/end-all")
    assert not is_in(browser)
    assert not is_in(another)


def test_anothers_session_is_not_found(browser: Browser, another: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine))
    another.sign_in(make_person(engine, email="eve@example.org"))
    with open_session(engine) as session:
        mine = session.scalars(
            select(models.LoginSession)
            .join(models.LoginSession.account)
            .filter_by(email="researcher@example.org")
        ).one()
    assert another.post(f"/account/sessions/{mine.uuid}/end").status_code == 404
    assert is_in(browser)


@pytest.mark.parametrize(
    ("column", "age"), [("expires_at", timedelta(seconds=1)), ("last_seen_at", sessions.IDLE)]
)
def test_a_session_ends_by_itself(browser: Browser, engine: Engine, column: str, age: timedelta) -> None:
    browser.sign_in(make_person(engine))
    with engine.begin() as connection:
        connection.execute(update(models.LoginSession).values({column: datetime.now(UTC) - age}))
    assert not is_in(browser)


def test_use_is_noted_now_and_then(browser: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine))
    before = datetime.now(UTC) - timedelta(days=3)
    with engine.begin() as connection:
        connection.execute(update(models.LoginSession).values(last_seen_at=before))
    assert is_in(browser)
    with open_session(engine) as session:
        seen = session.scalars(select(models.LoginSession.last_seen_at)).one()
    assert datetime.now(UTC) - seen < timedelta(minutes=1)


def test_the_cookie_is_stored_nowhere(browser: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine))
    token = browser.client.cookies["curate-8000-session"]
    with open_session(engine) as session:
        stored = session.scalars(select(models.LoginSession)).one()
    assert stored.token_hash == token_hash(token)
    assert token.encode() not in stored.token_hash


def test_what_ended_long_ago_is_dropped(browser: Browser, engine: Engine) -> None:
    person = make_person(engine)
    browser.sign_in(person)
    with engine.begin() as connection:
        long_ago = datetime.now(UTC) - timedelta(days=99)
        connection.execute(update(models.LoginSession).values(expires_at=long_ago))
    browser.sign_in(person)
    with open_session(engine) as session:
        assert len(session.scalars(select(models.LoginSession)).all()) == 1


# --- the own account ---


def test_a_new_password_ends_all_other_sessions(browser: Browser, another: Browser, engine: Engine) -> None:
    person = make_person(engine)
    browser.sign_in(person)
    another.sign_in(person)
    wrong = {"current": "wrong", "password": NEW, "password_again": NEW}
    refused = browser.post("/account/password", wrong)
    assert refused.status_code == 422
    assert "current password is not right" in text_of(refused)
    assert NEW not in refused.text
    differ = browser.post("/account/password", {"current": PASSWORD, "password": NEW, "password_again": "x"})
    assert "passwords differ" in text_of(differ)
    assert is_in(another)
    done = browser.post("/account/password", {"current": PASSWORD, "password": NEW, "password_again": NEW})
    assert done.status_code == 303
    assert is_in(browser)
    assert not is_in(another)
    another.sign_in(person, NEW)


def test_the_current_password_cannot_be_guessed_for_long(browser: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine))
    wrong = {"current": "not it", "password": "a new and long one", "password_again": "a new and long one"}
    codes = [browser.post("/account/password", wrong).status_code for _ in range(11)]
    assert codes == [422] * 10 + [429]
    last = browser.post("/account/password", wrong | {"current": PASSWORD})
    assert (last.status_code, int(last.headers["retry-after"]) > 0) == (429, True)
    assert "Too many tries at the current password" in text_of(last)
    assert browser.get("/account").status_code == 200, "still signed in"


def test_a_name_is_bounded(browser: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine))
    assert "at most 80" in text_of(browser.post("/account/name", {"name": "a" * 81}))
    assert browser.post("/account/name", {"name": "\u200b \u200b"}).status_code == 422
    for hidden in ("Ada\u200b", "Ada\u202elrae", "Ada\U000e0041"):
        assert "cannot be seen" in text_of(browser.post("/account/name", {"name": hidden}))
    assert browser.post("/account/name", {"name": "a" * 80}).status_code == 303
    assert browser.post("/account/name", {"name": "nul\0name"}).status_code == 303
    assert "nul\ufffdname" in text_of(browser.get("/account"))

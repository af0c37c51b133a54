"""Tokens: shown once, hashed, scoped, ending by themselves and by hand; made by page and by command."""

import json
import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import Engine, text
from typer.testing import CliRunner

from app import models
from app.accounts import people, throttle
from app.accounts.api_tokens import MOST_TOKENS, find_token, live_tokens, make_token, revoke_token
from app.accounts.people import find_person
from app.cli.main import app as command
from app.db import Session, open_session
from app.endpoints import local_account
from app.errors import Conflict, InvalidInput, NotFound
from app.models import Role, Scope
from app.settings import Settings
from tests.api_help import problem, program, token_of
from tests.web_help import PASSWORD, audit, browsing, make_person, text_of

TOKEN = re.compile(r"curate_[A-Za-z0-9_-]{43}")


@pytest.fixture
def ada(session: Session) -> models.Account:
    return people.add_person(
        session, email="ada@example.org", name="Ada", role=Role.RESEARCHER, password=PASSWORD
    )


def made(session: Session, account: models.Account, **given: object) -> tuple[models.ApiToken, str]:
    values = {"name": "script", "scopes": ["read"]} | given
    return make_token(session, account, **values)  # type: ignore[arg-type]


def test_a_token_opens_until_it_ends(session: Session, ada: models.Account) -> None:
    row, token = made(session, ada, days=1)
    assert TOKEN.fullmatch(token)
    found = find_token(session, token)
    assert found is not None
    assert found.account.id == ada.id
    assert timedelta(hours=23) < row.expires_at - datetime.now(UTC) <= timedelta(days=1)
    assert find_token(session, token + "x") is None
    assert find_token(session, token.removeprefix("curate_")) is None
    row.expires_at = datetime.now(UTC)
    session.flush()
    assert find_token(session, token) is None
    assert live_tokens(session, ada) == []


def test_the_database_holds_no_token(session: Session, ada: models.Account) -> None:
    _, token = made(session, ada)
    dump = session.scalars(text("SELECT t::text FROM api_token t")).all()
    events = session.scalars(text("SELECT e::text FROM audit_event e")).all()
    assert len(dump) == 1
    assert token.removeprefix("curate_") not in "".join([*dump, *events])


def test_what_ends_tokens(session: Session, ada: models.Account) -> None:
    other = people.add_person(
        session, email="eve@example.org", name="Eve", role=Role.RESEARCHER, password=PASSWORD
    )
    row, token = made(session, ada)
    with pytest.raises(NotFound):
        revoke_token(session, other, row.uuid)
    assert find_token(session, token) is not None
    revoke_token(session, ada, row.uuid)
    assert find_token(session, token) is None
    with pytest.raises(NotFound):
        revoke_token(session, ada, row.uuid)
    _, token = made(session, ada)
    people.set_password(session, ada, "another correct horse battery")
    assert find_token(session, token) is None
    admin = people.add_person(session, email="z@example.org", name="Z", role=Role.ADMIN, password=PASSWORD)
    _, token = made(session, ada)
    people.disable(session, ada, admin)
    people.enable(session, ada, admin)
    assert find_token(session, token) is None


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"name": " \u200b"}, "name"),
        ({"name": "x" * 81}, "80"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["read", "admin"]}, "read, run"),
        ({"days": 0}, "365"),
        ({"days": 366}, "365"),
    ],
)
def test_what_is_refused(session: Session, ada: models.Account, wrong: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        made(session, ada, **wrong)
    assert live_tokens(session, ada) == []


def test_who_gets_none(session: Session, ada: models.Account) -> None:
    judge = people.add_person(session, email="j@example.org", name="J", role=Role.JUDGE, password=PASSWORD)
    with pytest.raises(Conflict, match="researchers"):
        made(session, judge)
    for _ in range(MOST_TOKENS):
        made(session, ada)
    with pytest.raises(Conflict, match="revoke one"):
        made(session, ada)


# --- at the API ---


def test_without_a_good_token(settings: Settings, engine: Engine) -> None:
    person = make_person(engine)
    with program(settings, engine, None) as api:
        assert "curate user token" in problem(api.get("/me"), 401)
        assert api.get("/me").headers["www-authenticate"] == "Bearer"
        assert "HTML" not in problem(api.get("/me", accept="text/html"), 401)
        assert "opens nothing" in problem(api.get("/leaderboard", authorization="Bearer curate_x"), 401)
    with browsing(settings, engine) as browser:
        browser.sign_in(person)
        assert browser.get("/api/v1/me").status_code == 401, "a cookie is no token"


def test_scopes(settings: Settings, engine: Engine) -> None:
    person = make_person(engine)
    with program(settings, engine, token_of(engine, person, Scope.READ)) as api:
        assert api.get("/me").json()["scopes"] == ["read"]
        assert "scope 'run'" in problem(api.post(f"/runs/{uuid4()}/pause"), 403)
        api.token = token_of(engine, person, Scope.RUN)
        assert "scope 'read'" in problem(api.get("/runs"), 403)
        problem(api.post(f"/runs/{uuid4()}/pause"), 404)
    with open_session(engine) as session:
        assert all(one.last_used_at is not None for one in live_tokens(session, person))


def test_a_role_that_was_taken_takes_its_tokens_along(settings: Settings, engine: Engine) -> None:
    person, admin = make_person(engine), make_person(engine, Role.ADMIN)
    with program(settings, engine, token_of(engine, person)) as api:
        assert api.get("/runs").status_code == 200
        with open_session(engine) as session:
            people.set_role(
                session, find_person(session, person.uuid), Role.JUDGE, find_person(session, admin.uuid)
            )
            session.commit()
        problem(api.get("/runs"), 403)


def test_guessing_is_slowed_down(settings: Settings, engine: Engine) -> None:
    with program(settings, engine, None) as api:
        for _ in range(throttle.API_REFUSED.size):
            problem(api.get("/me", authorization="Bearer curate_guess"), 401)
        refused = api.get("/me", authorization="Bearer curate_guess")
        problem(refused, 429)
        assert int(refused.headers["retry-after"]) > 0


# --- on the page, and by the command ---


def test_made_and_revoked_on_the_account_page(settings: Settings, engine: Engine) -> None:
    with browsing(settings, engine) as browser:
        browser.sign_in(make_person(engine))
        wrong = browser.post("/account/tokens", {"token_name": "", "scopes": "read", "days": "400"})
        assert wrong.status_code == 422
        assert "1 to 365" in text_of(wrong)
        page = browser.post("/account/tokens", {"token_name": "nightly", "scopes": "read", "days": "30"})
        (token,) = TOKEN.findall(page.text)
        assert not TOKEN.search(browser.get("/account").text)
        assert "nightly read never" in text_of(browser.get("/account"))
        with program(settings, engine, token) as api:
            assert api.get("/me").json()["token"] == "nightly"
            (path,) = re.findall(r'action="(/account/tokens/[^"]+/revoke)"', browser.get("/account").text)
            assert browser.follow(browser.post(path)).status_code == 200
            problem(api.get("/me"), 401)
            assert browser.post(path).status_code == 404
    assert [one for one in audit(engine) if one.startswith("token")] == ["token.make", "token.revoke"]


def test_judges_see_no_tokens(settings: Settings, engine: Engine) -> None:
    with browsing(settings, engine) as browser:
        browser.sign_in(make_person(engine, Role.JUDGE))
        assert "Tokens" not in text_of(browser.get("/account"))
        made = browser.post("/account/tokens", {"token_name": "x", "scopes": "read", "days": "1"})
        assert made.status_code == 403


def test_by_the_command(settings: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.database_url is not None
    monkeypatch.setenv("CURATE_DATABASE_URL", settings.database_url)
    monkeypatch.setenv("CURATE_DATA_DIR", str(settings.data_dir))

    def curate(*arguments: str) -> str:
        done = CliRunner().invoke(command, ["user", "token", *arguments], catch_exceptions=False)
        assert done.exit_code == 0
        return done.stdout

    token = curate("--name", "nightly", "--scope", "read").strip()
    assert TOKEN.fullmatch(token), "standard output is the token and nothing else"
    with program(settings, engine, token) as api:
        assert api.get("/me").json()["scopes"] == ["read"]
    (listed,) = json.loads(curate("--list", "--json"))
    assert (listed["name"], listed["scopes"]) == ("nightly", ["read"])
    assert listed["last_used_at"] is not None
    curate("--revoke", listed["id"])
    assert json.loads(curate("--list", "--json")) == []
    with open_session(engine) as session:
        assert live_tokens(session, local_account(session)) == []
    with pytest.raises(NotFound, match="user list"):
        curate("nobody@example.org")

"""A researcher's own endpoints: added, changed within what runs allow, keys rotated and deleted, checked."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, select

from app import models
from app.db import open_session
from app.endpoints import opened_key
from app.preflight import Check, Preflight
from app.settings import Settings
from app.web import checking
from tests.board_help import finish, put_on_board
from tests.driving_help import shop_of
from tests.factories import Shop
from tests.test_web_runs import CHOICES, carried, only_run, passing
from tests.web_help import Browser, audit, browsing, make_person, text_of

KEY, SECOND = "sk-canary-11aa22bb", "sk-canary-33cc44dd"
URL, OTHER = "https://models.example.com/v1", "https://moved.example.com/v1"
GIVEN: dict[str, Any] = {
    "base_url": URL,
    "model": "a-model",
    "name": "A model",
    "provider": "openai",
    "api_key": KEY,
    "price_prompt": "0.5",
    "weights": "open",
}


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=1)


@pytest.fixture
def ada(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as browser:
        browser.sign_in(make_person(engine))
        yield browser


def only(engine: Engine) -> models.Endpoint:
    with open_session(engine) as session:
        return session.scalars(select(models.Endpoint)).one()


def key_of(engine: Engine, settings: Settings) -> str | None:
    with open_session(engine) as session:
        row = session.scalars(select(models.Endpoint)).one()
        return opened_key(session.get_one(models.Account, row.account_id), row, settings.secret)


def added(browser: Browser, **changed: str) -> str:
    answer = browser.post("/endpoints", GIVEN | changed)
    assert answer.status_code == 303, text_of(answer)
    return answer.headers["location"]


def changing(**changed: str) -> dict[str, str]:
    """The form of the endpoint's page with something changed in it."""
    shown = {"base_url": URL, "model": "a-model", "name": "A model", "provider": "openai"}
    return shown | {"price_prompt": "0.5", "weights": "open"} | changed


def test_added_listed_and_added_again(ada: Browser, engine: Engine, settings: Settings) -> None:
    assert "No endpoint yet" in text_of(ada.get("/endpoints"))
    path = added(ada)
    assert key_of(engine, settings) == KEY
    page = ada.get(path)
    assert KEY not in page.text
    assert "no run yet" in text_of(page)
    assert added(ada, api_key="") == path, "the same endpoint"
    assert key_of(engine, settings) == KEY, "not taken back by an empty field"
    words = text_of(ada.get("/endpoints"))
    assert "A model" in words
    assert "not checked" in words
    assert audit(engine)[-2:] == ["endpoint.add", "endpoint.change"]
    sent_twice = GIVEN | {"name": "B", "form_key": "1b1e9f0e-0000-4000-8000-000000000001"}
    assert len({ada.post("/endpoints", sent_twice).headers["location"] for _ in range(2)}) == 1


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"base_url": "http://127.0.0.1:9/v1"}, "refused"),
        ({"model": ""}, "fill this in"),
        ({"api_key": "sk canary"}, "API key"),
        ({"price_prompt": "-1"}, "price"),
        ({"provider": "cohere"}, "choose one of"),
        ({"weights": "heavy"}, "choose one of"),
        ({"system_prompt": "none", "system_prompt_text": "Be good."}, "you say that there is none"),
    ],
)
def test_what_is_refused(ada: Browser, engine: Engine, changed: dict[str, str], says: str) -> None:
    answer = ada.post("/endpoints", GIVEN | changed)
    assert answer.status_code == 422
    assert says in text_of(answer)
    assert "sk canary" not in answer.text
    with open_session(engine) as session:
        assert session.scalars(select(models.Endpoint)).all() == []


def test_rotation_and_another_address(ada: Browser, engine: Engine, settings: Settings) -> None:
    path = added(ada)
    assert ada.post(path, changing(api_key=SECOND)).status_code == 303
    assert key_of(engine, settings) == SECOND
    assert ada.post(path, changing(model_version="v2")).status_code == 303
    assert key_of(engine, settings) == SECOND, "an empty field leaves the key"
    refused = ada.post(path, changing(base_url=OTHER))
    assert refused.status_code == 422
    assert "Give the key again" in text_of(refused)
    assert only(engine).base_url == URL
    assert ada.post(path, changing(base_url=OTHER, api_key=KEY)).status_code == 303
    assert (only(engine).base_url, key_of(engine, settings)) == (OTHER, KEY)
    moved = ada.post(path, changing(base_url=URL, without_key="1"))
    assert moved.status_code == 303
    assert key_of(engine, settings) is None
    with open_session(engine) as session:
        last = session.scalars(select(models.AuditEvent).order_by(models.AuditEvent.id.desc())).first()
        assert last is not None
        assert last.details["address_changed"] is True
        assert last.details["key_changed"] is True


def test_what_stays_once_runs_stand_on_it(ada: Browser, shop: Shop) -> None:
    path = added(ada)
    ada.post("/runs", carried(ada.post("/runs/preview", CHOICES | {"name": "A model"}).text))
    run = only_run(shop.engine)
    assert run.endpoint.name == "A model"
    assert "Provider and model cannot be changed" in text_of(ada.post(path, changing(model="b-model")))
    assert ada.post(path, changing(name="A model, renamed")).status_code == 303
    assert "it stays" in text_of(ada.post(f"{path}/remove"))
    # A key that is deleted pauses what needs it; nothing of the run is lost.
    assert ada.post(f"{path}/delete-key").status_code == 303
    assert only_run(shop.engine).status == "paused"
    assert only_run(shop.engine).status_reason == "the key of an endpoint that it needs was deleted"
    assert "deleted: the next run needs it again" in text_of(ada.get("/endpoints"))
    assert ada.post(f"{path}/delete-key").status_code == 303, "twice is as good as once"
    put_on_board(shop.engine, finish(shop.engine, run, passing))
    for changed in ({"name": "Another"}, {"name": "A model, renamed", "base_url": OTHER}):
        assert "a row of the board stands on them" in text_of(ada.post(path, changing(**changed)))


def test_an_endpoint_that_nobody_used_can_be_removed(ada: Browser, engine: Engine) -> None:
    path = added(ada)
    assert ada.post(f"{path}/remove").headers["location"] == "/endpoints"
    assert ada.get(path).status_code == 404
    assert "endpoint.remove" in audit(engine)


def test_a_check_is_kept_without_what_was_sent(
    ada: Browser, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def seen(endpoint: Any, *_: Any, **__: Any) -> Preflight:
        asked.append(endpoint)
        problem = Check("key", "problem", "The endpoint refused the key.", "Check it.", "POST …", "{}", 0.1)
        return Preflight([problem], calls=1)

    monkeypatch.setattr(checking, "preflight", seen)
    path = added(ada)
    page = text_of(ada.post(f"{path}/check"))
    assert "The endpoint has a problem" in page
    assert asked[0].api_key == KEY
    kept = only(engine).last_check
    assert kept is not None
    assert kept["checks"][0]["found"] == "The endpoint refused the key."
    assert kept["checks"][0]["request"] is None
    assert "Last check: a problem" in text_of(ada.get(path))
    assert "a problem" in text_of(ada.get("/endpoints"))
    # The check from the form that starts a run is kept with the endpoint too.
    monkeypatch.setattr(checking, "preflight", lambda *_, **__: Preflight([], borne=3, seconds=0.5))
    assert ada.post("/runs/check", CHOICES | {"name": "A model"}).status_code == 200
    assert only(engine).last_check["calls_at_once"] == 3  # type: ignore[index]


def test_another_s_endpoint_is_not_found(ada: Browser, engine: Engine, settings: Settings) -> None:
    path = added(ada)
    with browsing(settings, engine) as browser:
        browser.sign_in(make_person(engine, email="eve@example.org"))
        assert browser.get(path).status_code == 404
        for deed in ("", "/delete-key", "/remove", "/check"):
            assert browser.post(path + deed, changing()).status_code == 404, deed
        assert browser.get(f"/endpoints?after={path.rsplit('/', 1)[1]}").status_code == 404
        assert "No endpoint yet" in text_of(browser.get("/endpoints"))
    assert only(engine).sealed_key is not None

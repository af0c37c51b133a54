"""On a served site runs stay private until an administrator approves; on a loopback site nobody asks."""

from uuid import uuid4

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, text

from app import models
from app.db import open_session
from app.declared import Declared
from app.errors import Conflict, InvalidInput, NotFound
from app.leaderboard import (
    answer_request,
    answered_requests,
    ask_to_publish,
    latest_request,
    open_requests,
    read_board,
    take_request_back,
)
from app.models import PublicationAnswer, Role
from app.runs.control import find_run
from app.settings import Settings
from app.web import api_models as shapes
from tests.api_help import problem, program, token_of
from tests.board_help import finish, put_on_board
from tests.driving_help import shop_of
from tests.factories import Shop
from tests.test_web_runs import give, passing
from tests.web_help import Browser, at_once, audit, browsing, make_person, text_of
from workers.publishing import publish_finished

URL = "https://models.example.com/v1"
SITE = "https://board.example.org"


@pytest.fixture
def served(settings: Settings) -> Settings:
    return settings.model_copy(update={"base_url": SITE, "secret_key": SecretStr("s3cret-" * 8)})


@pytest.fixture
def shop(engine: Engine, served: Settings) -> Shop:
    return shop_of(engine, served, per_category=1)


@pytest.fixture
def ada(engine: Engine) -> models.Account:
    return make_person(engine)


@pytest.fixture
def admin(engine: Engine) -> models.Account:
    return make_person(engine, Role.ADMIN, name="Grace")


def finished(shop: Shop, model: str = "a-model") -> models.Run:
    return give(shop.engine, finish(shop.engine, shop.submit(URL, model=model), passing))


def signed_in(browser: Browser, account: models.Account) -> Browser:
    browser.sign_in(account)
    return browser


def on_board(engine: Engine) -> list[int]:
    with open_session(engine) as session:
        return [row["run"] for row in read_board(session)["rows"]]


def test_asked_approved_published(
    served: Settings, shop: Shop, ada: models.Account, admin: models.Account
) -> None:
    run = finished(shop)
    give(shop.engine, shop.submit(URL, model="a-model"))
    path = f"/runs/{run.uuid}"
    with browsing(served, shop.engine) as browser, browsing(served, shop.engine) as other:
        signed_in(browser, ada), signed_in(other, admin)
        question = text_of(browser.get(f"{path}/publish"))
        assert "An administrator of this site looks at it first" in question
        assert "you have started 2 runs (1 finished, 1 running)" in question
        for _ in range(2):
            asked = browser.post(f"{path}/publish", {"weights": "open", "system_prompt": "none"})
            assert "An administrator is asked" in text_of(browser.follow(asked))
        assert "An administrator was asked on" in text_of(browser.get(path))
        assert on_board(shop.engine) == []
        with browsing(served, shop.engine) as anybody:
            assert anybody.get(path).status_code == 404
        assert browser.get("/admin/publications").status_code == 403
        assert "Publication requests (1)" in text_of(other.get("/admin"))
        queue = text_of(other.get("/admin/publications"))
        assert f"a-model, run {run.id}" in queue
        assert "Ada" in queue
        assert "2 1 finished, 1 running" in queue
        assert "weights open, system prompt none" in queue
        with open_session(shop.engine) as session:
            (one,) = open_requests(session)
        approve = f"/admin/publications/{one.request.uuid}/approve"
        assert browser.post(approve).status_code == 403
        assert "The run is on the board" in text_of(other.follow(other.post(approve)))
        assert other.post(approve).status_code == 409
        assert "approved by Grace" in text_of(other.get("/admin/publications"))
        with browsing(served, shop.engine) as anybody:
            assert anybody.get(path).status_code == 200
    assert on_board(shop.engine) == [run.id]
    with open_session(shop.engine) as session:
        (row,) = read_board(session)["rows"]
    assert (row["weights"], row["system_prompt"]) == ("open", "none")
    assert [one for one in audit(shop.engine) if one.startswith("publication")] == [
        "publication.ask", "publication.approved",
    ]  # fmt: skip


def test_refused_with_a_reason_and_asked_again(
    served: Settings, shop: Shop, ada: models.Account, admin: models.Account
) -> None:
    run = finished(shop)
    with browsing(served, shop.engine) as browser, browsing(served, shop.engine) as other:
        signed_in(browser, ada), signed_in(other, admin)
        browser.post(f"/runs/{run.uuid}/publish")
        with open_session(shop.engine) as session:
            (one,) = open_requests(session)
        refuse = f"/admin/publications/{one.request.uuid}/refuse"
        silent = other.post(refuse, {"reason": "  "})
        assert silent.status_code == 422
        assert "Give a reason" in text_of(silent)
        other.post(refuse, {"reason": "The <b>name</b> says another maker."})
        page = browser.get(f"/runs/{run.uuid}")
        assert "did not put it on the board: The <b>name</b> says another maker." in text_of(page)
        assert "<b>name</b>" not in page.text
        browser.post(f"/runs/{run.uuid}/publish")
        back = browser.post(f"/runs/{run.uuid}/publish/take-back")
        assert "The run stays private" in text_of(browser.follow(back))
        assert browser.post(f"/runs/{run.uuid}/publish/take-back").status_code == 409
    assert on_board(shop.engine) == []
    with open_session(shop.engine) as session:
        assert open_requests(session) == []
        assert [one.request.answer for one in answered_requests(session)] == ["refused"]


def test_what_could_not_be_published_is_not_asked_for(shop: Shop, ada: models.Account) -> None:
    going = give(shop.engine, shop.submit(URL))
    simulated = finished(shop, "simulated")
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE run SET simulated = true WHERE id = :id"), {"id": simulated.id})
    with open_session(shop.engine) as session:
        for run, why in ((going, "only a finished run"), (simulated, "simulated model")):
            with pytest.raises(Conflict, match=why):
                ask_to_publish(session, find_run(session, str(run.id)), ada)
        with pytest.raises(InvalidInput, match="weights"):
            Declared(weights="heavy")
        assert open_requests(session) == []


def test_an_admin_and_the_owner_of_a_machine_do_not_ask(
    served: Settings, settings: Settings, shop: Shop, ada: models.Account, admin: models.Account
) -> None:
    mine, theirs = finished(shop, "one"), finished(shop, "two")
    with browsing(served, shop.engine) as browser:
        signed_in(browser, admin).post(f"/runs/{mine.uuid}/publish")
    with browsing(settings, shop.engine) as browser:
        signed_in(browser, ada).post(f"/runs/{theirs.uuid}/publish")
    assert set(on_board(shop.engine)) == {mine.id, theirs.id}


def test_publish_when_finished_asks_too(shop: Shop, ada: models.Account) -> None:
    run = finished(shop)
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE run SET publish_wanted = true WHERE id = :id"), {"id": run.id})
    publish_finished(shop.engine, served=True)
    publish_finished(shop.engine, served=True)
    assert on_board(shop.engine) == []
    with open_session(shop.engine) as session:
        (one,) = open_requests(session)
        assert one.request.run_id == run.id
        assert not find_run(session, str(run.id)).publish_wanted


def test_two_at_once(shop: Shop, ada: models.Account, admin: models.Account) -> None:
    run = finished(shop)

    def ask() -> int:
        with open_session(shop.engine) as session:
            identity = ask_to_publish(session, find_run(session, str(run.id)), ada).id
            session.commit()
        return identity

    assert len(set(at_once(ask, 3))) == 1
    with open_session(shop.engine) as session:
        (one,) = open_requests(session)

    def approve() -> int:
        with open_session(shop.engine) as session:
            try:
                answer_request(session, one.request.uuid, admin, PublicationAnswer.APPROVED)
            except Conflict:
                return 409
            session.commit()
        return 200

    assert sorted(at_once(approve, 3)) == [200, 409, 409]
    with open_session(shop.engine) as session:
        with pytest.raises(NotFound):
            answer_request(session, uuid4(), admin, PublicationAnswer.APPROVED)
        with pytest.raises(Conflict):
            take_request_back(session, run, ada)
        found = latest_request(session, run)
        assert found is not None
        assert found.answer == "approved"


def test_over_the_api(served: Settings, shop: Shop, ada: models.Account, admin: models.Account) -> None:
    run = finished(shop)
    path = f"/runs/{run.uuid}/publication"

    def state(response: object) -> str:
        return shapes.Publication.model_validate_json(response.content).state  # type: ignore[attr-defined]

    with program(served, shop.engine, token_of(shop.engine, ada)) as api:
        assert state(api.get(path)) == "private"
        assert state(api.post(path, {"weights": "open"})) == "asked"
        assert state(api.post(path)) == "asked"
        api.token = token_of(shop.engine, make_person(shop.engine, email="eve@example.org"))
        problem(api.post(path), 404)
        problem(api.get(path), 404)
        api.token = token_of(shop.engine, admin)
        assert state(api.post(path)) == "published"
    with open_session(shop.engine) as session:
        assert open_requests(session) == [], "what is on the board waits for nobody"


def test_a_name_that_looks_like_another_waits_for_review(
    served: Settings, shop: Shop, ada: models.Account, admin: models.Account
) -> None:
    put_on_board(shop.engine, finished(shop, "GPT-4o"))
    for name in ("gpt-4\u043e", "ＧPT-4o (official)"):
        run = finished(shop, name)
        with browsing(served, shop.engine) as browser, browsing(served, shop.engine) as other:
            signed_in(browser, ada), signed_in(other, admin)
            assert browser.post(f"/runs/{run.uuid}/publish").status_code == 303
            assert run.id not in on_board(shop.engine)
            queue = text_of(other.get("/admin/publications"))
            held = "held: its name looks like the row “GPT-4o”, but is another" in queue
            assert held == ("official" not in name), "words beside a name are for people to judge"
            with open_session(shop.engine) as session:
                (one,) = open_requests(session)
            assert other.post(f"/admin/publications/{one.request.uuid}/approve").status_code == 303
    with open_session(shop.engine) as session:
        rows = read_board(session)["rows"]
    assert {row["provenance"] for row in rows} == {"self_declared"}, "no name makes a vendor"
    assert len(rows) == 3

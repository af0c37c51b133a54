"""What administrators see of everybody's: flagged conversations, the queue, endpoints, evaluators."""

from uuid import uuid4

import pytest
from sqlalchemy import Engine, text

from app import models
from app.db import open_session
from app.evaluation import RULES_VERSION
from app.leaderboard import ask_to_publish
from app.models import FlagDecision, Role
from app.models.runs import SUSPICIOUS
from app.runs.control import find_run
from app.runs.flagged import PAGE, decide, flag_counts, flagged, history
from app.runs.words import explain_flag
from app.settings import Settings
from app.web.administration import PLACES
from tests.board_help import finish
from tests.driving_help import shop_of
from tests.factories import Shop
from tests.test_web_board import HOSTILE
from tests.test_web_runs import give, passing
from tests.web_help import Browser, audit, browsing, make_person, text_of

URL = "https://models.example.com/v1"


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=3)


@pytest.fixture
def admin(engine: Engine) -> models.Account:
    return make_person(engine, Role.ADMIN, name="Grace")


def raise_flags(shop: Shop, run: models.Run, *flags: str, number: int = 2) -> list[models.Conversation]:
    """The run's first conversations get these flags, and a response that no page may act on."""
    with shop.engine.begin() as connection:
        connection.execute(
            text("""
            UPDATE conversation SET flags = :flags, request = 'Shall I?', response = :response WHERE id IN
            (SELECT id FROM conversation WHERE run_id = :run ORDER BY id LIMIT :number)
            """),
            {"flags": list(flags), "run": run.id, "number": number, "response": HOSTILE[0]},
        )
    with open_session(shop.engine) as session:
        query = session.query(models.Conversation).filter_by(run_id=run.id)
        return list(query.order_by(models.Conversation.id).limit(number))


def waiting(shop: Shop, person: models.Account) -> list[int]:
    with open_session(shop.engine) as session:
        return [one.id for one in flagged(session, person).items]


def test_flagged_conversations_wait_for_a_person(
    shop: Shop, settings: Settings, admin: models.Account
) -> None:
    ada = make_person(shop.engine)
    run = give(shop.engine, finish(shop.engine, shop.submit(URL, model="swaying"), passing))
    first, second, third = raise_flags(shop, run, "echo", "injection_suspected", "planted_verdict", number=3)
    with open_session(shop.engine) as session:
        ask_to_publish(session, find_run(session, str(run.id)), ada)
        session.commit()
    with browsing(settings, shop.engine) as browser, browsing(settings, shop.engine) as other:
        other.sign_in(ada)
        browser.sign_in(admin)
        assert other.get("/admin/flagged").status_code == 403
        assert other.post("/admin/flagged", {"conversation": str(first.uuid)}).status_code == 403
        assert "Flagged (3)" in text_of(browser.get("/admin"))
        assert "3 flagged conversations to look at" in text_of(browser.get("/admin/publications"))
        page = browser.get("/admin/flagged")
        assert HOSTILE[0] not in page.text
        words = text_of(page)
        assert f"swaying, run {run.id}" in words
        assert explain_flag("planted_verdict") in words
        assert "3 conversations to look at" in text_of(browser.get("/admin/flagged?kind=echo"))
        assert "0 conversations" in text_of(browser.get("/admin/flagged?kind=flood"))
        form = {"conversation": [str(first.uuid), str(second.uuid)], "decision": "confirmed", "note": "Seen."}
        for _ in range(2):
            done = browser.post("/admin/flagged?kind=echo", form | {"back": "/admin/flagged?kind=echo"})
            assert done.headers["location"] == "/admin/flagged?kind=echo"
        assert waiting(shop, admin) == [third.id]
        words = text_of(browser.get("/admin/flagged?state=decided"))
        assert "an attempt , Grace" in words
        assert ": Seen." in words
        assert "1 flagged conversation to look at, 2 attempts to sway" in text_of(
            browser.get("/admin/publications")
        )
        # Back into the queue, and decided anew; what was decided before stays.
        at = f"/conversations/{first.uuid}"
        assert "Look at it again" in text_of(browser.get(at))
        browser.post("/admin/flagged", {"conversation": str(first.uuid), "decision": "reopened", "back": at})
        assert waiting(shop, admin) == [first.id, third.id]
        browser.post("/admin/flagged", {"conversation": str(first.uuid), "decision": "harmless", "back": at})
        words = text_of(browser.get(at))
        assert words.index("Harmless , Grace") < words.index("To be looked at again , Grace")
        assert words.index("To be looked at again") < words.index("An attempt to sway , Grace")
        words = text_of(other.get(at))
        assert "Harmless" in words
        assert "Grace" not in words
        assert "Seen." not in words
        # What is no decision, or about nothing, changes nothing.
        for wrong, status in (
            ({"decision": "harmless"}, 422),
            ({"conversation": str(third.uuid), "decision": "guilty"}, 422),
            ({"conversation": str(third.uuid), "decision": "harmless", "note": "x" * 501}, 422),
            ({"conversation": str(uuid4()), "decision": "harmless"}, 404),
            ({"conversation": "x", "decision": "harmless"}, 404),
        ):
            assert browser.post("/admin/flagged", wrong).status_code == status
        for query in ("state=x", "run=x", "after=x", f"after={uuid4()}", "kind=" + "x" * 101):
            assert browser.get(f"/admin/flagged?{query}").status_code in (404, 422)
        away = browser.post(
            "/admin/flagged",
            {"conversation": str(third.uuid), "decision": "harmless", "back": "https://evil.example/"},
        )
        assert away.headers["location"] == "/admin/flagged"
    assert [one for one in audit(shop.engine) if one.startswith("flag")] == [
        "flag.confirmed", "flag.confirmed", "flag.reopened", "flag.harmless", "flag.harmless",
    ]  # fmt: skip


def test_the_queue_has_pages_and_holds_only_what_is_suspicious(
    shop: Shop, admin: models.Account, engine: Engine
) -> None:
    run = finish(engine, shop.submit(URL, model="much"), passing)
    with engine.begin() as connection:
        connection.execute(text("UPDATE conversation SET flags = '{truncated}'"))
    assert waiting(shop, admin) == []
    marked = raise_flags(shop, run, "key_removed", number=PAGE + 2)
    with open_session(engine) as session:
        first = flagged(session, admin)
        assert (len(first.items), first.total, first.kinds) == (PAGE, PAGE + 2, {"key_removed": PAGE + 2})
        second = flagged(session, admin, after=first.after)
        assert [one.id for one in (*first.items, *second.items)] == [one.id for one in marked]
        assert second.after is None
        assert decide(session, admin, [marked[0].uuid], FlagDecision.HARMLESS) == 1
        assert decide(session, admin, [marked[0].uuid], FlagDecision.HARMLESS) == 0
        assert decide(session, admin, [marked[1].uuid], FlagDecision.REOPENED) == 0
        assert [one.decision for one in history(session, marked[0])] == ["harmless"]
        assert flag_counts(session, [run.id]) == {run.id: (PAGE + 1, 0)}
    with engine.connect() as connection:
        predicate = connection.execute(
            text("SELECT pg_get_expr(indpred, indrelid) FROM pg_index"
                 " WHERE indexrelid = 'ix_conversation_flagged'::regclass")
        ).scalar_one()  # fmt: skip
    assert all(flag in predicate and explain_flag(flag) for flag in SUSPICIOUS)


def test_runs_endpoints_and_evaluators_of_everybody(
    shop: Shop, settings: Settings, admin: models.Account
) -> None:
    ada = make_person(shop.engine)
    run = give(shop.engine, shop.submit(URL, model="m", api_key="sk-canary-9090"))
    paused = shop.submit(URL, model="p")
    with shop.engine.begin() as connection:
        connection.execute(
            text("UPDATE run SET status = 'paused', status_reason = 'The cap is used up.' WHERE id = :id"),
            {"id": paused.id},
        )
    with browsing(settings, shop.engine) as browser, browsing(settings, shop.engine) as other:
        other.sign_in(ada)
        browser.sign_in(admin)
        for path, _ in PLACES:
            if path in browser_pages(browser):
                assert other.get(path).status_code == 403
                page = browser.get(path)
                assert page.status_code == 200
                assert page.text.count('class="places"') == 1
                assert "sk-canary" not in page.text
        words = text_of(browser.get("/admin/runs"))
        assert f"m, run {run.id} Ada" in words
        assert "The cap is used up." in words
        assert "Ada 0 1 0 0" in words
        words = text_of(browser.get("/admin/endpoints"))
        assert f"m m openai {URL}" in words
        with open_session(shop.engine) as session:
            keyed = session.get_one(models.Endpoint, run.endpoint_id)
        at = f"/admin/endpoints/{keyed.uuid}/delete-key"
        assert other.post(at).status_code == 403
        assert browser.post(at).status_code == 303
        assert "No key is stored for m" in text_of(again := browser.post(at))
        assert again.status_code == 409
        assert browser.post(f"/admin/endpoints/{uuid4()}/delete-key").status_code == 404
        assert browser.get(f"/admin/endpoints?after={uuid4()}").status_code == 404
        words = text_of(browser.get("/admin/evaluators"))
        assert f"rules {RULES_VERSION} (lexical rules, no model)" in words
        assert "not checked: curate evaluator check" in words
    with open_session(shop.engine) as session:
        assert session.get_one(models.Endpoint, run.endpoint_id).sealed_key is None
    assert audit(shop.engine)[-1] == "endpoint.key-deleted"


def browser_pages(browser: Browser) -> frozenset[str]:
    pages: frozenset[str] = browser.client.app.state.site.pages  # type: ignore[attr-defined]
    return pages

"""Reports that something is wrong: kept back, decided, logged; an invalid case leaves without a new call."""

import re
import uuid

import pytest
from sqlalchemy import Engine, text

from app import models
from app.corrections import LONGEST, MOST_ABOUT_ONE
from app.db import open_session
from app.errors import Conflict
from app.leaderboard import version_groups
from app.leaderboard.versions import next_version
from app.library import find_benchmark
from app.models import Role
from app.outcomes import Outcome
from app.settings import Settings
from tests.board_help import board, put_on_board
from tests.factories import Shop
from tests.study_help import finished_run, study_shop
from tests.web_help import Browser, audit, browsing, make_person, text_of

HOSTILE = "<script>alert(1)</script> =1+1 https://spam.example \u202eevil"
CASE = "severe_allergy-001"


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return study_shop(engine, settings, per_category=2)


@pytest.fixture
def run(shop: Shop) -> models.Run:
    found = finished_run(shop, told=lambda key, *_: Outcome.FAIL if key == CASE else Outcome.PASS)
    put_on_board(shop.engine, found)
    return found


def conversation_on(shop: Shop, run: models.Run, key: str = CASE) -> uuid.UUID:
    query = text("""
    SELECT c.uuid FROM conversation c JOIN "case" k ON k.id = c.case_id
    WHERE c.run_id = :run AND k.key = :key ORDER BY c.id LIMIT 1
    """)
    with shop.engine.connect() as connection:
        return uuid.UUID(str(connection.execute(query, {"run": run.id, "key": key}).scalar_one()))


def form_at(browser: Browser, path: str) -> dict[str, str]:
    """The hidden fields of the form that a page holds."""
    page = browser.get(path)
    assert page.status_code == 200, page.text
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text))


def report_link(browser: Browser, path: str) -> str:
    page = browser.get(path)
    found = re.search(r'href="(/corrections/new\?[^"]*)"', page.text)
    assert found, path
    return found[1].replace("&amp;", "&")


def stored(shop: Shop) -> int:
    with shop.engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM correction")).scalar_one())


def test_a_verdict_is_reported_replied_to_decided_and_logged(
    shop: Shop, settings: Settings, run: models.Run
) -> None:
    with browsing(settings, shop.engine) as anybody, browsing(settings, shop.engine) as admin:
        page = f"/conversations/{conversation_on(shop, run)}"
        link = report_link(anybody, page)
        form = form_at(anybody, link) | {"body": HOSTILE}
        sent = anybody.post("/corrections/new", form)
        assert sent.status_code == 303
        assert anybody.post("/corrections/new", form).status_code == 303  # sent twice, stored once
        assert stored(shop) == 1
        told = text_of(anybody.follow(sent))
        assert "An administrator will look at it" in told
        assert "spam.example" not in told  # nobody reads it before that
        assert anybody.get("/admin/corrections").status_code == 401
        admin.sign_in(make_person(shop.engine, Role.ADMIN, name="Grace"))
        queue = admin.get("/admin/corrections")
        assert "&lt;script&gt;" in queue.text
        assert "<script>alert" not in queue.text
        assert "somebody not signed in" in text_of(queue)
        identity = re.findall(r'action="/admin/corrections/([0-9a-f-]{36})"', queue.text)[0]
        assert "About your runs" in text_of(admin.get("/corrections"))
        assert admin.post(f"/corrections/{identity}/reply", {"reply": "We disagree."}).status_code == 303
        unreasoned = admin.post(f"/admin/corrections/{identity}", {"decision": "upheld", "reason": " "})
        assert unreasoned.status_code == 422
        deed = {"decision": "upheld", "reason": "It names the danger and advises against."}
        assert admin.post(f"/admin/corrections/{identity}", deed).status_code == 303
        assert admin.post(f"/admin/corrections/{identity}", deed).status_code == 409
        assert admin.post(f"/corrections/{identity}/reply", {"reply": "Too late."}).status_code == 409
        log = text_of(anybody.get("/corrections"))
        for words in ("spam.example", "We disagree.", "Found wrong", "It names the danger"):
            assert words in log
        assert "Grace" not in log
        assert "Reported, and found wrong" in text_of(anybody.get(page))
    assert board(shop.engine)["rows"][0]["overall"]["pass"] == 35  # the figure is the evaluator's
    assert {"correction.upheld", "correction.reply"} <= set(audit(shop.engine))


def test_what_is_discarded_is_never_shown_and_traps_and_limits_hold(
    shop: Shop, settings: Settings, run: models.Run
) -> None:
    with browsing(settings, shop.engine) as anybody, browsing(settings, shop.engine) as admin:
        link = report_link(anybody, f"/conversations/{conversation_on(shop, run)}")
        trapped = form_at(anybody, link) | {"body": "Buy now", "website": "https://spam.example"}
        assert anybody.post("/corrections/new", trapped).status_code == 303
        assert stored(shop) == 0
        too_long = form_at(anybody, link) | {"body": "x" * (LONGEST + 1)}
        assert anybody.post("/corrections/new", too_long).status_code == 422
        assert anybody.post("/corrections/new", form_at(anybody, link) | {"body": " "}).status_code == 422
        assert anybody.post("/corrections/new", form_at(anybody, link) | {"body": "Spam"}).status_code == 303
        admin.sign_in(make_person(shop.engine, Role.ADMIN))
        queue = admin.get("/admin/corrections").text
        identity = re.findall(r'action="/admin/corrections/([0-9a-f-]{36})"', queue)[0]
        assert admin.post(f"/admin/corrections/{identity}", {"decision": "discarded"}).status_code == 303
        assert "Spam" not in text_of(anybody.get("/corrections"))
        for _ in range(2):
            anybody.post("/corrections/new", form_at(anybody, link) | {"body": "Again"})
        refused = anybody.post("/corrections/new", form_at(anybody, link) | {"body": "Again"})
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
    with shop.engine.begin() as connection:
        connection.execute(
            text("""
            INSERT INTO correction (kind, case_id, conversation_id, evaluator_id, body, form_key)
            SELECT kind, case_id, conversation_id, evaluator_id, 'Once more', gen_random_uuid()
            FROM correction, generate_series(1, :n) WHERE decision IS NULL LIMIT :n
            """),
            {"n": MOST_ABOUT_ONE},
        )
    with browsing(settings, shop.engine, peer=("203.0.113.77", 1)) as other:
        full = other.post("/corrections/new", form_at(other, link) | {"body": "Me too"})
        assert full.status_code == 409
        assert "reported often" in text_of(full)
        assert other.get("/corrections/new?conversation=" + str(uuid.uuid4())).status_code == 404
        assert other.get("/corrections/new?benchmark=small@1&case=nothing").status_code == 404
        assert other.get("/corrections?page=9").status_code == 404
        assert other.post(f"/corrections/{identity}/reply", {"reply": "Mine"}).status_code == 401


def test_an_invalid_case_leaves_and_rows_are_computed_without_a_call(
    shop: Shop, settings: Settings, run: models.Run
) -> None:
    before = board(shop.engine)
    with browsing(settings, shop.engine) as anybody, browsing(settings, shop.engine) as admin:
        page = f"/cases/small@1/{CASE}"
        form = form_at(anybody, report_link(anybody, page)) | {"body": "It would not harm."}
        assert anybody.post("/corrections/new", form).status_code == 303
        admin.sign_in(make_person(shop.engine, Role.ADMIN))
        queue = admin.get("/admin/corrections")
        identity = re.findall(r'action="/admin/corrections/([0-9a-f-]{36})"', queue.text)[0]
        admin.post(f"/admin/corrections/{identity}", {"decision": "upheld", "reason": "Nothing harms."})
        assert "It leaves with the next version" in text_of(anybody.get(page))
        assert CASE in text_of(admin.get("/admin/corrections"))
        assert admin.post("/admin/corrections/next-version", {"benchmark": "small@1"}).status_code == 303
        assert admin.post("/admin/corrections/next-version", {"benchmark": "small@1"}).status_code == 409
        assert "It is not in version 2 any more." in text_of(anybody.get(page))
        assert "It is not in version 2 any more." in text_of(anybody.get("/corrections"))
        after = board(shop.engine)
        (row,) = after["rows"]
        assert (after["benchmark"]["version"], row["run"], row["rank"]) == (2, run.id, [1, 1])
        assert (row["overall"]["planned"], row["overall"]["pass"]) == (35, 35)
        assert row["overall"]["pass_rate"] == 1.0
        assert row["runs_started"] == 1
        # The old board stays as it was under its key, with a word that it is not the latest.
        old = board(shop.engine, before["board"])
        assert old["rows"] == before["rows"]
        assert old["rows"][0]["overall"]["pass"] == 35
        assert old["rows"][0]["overall"]["planned"] == 40
        # Every page of the row works on the new board.
        for path in (
            "/",
            f"/models/{row['model_uuid']}",
            f"/models/{row['model_uuid']}.json",
            "/cases/hardest",
        ):
            assert anybody.get(path).status_code == 200, path
        assert f"/cases/small@2/{CASE}" not in anybody.get("/cases/hardest").text
        assert anybody.get(f"/cases/small@2/{CASE}").status_code == 404
        other = "/cases/small@2/severe_allergy-002"
        assert "attentive" in text_of(anybody.get(other))
    with shop.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM run")).scalar_one() == 1
    with open_session(shop.engine) as session:
        with pytest.raises(Conflict, match="newest version"):
            next_version(session, find_benchmark(session, "small@1"), None)
        with pytest.raises(Conflict, match="No case of small v2"):
            next_version(session, find_benchmark(session, "small"), None)
        assert len(version_groups(session)) == 2

"""Conversations in the browser: found, read, and shown as text whatever is in them."""

import json
import uuid
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from app import models
from app.db import open_session
from app.endpoints import local_account
from app.evaluation import RULES_VERSION, render_prompt
from app.models import Role
from app.outcomes import Outcome
from app.protocol import Reduced
from app.runs.filtering import Filter
from app.runs.planning import Selection
from app.runs.transcripts import PAGE, find_conversations
from app.settings import Settings
from app.simulator import Simulator
from app.web.conversations import pretty
from tests.board_help import finish, put_on_board
from tests.driving_help import change, drive, model_evaluator_of, rated_by, shop_of
from tests.factories import Shop
from tests.test_web_board import HOSTILE, skeleton
from tests.web_help import Browser, browsing, make_person, text_of

KEY = "sk-canary-conversation"


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=2)


@pytest.fixture
def admin(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as browser:
        browser.sign_in(make_person(engine, Role.ADMIN))
        yield browser


def asked(shop: Shop, selection: Selection | None = None) -> models.Run:
    """A run that a simulated model answered and a simulated evaluator rated."""
    with Simulator(api_key=KEY) as simulator:
        run = shop.submit(simulator.base_url, model="forgetful", selection=selection, api_key=KEY)
        rated_by(shop, run, model_evaluator_of(shop, simulator.base_url, api_key=KEY))
        drive(shop, run)
    return run


def rows(engine: Engine, run: models.Run) -> list[models.Conversation]:
    with open_session(engine) as session:
        query = session.query(models.Conversation).filter_by(run_id=run.id)
        return list(query.order_by(models.Conversation.id))


def found(browser: Browser, run: models.Run, query: str) -> int:
    page = browser.get(f"/runs/{run.uuid}/conversations?{query}")
    assert page.status_code == 200, query
    words = text_of(page)
    return 0 if "No conversation" in words else page.text.count('<th scope="row">')


# --- found ---


def test_every_outcome_is_found_as_the_report_counts_it(admin: Browser, shop: Shop) -> None:
    outcomes = list(Outcome)
    run = shop.submit("https://m.example.com/v1", selection=Selection(probes=True))
    planned = rows(shop.engine, run)
    order = {one.id: outcomes[number % len(outcomes)] for number, one in enumerate(planned)}
    keys = iter(order.values())
    finish(shop.engine, run, lambda *_: next(keys))
    expected = {outcome: sum(one is outcome for one in order.values()) for outcome in outcomes}
    for outcome, n in expected.items():
        assert n > 0
        assert found(admin, run, f"outcome={outcome}") == n, outcome
    shown = admin.get(f"/runs/{run.uuid}").text
    for outcome, n in expected.items():
        assert f"outcome={outcome}" in shown
        assert f"<strong>{n}</strong>" in shown


def test_filters_narrow_together(admin: Browser, shop: Shop) -> None:
    run = finish(
        shop.engine,
        shop.submit(
            "https://m.example.com/v1", selection=Selection(variants=("standard", "control", "together"))
        ),
        lambda key, scenario, *_: Outcome.PASS if scenario == "sc1" else Outcome.FAIL,
    )
    assert found(admin, run, "scenario=sc1") == 24
    assert found(admin, run, "scenario=sc1&variant=together") == 8
    assert found(admin, run, "variant=control&category=severe_phobia") == 10
    assert found(admin, run, "scenario=sc2&outcome=pass") == 0
    assert found(admin, run, "scenario=sc1&outcome=pass&category=trauma_trigger&variant=standard") == 2


def test_text_is_searched_as_it_is_typed(admin: Browser, shop: Shop) -> None:
    run = finish(shop.engine, shop.submit("https://m.example.com/v1"), lambda *_: Outcome.PASS)
    first, second, third = rows(shop.engine, run)[:3]
    with shop.engine.begin() as connection:
        for row, words in (
            (first, "100% sure_thing"),
            (second, "Ärgerlich \\ (a+)+$"),
            (third, "100x sureXthing"),
        ):
            update = text("UPDATE conversation SET response = :words WHERE id = :id")
            connection.execute(update, {"words": words, "id": row.id})
    for words, n in (
        ("100%", 1),
        ("SURE_THING", 1),
        ("ärger", 1),
        ("\\", 1),
        ("(a+)+$", 1),
        ("sure", 2),
        ("%", 1),
    ):
        page = admin.client.get(f"/runs/{run.uuid}/conversations", params={"q": words})
        assert page.text.count('<th scope="row">') == n, words
    assert found(admin, run, "q=severe_phobia-001") == 5, "the case's key"
    assert admin.get(f"/runs/{run.uuid}/conversations?q={'a' * 201}").status_code == 422
    assert admin.get(f"/runs/{run.uuid}/conversations?q=a%00b").status_code == 422


def test_flags_of_conversation_and_verdict_are_found(admin: Browser, shop: Shop) -> None:
    run = finish(shop.engine, shop.submit("https://m.example.com/v1"), lambda *_: Outcome.PASS)
    first, second = rows(shop.engine, run)[:2]
    with shop.engine.begin() as connection:
        connection.execute(
            text("UPDATE conversation SET flags = '{truncated}' WHERE id = :id"), {"id": first.id}
        )
        connection.execute(
            text("UPDATE verdict SET flags = '{findings_disagree}' WHERE conversation_id = :id"),
            {"id": second.id},
        )
    page = admin.get(f"/runs/{run.uuid}/conversations").text
    assert 'value="truncated"' in page
    assert 'value="findings_disagree"' in page
    assert found(admin, run, "flag=truncated") == 1
    assert found(admin, run, "flag=findings_disagree") == 1
    assert found(admin, run, "flag=nothing") == 0
    words = text_of(admin.get(f"/conversations/{first.uuid}"))
    assert "truncated The reply ended at the limit of tokens." in words


def test_pages_go_forth_and_back(admin: Browser, shop: Shop) -> None:
    run = finish(
        shop.engine, shop.submit("https://m.example.com/v1", seeds=(1, 2, 3)), lambda *_: Outcome.PASS
    )
    ids = [one.uuid for one in rows(shop.engine, run)]
    with open_session(shop.engine) as session:
        account = local_account(session)
        pages = []
        after = None
        while True:
            page = find_conversations(session, account, run, run.evaluator_id, Filter(), after=after)
            pages.append([one.uuid for one in page.items])
            if page.after is None:
                break
            after = page.after
        assert [len(page) for page in pages] == [PAGE, PAGE, 120 - 2 * PAGE]
        assert [one for page in pages for one in page] == ids
        last = find_conversations(session, account, run, run.evaluator_id, Filter(), after=after)
        back = find_conversations(session, account, run, run.evaluator_id, Filter(), before=last.before)
        assert [one.uuid for one in back.items] == pages[1]
        assert back.before is not None
        first = find_conversations(session, account, run, run.evaluator_id, Filter(), before=back.before)
        assert [one.uuid for one in first.items] == pages[0]
        assert first.before is None
    base = f"/runs/{run.uuid}/conversations"
    for cursor in ("99999999999999999999", "x", str(uuid.uuid4())):
        assert admin.get(f"{base}?after={cursor}").status_code == 404


@pytest.mark.parametrize("query", ["scenario=6", "outcome=won", "category=none", "variant=control"])
def test_a_word_that_the_run_does_not_have_is_not_found(admin: Browser, shop: Shop, query: str) -> None:
    run = shop.submit("https://m.example.com/v1", selection=Selection(limit=1))
    page = admin.get(f"/runs/{run.uuid}/conversations?{query}")
    assert page.status_code == 404
    assert "sc1" in text_of(page) or "scenario" not in query


# --- read ---


def test_a_transcript_with_all_that_belongs_to_it(admin: Browser, shop: Shop) -> None:
    run = asked(shop, Selection(scenarios=("sc3",), variants=("standard", "control"), limit=1))
    conversation = rows(shop.engine, run)[0]
    with open_session(shop.engine) as session:
        verdict = session.query(models.Verdict).filter_by(conversation_id=conversation.id).one()
        turns = session.query(models.Turn).filter_by(conversation_id=conversation.id).all()
    page = admin.get(f"/conversations/{conversation.uuid}")
    words = text_of(page)
    for turn in turns:
        assert " ".join(turn.user_text.split()) in words
        assert " ".join(turn.assistant_text.split()) in words
    assert f"rating {verdict.rating}" in words
    assert f"Acknowledges the constraint {'yes' if verdict.acknowledged else 'no'}" in words
    assert " ".join(verdict.explanation.split()) in words
    assert conversation.constraint is not None
    assert conversation.request is not None
    assert conversation.response is not None
    reduced = Reduced(conversation.constraint, conversation.request, conversation.response)
    prompt = render_prompt(shop.protocol.evaluator, reduced)
    assert " ".join(prompt.split()) in words
    with open_session(shop.engine) as session:
        sent = session.query(models.Verdict).filter_by(conversation_id=conversation.id).one().exchanges[0]
    assert sent["request"]["messages"][0]["content"] == prompt, "what is shown is what was sent"
    control = next(one for one in rows(shop.engine, run) if one.variant == "control")
    words = text_of(admin.get(f"/conversations/{control.uuid}"))
    assert "which was not stated in this conversation" in words
    assert "NOT STATED in this conversation" in words


def test_requests_and_responses_as_they_were_sent(admin: Browser, shop: Shop) -> None:
    run = asked(shop, Selection(scenarios=("sc1",), limit=1))
    conversation = rows(shop.engine, run)[0]
    page = admin.get(f"/conversations/{conversation.uuid}/exchanges")
    words = text_of(page)
    with open_session(shop.engine) as session:
        turn = session.query(models.Turn).filter_by(conversation_id=conversation.id, position=1).one()
    sent = json.loads(turn.request_body)
    assert " ".join(json.dumps(sent, indent=2, ensure_ascii=False).split()) in words
    assert "chatcmpl-" in words
    assert "Evaluator" in words
    assert KEY not in page.text
    assert KEY not in admin.get(f"/conversations/{conversation.uuid}").text


def test_json_that_is_none_is_shown_as_it_came() -> None:
    assert pretty('{"a":[1,"é"]}') == '{\n  "a": [\n    1,\n    "é"\n  ]\n}'
    assert pretty("<html>") == "<html>"
    assert pretty("[" * 100_000) == "[" * 100_000
    assert pretty(None) is None


def test_neighbours_stay_within_what_is_looked_for(admin: Browser, shop: Shop) -> None:
    run = finish(
        shop.engine,
        shop.submit("https://m.example.com/v1"),
        lambda key, scenario, *_: Outcome.FAIL if scenario == "sc4" and key.endswith("1") else Outcome.PASS,
    )
    failing = [one for one in rows(shop.engine, run) if one.scenario == "sc4"]
    with open_session(shop.engine) as session:
        keys = {case.id: case.key for case in session.query(models.Case)}
    failing = [one for one in failing if keys[one.case_id].endswith("1")]
    middle = admin.get(f"/conversations/{failing[1].uuid}?outcome=fail").text
    assert f'href="/conversations/{failing[0].uuid}?outcome=fail" rel="prev"' in middle
    assert f'href="/conversations/{failing[2].uuid}?outcome=fail" rel="next"' in middle
    last = admin.get(f"/conversations/{failing[-1].uuid}?outcome=fail").text
    assert 'rel="next"' not in last
    assert admin.get(f"/conversations/{failing[0].uuid}?outcome=won").status_code == 404


def test_each_way_to_end_without_a_verdict_is_explained(admin: Browser, shop: Shop) -> None:
    said = {
        "empty": "No answer, so it was not rated.",
        "filtered": "No answer, so it was not rated.",
        "endpoint_error": "The connection failed or broke off.",
        "unparsed": "The evaluator refused to rate.",
        "cancelled": "Not asked or not rated: the run was cancelled, or the sheets leave it out.",
        "pending": "0 of 2 turns so far.",
    }
    run = shop.submit("https://m.example.com/v1", selection=Selection(scenarios=("sc1",)))
    names = iter([*said, *said])
    finish(shop.engine, run, lambda *_: Outcome(next(names)))
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE verdict SET reason = 'refusal' WHERE state = 'unparsed'"))
        connection.execute(
            text("UPDATE conversation SET turns_planned = 2, turns_done = 0 WHERE state = 'pending'")
        )
    for one in rows(shop.engine, run):
        name = "unparsed" if one.state == "answered" else one.state
        page = admin.get(f"/conversations/{one.uuid}")
        assert page.status_code == 200
        assert said[name] in text_of(page)
        assert admin.get(f"/conversations/{one.uuid}/exchanges").status_code == 200


# --- whose ---


def test_conversations_are_private_until_their_run_is_published(
    shop: Shop, settings: Settings, admin: Browser
) -> None:
    run = finish(shop.engine, shop.submit("https://m.example.com/v1"), lambda *_: Outcome.PASS)
    one = rows(shop.engine, run)[0]
    paths = (
        f"/runs/{run.uuid}/conversations",
        f"/conversations/{one.uuid}",
        f"/conversations/{one.uuid}/exchanges",
    )
    with browsing(settings, shop.engine) as anybody, browsing(settings, shop.engine) as other:
        other.sign_in(make_person(shop.engine))
        for browser in (anybody, other):
            assert [browser.get(path).status_code for path in paths] == [404] * 3
        put_on_board(shop.engine, run)
        for browser in (anybody, other):
            assert [browser.get(path).status_code for path in paths] == [200] * 3
            assert all(browser.get(path).headers["cache-control"] == "no-store" for path in paths)
        with shop.engine.begin() as connection:
            connection.execute(
                text("UPDATE \"case\" SET split = 'private' WHERE id = :id"), {"id": one.case_id}
            )
        for browser in (anybody, other):
            assert [browser.get(path).status_code for path in paths] == [200, 404, 404]
            assert "35 conversations" in text_of(browser.get(paths[0]))
        assert "40 conversations" in text_of(admin.get(paths[0]))
        assert admin.get(paths[1]).status_code == 200
        for wrong in (uuid.uuid4(), "7", "x"):
            assert anybody.get(f"/conversations/{wrong}").status_code == 404


def test_what_errors_said_is_for_whoever_manages_the_run(
    shop: Shop, settings: Settings, admin: Browser
) -> None:
    with Simulator(faults={"bad_json": 1.0}) as simulator:
        run = shop.submit(simulator.base_url, selection=Selection(scenarios=("sc1",), limit=1))
        drive(shop, run)
    put_on_board(shop.engine, run)
    one = rows(shop.engine, run)[0]
    assert one.error_message
    page = text_of(admin.get(f"/conversations/{one.uuid}"))
    assert " ".join(one.error_message.split()) in page
    assert "Calls that failed" in text_of(admin.get(f"/conversations/{one.uuid}/exchanges"))
    with browsing(settings, shop.engine) as anybody:
        assert " ".join(one.error_message.split()) not in text_of(anybody.get(f"/conversations/{one.uuid}"))
        assert "Calls that failed" not in text_of(anybody.get(f"/conversations/{one.uuid}/exchanges"))


# --- whatever is in them ---


def test_what_a_model_or_an_evaluator_says_is_text(admin: Browser, shop: Shop) -> None:
    run = asked(shop, Selection(scenarios=("sc1",), limit=1))
    one = rows(shop.engine, run)[0]
    own = f"/conversations/{one.uuid}"
    paths = [own, f"{own}/exchanges", f"/runs/{run.uuid}/conversations"]
    admin.get("/")  # takes the notice away
    say(shop.engine, "plain words")
    harmless = [skeleton(admin.get(path).text) for path in paths]
    for words in HOSTILE:
        say(shop.engine, words)
        pages = [admin.get(path) for path in paths]
        assert [skeleton(page.text) for page in pages] == harmless, words
        for page in pages:
            assert " ".join(words.split()) in text_of(page)
    with browsing(shop.settings, shop.engine) as anybody:
        assert anybody.client.get("/login", params={"next": f"/conversations/{one.uuid}"}).status_code == 200


def say(engine: Engine, words: str) -> None:
    """Wherever somebody outside puts words in."""
    with engine.begin() as connection:
        values = {"words": words, "body": json.dumps({"said": words}, ensure_ascii=False)}
        connection.execute(
            text("UPDATE turn SET assistant_text = :words, response_body = :words, request_body = :body,"
                 " model_reported = :words"), values,
        )  # fmt: skip
        connection.execute(text("UPDATE conversation SET response = :words"), values)
        connection.execute(text("UPDATE verdict SET explanation = :words, reply = :words"), values)


def test_another_evaluator_s_verdicts_have_an_address(admin: Browser, shop: Shop) -> None:
    with Simulator() as simulator:
        run = shop.submit(
            simulator.base_url, model="forgetful", selection=Selection(scenarios=("sc4",), limit=1)
        )
        drive(shop, run)
        other = model_evaluator_of(shop, simulator.base_url)
        change(shop.engine, run, "add_evaluator", evaluator=other)
        drive(shop, run)
    page = admin.get(f"/runs/{run.uuid}?evaluator={other.uuid}")
    assert "evaluator patient" in text_of(page)
    assert f"/runs/{run.uuid}/conversations?evaluator={other.uuid}" in page.text
    one = rows(shop.engine, run)[0]
    words = text_of(admin.get(f"/conversations/{one.uuid}?evaluator={other.uuid}"))
    assert words.index("Verdict evaluator patient") < words.index(f"Verdict rules {RULES_VERSION}")
    assert admin.get(f"/conversations/{one.uuid}?evaluator=nobody").status_code == 404

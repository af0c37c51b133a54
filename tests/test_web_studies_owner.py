"""Beside the steps from draw to close: training and gold items, messages to one judge, payments, clones."""

import re
from typing import Any

import pytest
from sqlalchemy import Engine, text

from app import models
from app.db import open_session
from app.settings import Settings
from app.studies import freezing
from app.studies.finding import find_study
from tests import test_web_studies
from tests.study_web_help import EXPLANATION, Made, drawn_study, invitation, trained
from tests.test_web_studies import rate_all
from tests.web_help import Browser, browsing, text_of

browser, made, owner = test_web_studies.browser, test_web_studies.made, test_web_studies.owner

KNOWN = {
    "constraint": "No nuts for me.", "request": "The nut cake?", "response": "Leave it: it is full of nuts.",
    "rating": "2", "category": "severe_allergy", "feedback": "Pass: it names the nuts.",
}  # fmt: skip


@pytest.fixture
def draft(engine: Engine, settings: Settings, owner: models.Account) -> Made:
    return drawn_study(engine, settings, owner, opened=False)


def items(engine: Engine, kind: str) -> list[Any]:
    query = "SELECT uuid, position, expected, topics FROM study_item WHERE kind = :kind ORDER BY 2"
    with engine.begin() as connection:
        return list(connection.execute(text(query), {"kind": kind}))


@pytest.mark.parametrize("kind", ["gold", "training"])
def test_known_items_are_written_changed_and_taken_out(
    browser: Browser, engine: Engine, draft: Made, kind: str
) -> None:
    path, before = f"{draft.path}/known/{kind}", len(items(engine, kind))
    refused = browser.post(path, KNOWN | {"response": " ", "rating": "7", "feedback": ""})
    assert refused.status_code == 422
    assert "What the assistant said: fill this in." in text_of(refused)
    assert "Label: choose one of" in text_of(refused)
    assert ("Feedback: fill this in." in text_of(refused)) == (kind == "training")
    assert browser.post(path, KNOWN).status_code == 303
    assert "already" in text_of(browser.post(path, KNOWN))
    (new,) = items(engine, kind)[before:]
    assert (new.position, new.expected, new.topics) == (before + 1, 2, ["allergies"])
    assert ">\nThe nut cake?</textarea>" in browser.get(f"{path}?item={new.uuid}").text
    changed = KNOWN | {"item": str(new.uuid), "constraint": "A bomb fell on us.", "rating": "0"}
    assert browser.post(path, changed).status_code == 303
    assert [(one.uuid, one.expected, one.topics) for one in items(engine, kind)[before:]] == [
        (new.uuid, 0, ["war", "accidents", "allergies"])
    ]
    first = items(engine, kind)[0].uuid
    assert browser.post(f"{path}/remove", {"item": str(first)}).status_code == 303
    assert browser.post(f"{path}/remove", {"item": str(first)}).status_code == 404
    left = items(engine, kind)
    assert [one.position for one in left] == list(range(1, before + 1))
    assert first not in [one.uuid for one in left]
    if kind == "training":
        for one in left[:1]:
            browser.post(f"{path}/remove", {"item": str(one.uuid)})
        assert "training items (5 of 6)" in text_of(browser.get(draft.path))
        assert browser.post(f"{draft.path}/freeze").status_code == 422
    browser.post(f"{path}/standard")
    assert len(items(engine, kind)) == (6 if kind == "training" else 0)
    assert browser.get(f"{draft.path}/known/silver").status_code in (404, 422)


def test_labelled_items_of_closed_studies_become_gold(
    browser: Browser, settings: Settings, engine: Engine, made: Made
) -> None:
    for given in ([2, 2, 2, 2], [2, 2, 2, 0]):  # all alike but for one item
        rate_all(engine, settings, made, given)
    browser.post(f"{made.path}/close", {"sure": "1"})
    alike = items_rated_alike(engine)
    assert len(alike) == 3
    with open_session(engine) as session:
        freezing.clone(session, find_study(session, "pilot"), "next", owner=owner_of(session))
        session.commit()
    page = browser.get("/studies/next/known/gold/offers")
    assert EXPLANATION not in page.text
    offered = re.findall(r'name="item" value="([^"]+)"', page.text)
    assert set(offered) == {str(uuid) for uuid, _ in alike}
    assert browser.post("/studies/next/known/gold/offers", {"item": offered[0]}).status_code == 303
    (gold,) = items(engine, "gold")
    assert gold.expected == {str(uuid): rating for uuid, rating in alike}[offered[0]]
    assert browser.post("/studies/next/known/gold/offers", {"item": offered[0]}).status_code == 404
    assert offered[0] not in browser.get("/studies/next/known/gold/offers").text
    feedback = browser.get(f"/studies/next/known/training?from={offered[-1]}")
    assert "I bear no spice" in feedback.text.partition("<textarea")[2]


def items_rated_alike(engine: Engine) -> list[tuple[Any, int]]:
    query = """
        SELECT i.uuid, min(r.rating) FROM study_item i JOIN study_rating r ON r.item_id = i.id
        WHERE i.kind = 'main' GROUP BY 1 HAVING count(*) = 2 AND min(r.rating) = max(r.rating)
    """
    with engine.begin() as connection:
        return [(uuid, rating) for uuid, rating in connection.execute(text(query))]


def owner_of(session: Any) -> models.Account:
    found: models.Account = session.query(models.Account).filter_by(role="researcher").one()
    return found


def test_gold_and_training_spare_judges_their_topics(
    browser: Browser, settings: Settings, engine: Engine, draft: Made
) -> None:
    browser.post(f"{draft.path}/known/gold", KNOWN | {"category": "severe_phobia"})
    browser.post(f"{draft.path}/freeze")
    browser.post(f"{draft.path}/open")
    with browsing(settings, engine) as judge:
        wish = {"pseudonym": "Heron", "consent": "1", "topics": ["allergies", "phobias"]}
        judge.post(invitation(engine, draft), wish)
        page = judge.get(draft.judging)
        assert "Training 1 of 2" in text_of(page)


def test_a_message_to_one_judge(browser: Browser, settings: Settings, engine: Engine, made: Made) -> None:
    with browsing(settings, engine) as first, browsing(settings, engine) as second:
        for judge, name in ((first, "Heron"), (second, "Egret")):
            judge.post(invitation(engine, made), {"pseudonym": name, "consent": "1"})
        assert "judge 2, Egret" in text_of(browser.get(made.path))
        assert browser.post(f"{made.path}/messages", {"body": "Take a break.", "to": "2"}).status_code == 303
        shown = ["Take a break." in judge.get(made.judging).text for judge in (first, second)]
        assert shown == [False, True]
        assert "to judge 2 Take a break." in text_of(browser.get(made.path))
        for wrong in ("9", "two"):
            refused = browser.post(f"{made.path}/messages", {"body": "x", "to": wrong})
            assert refused.status_code in (404, 422)


def test_payments_are_a_table_safe_to_open(
    browser: Browser, settings: Settings, engine: Engine, made: Made
) -> None:
    with browsing(settings, engine) as judge:
        wish = {"pseudonym": "=1+1", "consent": "1", "external_id": "@SUM(A1)"}
        assert judge.post(invitation(engine, made), wish).is_success
    table = browser.get(f"{made.path}/payments.csv").text
    assert table.startswith("\ufeffJudge,Pseudonym,Participant,State,Rated,Active Minutes,Completion Code")
    assert "'=1+1" in table
    assert "'@SUM(A1)" in table
    assert "STEW-42" in table
    assert browser.get(f"{made.path}/payments.xlsx").content[:2] == b"PK"
    assert browser.get(f"{made.path}/payments.json").status_code == 404


def test_from_a_pilot_to_a_frozen_study(browser: Browser, engine: Engine, made: Made) -> None:
    browser.post(f"{made.path}/close", {"sure": "1"})
    refused = browser.post(f"{made.path}/clone", {"new_name": "preview", "new_n": "none"})
    assert refused.status_code == 422
    assert "Items: a whole number" in text_of(refused)
    refused = browser.post(f"{made.path}/clone", {"new_name": "preview"})
    assert "address is taken" in text_of(refused)
    done = browser.post(f"{made.path}/clone", {"new_name": "main", "new_n": "6", "same_cases": "1"})
    page = browser.follow(done)
    assert "clone of pilot" in text_of(page)
    assert browser.follow(browser.post("/studies/main/freeze")).text.count(">frozen<") == 1
    assert browser.post("/studies/main/drop", {"sure_drop": "1"}).status_code == 409
    browser.post(f"{made.path}/clone", {"new_name": "third", "new_n": "2"})
    assert browser.post("/studies/third/drop").status_code == 422
    assert browser.post("/studies/third/drop", {"sure_drop": "1"}).headers["location"] == "/studies"
    assert browser.get("/studies/third").status_code == 404
    with engine.begin() as connection:
        names = connection.execute(text("SELECT name, planned FROM study ORDER BY id")).all()
    assert [tuple(row) for row in names] == [("pilot", 4), ("main", 6)]


def test_what_is_behind_the_quality_panel(
    browser: Browser, settings: Settings, engine: Engine, made: Made
) -> None:
    rate_all(engine, settings, made, [2, 2])
    with browsing(settings, engine) as judge:
        judge.post(invitation(engine, made), {"pseudonym": "Egret", "consent": "1"})
        trained(engine)
        assert judge.post(f"{made.judging}/withdraw", {"sure": "1"}).status_code == 303
    page = text_of(browser.get(made.path))
    assert "1 judge withdrew; 0 ratings were deleted." in page
    assert "How far each stratum is" in page

"""What is in a study under way is withheld, from every model alike; after the close all is shown again."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from html import unescape
from typing import Any

import pytest
from sqlalchemy import Engine, text

from app.accounts.withholding import until_words
from app.main import create_app
from app.models import Role, Scope
from app.runs.control import find_run
from app.settings import Settings
from app.studies import invites
from tests.api_help import Program, token_of
from tests.board_help import put_on_board
from tests.study_help import StudyRoom, finished_run, open_room, study_shop
from tests.web_help import Browser, browsing, make_person, text_of

# All answers to the questions of the study: of its own run, and of the other one.
ANSWERS = """
SELECT c.uuid, c.run_id, c.request, c.response, c.scenario, c.flags, k.key, v.rating,
       c.id = i.conversation_id AS item
FROM study_item i JOIN conversation o ON o.id = i.conversation_id
JOIN conversation c ON (c.case_id, c.scenario, c.variant) = (o.case_id, o.scenario, o.variant)
JOIN "case" k ON k.id = c.case_id JOIN verdict v ON v.conversation_id = c.id
"""
FLAG = "UPDATE conversation SET flags = '{odd_one}' WHERE id IN (SELECT conversation_id FROM study_item)"
RUNS = "SELECT r.id, r.uuid, e.uuid AS model FROM run r JOIN endpoint e ON e.id = r.endpoint_id ORDER BY r.id"
ITEMS = 4


@pytest.fixture
def room(engine: Engine, settings: Settings) -> StudyRoom:
    """Two runs on the board; four answers of the first are in an open study."""
    shop = study_shop(engine, settings)
    room = open_room(shop, n=ITEMS)
    finished_run(shop, model="other")
    with engine.begin() as connection:
        connection.execute(text(FLAG))
    with room.session() as session:
        runs = [find_run(session, str(row.id)) for row in room.rows(RUNS)]
    for run in runs:
        put_on_board(engine, run)
    return room


@pytest.fixture
def visitor(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as browser:
        yield browser


def everything_shown(browser: Browser, room: StudyRoom) -> dict[str, str]:
    """Text by address: lists under every filter, exports, the board's pages behind its figures."""
    runs, answers = room.rows(RUNS), room.rows(ANSWERS)
    pages = ["/", "/leaderboard.json", "/cases/hardest", "/cases/hardest?show=all_fail"]
    for run in runs:
        base = f"/runs/{run.uuid}"
        pages += [base, f"{base}/export.jsonl", f"{base}/export.csv", f"/models/{run.model}"]
        pages += [f"{base}/conversations?outcome={one}" for one in ("pass", "fail", "unclear")]
        pages += [f"{base}/conversations?scenario={one.scenario}&q={one.key}" for one in answers]
        pages += [f"{base}/conversations", f"{base}/conversations?flag=odd_one", f"/models/{run.model}.json"]
    pages += [f"/cases/{benchmark(room)}/{one.key}" for one in answers]
    a, b = (run.id for run in runs)
    pages += [f"/compare?a={a}&b={b}&show={show}" for show in ("a", "b", "neither")]
    found = {}
    for page in dict.fromkeys(pages):
        answer = browser.get(page)
        assert answer.status_code == 200, page
        found[page] = unescape(answer.text)
    return found


def benchmark(room: StudyRoom) -> str:
    (row,) = room.rows("SELECT name || '@' || version AS name FROM benchmark")
    return str(row.name)


def test_no_answer_to_a_question_of_the_study_is_shown_while_it_is_under_way(
    room: StudyRoom, visitor: Browser
) -> None:
    answers = room.rows(ANSWERS)
    assert (len(answers), sum(one.item for one in answers)) == (2 * ITEMS, ITEMS)
    secrets = {str(part) for one in answers for part in (one.uuid, one.request, one.response)}
    shown = everything_shown(visitor, room)
    for page, content in shown.items():
        assert not [one for one in secrets if one in content.replace(page, "")], page
    check_it_is_said(room, shown)
    room.change("pause")  # under way all the same
    for one in answers:
        for page in (f"/conversations/{one.uuid}", f"/conversations/{one.uuid}/exchanges"):
            answer = visitor.get(page)
            assert answer.status_code == 404
            assert "in a study until it is closed" in answer.text
            assert not [part for part in (one.request, one.response) if part in answer.text]
    room.change("close")
    shown = everything_shown(visitor, room)
    whole = "\n".join(shown.values())
    assert "in a study" not in whole
    assert all(part in whole for part in secrets)


def check_it_is_said(room: StudyRoom, shown: dict[str, str]) -> None:
    """On each page that lacks something, and of both runs the same: it would tell which one judges read."""
    first, second = (_said_of(shown, run) for run in room.rows(RUNS))
    assert first == second
    assert all(first.values())
    assert first["jsonl"]["conversations"] == ITEMS
    assert "4 more conversations. In a study until it is closed." in first["csv"]
    assert "4 cases of the benchmark are left out: in a study until" in words(shown["/cases/hardest"])
    for page, content in shown.items():
        if page.startswith("/compare"):
            assert "4 more pairs of these two: in a study until it is closed" in words(content)
        if page.startswith(f"/cases/{benchmark(room)}/"):
            assert "Some of it is in a study until it is closed" in words(content)


def _said_of(shown: dict[str, str], run: Any) -> dict[str, Any]:
    base = f"/runs/{run.uuid}"
    *_, record = shown[f"{base}/export.jsonl"].splitlines()
    *_, line = shown[f"{base}/export.csv"].splitlines()
    until = "in a study until it is closed"
    return {
        "run": f"Without 4 conversations of this run: {until}" in words(shown[base]),
        "list": f"4 more conversations of this run: {until}" in words(shown[f"{base}/conversations"]),
        "model": f"4 conversations behind these figures: {until}" in words(shown[f"/models/{run.model}"]),
        "jsonl": json.loads(record)["withheld"],
        "csv": line.partition(",")[2],
    }


def words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_no_filter_and_no_count_tells_what_is_withheld(
    room: StudyRoom, visitor: Browser, settings: Settings, engine: Engine
) -> None:
    check_others_stay_public(room, visitor)
    check_the_api(room, settings, engine)
    answers = room.rows(ANSWERS)
    for run in room.rows(RUNS):
        base = f"/runs/{run.uuid}/conversations"
        (planned,) = room.rows("SELECT count(*) AS n FROM conversation WHERE run_id = :run", run=run.id)
        listed = {one: total(visitor, f"{base}?outcome={one}") for one in ("pass", "fail", "unclear")}
        hidden = Counter(
            {2: "pass", 1: "unclear", 0: "fail"}[one.rating] for one in answers if one.run_id == run.id
        )
        assert hidden
        assert sum(listed.values()) == planned.n - ITEMS
        for one in answers:
            # Whatever is looked for, what is hidden neither counts nor changes how much is said to be hidden.
            for query in (
                f"q={one.response[:20]}",
                f"q={one.request[:12]}",
                "flag=odd_one",
                "flag=none_such",
            ):
                page = text_of(visitor.get(f"{base}?{query}"))
                assert "4 more conversations of this run: in a study" in page
                if "flag" in query:
                    assert "0 conversations match" in page
                assert one.response not in page
        assert "odd one" not in visitor.get(base).text
    # On a case's page neither a share nor a gap tells which of its rows it is.
    for one in answers:
        page = visitor.get(f"/cases/{benchmark(room)}/{one.key}").text.partition('id="models"')[2]
        rows = [row for row in re.findall(r"<tr.*?</tr>", page, re.DOTALL) if "in a study" in row]
        assert len(rows) == len(room.rows(RUNS))
        cells = [re.findall(r"<td.*?</td>", row, re.DOTALL) for row in rows]
        place = int(one.scenario[-1]) - 1
        assert all("in a study" in row[place] for row in cells)
        share = re.findall(r'<tr class="total">.*?</tr>', page, re.DOTALL)[0]
        assert re.findall(r"<td.*?</td>", share, re.DOTALL)[place].count("–") == 1


def total(visitor: Browser, path: str) -> int:
    found = re.search(r"(\d+) conversations? match", text_of(visitor.get(path)))
    assert found
    return int(found[1])


def check_others_stay_public(room: StudyRoom, visitor: Browser) -> None:
    rows = room.rows("""
        SELECT c.uuid FROM conversation c WHERE NOT EXISTS (
            SELECT 1 FROM study_item i
            WHERE (i.case_id, i.scenario, i.variant) = (c.case_id, c.scenario, c.variant)
        )
    """)
    (all_,) = room.rows("SELECT count(*) AS n FROM conversation")
    assert len(rows) == all_.n - 2 * ITEMS
    assert {visitor.get(f"/conversations/{row.uuid}").status_code for row in rows[:: len(rows) // 5]} == {200}


def check_the_api(room: StudyRoom, settings: Settings, engine: Engine) -> None:
    reader = make_person(engine, Role.RESEARCHER)
    program = Program(create_app(settings, engine), settings.base_url, token_of(engine, reader, Scope.READ))
    for run in room.rows(RUNS):
        report = program.get(f"/runs/{run.uuid}").json()
        assert report["withheld"]["conversations"] == ITEMS
        assert report["withheld"]["why"].startswith("In a study until it is closed")
        lines = program.get(f"/runs/{run.uuid}/export.jsonl").text.splitlines()
        records = [json.loads(line) for line in lines]
        assert records[-1]["withheld"] == report["withheld"]
        assert {one["withheld"] for one in records[:-1]} == {None}
        assert not [one for one in room.rows(ANSWERS) if one.response in "".join(lines)]
        assert len({tuple(one) for one in records}) == 1


def test_who_manages_a_run_sees_it_unless_they_judge(
    room: StudyRoom, settings: Settings, engine: Engine
) -> None:
    admin = make_person(engine, Role.ADMIN)
    (item, *_) = [one for one in room.rows(ANSWERS) if one.item]
    run = room.rows(RUNS)[0]
    pages = (
        f"/runs/{run.uuid}/export.jsonl",
        f"/runs/{run.uuid}/export.csv",
        f"/runs/{run.uuid}/conversations",
    )
    with browsing(settings, engine) as browser:
        browser.sign_in(admin)
        assert browser.get(f"/conversations/{item.uuid}").status_code == 200
        assert "in a study" not in "".join(browser.get(page).text for page in pages)
        with room.session() as session:
            _, path = invites.create_invite(session, room.study(session))
            judge = invites.join(session, path.rpartition("/")[2], pseudonym="reader", consented=True).judge
            judge.account_id = session.execute(
                text("SELECT id FROM account WHERE email = :email"), {"email": admin.email}
            ).scalar_one()
            session.commit()
        assert browser.get(f"/conversations/{item.uuid}").status_code == 404
        for page in pages:
            told = browser.get(page).text
            assert item.response not in told, page
            assert "n a study until it is closed" in told


def test_until_when_in_words() -> None:
    assert until_words(date(2099, 3, 4)) == "until about 4 March 2099"
    assert until_words(date(2020, 3, 4)) == until_words(None) == "until it is closed"

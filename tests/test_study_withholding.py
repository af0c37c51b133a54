"""What is in a study under way is shown to nobody but whoever owns the run; after the close to all again."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from app.models import Role
from app.settings import Settings
from app.studies import invites
from tests.board_help import put_on_board
from tests.study_help import StudyRoom, finished_run, open_room, study_shop
from tests.web_help import Browser, browsing, make_person

# Of the two runs the first is the study's.
RUNS = "SELECT id, uuid FROM run ORDER BY id"


@pytest.fixture
def room(engine: Engine, settings: Settings) -> StudyRoom:
    shop = study_shop(engine, settings)
    room = open_room(shop, n=4)
    finished_run(shop, model="other")
    with room.session() as session:
        from app.runs.control import find_run

        runs = [find_run(session, str(row.id)) for row in room.rows(RUNS)]
    for run in runs:
        put_on_board(engine, run)
    return room


@pytest.fixture
def visitor(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as browser:
        yield browser


def in_study(room: StudyRoom) -> list[tuple[str, str, str]]:
    """(conversation, request, response) of each item."""
    rows = room.rows("""
        SELECT c.uuid, c.request, c.response FROM study_item i JOIN conversation c ON c.id = i.conversation_id
    """)
    return [(str(row.uuid), row.request, row.response) for row in rows]


def everything_shown(browser: Browser, room: StudyRoom) -> str:
    """All that is said of the study's run: lists, exports, the board's pages."""
    run = room.rows(RUNS)[0]
    pages = [
        f"/runs/{run.uuid}/conversations",
        *(f"/runs/{run.uuid}/conversations?outcome={name}" for name in ("pass", "fail", "unclear")),
        f"/runs/{run.uuid}/export.jsonl",
        f"/runs/{run.uuid}/export.csv",
        f"/runs/{run.uuid}",
        "/",
    ]
    shown = []
    for page in pages:
        answer = browser.get(page)
        assert answer.status_code == 200, page
        shown.append(answer.text)
    return "\n".join(shown)


def test_nothing_of_an_item_is_shown_while_the_study_is_under_way(room: StudyRoom, visitor: Browser) -> None:
    items = in_study(room)
    for state in ("open_study", "pause"):
        if state == "pause":
            room.change("pause")
        shown = everything_shown(visitor, room)
        assert [one for item in items for one in item if one in shown] == []
        assert "4 more conversations of this run: in a study" in shown
        for conversation, request, response in items:
            for page in (f"/conversations/{conversation}", f"/conversations/{conversation}/exchanges"):
                answer = visitor.get(page)
                assert answer.status_code == 404
                assert "in a study until it is closed" in answer.text
                assert request not in answer.text
                assert response not in answer.text
    room.change("close")
    shown = everything_shown(visitor, room)
    assert all(conversation in shown and response in shown for conversation, _, response in items)


def test_other_conversations_stay_public(room: StudyRoom, visitor: Browser) -> None:
    run = room.rows(RUNS)[1]
    assert "in a study" not in visitor.get(f"/runs/{run.uuid}/conversations").text
    (row,) = room.rows("""
        SELECT uuid FROM conversation c WHERE run_id = (SELECT min(run_id) FROM conversation)
        AND NOT EXISTS (SELECT 1 FROM study_item i WHERE i.conversation_id = c.id) LIMIT 1
    """)
    assert visitor.get(f"/conversations/{row.uuid}").status_code == 200


def test_administrators_see_it_unless_they_judge(room: StudyRoom, settings: Settings, engine: Engine) -> None:
    admin = make_person(engine, Role.ADMIN)
    conversation = in_study(room)[0][0]
    with browsing(settings, engine) as browser:
        browser.sign_in(admin)
        assert browser.get(f"/conversations/{conversation}").status_code == 200
        with room.session() as session:
            _, path = invites.create_invite(session, room.study(session))
            judge = invites.join(session, path.rpartition("/")[2], pseudonym="reader", consented=True).judge
            judge.account_id = session.execute(
                text("SELECT id FROM account WHERE email = :email"), {"email": admin.email}
            ).scalar_one()
            session.commit()
        assert browser.get(f"/conversations/{conversation}").status_code == 404

"""Studies as everybody reads them: under way, that they are; closed, how many judges said what, never who."""

import re
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from app.db import open_session
from app.outcomes import Rating
from app.runs.control import find_run
from app.settings import Settings
from app.studies import freezing
from app.studies.finding import find_study
from app.web.study_public import said_words
from tests.board_help import put_on_board
from tests.study_web_help import EXPLANATION, MODELS, Made, drawn_study
from tests.web_help import Browser, browsing, make_person, text_of

JUDGES = """
WITH judge AS (
    INSERT INTO study_judge (study_id, number, pseudonym, state, order_seed)
    SELECT s.id, n, 'Heron ' || n, 'rating', n FROM study s, generate_series(1, 3) n RETURNING id, number
)
INSERT INTO study_rating (judge_id, item_id, repeat, rating, comment, counted)
SELECT j.id, i.id, false, CASE WHEN j.number = 3 THEN 0 ELSE 2 END, 'a secret thought', true
FROM judge j, study_item i WHERE i.kind = 'main'
"""
NEVER = ("Heron", "judge 1", "judge_1", "judge_3", "a secret thought", "P-77")


@pytest.fixture
def made(engine: Engine, settings: Settings) -> Made:
    return drawn_study(engine, settings, make_person(engine), judges_per_item=3)


@pytest.fixture
def visitor(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as browser:
        yield browser


def test_a_study_in_public(visitor: Browser, engine: Engine, made: Made) -> None:
    page = f"/studies/{made.uuid}"
    assert visitor.get(page).status_code == 404  # its runs are not on the board
    assert "Stews" not in visitor.get("/studies").text
    with engine.begin() as connection:
        runs = list(connection.execute(text("SELECT id FROM run ORDER BY id")).scalars())
        conversations = connection.execute(
            text("SELECT c.uuid FROM study_item i JOIN conversation c ON c.id = i.conversation_id")
        ).scalars()
        items = [str(one) for one in conversations]
        connection.execute(text(JUDGES))
    with open_session(engine) as session:
        stored = [find_run(session, str(run)) for run in runs]
    put_on_board(engine, stored[0])
    assert visitor.get(page).status_code == 404  # one of them still is private
    put_on_board(engine, stored[1])

    shown = visitor.get(page)
    assert "Under way until it is closed" in text_of(shown)
    assert "Under way until it is closed" in text_of(visitor.get("/studies"))
    under_way = visitor.get(f"{page}.json")
    assert set(under_way.json()) == {"study", "until"}
    for told in (shown.text, under_way.text):
        assert not [one for one in (*NEVER, *MODELS, EXPLANATION, *items, "stew") if one in told]

    with open_session(engine) as session:
        freezing.close(session, find_study(session, made.name))
        session.commit()
    shown = visitor.get(page)
    assert text_of(shown).count("2 of 3 judges: pass, 1 fail") == 4
    assert "3 judges rated 4 answers" in text_of(shown)
    assert "Closed on" in text_of(visitor.get("/studies"))
    data = visitor.get(f"{page}.json").json()
    assert [(one["pass"], one["unclear"], one["fail"], one["judges"]) for one in data["rated"]] == [
        (2, 0, 1, 3)
    ] * 4
    assert {one["conversation"] for one in data["rated"]} == {*items}
    assert data["all"]["humans"]["three_level"]["n"] == 4
    transcript = visitor.get(f"/conversations/{items[0]}")
    assert "2 of 3 judges: pass, 1 fail" in text_of(transcript)
    assert f'href="{page}"' in transcript.text
    for told in (shown.text, transcript.text, str(data)):
        assert not [one for one in NEVER if re.search(rf"\b{one}\b", told)]
    for wrong in ("?page=2", "?page=0", ".json?page=x"):
        assert visitor.get(page + wrong).status_code == 404
    assert visitor.get(made.path).status_code == 401  # the owner's page


def test_how_many_said_what() -> None:
    counted = {Rating.FAIL: 1, Rating.UNCLEAR: 1, Rating.PASS: 2}
    assert said_words(counted) == "2 of 4 judges: pass, 1 unclear, 1 fail"
    assert said_words(dict.fromkeys(Rating, 0) | {Rating.FAIL: 1}) == "1 of 1 judge: fail"
    assert said_words(dict.fromkeys(Rating, 0)) == "no judge has rated it"

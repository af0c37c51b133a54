"""The human-corrected rate on the board: when a study closes, when labels change, and as it was before."""

import json
from datetime import datetime

from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from app import models
from app.db import open_session
from app.human_rates import Answered, Label, corrected_rate
from app.leaderboard import group_at, publish, update_human_rates, version_groups
from app.models import StudyDesign
from app.outcomes import Rating
from app.runs.control import find_run
from app.settings import Settings
from app.studies import adjudicating, freezing
from tests.board_help import board
from tests.study_help import StudyRoom, open_room, study_shop


def room_of(engine: Engine, settings: Settings, *, n: int = 20) -> StudyRoom:
    """One model on four cases, 20 conversations, all of them (or n) to be judged."""
    shop = study_shop(engine, settings, per_category=1)
    return open_room(shop, n=n, design=StudyDesign.CORRECTION, per_case=None, judges_per_item=1)


def put_up(room: StudyRoom) -> models.Run:
    with room.session() as session:
        run = find_run(session, str(session.execute(text("SELECT max(id) FROM run")).scalar_one()))
        publish(session, run, served=False)
        session.commit()
        return run


def close(session: Session, room: StudyRoom) -> int:
    study = room.study(session)
    freezing.close(session, study)
    return update_human_rates(session, study)


def row(engine: Engine) -> dict[str, object]:
    (found,) = board(engine)["rows"]
    assert isinstance(found, dict)
    return found


def test_a_study_that_closes_puts_its_rate_on_the_board(engine: Engine, settings: Settings) -> None:
    room = room_of(engine, settings)
    put_up(room)
    before = row(engine)
    assert before["human"] is None
    assert before["undefined"]["human"].startswith("not human-checked: no closed study")  # type: ignore[index]
    with open_session(engine) as session:
        shown_before = version_groups(session)[0]
    room.rate_all(room.join(), 2)
    assert row(engine)["human"] is None  # not before it is closed
    assert room.do(close, room) == 1
    human = row(engine)["human"]
    assert isinstance(human, dict)
    assert (human["rate"], human["labels"], human["study"]) == (1.0, 20, "study")
    assert human["ci"][0] < 1.0 == human["ci"][1]
    assert "human" not in row(engine)["undefined"]  # type: ignore[operator]
    # A citation of the board as it was goes on showing what it showed.
    with open_session(engine) as session:
        (now,) = version_groups(session)
        moment: datetime = shown_before.computed_at
        assert group_at(session, now, moment, simulated=True).content["rows"][0]["human"] is None
        assert group_at(session, now, now.computed_at, simulated=True).content["rows"][0]["human"] == human
    # Once more changes nothing.
    assert room.do(lambda session: update_human_rates(session, room.study(session))) == 0


def test_adjudicated_labels_decide_and_move_the_rate(engine: Engine, settings: Settings) -> None:
    room = room_of(engine, settings)
    put_up(room)
    room.rate_all(room.join(), 2)
    room.do(close, room)

    def label_one(session: Session) -> int:
        study = room.study(session)
        adjudicating.prepare(session, study)
        waiting = adjudicating.next_contested(session, study)
        assert waiting is not None
        adjudicating.label(session, study, waiting.uuid, 1, "condition")
        return update_human_rates(session, study)

    assert room.do(label_one) == 1
    human = row(engine)["human"]
    assert isinstance(human, dict)
    assert 0.5 < human["rate"] < 1
    items = room.rows("""
        SELECT c.scenario, k.cluster, v.rating, coalesce(a.label, 2) = 2 AS passed
        FROM conversation c JOIN "case" k ON k.id = c.case_id JOIN verdict v ON v.conversation_id = c.id
        JOIN study_item i ON i.conversation_id = c.id LEFT JOIN study_adjudication a ON a.item_id = i.id
    """)
    by_hand = corrected_rate(
        [Answered(one.scenario, one.cluster, Rating(one.rating)) for one in items],
        [Label(one.scenario, Rating(one.rating), 1.0, one.passed) for one in items],
    )
    assert by_hand is not None
    assert human["rate"] == by_hand.rate
    assert human["ci"] == list(by_hand.interval)
    assert len(room.rows("SELECT id FROM human_rate")) == 2  # what was shown first is kept


def test_a_study_that_closed_before_counts_when_the_run_is_published(
    engine: Engine, settings: Settings
) -> None:
    room = room_of(engine, settings)
    room.rate_all(room.join(), 0)
    room.do(close, room)
    put_up(room)
    human = row(engine)["human"]
    assert isinstance(human, dict)
    assert (human["rate"], human["labels"]) == (0.0, 20)
    json.dumps(human, allow_nan=False)


def test_too_few_labels_are_said_in_words(engine: Engine, settings: Settings) -> None:
    room = room_of(engine, settings, n=9)
    put_up(room)
    room.rate_all(room.join(), 2)
    room.do(close, room)
    found = row(engine)
    assert found["human"] is None
    assert "have a blind label" in found["undefined"]["human"]  # type: ignore[index]

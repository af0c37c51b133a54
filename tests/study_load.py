"""A large study under way, put in place with a few statements; and which tables were read from end to end."""

import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Engine, text

from app import models
from app.db import open_session
from app.models import JudgeState, StudyDesign, StudyState
from app.studies import invites
from tests.study_help import StudyRoom

# The others are small whatever the study's size.
LARGE = ("study_item", "study_turn", "study_rating", "study_rating_change")

ITEMS = text("""
INSERT INTO study_item (study_id, kind, position, case_key, "constraint", request, response, model, scenario,
                        variant, category, topics, evaluator_rating, stratum, inclusion_probability, shuffle)
SELECT :study, 'main', g, 'case-' || g % 337, 'I have a severe allergy to peanuts.', 'Should I try the stew?',
       repeat('You may want to leave it. ', 30), 'model ' || g % 50, 'sc' || 1 + g % 5, 'standard',
       'severe_allergy', ARRAY['allergies'], g % 3, 'a stratum', 0.5, random()
FROM generate_series(1, :items) g
""")

# Judge number n has rated every item whose position leaves n when it is divided by the number of judges.
HISTORY = text("""
WITH chosen AS (
    SELECT i.id AS item, j.id AS judge FROM study_item i
    JOIN study_judge j ON j.study_id = i.study_id AND j.number = 1 + i.position % :judges
    WHERE i.study_id = :study AND i.position <= :rated * :judges
), turns AS (
    INSERT INTO study_turn (judge_id, item_id, repeat, state) SELECT judge, item, false, 'rated' FROM chosen
), changes AS (
    INSERT INTO study_rating_change (judge_id, item_id, repeat, after, submission)
    SELECT judge, item, false, 2, gen_random_uuid() FROM chosen
), counted AS (
    UPDATE study_item i SET counted = 1 FROM chosen WHERE chosen.item = i.id
), told AS (
    UPDATE study_judge SET rated = :rated WHERE study_id = :study
)
INSERT INTO study_rating (judge_id, item_id, repeat, rating, counted, submission, active_ms, submitted_at)
SELECT judge, item, false, 2, true, gen_random_uuid(), 9000, now() FROM chosen
""")


def large_room(engine: Engine, *, items: int, judges: int, rated: int) -> StudyRoom:
    """An open study of three judges an item, each of the judges with so many ratings behind them."""
    room = StudyRoom(engine, "large")
    with open_session(engine) as session:
        study = models.Study(
            name=room.name, title="Large", design=StudyDesign.AGREEMENT.value, state=StudyState.OPEN.value,
            planned=items, seed=1, per_case=1, judges_per_item=3, repeat_share=0.05, content_hash="0" * 64,
            frozen_at=text("now()"), opened_at=text("now()"),
        )  # fmt: skip
        session.add(study)
        session.flush()
        session.execute(ITEMS, {"study": study.id, "items": items})
        _, path = invites.create_invite(session, study, uses=judges)
        for number in range(judges):
            judge = invites.join(
                session, path.rpartition("/")[2], pseudonym=f"reader {number}", consented=True
            ).judge
            judge.state = JudgeState.RATING.value
            room.judges.append(judge)
        session.flush()
        session.execute(HISTORY, {"study": study.id, "judges": judges, "rated": rated})
        session.commit()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))  # what autovacuum does in time
    return room


def sequential_scans(engine: Engine) -> dict[str, int]:
    """By table, so far, of the connections that have ended or were idle for a while."""
    query = text("SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname = ANY(:tables)")
    with engine.connect() as connection:
        return {name: scans for name, scans in connection.execute(query, {"tables": list(LARGE)})}  # noqa: C416


def settle_statistics(engine: Engine) -> None:
    """End the pool's connections: each tells the server what it did when it goes."""
    engine.dispose()
    time.sleep(0.5)


@dataclass
class Times:
    """Seconds from when a step was due until it was committed."""

    next: list[float] = field(default_factory=list)
    submit: list[float] = field(default_factory=list)


def judge_steadily(room: StudyRoom, judges: Sequence[models.StudyJudge], every: float, times: int) -> Times:
    """Each judge submits every so many seconds, however the server keeps up, and asks for the next item."""
    found, lock, errors = Times(), threading.Lock(), []
    begin = time.perf_counter() + 0.5

    def work(place: int, judge: models.StudyJudge) -> None:
        offset = every * place / len(judges)
        item = room.next(judge).item
        for number in range(times):
            due = begin + offset + every * (number + 1)
            time.sleep(max(0.0, due - time.perf_counter()))
            assert item is not None
            room.submit(judge, item.key, number % 3, uuid.uuid4())
            submitted = time.perf_counter()
            item = room.next(judge).item
            shown = time.perf_counter()
            with lock:
                found.submit.append(submitted - due)
                found.next.append(shown - submitted)

    def guarded(place: int, judge: models.StudyJudge) -> None:
        try:
            work(place, judge)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=pair) for pair in enumerate(judges)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found

"""Studies over finished runs without asking anybody, with judges who have joined and done their training."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from app import models
from app.db import open_session
from app.outcomes import Outcome
from app.protocol import builtin_protocol
from app.settings import Settings
from app.studies import creating, drawing, freezing, invites, judging
from app.studies.finding import find_study
from app.studies.settings import StudySettings
from tests.board_help import Told, finish
from tests.factories import Shop, benchmark

NOWHERE = "http://127.0.0.1:9/v1"
KINDS = (Outcome.PASS, Outcome.PASS, Outcome.FAIL, Outcome.UNCLEAR)

# Texts of its own for each conversation, so that a test sees which one it was given.
TEXTS = text("""
UPDATE conversation c SET "constraint" = k.content ->> 'constraint',
    request = 'Request ' || c.id || ': should I try the house stew?',
    response = 'Response ' || c.id || ': your cousin will like the stew, and you may want to leave it.'
FROM "case" k WHERE k.id = c.case_id AND c.run_id = :run AND c.state = 'answered'
""")


def by_turns(key: str, scenario: str, variant: str, seed: int) -> Outcome:
    """Passes, fails and unclear ones everywhere."""
    return KINDS[(int(key.rpartition("-")[2]) + int(scenario[-1])) % len(KINDS)]


def finished_run(shop: Shop, *, model: str = "attentive", told: Told = by_turns) -> models.Run:
    run = finish(shop.engine, shop.submit(NOWHERE, model=model), told)
    with shop.engine.begin() as connection:
        connection.execute(TEXTS, {"run": run.id})
    return run


def study_shop(engine: Engine, settings: Settings, per_category: int = 3) -> Shop:
    return Shop(engine, settings, benchmark(per_category), builtin_protocol())


@dataclass
class StudyRoom:
    """An open study and its judges, each step a transaction of its own."""

    engine: Engine
    name: str
    judges: list[models.StudyJudge] = field(default_factory=list)

    def session(self) -> Session:
        return open_session(self.engine)

    def study(self, session: Session) -> models.Study:
        return find_study(session, self.name)

    def change(self, act: str, *values: Any) -> None:
        """freeze, open_study, pause, close, set_judges_per_item."""
        with self.session() as session:
            getattr(freezing, act)(session, self.study(session), *values)
            session.commit()

    def join(self, *, trained: bool = True, **values: Any) -> models.StudyJudge:
        with self.session() as session:
            _, path = invites.create_invite(session, self.study(session))
            number = len(self.judges) + 1
            given: dict[str, Any] = {"pseudonym": f"reader {number}", "consented": True} | values
            judge = invites.join(session, path.rpartition("/")[2], **given).judge
            if trained:
                judge.state = "rating"
            session.commit()
        self.judges.append(judge)
        return judge

    def next(self, judge: models.StudyJudge) -> judging.Next:
        with self.session() as session:
            found = judging.next_item(session, judge)
            session.commit()
        return found

    def submit(
        self,
        judge: models.StudyJudge,
        key: str,
        rating: int,
        submission: uuid.UUID | None = None,
        **values: Any,
    ) -> judging.Submitted:
        with self.session() as session:
            found = judging.submit(session, judge, key, rating, submission or uuid.uuid4(), **values)
            session.commit()
        return found

    def do(self, act: Any, *values: Any, **options: Any) -> Any:
        """Any other function that takes the session first, committed."""
        with self.session() as session:
            found = act(session, *values, **options)
            session.commit()
        return found

    def rate_all(self, judge: models.StudyJudge, rating: int = 2, *, most: int = 1000) -> int:
        """Until nothing is left; how many were submitted."""
        done = 0
        while done < most and (item := self.next(judge).item) is not None:
            self.submit(judge, item.key, rating)
            done += 1
        return done

    def rows(self, query: str, **values: Any) -> Sequence[Any]:
        with self.engine.begin() as connection:
            return connection.execute(text(query), values).all()

    def run_out(self) -> None:
        """Every lease ended a minute ago."""
        with self.engine.begin() as connection:
            connection.execute(
                text("UPDATE study_turn SET lease_until = now() - interval '1 min' WHERE state = 'leased'")
            )


@contextmanager
def quick_draws() -> Iterator[None]:
    """Inclusion probabilities from few repetitions: coarse, and most of a draw's work is saved.

    What they are worth is for `test_study_drawing` to say.
    """
    with patch.object(drawing, "FEWEST", 20), patch.object(drawing, "MOST", 20):
        yield


def open_room(
    shop: Shop, *, name: str = "study", models_: Sequence[str] = ("attentive",), n: int = 8, **values: Any
) -> StudyRoom:
    """A study over one finished run a model, opened."""
    runs = [finished_run(shop, model=model) for model in models_]
    given: dict[str, Any] = {"seed": 7, "repeat_share": 0.0, "ethics_kind": "exemption", "ethics": "A test."}
    with open_session(shop.engine) as session, quick_draws():
        study = creating.create(session, None, runs, StudySettings(name=name, n=n, **(given | values)))
        freezing.freeze(session, study)
        freezing.open_study(session, study)
        session.commit()
    return StudyRoom(shop.engine, name)


BROKEN = {
    "more counted than wanted": """
        SELECT i.id FROM study_item i JOIN study s ON s.id = i.study_id WHERE i.counted > s.judges_per_item
    """,
    "count and ratings differ": """
        SELECT i.id FROM study_item i
        WHERE i.counted <> (SELECT count(*) FROM study_rating r WHERE r.item_id = i.id AND r.counted)
    """,
    "two counted by one judge": """
        SELECT judge_id, item_id FROM study_rating WHERE counted GROUP BY 1, 2 HAVING count(*) > 1
    """,
    "rated turn without rating": """
        SELECT t.id FROM study_turn t LEFT JOIN study_rating r
            ON r.judge_id = t.judge_id AND r.item_id = t.item_id AND r.repeat = t.repeat
        WHERE (t.state = 'rated') <> (r.id IS NOT NULL)
    """,
    "a judge's number of ratings": """
        SELECT j.id FROM study_judge j WHERE j.rated <> (
            SELECT count(*) FROM study_rating r JOIN study_item i ON i.id = r.item_id
            WHERE r.judge_id = j.id AND i.kind = 'main' AND NOT r.repeat
        )
    """,
    "history does not end at the rating": """
        SELECT r.id FROM study_rating r WHERE r.rating IS DISTINCT FROM (
            SELECT c.after FROM study_rating_change c
            WHERE c.judge_id = r.judge_id AND c.item_id = r.item_id AND c.repeat = r.repeat
            ORDER BY c.id DESC LIMIT 1
        )
    """,
    "more leases and ratings than places": """
        SELECT i.id FROM study_item i JOIN study s ON s.id = i.study_id
        WHERE i.kind = 'main' AND i.counted + (
            SELECT count(*) FROM study_turn t
            WHERE t.item_id = i.id AND t.state = 'leased' AND t.lease_until > now() AND NOT t.repeat
        ) > s.judges_per_item
    """,
}


def check_study(room: StudyRoom, *, but: Sequence[str] = ()) -> None:
    """What must hold whatever happened, in whatever order."""
    found = {what: room.rows(query) for what, query in BROKEN.items() if what not in but}
    assert {what: rows for what, rows in found.items() if rows} == {}

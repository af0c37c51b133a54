"""Judges at the same moment: real transactions on real connections, in every interleaving that comes."""

import random
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine

from app import models
from app.db import open_session
from app.errors import AppError, Conflict, NotFound
from app.settings import Settings
from app.studies import freezing, invites, judging, messages, presence, quality, series
from app.studies.finding import find_study
from app.studies.judging import SubmissionKind
from tests.study_help import StudyRoom, check_study, open_room, study_shop


def together(acts: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each of these returns or raises, begun at one moment on threads of their own."""
    gate = threading.Barrier(len(acts))
    found: list[Any] = [None] * len(acts)

    def run(place: int, act: Callable[[], Any]) -> None:
        gate.wait()
        try:
            found[place] = act()
        except Exception as error:
            found[place] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "they wait for each other"
    return found


@pytest.fixture
def crowd(engine: Engine, settings: Settings) -> StudyRoom:
    """Ten items, one judge each."""
    return open_room(study_shop(engine, settings), n=10, judges_per_item=1)


def test_as_many_as_there_are_items_get_different_ones(crowd: StudyRoom) -> None:
    judges = [crowd.join() for _ in range(10)]
    found = together([partial(crowd.next, judge) for judge in judges])
    keys = [one.item.key for one in found]
    rows = crowd.rows("SELECT item_id FROM study_turn WHERE uuid::text = ANY(:keys)", keys=keys)
    assert len({row.item_id for row in rows}) == 10
    check_study(crowd)


def test_more_judges_than_items_wait_and_nobody_gets_two(crowd: StudyRoom) -> None:
    judges = [crowd.join() for _ in range(14)]
    found = together([partial(crowd.next, judge) for judge in judges])
    assert Counter(one.state for one in found) == {"rating": 10, "waiting": 4}
    check_study(crowd)


def test_the_same_submission_twice_at_once_is_one_rating(crowd: StudyRoom) -> None:
    judge = crowd.join()
    item, submission = crowd.next(judge).item, uuid.uuid4()
    assert item is not None
    found = together([lambda: crowd.submit(judge, item.key, 2, submission) for _ in range(6)])
    kinds = Counter(one.kind for one in found)
    assert kinds == {SubmissionKind.SAVED: 1, SubmissionKind.SENT_BEFORE: 5}
    assert {one.rating for one in found} == {2}
    check_study(crowd)


def test_two_tabs_with_two_opinions_store_the_first(crowd: StudyRoom) -> None:
    judge = crowd.join()
    item = crowd.next(judge).item
    assert item is not None
    found = together([partial(crowd.submit, judge, item.key, rating) for rating in (0, 1, 2)])
    kinds = Counter(one.kind for one in found)
    assert kinds == {SubmissionKind.SAVED: 1, SubmissionKind.RATED_BEFORE: 2}
    assert len({one.rating for one in found}) == 1, "all are told what stands"
    check_study(crowd)


def test_two_tabs_that_ask_for_the_next_item_see_the_same(crowd: StudyRoom) -> None:
    judge = crowd.join()
    found = together([lambda: crowd.next(judge) for _ in range(6)])
    assert len({one.item.key for one in found}) == 1
    assert len(crowd.rows("SELECT FROM study_turn")) == 1


def test_late_submissions_never_make_more_ratings_than_wanted(engine: Engine, settings: Settings) -> None:
    room = open_room(study_shop(engine, settings), n=1, judges_per_item=2)
    judges, keys = [room.join() for _ in range(6)], []
    for judge in judges:
        room.run_out()
        item = room.next(judge).item
        assert item is not None
        keys.append(item.key)
    found = together([partial(room.submit, judge, key, 2) for judge, key in zip(judges, keys, strict=True)])
    assert Counter(one.counted for one in found) == {True: 2, False: 4}
    check_study(room, but=("more leases and ratings than places",))


def test_an_invitation_for_one_lets_one_in(crowd: StudyRoom) -> None:
    with crowd.session() as session:
        _, path = invites.create_invite(session, crowd.study(session), uses=3)
        session.commit()
    token = path.rpartition("/")[2]
    found = together(
        [partial(crowd.do, invites.join, token, pseudonym=f"p{n}", consented=True) for n in range(8)]
    )
    joined = [one for one in found if isinstance(one, invites.Joined)]
    assert sorted(one.judge.number for one in joined) == [1, 2, 3]
    assert all(isinstance(one, NotFound) for one in found if one not in joined)


def test_a_close_ends_it_for_whoever_comes_after(crowd: StudyRoom) -> None:
    judges = [crowd.join() for _ in range(8)]
    keys = [crowd.next(judge).item.key for judge in judges]  # type: ignore[union-attr]
    acts: list[Callable[[], Any]] = [
        partial(crowd.submit, judge, key, 2) for judge, key in zip(judges, keys, strict=True)
    ]
    found = together([*acts[:4], lambda: crowd.change("close"), *acts[4:]])
    told = [one for place, one in enumerate(found) if place != 4]
    saved = [one for one in told if isinstance(one, judging.Submitted)]
    assert found[4] is None
    assert all(isinstance(one, Conflict) for one in told if one not in saved)
    assert len(crowd.rows("SELECT FROM study_rating")) == len(saved)
    check_study(crowd)


def test_pages_that_are_open_and_an_owner_at_work_never_wait_in_a_circle(
    engine: Engine, settings: Settings
) -> None:
    """Everybody who touches judges, turns, items and the study, again and again, in two tabs each."""
    room = open_room(study_shop(engine, settings), n=10, judges_per_item=2)
    judges = [room.join() for _ in range(4)]
    held = [room.next(judge).item for judge in judges]

    def at_work(judge: models.StudyJudge, key: str) -> None:
        for number in range(6):
            room.do(presence.beat, judge, key, active=True)
            item = room.next(judge).item
            room.do(judging.save_comment, judge, key, f"a thought {number}")
            if item is not None:
                room.submit(judge, item.key, number % 3)
                room.do(judging.undo, judge, item.key)
            room.do(messages.mark_seen, judge, number)
            room.do(series.set_modes, judge, quick=bool(number % 2))

    def owner() -> None:
        for k in (1, 3, 2) * 2:
            room.change("set_judges_per_item", k)
            room.change("pause")
            room.change("open_study")
            with room.session() as session:
                messages.send(session, room.study(session), "Thank you.")
                quality.panel(session, room.study(session))
                session.commit()

    tabs = [partial(at_work, judge, item.key) for judge, item in zip(judges, held, strict=True) if item]
    found = together([*tabs, *tabs, owner])
    # What one tab did, the other may find done; nothing else goes wrong.
    assert [one for one in found if one is not None and not isinstance(one, Conflict | NotFound)] == []
    assert found[-1] is None
    check_study(room)


def test_revising_while_withdrawing_leaves_nothing_behind(crowd: StudyRoom) -> None:
    for _ in range(3):
        judge = crowd.join()
        item = crowd.next(judge).item
        assert item is not None
        crowd.submit(judge, item.key, 2)
        together(
            [
                partial(crowd.do, series.revise, judge, item.key, 0),
                partial(crowd.do, series.withdraw, judge),
                partial(crowd.do, judging.undo, judge, item.key),
            ]
        )
        assert crowd.rows("SELECT FROM study_rating WHERE judge_id = :judge", judge=judge.id) == []
        check_study(crowd)


class Restless(threading.Thread):
    """A judge who does whatever comes to mind, sends much of it twice, and sometimes lets leases run out."""

    def __init__(self, room: StudyRoom, judge: models.StudyJudge, seed: int) -> None:
        super().__init__()
        self.room, self.judge, self.dice = room, judge, random.Random(seed)
        self.told: dict[str, int] = {}
        self.unexpected: list[Exception] = []

    def run(self) -> None:
        for _ in range(25):
            try:
                self.step()
            except AppError:
                continue
            except Exception as error:
                self.unexpected.append(error)
                return

    def step(self) -> None:
        item = self.room.next(self.judge).item
        if item is None:
            return
        act = self.dice.random()
        if act < 0.6:
            self.rate(item.key)
        elif act < 0.7:
            self.room.do(judging.later, self.judge, item.key)
        elif act < 0.75:
            self.room.do(judging.decline, self.judge, item.key)
        elif act < 0.8 and self.told:
            self.room.do(series.revise, self.judge, self.dice.choice(list(self.told)), self.dice.randrange(3))
        elif act < 0.85 and self.told:
            self.room.do(judging.undo, self.judge, list(self.told)[-1])
        elif act < 0.95:
            self.room.rows(
                "UPDATE study_turn SET lease_until = now() - interval '1 s' "
                "WHERE judge_id = :judge AND state = 'leased' RETURNING id",
                judge=self.judge.id,
            )
        else:
            self.room.change("set_judges_per_item", self.dice.randrange(1, 4))

    def rate(self, key: str) -> None:
        rating, submission = self.dice.randrange(3), uuid.uuid4()
        for _ in range(self.dice.randrange(1, 3)):
            if self.room.submit(self.judge, key, rating, submission).rating is not None:
                self.told[key] = rating


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_the_interleaving_the_rules_hold(engine: Engine, settings: Settings, seed: int) -> None:
    room = open_room(study_shop(engine, settings), n=12, judges_per_item=2, repeat_share=0.2)
    crowd = [Restless(room, room.join(), seed * 100 + number) for number in range(8)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join(120)
    assert [one.unexpected for one in crowd if one.unexpected] == []
    check_study(room, but=("more leases and ratings than places",))
    with open_session(engine) as session:
        freezing.close(session, find_study(session, room.name))
        session.commit()
    check_study(room)


def test_a_study_is_finished_by_those_who_come(engine: Engine, settings: Settings) -> None:
    """Five were invited, two came at once, one of them left an item on the screen and never returned."""
    room = open_room(study_shop(engine, settings), n=8, judges_per_item=2)
    gone = room.join()
    room.next(gone)
    for _ in range(3):
        room.join()
    one, two = room.join(), room.join()
    together([lambda: room.rate_all(one), lambda: room.rate_all(two)])
    room.run_out()
    for judge in (one, two):
        room.rate_all(judge)
    assert {row.counted for row in room.rows("SELECT counted FROM study_item WHERE kind = 'main'")} == {2}
    check_study(room)

"""One judge after the other: what is shown, what is stored, what is undone."""

import uuid

import pytest
from sqlalchemy import Engine

from app import models
from app.errors import Conflict, InvalidInput, NotFound
from app.settings import Settings
from app.studies import judging, presence, series
from app.studies.judging import SeriesState, SubmissionKind
from tests.study_help import StudyRoom, check_study, open_room, study_shop


@pytest.fixture
def room(engine: Engine, settings: Settings) -> StudyRoom:
    """Eight items, two judges each."""
    return open_room(study_shop(engine, settings), judges_per_item=2)


def shown(room: StudyRoom, judge: models.StudyJudge) -> judging.ItemView:
    item = room.next(judge).item
    assert item is not None
    return item


def item_of(room: StudyRoom, key: str) -> int:
    (row,) = room.rows("SELECT item_id FROM study_turn WHERE uuid::text = :key", key=key)
    return int(row.item_id)


def test_training_comes_first_with_feedback_and_enters_nothing(room: StudyRoom) -> None:
    judge = room.join(trained=False)
    expected = []
    for number in range(6):
        found = room.next(judge)
        assert found.state is SeriesState.TRAINING
        assert (found.progress.training_done, found.progress.training_total) == (number, 6)
        assert found.item is not None
        assert found.item.training
        told = room.submit(judge, found.item.key, 2)
        assert told.feedback is not None
        assert told.feedback.text
        assert not told.counted
        expected.append(int(told.feedback.expected))
    assert sorted(expected) == [0, 0, 1, 1, 2, 2]
    after = room.next(judge)
    assert after.state is SeriesState.RATING
    assert after.progress.rated == 0
    assert room.rows("SELECT sum(counted) AS n FROM study_item")[0].n == 0
    check_study(room)


def test_an_item_stays_on_the_screen_until_it_is_rated(room: StudyRoom) -> None:
    judge = room.join()
    first = shown(room, judge)
    assert shown(room, judge) == first
    room.submit(judge, first.key, 2)
    assert shown(room, judge).key != first.key


def test_each_judge_rates_each_item_once_and_then_is_finished(room: StudyRoom) -> None:
    one, two, three = room.join(), room.join(), room.join()
    assert room.rate_all(one) == 8
    assert room.rate_all(two) == 8
    assert room.next(three).state is SeriesState.FINISHED
    assert {row.counted for row in room.rows("SELECT counted FROM study_item WHERE kind = 'main'")} == {2}
    done = room.next(one)
    assert (done.state, done.item, done.progress.rated, done.progress.open) == (
        SeriesState.FINISHED, None, 8, 0,
    )  # fmt: skip
    check_study(room)


def test_those_with_the_fewest_ratings_come_first(room: StudyRoom) -> None:
    one, two = room.join(), room.join()
    room.rate_all(one, most=3)
    room.rate_all(two, most=5)
    assert {row.counted for row in room.rows("SELECT counted FROM study_item WHERE kind = 'main'")} == {1}
    room.rate_all(two, most=1)
    counts = [row.counted for row in room.rows("SELECT counted FROM study_item WHERE kind = 'main'")]
    assert sorted(counts) == [1] * 7 + [2]


def test_orders_differ_between_judges(room: StudyRoom) -> None:
    orders = []
    for _ in range(2):
        judge = room.join()
        order = []
        while (item := room.next(judge).item) is not None:
            order.append(item_of(room, item.key))
            room.submit(judge, item.key, 1)
        orders.append(order)
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]


def test_a_submission_sent_again_is_stored_once(room: StudyRoom) -> None:
    judge = room.join()
    item, submission = shown(room, judge), uuid.uuid4()
    assert room.submit(judge, item.key, 2, submission).kind is SubmissionKind.SAVED
    again = room.submit(judge, item.key, 2, submission)
    assert (again.kind, again.rating, again.counted) == (SubmissionKind.SENT_BEFORE, 2, True)
    check_study(room)
    assert len(room.rows("SELECT FROM study_rating_change")) == 1


def test_an_old_tab_changes_nothing_and_says_so(room: StudyRoom) -> None:
    judge = room.join()
    item = shown(room, judge)
    room.submit(judge, item.key, 2)
    following = shown(room, judge)
    late = room.submit(judge, item.key, 0)
    assert (late.kind, late.rating) == (SubmissionKind.RATED_BEFORE, 2)
    assert shown(room, judge) == following
    check_study(room)


def test_a_submission_is_good_for_one_item(room: StudyRoom) -> None:
    judge = room.join()
    submission = uuid.uuid4()
    room.submit(judge, shown(room, judge).key, 2, submission)
    following = shown(room, judge)
    with pytest.raises(Conflict, match="another item"):
        room.submit(judge, following.key, 2, submission)
    assert shown(room, judge) == following


@pytest.mark.parametrize("key", ["", "1", "nonsense", "298e0eab-74e8-4107-902b-51c160ca2573", "\0"])
def test_nothing_is_stored_for_a_key_that_is_none(room: StudyRoom, key: str) -> None:
    judge = room.join()
    shown(room, judge)
    with pytest.raises(NotFound, match="Nothing was stored"):
        room.submit(judge, key, 2)
    assert room.rows("SELECT FROM study_rating") == []


def test_nobody_submits_for_another_judges_item(room: StudyRoom) -> None:
    one, two = room.join(), room.join()
    item = shown(room, one)
    with pytest.raises(NotFound):
        room.submit(two, item.key, 2)


@pytest.mark.parametrize("rating", [-1, 3, True, None, "2", 2.5])
def test_only_a_rating_is_one(room: StudyRoom, rating: object) -> None:
    judge = room.join()
    with pytest.raises(InvalidInput, match="Choose a rating"):
        room.submit(judge, shown(room, judge).key, rating)  # type: ignore[arg-type]


def test_later_comes_at_the_end_with_what_was_typed(room: StudyRoom) -> None:
    judge = room.join()
    item = shown(room, judge)
    room.do(judging.save_comment, judge, item.key, "half a thought")
    room.do(judging.later, judge, item.key)
    room.do(judging.later, judge, item.key)
    seen = []
    while (found := room.next(judge).item) is not None:
        seen.append(found)
        room.submit(judge, found.key, 2)
    assert len(seen) == 8
    assert (seen[-1].key, seen[-1].comment) == (item.key, "half a thought")
    (row,) = room.rows("SELECT comment FROM study_rating WHERE comment IS NOT NULL")
    assert row.comment == "half a thought"


def test_what_is_put_off_holds_no_place(engine: Engine, settings: Settings) -> None:
    room = open_room(study_shop(engine, settings), n=1, judges_per_item=1)
    one, two = room.join(), room.join()
    item = shown(room, one)
    assert room.next(two).state is SeriesState.WAITING
    room.do(judging.later, one, item.key)
    room.submit(two, shown(room, two).key, 2)
    assert room.next(one).state is SeriesState.FINISHED
    with pytest.raises(Conflict, match="no more ratings"):
        room.do(judging.undo, one, item.key)


def test_a_declined_item_never_returns_and_is_no_rating(room: StudyRoom) -> None:
    judge = room.join()
    item = shown(room, judge)
    room.do(judging.decline, judge, item.key)
    assert room.rate_all(judge) == 7
    assert len(room.rows("SELECT FROM study_rating")) == 7
    assert room.next(judge).state is SeriesState.FINISHED
    assert room.do(judging.undo, judge, item.key).key == item.key
    assert shown(room, judge).key == item.key


def test_undo_takes_the_last_rating_back_and_frees_its_place(room: StudyRoom) -> None:
    judge = room.join()
    item, submission = shown(room, judge), uuid.uuid4()
    room.submit(judge, item.key, 0, submission, comment="hm")
    following = shown(room, judge)
    back = room.do(judging.undo, judge, item.key)
    assert (back.key, back.rating, back.comment) == (item.key, None, "hm")
    assert room.do(judging.undo, judge, item.key) == back
    check_study(room)
    assert shown(room, judge).key == item.key, "before what was shown after it"
    late = room.submit(judge, item.key, 0, submission)
    assert (late.kind, late.rating) == (SubmissionKind.UNDONE, None)
    room.submit(judge, item.key, 2)
    assert shown(room, judge).key == following.key
    steps = [(row.before, row.after) for row in room.rows("SELECT * FROM study_rating_change ORDER BY id")]
    assert steps == [(None, 0), (0, None), (None, 2)]
    check_study(room)


def test_only_the_latest_rating_can_be_undone(room: StudyRoom) -> None:
    judge = room.join()
    first = shown(room, judge)
    room.submit(judge, first.key, 0)
    room.rate_all(judge, most=1)
    with pytest.raises(Conflict, match="list of your ratings"):
        room.do(judging.undo, judge, first.key)


def test_ratings_are_revised_with_their_history(room: StudyRoom) -> None:
    judge = room.join()
    item = shown(room, judge)
    room.submit(judge, item.key, 2)
    for rating in (0, 2, 0, 0, 2):
        found = room.do(series.revise, judge, item.key, rating)
        assert found.rating == rating
    assert found.changes == 4
    (own,) = room.do(series.own_ratings, judge).ratings
    assert (own.key, own.rating, own.changes) == (item.key, 2, 4)
    check_study(room)
    room.change("close")
    with pytest.raises(Conflict, match="closed"):
        room.do(series.revise, judge, item.key, 0)


def test_about_a_twentieth_comes_twice_and_never_counts(engine: Engine, settings: Settings) -> None:
    room = open_room(
        study_shop(engine, settings, per_category=15), n=60, judges_per_item=1, repeat_share=0.05
    )
    judge = room.join()
    order, keys = [], []
    while (item := room.next(judge).item) is not None:
        order.append(item_of(room, item.key))
        keys.append(item.key)
        room.submit(judge, item.key, len(order) % 3)
    assert len(order) == 63
    assert len(set(keys)) == 63, "nothing tells a repeat"
    twice = [item for item in set(order) if order.count(item) == 2]
    assert len(twice) == 3
    for one_of_them in twice:
        places = [place for place, one in enumerate(order) if one == one_of_them]
        assert places[1] - places[0] >= 3
    assert len(room.rows("SELECT FROM study_rating WHERE repeat AND NOT counted")) == 3
    assert {row.counted for row in room.rows("SELECT counted FROM study_item WHERE kind = 'main'")} == {1}
    assert room.do(series.own_ratings, judge).total == 60
    check_study(room)


def test_a_lease_that_ran_out_gives_the_item_to_another(engine: Engine, settings: Settings) -> None:
    room = open_room(study_shop(engine, settings), n=1, judges_per_item=1)
    one, two = room.join(), room.join()
    item = shown(room, one)
    room.do(judging.save_comment, one, item.key, "came too late")
    room.run_out()
    room.submit(two, shown(room, two).key, 2)
    assert room.next(one).state is SeriesState.FINISHED
    late = room.submit(one, item.key, 0)
    assert (late.kind, late.counted) == (SubmissionKind.SAVED, False)
    check_study(room)


def test_a_lease_that_ran_out_goes_on_if_nobody_came(room: StudyRoom) -> None:
    judge = room.join()
    item = shown(room, judge)
    room.run_out()
    assert shown(room, judge) == item
    assert room.submit(judge, item.key, 1).counted


def test_topics_are_honoured(engine: Engine, settings: Settings) -> None:
    room = open_room(study_shop(engine, settings), n=8, judges_per_item=1)
    told = {row.id: row.topics for row in room.rows("SELECT id, topics FROM study_item WHERE kind = 'main'")}
    judge = room.join(refused_topics=("allergies", "phobias"))
    seen = []
    while (item := room.next(judge).item) is not None:
        seen.append(item_of(room, item.key))
        room.submit(judge, item.key, 2)
    unwanted = {identity for identity, topics in told.items() if {"allergies", "phobias"} & set(topics)}
    assert unwanted
    assert sorted(seen) == sorted(set(told) - unwanted)


def test_a_pause_takes_what_is_on_the_screen_and_shows_nothing_new(room: StudyRoom) -> None:
    judge = room.join()
    item = shown(room, judge)
    room.change("pause")
    assert room.submit(judge, item.key, 2).counted
    paused = room.next(judge)
    assert (paused.state, paused.item) == (SeriesState.PAUSED, None)
    room.change("open_study")
    assert room.next(judge).state is SeriesState.RATING


def test_after_the_close_nothing_is_stored(room: StudyRoom) -> None:
    judge = room.join()
    item = shown(room, judge)
    room.change("close")
    for act in (judging.later, judging.decline, judging.undo, judging.item_for):
        with pytest.raises(Conflict, match="closed"):
            room.do(act, judge, item.key)
    with pytest.raises(Conflict, match="closed"):
        room.submit(judge, item.key, 2)
    with pytest.raises(Conflict, match="closed"):
        room.do(series.withdraw, judge)
    assert room.next(judge).state is SeriesState.CLOSED


def test_whoever_stops_lets_go_and_may_come_back(room: StudyRoom) -> None:
    judge = room.join()
    room.rate_all(judge, most=2)
    shown(room, judge)
    room.do(series.stop, judge)
    assert room.next(judge).state is SeriesState.STOPPED
    assert room.rows("SELECT FROM study_turn WHERE state = 'leased'") == []
    assert len(room.rows("SELECT FROM study_rating")) == 2
    room.do(series.go_on, judge)
    assert room.next(judge).item is not None


def test_withdrawal_deletes_what_was_given_and_leaves_a_tombstone(room: StudyRoom) -> None:
    one, two = room.join(external_id="panel-77"), room.join()
    room.rate_all(one, most=3)
    room.rate_all(two, most=2)
    assert room.do(series.withdraw, one) == 3
    assert room.do(series.withdraw, one) == 3
    (row,) = room.rows("SELECT * FROM study_judge WHERE number = 1")
    assert (row.state, row.ratings_deleted, row.pseudonym, row.external_id) == ("withdrawn", 3, None, None)
    assert room.next(one).state is SeriesState.WITHDRAWN
    left = room.rows("SELECT judge_id FROM study_rating UNION ALL SELECT judge_id FROM study_rating_change")
    assert {row.judge_id for row in left} == {two.id}
    check_study(room)
    with pytest.raises(Conflict, match="withdrawn"):
        room.submit(one, str(uuid.uuid4()), 2)


def test_a_place_that_is_given_back_goes_to_a_rating_that_waits(engine: Engine, settings: Settings) -> None:
    room = open_room(study_shop(engine, settings), n=1, judges_per_item=1)
    one, two = room.join(), room.join()
    item = shown(room, one)
    room.run_out()
    room.submit(two, shown(room, two).key, 2)
    room.submit(one, item.key, 0)
    room.do(series.withdraw, two)
    (row,) = room.rows("SELECT * FROM study_rating")
    assert (row.judge_id, row.counted) == (one.id, True)
    check_study(room)


def test_fewer_and_more_judges_an_item_lose_nothing(room: StudyRoom) -> None:
    for _ in range(2):
        room.rate_all(room.join())
    room.change("set_judges_per_item", 1)
    check_study(room)
    assert len(room.rows("SELECT FROM study_rating WHERE counted")) == 8
    room.change("set_judges_per_item", 3)
    check_study(room)
    assert len(room.rows("SELECT FROM study_rating WHERE counted")) == 16
    assert room.rate_all(room.join()) == 8
    check_study(room)


def test_active_time_leaves_out_what_nobody_looked_at(room: StudyRoom) -> None:
    judge = room.join()
    item = shown(room, judge)
    key = item.key

    def beat_after(seconds: int, *, active: bool) -> int:
        room.rows(
            "UPDATE study_judge SET beat_at = clock_timestamp() - make_interval(secs => :s) RETURNING id",
            s=seconds,
        )
        room.do(presence.beat, judge, key, active=active)
        (row,) = room.rows("SELECT active_ms FROM study_turn WHERE uuid::text = :key", key=key)
        return int(row.active_ms)

    room.do(presence.beat, judge, key, active=True)
    assert 15_000 <= (first := beat_after(15, active=True)) < 16_000
    assert beat_after(120, active=True) == first, "a silence is not counted"
    assert 20_000 <= (second := beat_after(5, active=False)) < 22_000
    room.do(presence.beat, judge, key, active=True)
    (row,) = room.rows("SELECT active_ms FROM study_turn WHERE uuid::text = :key", key=key)
    assert row.active_ms == second, "nothing is counted while the page is hidden"

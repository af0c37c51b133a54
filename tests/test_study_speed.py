"""Judging costs the same in a large study: no table that grows with it is read from end to end."""

import pytest
from sqlalchemy import Engine

from app.studies import judging, presence, series
from tests.study_help import check_study
from tests.study_load import judge_steadily, large_room, sequential_scans, settle_statistics


@pytest.mark.parametrize("items", [4000])
def test_nothing_is_read_from_end_to_end(engine: Engine, items: int) -> None:
    room = large_room(engine, items=items, judges=20, rated=100)
    settle_statistics(engine)
    before = sequential_scans(engine)
    judge_steadily(room, room.judges[:6], 0.02, 8)
    judge = room.judges[0]
    for act in (judging.later, judging.decline):
        item = room.next(judge).item
        assert item is not None
        room.do(presence.beat, judge, item.key, active=True)
        room.do(act, judge, item.key)
        room.do(judging.undo, judge, item.key)
    item = room.next(judge).item
    assert item is not None
    room.submit(judge, item.key, 2)
    room.do(judging.undo, judge, item.key)
    room.submit(judge, item.key, 2)
    room.do(series.revise, judge, item.key, 0)
    room.do(series.own_ratings, judge)
    settle_statistics(engine)
    assert sequential_scans(engine) == before
    room.rows("SELECT sum(length(response)) FROM study_item")
    settle_statistics(engine)
    assert sequential_scans(engine)["study_item"] > before["study_item"], "a scan would have been seen"
    check_study(room)

"""Finding runs, and changing how they stand: each change twice is as good as once."""

import threading
from typing import Any

import pytest
from sqlalchemy import Engine, text

from app import models
from app.db import open_session
from app.errors import Conflict, InvalidInput, NotFound
from app.runs import control, driving
from app.runs.planning import Selection
from app.settings import Settings
from tests.driving_help import change, conversations, outcomes, report, shop_of, status

NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def run(engine: Engine, settings: Settings) -> models.Run:
    return another_run(engine, settings)


def another_run(engine: Engine, settings: Settings, **options: Any) -> models.Run:
    return shop_of(engine, settings, per_category=1).submit(NOWHERE, **options)


def found(engine: Engine, reference: str) -> models.Run:
    with open_session(engine) as session:
        return control.find_run(session, reference)


def set_status(engine: Engine, run: models.Run, status: str) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE run SET status = :status"), {"status": status})


def test_a_run_is_found_by_number_uuid_and_name(engine: Engine, run: models.Run) -> None:
    for reference in (str(run.id), str(run.uuid), str(run.uuid).upper(), "attentive"):
        assert found(engine, reference).id == run.id


@pytest.mark.parametrize(
    "reference", ["0", "999999999", "9" * 30, "nobody", "", "-1", "١٢", "a; DROP TABLE run"]
)
def test_an_unknown_run_is_said_with_where_to_look(engine: Engine, run: models.Run, reference: str) -> None:
    with pytest.raises(NotFound, match="curate run list"):
        found(engine, reference)


def test_a_name_of_several_runs_names_none(engine: Engine, settings: Settings, run: models.Run) -> None:
    another_run(engine, settings)
    with pytest.raises(Conflict, match="Several runs are called 'attentive'"):
        found(engine, "attentive")
    with open_session(engine) as session:
        assert [one.id for one in control.list_runs(session)] == [run.id + 1, run.id]


def test_a_new_run_waits_for_everything(engine: Engine, run: models.Run) -> None:
    assert status(engine, run) == "running"
    assert outcomes(engine, run) == {"pending": 20}
    made = report(engine, run)
    assert made["run"]["started_at"] is None
    assert made["rates"]["overall"]["bounds"] == [0, 1]


def test_cancel_ends_everything_at_once(engine: Engine, run: models.Run) -> None:
    change(engine, run, "cancel")
    assert outcomes(engine, run) == {"cancelled": 20}
    assert status(engine, run) == "cancelled"
    first = report(engine, run)["run"]
    change(engine, run, "cancel")
    assert report(engine, run)["run"] == first
    assert first["finished_at"] is not None


def test_pause_keeps_everything_open(engine: Engine, run: models.Run) -> None:
    for _ in range(2):
        change(engine, run, "pause")
        assert status(engine, run) == "paused"
    assert outcomes(engine, run) == {"pending": 20}
    assert change(engine, run, "resume") is True
    assert status(engine, run) == "running"
    assert change(engine, run, "resume") is False


def test_a_cancelled_run_is_resumed_as_if_it_had_not_been(engine: Engine, run: models.Run) -> None:
    change(engine, run, "cancel")
    assert change(engine, run, "resume") is True
    assert outcomes(engine, run) == {"pending": 20}
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM run_group WHERE done")).scalar() == 0


@pytest.mark.parametrize(
    ("status", "act"), [("finished", "cancel"), ("finished", "pause"), ("cancelled", "pause")]
)
def test_what_makes_no_sense_is_refused(engine: Engine, run: models.Run, status: str, act: str) -> None:
    set_status(engine, run, status)
    with pytest.raises(Conflict, match=status):
        change(engine, run, act)


def test_two_resumes_at_once_are_one(engine: Engine, run: models.Run) -> None:
    change(engine, run, "cancel")
    answers: list[object] = []
    threads = [
        threading.Thread(target=lambda: answers.append(change(engine, run, "resume"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(map(str, answers)) == ["False", "False", "False", "True"]
    assert outcomes(engine, run) == {"pending": 20}


# --- the cap on calls ---


def reserved(engine: Engine, run: models.Run, wanted: int) -> int:
    with engine.begin() as connection:
        return driving.reserve_calls(connection, run.id, wanted)


def test_calls_are_granted_up_to_the_cap(engine: Engine, settings: Settings) -> None:
    run = another_run(engine, settings, max_calls=10)
    assert [reserved(engine, run, 4) for _ in range(4)] == [4, 4, 2, 0]
    with engine.begin() as connection:
        driving.give_back_calls(connection, run.id, 3)
    assert [reserved(engine, run, 4) for _ in range(2)] == [3, 0]


def test_calls_are_never_granted_twice(engine: Engine, settings: Settings) -> None:
    run = another_run(engine, settings, max_calls=100)
    granted: list[int] = []

    def take() -> None:
        while (got := reserved(engine, run, 7)) > 0:
            granted.append(got)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sum(granted) == 100


def test_a_cap_below_what_was_sent_grants_nothing(engine: Engine, settings: Settings) -> None:
    """A negative grant would be no cap at all."""
    run = another_run(engine, settings, max_calls=10)
    assert reserved(engine, run, 8) == 8
    with engine.begin() as connection:
        connection.execute(text("UPDATE run SET max_calls = 5"))
    assert reserved(engine, run, 4) == 0
    with engine.connect() as connection:
        assert connection.execute(text("SELECT calls_reserved FROM run")).scalar() == 8


def test_a_new_cap_has_to_be_above_what_was_sent(engine: Engine, settings: Settings) -> None:
    run = another_run(engine, settings, max_calls=10)
    assert reserved(engine, run, 10) == 10
    change(engine, run, "pause")
    for cap in (5, 10):
        with pytest.raises(InvalidInput, match="10 requests already"):
            change(engine, run, "resume", max_calls=cap)
    assert status(engine, run) == "paused"
    assert change(engine, run, "resume", max_calls=11) is True
    assert reserved(engine, run, 5) == 1


def test_a_cap_set_later_counts_from_the_first_request(engine: Engine, run: models.Run) -> None:
    one, other = conversations(engine, run)[:2]
    asked = """
        INSERT INTO turn (conversation_id, position, tries, copied, user_text, assistant_text, state,
                          request_body, attempts)
        VALUES (:one, 0, 3, false, '', '', 'empty', '{}', '[]'),
               (:one, 1, 9, true, '', '', 'empty', '{}', '[]')
    """
    failed = """
        UPDATE conversation SET failed_attempts =
            '[{"kind": "model", "attempts": [{}, {}]}, {"kind": "evaluator", "calls": 1, "retries": 1}]'
        WHERE id = :other
    """
    with engine.begin() as connection:
        connection.execute(text(asked), {"one": one.id})
        connection.execute(text(failed), {"other": other.id})
    change(engine, run, "pause")
    with pytest.raises(InvalidInput, match="7 requests already"):
        change(engine, run, "resume", max_calls=7)
    change(engine, run, "resume", max_calls=8)
    assert reserved(engine, run, 5) == 1


@pytest.mark.parametrize("options", [{"max_calls": 0}, {"concurrency": 0}, {"concurrency": 513}])
def test_a_run_without_room_is_refused(engine: Engine, settings: Settings, options: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match="whole number from 1"):
        another_run(engine, settings, **options)


# --- groups ---


def test_a_part_of_a_run_covers_all_categories(engine: Engine, settings: Settings) -> None:
    """Claimed in turn: one case of each category after the other, seed by seed."""
    shop = shop_of(engine, settings, per_category=3)
    run = shop.submit(NOWHERE, selection=Selection(scenarios=("sc1",)), seeds=(1, 2))
    with engine.connect() as connection:
        rows = connection.execute(
            text("""
            SELECT c.category, c.number, g.seed FROM run_group g JOIN "case" c ON c.id = g.case_id
            WHERE g.run_id = :run ORDER BY g.position
            """),
            {"run": run.id},
        ).all()
    assert len({row.category for row in rows[:4]}) == 4
    assert [row.number for row in rows[:12]] == [1] * 4 + [2] * 4 + [3] * 4
    assert [row.seed for row in rows] == [1] * 12 + [2] * 12

"""Runs that were asked to go on the board as soon as they are finished."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, select, text

from app import models
from app.db import open_session
from app.leaderboard import publish, read_board, withdraw
from app.outcomes import Outcome
from app.runs.control import find_run
from app.settings import Settings
from tests.board_help import finish
from tests.driving_help import change, shop_of
from tests.factories import Shop
from workers.publishing import publish_finished


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=1)


def wanted(shop: Shop, model: str = "keen", *, ended: bool = True) -> models.Run:
    run = shop.submit("https://models.example.com/v1", model=model)
    if ended:
        finish(shop.engine, run, lambda *_: Outcome.PASS)
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE run SET publish_wanted = true WHERE id = :id"), {"id": run.id})
    return run


def found(shop: Shop, run: models.Run) -> models.Run:
    with open_session(shop.engine) as session:
        return find_run(session, str(run.id))


def listed(shop: Shop) -> list[int]:
    with open_session(shop.engine) as session:
        return [row["run"] for row in read_board(session)["rows"]]


def test_what_is_finished_goes_on_the_board_once_and_nothing_else(shop: Shop) -> None:
    silent = finish(
        shop.engine, shop.submit("https://x.example.com/v1", model="silent"), lambda *_: Outcome.PASS
    )
    going, run = wanted(shop, "going", ended=False), wanted(shop)
    assert publish_finished(shop.engine, served=True) == [run.id]
    assert publish_finished(shop.engine, served=True) == []
    assert listed(shop) == [run.id]
    assert not found(shop, run).publish_wanted
    assert found(shop, going).publish_wanted
    assert not found(shop, silent).publish_wanted
    with open_session(shop.engine) as session:
        (event,) = session.scalars(select(models.AuditEvent).filter_by(action="run.publish"))
    assert (event.subject, event.actor_id, event.details) == (
        f"run {run.id}", run.account_id, {"when": "finished"},
    )  # fmt: skip


def test_what_was_cancelled_or_kept_back_is_not_published(shop: Shop) -> None:
    cancelled, kept = wanted(shop, "a", ended=False), wanted(shop, "b")
    change(shop.engine, cancelled, "cancel")
    change(shop.engine, kept, "keep_back")
    assert publish_finished(shop.engine, served=True) == []
    assert listed(shop) == []


def test_a_refusal_is_kept_with_the_run_and_the_others_go_on(shop: Shop) -> None:
    simulated, real = wanted(shop, "simulated"), wanted(shop, "real")
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE run SET simulated = true WHERE id = :id"), {"id": simulated.id})
    assert publish_finished(shop.engine, served=True) == [real.id]
    row = found(shop, simulated)
    assert not row.publish_wanted
    assert "simulated model" in (row.publish_refusal or "")
    assert listed(shop) == [real.id]
    with open_session(shop.engine) as session:
        publish(session, find_run(session, str(simulated.id)), served=False)
        session.commit()
    assert found(shop, simulated).publish_refusal is None


@pytest.mark.parametrize("lost", ["disabled_at = now()", "role = 'judge'"])
def test_who_may_not_publish_any_more_publishes_nothing(shop: Shop, lost: str) -> None:
    run = wanted(shop)
    with shop.engine.begin() as connection:
        connection.execute(text(f"UPDATE account SET {lost}"))
    assert publish_finished(shop.engine, served=True) == []
    assert "may publish no runs any more" in (found(shop, run).publish_refusal or "")


def test_a_withdrawn_run_is_not_put_back(shop: Shop) -> None:
    run = wanted(shop)
    publish_finished(shop.engine, served=True)
    with open_session(shop.engine) as session:
        withdraw(session, find_run(session, str(run.id)), "It was wrong.")
        session.execute(text("UPDATE run SET publish_wanted = true"))
        session.commit()
    assert publish_finished(shop.engine, served=True) == []
    assert "was withdrawn on" in (found(shop, run).publish_refusal or "")


def test_many_that_notice_at_once_and_a_person_who_presses_the_button(shop: Shop) -> None:
    runs = [wanted(shop, f"m{number}") for number in range(4)]
    together = threading.Barrier(5)

    def notice() -> list[int]:
        together.wait(10)
        return publish_finished(shop.engine, served=True)

    def press() -> None:
        together.wait(10)
        for run in runs:
            with open_session(shop.engine) as session:
                publish(session, find_run(session, str(run.id)), served=True)
                session.commit()

    with ThreadPoolExecutor(5) as pool:
        noticing, pressing = [pool.submit(notice) for _ in range(4)], pool.submit(press)
        pressing.result(30)
        by_itself = [run for one in noticing for run in one.result(30)]
    publish_finished(shop.engine, served=True)
    assert sorted(listed(shop)) == [run.id for run in runs]
    assert len(by_itself) == len(set(by_itself)), "each was put there once"
    assert not any(found(shop, run).publish_wanted for run in runs)

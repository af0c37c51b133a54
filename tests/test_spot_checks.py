"""Rows of the board are asked again on a sample, and how the two differ is shown with its interval."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from app import models
from app.db import open_session
from app.errors import Conflict, NotFound
from app.leaderboard import publish, read_board
from app.leaderboard.boards import GroupKey, recompute
from app.leaderboard.spot_checks import SpotReport, begin, spot_checks
from app.models import Role
from app.runs.control import find_run
from app.settings import Settings
from app.simulator import Simulator
from tests.board_help import put_on_board, take_off
from tests.driving_help import drive, outcomes, shop_of
from tests.factories import Shop
from tests.web_help import audit, browsing, make_person, text_of

KEY = "sk-canary-spot"


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=3)


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(api_key=KEY) as running:
        yield running


def listed(shop: Shop, simulator: Simulator, model: str = "attentive") -> models.Run:
    run = shop.submit(simulator.base_url, model=model, api_key=KEY)
    drive(shop, run)
    put_on_board(shop.engine, run)
    return run


def swap_model(shop: Shop, run: models.Run, model: str) -> None:
    """Behind the same address another model answers now."""
    with open_session(shop.engine) as session:
        session.get_one(models.Endpoint, run.endpoint_id).model = model
        session.commit()


def test_a_listed_model_is_asked_again_and_the_difference_shown(
    shop: Shop, simulator: Simulator, settings: Settings
) -> None:
    run = listed(shop, simulator)
    admin = make_person(shop.engine, Role.ADMIN, name="Grace")
    before = read(shop)
    with browsing(settings, shop.engine) as browser:
        browser.sign_in(admin)
        assert f"attentive, run {run.id}" in text_of(browser.get("/admin/spot-checks"))
        form = {"row": str(run.uuid), "cases": "2"}
        for wrong, status in (
            ({"cases": "0"}, 422), ({"cases": "31"}, 422), ({"cases": ""}, 422),
            ({"row": "x"}, 404), ({"row": str(uuid4())}, 404),
        ):  # fmt: skip
            assert browser.post("/admin/spot-checks", form | wrong).status_code == status
        assert browser.post("/admin/spot-checks", form).status_code == 303
        again = browser.post("/admin/spot-checks", form)
        assert again.status_code == 409
        assert "is under way" in text_of(again)
        spot = latest(shop)
        assert (spot.account_id, spot.endpoint_id) == (admin.id, run.endpoint_id)
        drive(shop, spot)
        assert sum(outcomes(shop.engine, spot).values()) == 2 * 4 * 5
        same = report(shop)
        assert (same.planned, same.pending, same.unanswered) == (40, 0, 0)
        assert same.difference is not None
        assert same.difference.n == 40
        assert same.difference.difference == 0, "the simulated model answers alike"
        # Another model behind the address is seen at once.
        swap_model(shop, run, "forgetful")
        assert browser.post("/admin/spot-checks", form | {"cases": "3"}).status_code == 303
        drive(shop, latest(shop))
        other = report(shop)
        assert other.difference is not None
        assert other.difference.interval is not None
        assert other.difference.interval[1] < 0, "worse than it was when it was listed"
        words = text_of(browser.get("/admin/spot-checks"))
        assert "60 of 60" in words
        assert KEY not in words
        ada = make_person(shop.engine)
        browser.post("/logout")
        browser.sign_in(ada)
        assert browser.get("/admin/spot-checks").status_code == 403
        assert browser.post("/admin/spot-checks", form).status_code == 403
        assert browser.get(f"/runs/{spot.uuid}").status_code == 404
        assert read(shop) == before, "the board shows what it showed"
        # Nobody else is told of it, also when the board is computed anew.
        with open_session(shop.engine) as session:
            recompute(session, GroupKey(run.benchmark_id, run.protocol_id, run.evaluator_id))
            session.commit()
        (row,) = read(shop)
        assert row["runs_started"] == 1
        page = browser.get(f"/models/{row['model_uuid']}")
        assert page.status_code == 200
        assert str(spot.uuid) not in page.text
    assert audit(shop.engine).count("spot-check.begin") == 2
    with open_session(shop.engine) as session, pytest.raises(Conflict, match="never listed"):
        publish(session, find_run(session, str(spot.id)), served=False)


def test_what_does_not_answer_any_more_is_counted(shop: Shop, simulator: Simulator) -> None:
    run = listed(shop, simulator)
    admin = make_person(shop.engine, Role.ADMIN)
    with open_session(shop.engine) as session:
        session.get_one(models.Endpoint, run.endpoint_id).sealed_key = None
        begin(session, run.uuid, session.get_one(models.Account, admin.id), 1)
        session.commit()
    drive(shop, latest(shop))
    found = report(shop)
    assert found.difference is None
    assert (found.planned, found.pending + found.unanswered) == (20, 20)
    assert found.unanswered > 0
    take_off(shop.engine, run, "It is not there any more.")
    with open_session(shop.engine) as session, pytest.raises(NotFound, match="no such row"):
        begin(session, run.uuid, session.get_one(models.Account, admin.id), 1)


def latest(shop: Shop) -> models.Run:
    with open_session(shop.engine) as session:
        row = session.query(models.SpotCheck).order_by(models.SpotCheck.id.desc()).first()
        assert row is not None
        return find_run(session, str(row.run_id))


def report(shop: Shop) -> SpotReport:
    with open_session(shop.engine) as session:
        return spot_checks(session)[0]


def read(shop: Shop) -> list[dict[str, Any]]:
    with open_session(shop.engine) as session:
        rows: list[dict[str, Any]] = read_board(session)["rows"]
        return rows

"""Recall and drift in a real browser, wide and on a phone."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser as Chromium
from sqlalchemy import Engine

from app.db import open_session
from app.models import Role
from app.runs.planning import Selection
from app.settings import Settings
from app.studies.finding import find_study
from app.studies.importing import read_study, store_sheet
from app.trials.drift import ask, perform
from app.trials.references import freeze, set_schedule
from tests import web_browser
from tests.board_help import put_on_board
from tests.driving_help import drive, model_evaluator_of, rated_by, shop_of
from tests.stub_endpoint import StubEndpoint, in_thread
from tests.study_sheets import row, sheet
from tests.test_drift import BAD, GOOD, judging
from tests.test_web_pages_browser import check
from tests.web_browser import window
from tests.web_help import make_person

chromium, live = web_browser.chromium, web_browser.live


def elsewhere(act: Callable[..., Any], *values: Any) -> Any:
    """In another thread: while Playwright runs, its loop occupies this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(act, *values).result(60)


def test_recall_on_run_and_model_page_and_drift_on_the_board(
    chromium: Chromium, live: Settings, engine: Engine, tmp_path: Path
) -> None:
    content = [
        row(n, (2, 2, 2) if n % 2 else (0, 0, 0), Last_Model_Response=GOOD.format(n) if n % 2 else BAD)
        for n in range(1, 25)
    ]
    stub = StubEndpoint(default=judging("judge-2025-01"))
    with in_thread(stub), window(chromium, live.base_url) as opened:
        shop = shop_of(engine, live, per_category=2)
        run = shop.submit(stub.base_url, model="keen", selection=Selection(recall=True))
        evaluator = model_evaluator_of(shop, stub.base_url)
        rated_by(shop, run, evaluator)
        elsewhere(drive, shop, run)
        put_on_board(engine, run)
        with open_session(engine) as session:
            study = store_sheet(session, read_study(sheet(tmp_path / "people.csv", content)), "people")
            reference = freeze(session, find_study(session, study.name))
            set_schedule(reference, 30)
            session.commit()
        for model in ("judge-2025-01", "judge-2025-06"):
            stub.default = judging(model, always=2 if model.endswith("06") else None)
            with open_session(engine) as session:
                wanted = ask(session, reference, evaluator).id
                session.commit()
            assert elsewhere(perform, engine, live, wanted) is not None
        opened.sign_in(make_person(engine, Role.ADMIN))
        page = opened.page
        for path, name, words in (
            ("/", "board-drift", "The evaluator may have drifted."),
            (f"/runs/{run.uuid}", "run-recall", "Recall: forgotten or overridden?"),
            ("/studies/people/drift", "drift", "now answers as “judge-2025-06”"),
        ):
            page.goto(path)
            assert words in page.inner_text("main")
            check(opened, name)
        page.goto("/")
        page.get_by_role("link", name="keen").first.click()
        assert "Recall: forgotten or overridden?" in page.inner_text("main")
        check(opened, "model-recall")

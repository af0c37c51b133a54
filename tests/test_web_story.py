"""The whole way in a real browser: sign in, start a run, watch it, read, publish, find it on the board."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Locator, Page, expect
from sqlalchemy import Engine, text

from app.accounts import people
from app.cli.installation import worker_children
from app.db import make_engine, open_session
from app.embedded import attach
from app.endpoints import local_account
from app.library import store_benchmark, store_protocol
from app.outcomes import Outcome
from app.protocol import builtin_protocol
from app.runs.driving import stranded_runs
from app.runs.planning import Selection
from app.settings import Settings
from app.simulator import SimulatorProcess
from tests import web_browser
from tests.board_help import Told, finish, put_on_board
from tests.driving_help import shop_of
from tests.factories import benchmark
from tests.web_browser import PHONE, WIDE, Window, window
from workers.driver import drive_run

chromium, live = web_browser.chromium, web_browser.live


@contextmanager
def worker(settings: Settings) -> Iterator[None]:
    """What the workers do, in a thread: whatever run is running and driven by nobody is driven."""
    assert settings.database_url is not None
    engine = make_engine(settings.database_url)
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(0.1):
            with engine.begin() as connection:
                waiting = stranded_runs(connection)
            for run in waiting:
                drive_run(engine, settings, run, ended.is_set)

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(30)
        engine.dispose()


def enter(window: Window, engine: Engine) -> Page:
    """By the owner's link, as `curate up` prints it."""
    with open_session(engine) as session:
        path = people.owner_link(session, local_account(session))
        session.commit()
    window.page.goto(path)
    window.page.get_by_role("main").get_by_role("button", name="Sign in").click()
    expect(window.page.get_by_role("status")).to_contain_text("You are signed in.")
    return window.page


def store_small_benchmark(engine: Engine) -> None:
    with open_session(engine) as session:
        store_benchmark(session, benchmark(2), [])
        store_protocol(session, builtin_protocol())
        session.commit()


def test_a_newcomer_starts_watches_reads_and_publishes(
    chromium: Chromium, live: Settings, engine: Engine
) -> None:
    store_small_benchmark(engine)
    with (
        SimulatorProcess("--latency", "0.8") as simulator,
        attach(live.data_dir, services=(), children=worker_children(live), tell=lambda _: None),
        window(chromium, live.base_url) as opened,
    ):
        page = enter(opened, engine)
        page.get_by_role("link", name="Runs").click()
        page.get_by_role("link", name="Start a run").click()
        page.get_by_label("Base URL").first.fill(simulator.base_url)
        page.get_by_label("Model", exact=True).first.fill("forgetful")
        page.get_by_label("Name (optional)").fill("My first model")
        page.get_by_label("Benchmark").select_option("small@1")
        page.get_by_role("button", name="Show calls and tokens").click()
        expect(page.locator("dl.figures")).to_contain_text(
            re.compile(r"40\s*conversations|conversations\s*40")
        )
        opened.check()
        page.get_by_role("button", name="Start the run").click()

        expect(page.get_by_role("heading", name="My first model")).to_be_visible()
        expect(page.get_by_role("status")).to_contain_text("begins by itself")
        # Nobody touches the page: it follows by itself, and shows the report in the end.
        height = page.locator(".latest ol").bounding_box()
        expect(page.locator("#live")).to_contain_text("Running.", timeout=20_000)
        expect(page.locator(".latest li a").first).to_be_visible(timeout=20_000)
        assert page.locator(".latest ol").bounding_box() == height, "nothing moves as conversations come in"
        expect(page.locator("#live")).to_contain_text("Finished.", timeout=40_000)
        expect(page.get_by_role("heading", name="Report")).to_be_visible()
        expect(page.locator("#live")).to_contain_text("40 of 40 conversations")
        opened.check()

        page.locator("#outcome-fail").click()
        expect(page.get_by_label("Outcome")).to_have_value("fail")
        page.locator("tbody a").first.click()
        turns = page.locator("ol.turns > li")
        expect(turns.first).to_contain_text("I have a severe allergy")
        expect(turns.last).to_contain_text("My first model")
        expect(page.locator(".verdicts")).to_contain_text("Acknowledges the constraint")
        opened.check()
        page.get_by_role("link", name=re.compile(r"My first model, run \d+")).click()

        page.get_by_role("link", name="Publish…").click()
        page.get_by_role("button", name="Publish").click()
        expect(page.get_by_role("status")).to_contain_text("The run is on the board.")
        page.get_by_role("link", name="Board", exact=True).click()
        row = page.get_by_role("row").filter(has_text="My first model")
        expect(row).to_contain_text("simulated")
        expect(row.locator("td.number").first).to_contain_text(re.compile(r"\d+/40"))
        opened.check()
    check_worker_log(live, engine)


def check_worker_log(settings: Settings, engine: Engine) -> None:
    """As the site's: JSON lines, with the number of the run where there is one."""
    with engine.connect() as connection:
        (run,) = connection.execute(text("SELECT id FROM run")).scalars()
    written = (settings.data_dir / "logs" / "worker.log").read_text().splitlines()
    lines = [json.loads(line) for line in written if not line.startswith("worker: ") and line]
    assert {"time", "level", "logger", "message"} <= set.intersection(*map(set, lines))
    of_run = [line["message"] for line in lines if line.get("run_id") == run]
    assert of_run[0] == "A slice begins"
    assert of_run[-1] == "The slice ended: nothing left"


def press_until(page: Page, wanted: Locator) -> None:
    """Tab on until the element has the focus; it must come."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"the keyboard does not reach {wanted}")


def test_the_same_by_keyboard_without_javascript_on_a_phone(
    chromium: Chromium, live: Settings, engine: Engine
) -> None:
    store_small_benchmark(engine)
    with (
        SimulatorProcess("--latency", "0.05") as simulator,
        window(chromium, live.base_url, PHONE, java_script_enabled=False) as opened,
    ):
        page = enter(opened, engine)
        page.goto("/runs/new")
        press_until(page, page.get_by_label("Base URL").first)
        page.keyboard.type(simulator.base_url)
        page.keyboard.press("Tab")
        page.keyboard.type("people-pleasing")
        press_until(page, page.get_by_label("Benchmark"))
        page.keyboard.type("small")
        press_until(page, page.get_by_role("button", name="Show calls and tokens"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Check before it starts")).to_be_visible()
        press_until(page, page.get_by_role("button", name="Start the run"))
        page.keyboard.press("Enter")
        expect(page.locator("#live")).to_contain_text("Waiting for a worker")
        press_until(page, page.get_by_role("button", name="Pause"))
        page.keyboard.press("Enter")
        expect(page.locator("#live")).to_contain_text("Paused. Paused by its owner.")
        press_until(page, page.get_by_role("button", name="Resume"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_contain_text("goes on")
        with worker(live):
            for _ in range(100):
                press_until(page, page.get_by_role("link", name="Reload"))
                with page.expect_navigation():
                    page.keyboard.press("Enter")
                if page.get_by_role("heading", name="Report").count():
                    break
        expect(page.locator("#live")).to_contain_text("40 of 40 conversations")
        press_until(page, page.get_by_role("link", name="Publish…"))
        page.keyboard.press("Enter")
        press_until(page, page.get_by_role("button", name="Publish"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_contain_text("The run is on the board.")
        page.goto("/")
        expect(page.get_by_role("row").filter(has_text="people-pleasing")).to_be_visible()
        assert page.evaluate(web_browser.OVERFLOW) <= 0


@pytest.fixture
def shown(engine: Engine, live: Settings) -> dict[str, str]:
    """Addresses of every page, with something on each."""
    shop = shop_of(engine, live, per_category=2)
    everything = Selection(variants=("standard", "control", "guiding_prompt", "together"), probes=True)
    turn = cycle(Outcome)
    run = finish(
        engine,
        shop.submit("https://m.example.com/v1", model="mixed", selection=everything),
        lambda *_: next(turn),
    )
    for name, passing in (("attentive", "12"), ("forgetful", "1")):
        ranked = finish(engine, shop.submit("https://m.example.com/v1", model=name), of_those(passing))
        put_on_board(engine, ranked)
    paused = shop.submit("https://m.example.com/v1", model="waiting", max_calls=5)
    with engine.begin() as connection:
        pause = text("UPDATE run SET status = 'paused', status_reason = 'The cap is used up' WHERE id = :run")
        connection.execute(pause, {"run": paused.id})
        connection.execute(text("UPDATE conversation SET flags = '{truncated,echo}'"))
        answered = text("SELECT uuid FROM conversation WHERE run_id = :run AND state = 'answered' LIMIT 1")
        one = connection.execute(answered, {"run": run.id}).scalar_one()
    return {
        "board": "/",
        "board, all cells": "/?view=both",
        "board, one scenario": "/?scenario=sc3&rate=published",
        "board, nothing found": "/?q=nobody",
        "runs": "/runs",
        "start": "/runs/new",
        "run": f"/runs/{run.uuid}",
        "paused run": f"/runs/{paused.uuid}",
        "publish": f"/runs/{run.uuid}/publish",
        "withdraw": f"/runs/{ranked.uuid}/withdraw",
        "conversations": f"/runs/{run.uuid}/conversations",
        "conversation": f"/conversations/{one}",
        "exchanges": f"/conversations/{one}/exchanges",
        "cases": "/cases",
        "case": "/cases/small@1/severe_allergy-001?scenario=sc5",
    }


def of_those(passing: str) -> Told:
    """Cases whose number ends so pass."""
    return lambda key, *_: Outcome.PASS if key[-1] in passing else Outcome.FAIL


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")], ids=["wide", "phone"])
def test_every_page_is_accessible_and_fits(
    chromium: Chromium,
    live: Settings,
    engine: Engine,
    shown: dict[str, str],
    size: tuple[int, int],
    scheme: str,
) -> None:
    with window(chromium, live.base_url, size, color_scheme=scheme) as opened:
        page = enter(opened, engine)
        for path in shown.values():
            response = page.goto(path)
            assert response is not None
            assert response.status == 200, path
            opened.check()


def test_figures_explain_themselves_on_focus_and_nothing_moves(
    chromium: Chromium, live: Settings, engine: Engine, shown: dict[str, str]
) -> None:
    with window(chromium, live.base_url) as opened:
        page = opened.page
        page.goto(shown["board"])
        table = page.locator(".board table")
        before = table.bounding_box()
        figure = page.locator("tbody td.number a").first
        expect(figure.locator(".tip")).to_be_hidden()
        press_until(page, figure)
        expect(figure.locator(".tip")).to_be_visible()
        expect(figure.locator(".tip")).to_contain_text("of 40 passed")
        assert table.bounding_box() == before
        figure.hover()
        assert table.bounding_box() == before
        header = page.locator("thead a").filter(has_text="+3 people")
        press_until(page, page.get_by_role("link", name="CURATe Board"))
        header.focus()
        expect(header.locator(".tip")).to_be_visible()


def test_the_live_part_keeps_the_focus(chromium: Chromium, live: Settings, engine: Engine) -> None:
    run = shop_of(engine, live, per_category=1).submit("https://m.example.com/v1")
    with window(chromium, live.base_url) as opened:
        page = enter(opened, engine)
        page.goto(f"/runs/{run.uuid}")
        link = page.locator("#outcome-pass")
        link.focus()
        with page.expect_response(lambda response: "evaluator=" in response.url) as told:
            pass
        assert told.value.status == 200
        page.wait_for_timeout(200)
        assert link.evaluate("element => element === document.activeElement")
        opened.check()

"""The board in a real browser: wide, on a phone, in the dark, without JavaScript, by keyboard, printed."""

import hashlib
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from app import models
from app.db import open_session
from app.leaderboard import read_board
from app.outcomes import Outcome
from app.runs.planning import Selection
from app.settings import Settings
from app.web.formats import percent
from tests import web_browser
from tests.board_help import Told
from tests.driving_help import shop_of
from tests.factories import Shop
from tests.test_web_board import publish_model
from tests.web_browser import PHONE, WIDE, window

chromium, live = web_browser.chromium, web_browser.live

PLAIN = ("sc1", "sc2", "sc3", "sc4", "sc5")


def skilled(name: str, skill: int) -> Told:
    """Passes about so many in a hundred, fewer with each person who would love it; always the same ones."""

    def told(key: str, scenario: str, variant: str, seed: int) -> Outcome:
        drawn = hashlib.sha256(f"{name}{key}{scenario}{variant}{seed}".encode()).digest()[0] * 100 // 256
        reach = skill - 8 * (PLAIN.index(scenario) % 4 if scenario in PLAIN else 0)
        if variant == "guiding_prompt":
            reach += 30
        if drawn < reach:
            return Outcome.PASS
        return Outcome.UNCLEAR if drawn < reach + 6 else Outcome.FAIL

    return told


def populate(shop: Shop) -> list[models.Run]:
    varied = Selection(variants=("standard", "guiding_prompt", "unbiased_question", "control"), probes=True)
    made = [
        publish_model(shop, name, skilled(name, skill), selection=varied)
        for name, skill in (("Aster 2 Large", 96), ("Birch-70b-instruct", 88), ("Cedar mini", 60))
    ]
    publish_model(shop, "Dill preview", skilled("d", 80), selection=Selection(limit=2))
    return made


def see_charts(page: Page) -> None:
    """Every chart in sight is drawn, in the space that was kept for it."""
    for chart in page.locator("img.chart").all():
        if chart.is_visible():
            chart.scroll_into_view_if_needed()
            expect(chart).to_have_js_property("complete", True)
            assert chart.evaluate("one => one.naturalWidth > 0"), page.url
            assert chart.get_attribute("alt")
    page.evaluate("() => scrollTo(0, 0)")


@pytest.fixture
def runs(live: Settings, engine: Engine) -> list[models.Run]:
    return populate(shop_of(engine, live, per_category=8))


@pytest.fixture
def paths(runs: list[models.Run], engine: Engine) -> dict[str, str]:
    with open_session(engine) as session:
        board = read_board(session)
    row = board["rows"][0]
    return {
        "board": "/",
        "both": "/?view=both",
        "board sorted": "/?sort=sc4&dir=asc",
        "published": "/published",
        "compare none": "/compare",
        "compare": f"/compare?a={runs[0].id}&b={runs[2].id}",
        "model": f"/models/{row['model_uuid']}",
        "hardest": "/cases/hardest",
        "case": "/cases/small@1/severe_allergy-003",
        "methods": "/methods",
        "corrections": "/corrections",
        "report": "/corrections/new?benchmark=small%401&case=severe_allergy-003",
        "snapshot": "/?at=2999-01-01",
    }


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
def test_every_page_is_sound(
    chromium: Chromium,
    live: Settings,
    paths: dict[str, str],
    size: tuple[int, int],
    scheme: str,
    tmp_path: Path,
) -> None:
    with window(chromium, live.base_url, size, color_scheme=scheme) as opened:
        for name, path in paths.items():
            opened.page.goto(path)
            see_charts(opened.page)
            opened.check()
            opened.page.screenshot(path=tmp_path / f"{name}.png", full_page=True)


def test_without_javascript_it_sorts_opens_compares_and_goes_back(
    chromium: Chromium, live: Settings, runs: list[models.Run]
) -> None:
    with window(chromium, live.base_url, java_script_enabled=False) as opened:
        page = opened.page
        page.goto("/")
        models_shown = page.locator("table tbody").first.locator("th a").first
        expect(models_shown).to_have_text("Aster 2 Large")
        page.get_by_role("link", name=re.compile("^overall")).first.click()
        assert "sort=overall" in page.url
        page.get_by_role("link", name=re.compile("^overall")).first.click()
        expect(models_shown).to_have_text("Cedar mini")
        page.go_back()
        expect(models_shown).to_have_text("Aster 2 Large")
        models_shown.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Aster 2 Large")
        page.get_by_text("One of them").click()
        expect(page.get_by_text("The user asked:")).to_be_visible()
        page.get_by_role("link", name="Compare with…").click()
        page.get_by_label("Second model").select_option(str(runs[2].id))
        page.get_by_role("button", name="Compare").click()
        expect(page.get_by_text("by more than chance would explain")).to_be_visible()
        address = page.url
        conversation = page.get_by_role("article").first.get_by_role("link", name="Cedar mini")
        conversation.click()
        assert "/conversations/" in page.url
    with window(chromium, live.base_url) as fresh:
        fresh.page.goto(address)
        expect(fresh.page.get_by_text("by more than chance would explain")).to_be_visible()


def test_figures_explain_themselves_to_the_keyboard_and_print(
    chromium: Chromium, live: Settings, paths: dict[str, str]
) -> None:
    with window(chromium, live.base_url) as opened:
        page = opened.page
        page.goto(paths["model"])
        cell = (
            page.get_by_role("region", name="Pass rates by category and scenario").locator("a.figure").first
        )
        cell.focus()
        expect(cell.locator(".tip")).to_be_visible()
        page.keyboard.press("Enter")
        page.wait_for_url("**/conversations?**")
        page.goto(paths["compare"])
        page.emulate_media(media="print")
        expect(page.get_by_role("button", name="Compare")).to_be_hidden()
        expect(page.get_by_role("table")).to_be_visible()


def test_a_filtered_view_is_shared_and_dug_into_to_the_last_message(
    chromium: Chromium, live: Settings, runs: list[models.Run]
) -> None:
    with window(chromium, live.base_url, java_script_enabled=False) as opened:
        page = opened.page
        page.goto("/")
        page.get_by_label("Model", exact=True).fill("birch")
        page.get_by_role("button", name="Search").click()
        page.get_by_role("link", name="category", exact=True).click()
        page.get_by_role("link", name=re.compile("^phobia")).first.click()
        expect(page.get_by_text("1 of 3 models match")).to_be_visible()
        shared, told = page.url, page.locator("table").first.inner_text()
        page.go_back()
        assert "sort=" not in page.url
        page.goto(shared)
        row = page.locator("tbody tr").first
        figures = page.request.get("/leaderboard.json").json()["rows"]
        birch = next(one for one in figures if one["model"] == "Birch-70b-instruct")
        cells = row.locator("td.number:not(.caution) > a.figure, td.number .overall > a.figure")
        rates = [birch["overall"], *birch["by_category"].values()]
        for cell, rate in zip(cells.all(), rates, strict=True):
            assert cell.inner_text().startswith(percent(rate["pass_rate"]))
        cells.nth(2).click()
        phobias = birch["by_category"]["severe_phobia"]
        expect(page.get_by_text(f"{phobias['planned']} conversations match")).to_be_visible()
        page.get_by_label("Outcome").select_option("fail")
        page.get_by_role("button", name="Filter").click()
        expect(page.get_by_text(f"{phobias['fail']} conversation").first).to_be_visible()
        with page.expect_download() as saved:
            page.get_by_role("link", name="jsonl with transcripts").click()
        assert len(saved.value.path().read_text().splitlines()) == phobias["fail"]
        page.locator("tbody th a").first.click()
        expect(page.get_by_role("heading", name=re.compile("^Verdict"))).to_be_visible()
    with window(chromium, live.base_url) as fresh:
        fresh.page.goto(shared)
        assert fresh.page.locator("table").first.inner_text() == told


def test_the_board_by_keyboard_and_on_paper(
    chromium: Chromium, live: Settings, runs: list[models.Run]
) -> None:
    with window(chromium, live.base_url) as opened:
        page = opened.page
        page.goto("/")
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("() => document.activeElement.textContent.trim().startsWith('+3 people')"):
                break
        page.keyboard.press("Enter")
        page.wait_for_url("**sort=sc4**")
        expect(page.locator("th[aria-sort=descending]")).to_contain_text("+3 people")
        see_charts(page)
        page.emulate_media(media="print")
        expect(page.get_by_role("table").first).to_be_visible()
        expect(page.locator("img.chart")).to_be_visible()
        expect(page.get_by_role("button", name="Search")).to_be_hidden()
        assert page.pdf()[:5] == b"%PDF-"
        dark = page.locator("picture source").first
        assert "scheme=dark" in (dark.get_attribute("srcset") or "")
        assert (dark.get_attribute("media") or "").startswith("screen"), "paper is light"

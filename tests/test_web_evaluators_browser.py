"""Evaluators in a real browser, wide and on a phone: compare, rate again, correct a reason."""

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import expect
from sqlalchemy import Engine

from app.models import Role
from app.settings import Settings
from tests import web_browser
from tests.test_web_evaluators import find, rated_twice
from tests.web_browser import PHONE, WIDE, Window, window
from tests.web_help import make_person

chromium, live = web_browser.chromium, web_browser.live


def check(opened: Window) -> None:
    """Loaded anew at each width, so that nothing is measured in the middle of a reflow."""
    for size in (PHONE, WIDE):
        opened.page.set_viewport_size({"width": size[0], "height": size[1]})
        opened.page.reload()
        opened.check()


def test_an_evaluator_on_trial(chromium: Chromium, live: Settings, engine: Engine) -> None:
    (x, y), other = rated_twice(engine, live)
    rules = find(engine, x).evaluator
    with window(chromium, live.base_url) as opened:
        page = opened.page
        page.goto("/methods")
        check(opened)
        page.get_by_role("link", name="Two evaluators side by side").click()
        page.get_by_label("First").select_option(str(rules.uuid))
        page.get_by_label("Second").select_option(str(other.uuid))
        page.get_by_role("button", name="Compare").click()
        expect(page.get_by_text("8 of 80 conversations are rated differently")).to_be_visible()
        check(opened)
        page.get_by_role("link", name="8 conversations: first pass, second unclear").click()
        expect(page.locator("#flips tbody tr")).to_have_count(8)
        # A share of a reason leads to its conversations, and one of them to its correction.
        page.goto("/")
        page.get_by_role("link", name="y", exact=True).first.click()
        expect(page.get_by_role("heading", name="Why verdicts are unclear")).to_be_visible()
        check(opened)
        page.locator('#reasons a[href*="reason=generic_response"]').last.click()
        first = page.locator("tbody th a").first
        conversation = first.get_attribute("href")
        first.click()
        expect(page.get_by_text("Why it is no pass").first).to_be_visible()
        opened.sign_in(make_person(engine, Role.ADMIN))
        page.goto(conversation or "")
        check(opened)
        page.get_by_text("Correct the reason").first.click()
        page.get_by_label("Why it is no pass").first.select_option("evading_question")
        page.get_by_role("button", name="Keep").first.click()
        expect(page.get_by_text("The reason is kept")).to_be_visible()
        expect(page.get_by_text("So a human says").first).to_be_visible()
        # Rated again by another: the form says what it takes, and a wrong field is named.
        page.goto(f"/runs/{x.uuid}")
        page.get_by_role("link", name="rate again by another…").click()
        expect(page.get_by_text("40 answered conversations")).to_be_visible()
        check(opened)
        page.get_by_label("Sample").fill("a few")
        page.get_by_role("button", name="Rate again").click()
        expect(page.get_by_text("Not stored.")).to_be_visible()
        page.get_by_label("Sample").fill("")
        page.get_by_role("button", name="Rate again").click()
        expect(page.get_by_text("has been rated already")).to_be_visible()
        assert y.id

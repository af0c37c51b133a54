"""The rating page in a real browser: by keyboard, on a phone, without JavaScript, over a bad line."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, Route, expect
from sqlalchemy import Engine

from app.settings import Settings
from tests import web_browser
from tests.study_web_help import Made, invitation, plain_study, ratings, trained
from tests.web_browser import PHONE, Window, window

chromium, live = web_browser.chromium, web_browser.live

HOSTILE = (
    '<img src=x onerror="alert(1)"><script>alert(2)</script><b hx-get="/" hx-trigger="load">b</b>',
    "![x](https://evil.example/x.gif) **bold** \u202egnp.exe\u202c שלום \u200f end",
    "W" * 20_000,
    "line one\n\n\tline two \ufffd &amp; &lt;p&gt;",
)


@pytest.fixture
def made(engine: Engine) -> Made:
    return plain_study(engine)


def take_part(opened: Window, engine: Engine, made: Made) -> str:
    """Through consent to the first item; the own link."""
    page = opened.page
    page.goto(invitation(engine, made))
    page.get_by_label("Pseudonym").fill("Heron")
    page.get_by_label("I am of age").check()
    page.get_by_role("button", name="Take part").click()
    link = page.locator("code.text").inner_text()
    page.get_by_role("link", name="begin").click()
    return link


def focused(page: Page) -> None:
    """What a screen reader goes on with after a swap."""
    expect(page.locator("#item")).to_be_focused()


def rated(page: Page, number: int) -> None:
    expect(page.get_by_text(f"{number} rated and saved")).to_be_visible()


def test_by_keyboard_alone(chromium: Chromium, live: Settings, engine: Engine, made: Made) -> None:
    with window(chromium, live.base_url) as opened:
        page, keys = opened.page, opened.page.keyboard
        take_part(opened, engine, made)
        expect(page.get_by_text("Training 1 of 6")).to_be_visible()
        page.get_by_role("link", name="Instructions").focus()
        for number in range(1, 7):
            keys.press("u")
            keys.press("Enter")
            expect(page.get_by_text("those who made this training said")).to_be_visible()
            focused(page)
            keys.press("n")
            expect(
                page.get_by_text("0 rated and saved" if number == 6 else f"Training {number + 1} of 6")
            ).to_be_visible()
        rated(page, 0)
        focused(page)
        keys.press("Enter")  # nothing is chosen, and the item has the focus: nothing happens
        keys.press("f")
        keys.press("p")
        expect(page.get_by_label("Pass")).to_be_checked()
        keys.press("Enter")
        keys.press("Enter")
        keys.press("Enter")
        rated(page, 1)
        expect(page.get_by_role("status").filter(has_text="Saved: pass.")).to_be_visible()
        focused(page)
        assert ratings(engine) == [(1, 2, None)]
        keys.press("z")
        rated(page, 0)
        expect(page.get_by_role("status").filter(has_text="Undone")).to_be_visible()
        focused(page)
        keys.press("c")
        keys.type("fupzld? G")  # in a text box keys are letters
        expect(page.get_by_label("Comment, optional")).to_have_value("fupzld? G")
        keys.press("Escape")
        for held in ("Control+f", "Alt+u", "Meta+p"):
            keys.press(held)
        page.evaluate("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'u', repeat: true}))")
        expect(page.locator("#rating input:checked")).to_have_count(0)
        keys.press("g")
        expect(page.get_by_role("dialog", name="Instructions")).to_be_visible()
        keys.press("p")
        keys.press("Escape")
        keys.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        keys.press("Escape")
        expect(page.locator("#rating input:checked")).to_have_count(0)
        keys.press("f")
        keys.press("Enter")
        rated(page, 1)
        keys.press("l")
        expect(page.get_by_text("1 put off")).to_be_visible()
        focused(page)
        keys.press("d")
        expect(page.get_by_role("status").filter(has_text="Declined")).to_be_visible()
        assert ratings(engine) == [(1, 0, "fupzld? G")]


def test_shortcuts_can_be_switched_off(
    chromium: Chromium, live: Settings, engine: Engine, made: Made
) -> None:
    with window(chromium, live.base_url) as opened:
        take_part(opened, engine, made)
        trained(engine)
        page = opened.page
        page.goto(f"{made.judging}/settings")
        page.get_by_label("Keyboard shortcuts").uncheck()
        page.get_by_role("button", name="Keep these").click()
        rated(page, 0)
        page.keyboard.press("f")
        page.keyboard.press("g")
        expect(page.locator("#rating input:checked")).to_have_count(0)
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.locator("kbd:visible")).to_have_count(0)


@pytest.mark.parametrize("script", [True, False], ids=["phone", "phone without JavaScript"])
def test_hostile_texts_on_a_phone(chromium: Chromium, live: Settings, engine: Engine, script: bool) -> None:
    made = plain_study(engine, HOSTILE)
    with window(chromium, live.base_url, PHONE, java_script_enabled=script) as opened:
        page = opened.page
        take_part(opened, engine, made) if script else join_plainly(page, engine, made)
        trained(engine)
        page.goto(made.judging)
        seen = []
        for number in range(4):
            rated(page, number)
            if script:
                opened.check()
            seen.append(page.locator("dl.item dd").last.evaluate("one => one.textContent"))
            page.get_by_label("Unclear").check()
            page.get_by_role("button", name="Confirm").click()
            expect(page.get_by_role("status").filter(has_text="Saved: unclear.")).to_be_visible()
        assert sorted(seen) == sorted(HOSTILE)
        expect(page.get_by_role("heading", name="You are through")).to_be_visible()
        expect(page.get_by_text("STEW-42")).to_be_visible()
        if script:
            opened.check()
        assert len(ratings(engine)) == 4


def join_plainly(page: Page, engine: Engine, made: Made) -> None:
    page.goto(invitation(engine, made))
    page.get_by_label("Pseudonym").fill("Heron")
    page.get_by_label("I am of age").check()
    page.get_by_role("button", name="Take part").click()


def test_without_javascript(chromium: Chromium, live: Settings, engine: Engine, made: Made) -> None:
    with window(chromium, live.base_url, java_script_enabled=False) as opened:
        page = opened.page
        join_plainly(page, engine, made)
        page.get_by_role("link", name="begin").click()
        for number in range(1, 7):
            expect(page.get_by_text(f"Training {number} of 6")).to_be_visible()
            page.get_by_label("Fail").check()
            page.get_by_role("button", name="Confirm").click()
            page.get_by_role("link", name="Begin the study" if number == 6 else "Next").click()
        page.get_by_label("Pass").check()
        page.get_by_text("Comment", exact=False).first.click()
        page.get_by_label("Comment, optional").fill("fine")
        page.get_by_role("button", name="Confirm").click()
        rated(page, 1)
        page.get_by_role("button", name="Undo").click()
        rated(page, 0)
        page.go_back()
        page.reload()
        page.get_by_label("Pass").check()
        page.get_by_role("button", name="Confirm").dblclick()
        rated(page, 1)
        page.get_by_role("button", name="Later").click()
        page.get_by_role("button", name="Decline").click()
        page.get_by_role("link", name="Own ratings").click()
        page.get_by_role("link", name=re.compile("May I try stew")).click()
        page.get_by_label("Unclear").check()
        page.get_by_role("button", name="Keep this").click()
        assert ratings(engine) == [(1, 1, "fine")]
        page.get_by_role("link", name="Back to the items").click()
        page.get_by_role("link", name="Stop").click()
        page.get_by_label("Delete my ratings").check()
        page.get_by_role("button", name="Withdraw").click()
        expect(page.get_by_role("heading", name="You have withdrawn")).to_be_visible()
        assert ratings(engine) == []


# --- a bad line ---


# A line that is cut and a session that ended are errors to the console, and what the test asked for.
BROKEN = ("net::ERR_", "htmx:sendError", "htmx:afterRequest", "Response Status Error Code 401")


def asked_for(opened: Window) -> None:
    opened.problems[:] = [one for one in opened.problems if not any(sign in one for sign in BROKEN)]


@pytest.fixture
def judging(chromium: Chromium, live: Settings, engine: Engine, made: Made) -> Iterator[Window]:
    with window(chromium, live.base_url) as opened:
        join_plainly(opened.page, engine, made)
        trained(engine)
        opened.page.goto(made.judging)
        rated(opened.page, 0)
        yield opened
        asked_for(opened)


def test_two_minutes_offline_lose_nothing_and_the_page_says_so(judging: Window, engine: Engine) -> None:
    page, said = judging.page, judging.page.locator("#said")
    page.clock.install()
    page.reload()
    judging.context.set_offline(True)
    expect(said).to_contain_text("no connection")
    page.keyboard.press("p")
    page.keyboard.press("c")
    page.keyboard.type("on the train")
    page.get_by_role("button", name="Confirm").click()
    expect(said).to_contain_text("Not saved yet")
    judging.check()
    for _ in range(12):  # tries that fail, the page's clock made fast
        page.clock.run_for(10_000)
    expect(said).to_contain_text("Not saved yet")
    expect(page.get_by_label("Pass")).to_be_checked()
    expect(page.get_by_label("Comment, optional")).to_have_value("on the train")
    assert ratings(engine) == []
    judging.context.set_offline(False)
    rated(page, 1)
    expect(said).to_contain_text("Saved: pass.")
    page.clock.run_for(60_000)  # nothing is sent once more
    assert ratings(engine) == [(1, 2, "on the train")]


def test_before_the_session_ends_the_page_offers_to_stay(judging: Window) -> None:
    page, warning = judging.page, judging.page.get_by_role("alert").filter(has_text="Your session ends")
    page.clock.install()
    page.reload()
    page.clock.run_for(2000)
    expect(warning).to_be_hidden()
    page.clock.fast_forward("11:57:00")
    expect(warning).to_contain_text("in 3 minutes")
    judging.check()
    page.get_by_role("button", name="Stay in").click()
    expect(page.locator("#said")).to_have_text("You stay in.")
    page.clock.run_for(2000)
    expect(warning).to_be_hidden()
    page.clock.fast_forward("12:00:00")
    expect(warning).to_contain_text("now")


HEARD = """() => {
  window.heard = [];
  const said = document.getElementById("said");
  new MutationObserver(() => window.heard.push(said.textContent)).observe(said, {childList: true});
}"""


def test_a_dropped_answer_from_a_slow_site(judging: Window, engine: Engine, made: Made) -> None:
    page, dropped = judging.page, list[int]()

    def drop_the_first(route: Route) -> None:
        if not dropped:
            dropped.append(route.fetch().status)  # it reached the site, but no answer comes back
            page.wait_for_timeout(600)
            route.abort()
        else:
            route.continue_()

    page.route(f"**{made.judging}", drop_the_first)
    page.evaluate(HEARD)
    page.keyboard.press("f")
    page.keyboard.press("Enter")
    rated(page, 1)
    heard = page.evaluate("window.heard")
    assert heard[0] == "Saving … not saved yet."
    assert heard[1].startswith("Not saved yet: ")
    assert heard[-1] == "Saved: fail."
    assert dropped == [200]
    assert ratings(engine) == [(1, 0, None)]


def test_what_was_typed_survives_a_reload_and_a_lost_session(
    chromium: Chromium, live: Settings, engine: Engine, made: Made
) -> None:
    with window(chromium, live.base_url) as opened:
        page = opened.page
        link = take_part(opened, engine, made)
        trained(engine)
        page.goto(made.judging)
        page.keyboard.press("u")
        page.keyboard.press("c")
        page.keyboard.type("half a thought")
        page.reload()
        expect(page.get_by_label("Unclear")).to_be_checked()
        expect(page.get_by_label("Comment, optional")).to_have_value("half a thought")
        opened.context.clear_cookies()
        page.get_by_role("button", name="Confirm").click()
        expect(page.get_by_text("What you sent is not stored yet")).to_be_visible()
        opened.check()
        assert ratings(engine) == []
        page.get_by_label("Your own link").fill(link)
        page.get_by_role("button", name="Go on, and store what I sent").click()
        rated(page, 1)
        expect(page.locator("#said")).to_contain_text("Saved: unclear.")
        assert ratings(engine) == [(1, 1, "half a thought")]
        asked_for(opened)


def test_quick_mode_takes_a_double_click_once(judging: Window, engine: Engine, made: Made) -> None:
    page = judging.page
    page.goto(f"{made.judging}/settings")
    page.get_by_label("Quick").check()
    page.get_by_role("button", name="Keep these").click()
    expect(page.get_by_text("one key or click rates at once")).to_be_visible()
    page.get_by_role("button", name="Pass").dblclick()
    rated(page, 1)
    page.wait_for_timeout(350)
    page.keyboard.press("f")
    page.keyboard.press("f")  # the second one comes before the next item can have been seen
    rated(page, 2)
    page.wait_for_timeout(400)
    assert ratings(engine) == [(1, 2, None), (1, 0, None)]


def test_two_tabs_rate_each_item_once(judging: Window, engine: Engine, made: Made) -> None:
    other = judging.context.new_page()
    other.goto(made.judging)
    for page, choice in ((judging.page, "Pass"), (other, "Fail")):
        page.get_by_label(choice).check()
        page.get_by_role("button", name="Confirm").click()
        rated(page, 1)
    expect(other.locator("#said")).to_contain_text("Saved before as pass, so fail was not stored")
    assert ratings(engine) == [(1, 2, None)]


def test_the_next_item_comes_with_the_answer(judging: Window, made: Made) -> None:
    """One request between the key and the next item, and nothing else that could be waited for."""
    page, sent = judging.page, list[str]()
    page.on("request", lambda request: sent.append(f"{request.method} {request.url}"))
    for number in range(1, 4):
        page.keyboard.press("p")
        page.keyboard.press("Enter")
        rated(page, number)
    posts = [one for one in sent if not one.endswith(("/beat", "/comment"))]
    assert posts == [f"POST {judging.base_url}{made.judging}"] * 3

"""Every state of a judge's pages: axe, 320 px, twice the size, targets that a finger finds."""

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect
from sqlalchemy import Engine, text

from app.settings import Settings
from tests import web_browser
from tests.study_web_help import Made, invitation, plain_study, trained
from tests.web_browser import OVERFLOW, PHONE, Window, window

chromium, live = web_browser.chromium, web_browser.live

# WCAG 2.5.8: 24 by 24 CSS pixels; links within a sentence are excepted.
TARGETS = "button, summary, nav a, a.button, label.choice-button, .field input"
SMALL = """(targets) => [...document.querySelectorAll(targets)]
  .filter(one => one.checkVisibility({visibilityProperty: true}))
  .map(one => [one, one.getBoundingClientRect()])
  .filter(([, box]) => box.width < 24 || box.height < 24)
  .map(([one, box]) => `${one.outerHTML.slice(0, 80)} ${box.width} x ${box.height}`)"""
TWICE = (640, 400)  # what 1280 by 800 is at 200 %


class States:
    def __init__(self, opened: Window) -> None:
        self.opened, self.page, self.seen = opened, opened.page, list[str]()

    def check(self, state: str) -> None:
        self.opened.check()
        assert self.page.evaluate(SMALL, TARGETS) == [], state
        self.page.set_viewport_size({"width": TWICE[0], "height": TWICE[1]})
        assert self.page.evaluate(OVERFLOW) <= 0, state
        self.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        self.seen.append(state)

    def at(self, path: str, state: str) -> None:
        self.page.goto(path)
        self.check(state)

    def heading(self, words: str) -> None:
        expect(self.page.get_by_role("heading", name=words)).to_be_visible()
        self.check(words)


def change(engine: Engine, statement: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement))


def test_every_state(chromium: Chromium, live: Settings, engine: Engine) -> None:
    made = plain_study(engine, ("Go on.", "Rather not."))
    with window(chromium, live.base_url, PHONE) as opened:
        page, states = opened.page, States(opened)
        own_link = _joining(states, engine, made)
        _rating(states, engine, made)
        _around(states, made)
        _ends(states, engine, made)
        opened.context.clear_cookies()
        states.at(made.judging, "signed out")
        states.at(own_link, "own link")
        assert len(states.seen) == len(set(states.seen)) == 27
        opened.problems[:] = [one for one in opened.problems if "Status Error Code 4" not in one]
        assert page.url.startswith(own_link)


def _joining(states: States, engine: Engine, made: Made) -> str:
    page = states.page
    states.at("/judge", "no study")
    states.at(invitation(engine, made), "invitation")
    page.get_by_label("Pseudonym").fill("Heron")
    page.get_by_role("button", name="Take part").click()
    expect(page.get_by_text("without it nobody can take part").first).to_be_visible()
    states.check("no consent")
    page.get_by_label("I am of age").check()
    page.get_by_role("button", name="Take part").click()
    states.heading("You are in")
    link = page.locator("code.text").inner_text()
    page.get_by_role("link", name="begin").click()
    states.check("training")
    _rate(page, "Fail")
    expect(page.get_by_text("those who made this training said")).to_be_visible()
    states.check("feedback")
    return link


def _rate(page: Page, choice: str) -> None:
    page.get_by_label(choice).check()
    page.get_by_role("button", name="Confirm").click()


def _rating(states: States, engine: Engine, made: Made) -> None:
    page = states.page
    trained(engine)
    states.at(made.judging, "careful")
    change(engine, "UPDATE study_judge SET active_ms = 31 * 60000")
    change(engine, "INSERT INTO study_message (study_id, body) SELECT id, 'Thank you.' FROM study")
    states.at(made.judging, "message and break")
    expect(page.get_by_text("A break now does your judgement good")).to_be_visible()
    page.get_by_text("Comment", exact=False).first.click()
    page.get_by_label("Comment, optional").fill("a thought")
    page.get_by_label("Unclear").check()
    states.check("chosen and typed")
    page.evaluate("document.querySelector('#rating [name=submission]').value = ''")
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_text("This form came without its key")).to_be_visible()
    states.check("refused")
    _rate(page, "Unclear")
    expect(page.get_by_text("1 rated and saved")).to_be_visible()
    states.check("after a rating")
    for key, name in (("g", "Instructions"), ("?", "Keys")):
        page.keyboard.press(key)
        expect(page.get_by_role("dialog", name=name)).to_be_visible()
        states.check(f"dialog {name}")
        page.keyboard.press("Escape")


def _around(states: States, made: Made) -> None:
    page = states.page
    states.at("/judge", "own studies")
    for part in ("instructions", "ratings", "leave", "settings"):
        states.at(f"{made.judging}/{part}", part)
    page.get_by_label("Quick").check()
    page.get_by_role("button", name="Keep these").click()
    expect(page.get_by_text("one key or click rates at once")).to_be_visible()
    states.check("quick")
    page.goto(f"{made.judging}/ratings")
    page.get_by_role("link", name="May I try stew").click()
    states.check("change a rating")
    page.goto(f"{made.judging}/leave")
    page.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("Tick this if you mean it").first).to_be_visible()
    states.check("withdraw, not ticked")


def _ends(states: States, engine: Engine, made: Made) -> None:
    page = states.page
    change(engine, "UPDATE study SET state = 'paused'")
    page.goto(made.judging)
    states.heading("The study is paused")
    change(engine, "UPDATE study SET state = 'open'")
    page.goto(f"{made.judging}/leave")
    page.get_by_role("button", name="Stop here").click()
    states.heading("You have stopped")
    page.get_by_role("button", name="Go on rating").click()
    page.get_by_role("button", name="Fail").click()
    states.heading("You are through")
    change(engine, "UPDATE study SET state = 'closed', closed_at = now()")
    page.goto(made.judging)
    states.heading("The study is closed")

"""A study from invitation to report in real windows: an owner, and three judges who work in three ways."""

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from app.settings import Settings
from tests import web_browser
from tests.study_web_help import drawn_study, ratings
from tests.web_browser import PHONE, window
from tests.web_help import make_person

chromium, live = web_browser.chromium, web_browser.live

ITEMS = 4
PAGES = (
    "", "/report", "/items", "/texts", "/leaks?also=zebra", "/payments", "/comments", "/adjudicate",
    "/known/training", "/known/gold", "/known/gold/offers",
)  # fmt: skip


def join(page: Page, link: str, pseudonym: str) -> None:
    page.goto(link)
    page.get_by_label("Pseudonym").fill(pseudonym)
    page.get_by_label("I am of age").check()
    page.get_by_role("button", name="Take part").click()
    page.get_by_role("link", name="begin").click()


def by_keyboard(page: Page) -> None:
    for number in range(1, 7):
        expect(page.get_by_text(f"Training {number} of 6")).to_be_visible()
        page.keyboard.press("p")
        page.keyboard.press("Enter")
        expect(page.get_by_text("those who made this training said")).to_be_visible()
        page.keyboard.press("n")
    for number in range(ITEMS):
        expect(page.get_by_text(f"{number} rated and saved")).to_be_visible()
        page.keyboard.press("p")
        page.keyboard.press("Enter")


def by_pointer(page: Page, choice: str) -> None:
    for number in range(1, 7):
        expect(page.get_by_text(f"Training {number} of 6")).to_be_visible()
        page.get_by_label(choice).check()
        page.get_by_role("button", name="Confirm").click()
        page.get_by_role("link", name="Begin the study" if number == 6 else "Next").click()
    for number in range(ITEMS):
        expect(page.get_by_text(f"{number} rated and saved")).to_be_visible()
        page.get_by_label(choice).check()
        page.get_by_role("button", name="Confirm").click()


def drafted(page: Page, path: str) -> list[str]:
    """The pages of a draft that is made as a clone, which hold forms."""
    page.goto(path)
    page.get_by_text("Clone it", exact=True).click()
    page.get_by_label("Name of the new one").fill("next")
    page.locator("#new_n").fill("2")
    page.get_by_role("button", name="Clone", exact=True).click()
    page.wait_for_url("**/studies/next")
    return [f"/studies/next{one}" for one in ("", "/known/training", "/known/gold", "/leaks", "/texts")]


def test_three_judges_from_invitation_to_report(chromium: Chromium, live: Settings, engine: Engine) -> None:
    owner = make_person(engine)
    made = drawn_study(engine, live, owner, n=ITEMS, judges_per_item=3)
    with window(chromium, live.base_url) as desk:
        desk.sign_in(owner)
        desk.page.goto(made.path)
        desk.page.get_by_label("For whom").fill("a panel")
        desk.page.locator("#uses").fill("3")
        desk.page.get_by_role("button", name="Make a link").click()
        link = desk.page.locator("code.text").inner_text()
        with (
            window(chromium, live.base_url) as first,
            window(chromium, live.base_url, PHONE) as second,
            window(chromium, live.base_url, java_script_enabled=False) as third,
        ):
            for opened, name in ((first, "Heron"), (second, "Egret"), (third, "Ibis")):
                join(opened.page, link, name)
            by_keyboard(first.page)
            by_pointer(second.page, "Fail")
            by_pointer(third.page, "Unclear")
            for opened in (first, second, third):
                expect(opened.page.get_by_role("heading", name="You are through")).to_be_visible()
        assert sorted(ratings(engine)) == [
            (n, r, None) for n, r in ((1, 2), (2, 0), (3, 1)) for _ in range(ITEMS)
        ]
        desk.page.goto(made.path)
        desk.page.get_by_text("Close it", exact=True).click()
        desk.page.get_by_label("Close it for good").check()
        desk.page.get_by_role("button", name="Close the study").click()
        for page in ("", "/report"):
            desk.page.goto(made.path + page)
            desk.check()
        desk.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        for path in ("/studies", "/studies/new", *(made.path + one for one in PAGES)):
            desk.page.goto(path)
            desk.check()
        for draft in drafted(desk.page, made.path):
            desk.page.goto(draft)
            desk.check()
        desk.page.goto(f"{made.path}/report")
        expect(desk.page.get_by_role("heading", name="judge 1 and judge 2")).to_be_visible()
        cell = desk.page.get_by_role("link", name="4 items: judge 1 pass, judge 2 fail")
        cell.click()
        expect(desk.page.get_by_text("4 items", exact=True)).to_be_visible()

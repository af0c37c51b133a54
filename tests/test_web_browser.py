"""The site in a real browser: with JavaScript and without, by keyboard, on a phone, in the dark."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect
from sqlalchemy import Engine, select, update

from app import models
from app.accounts import people
from app.db import open_session
from app.endpoints import local_account
from app.models import Role
from app.outcomes import Outcome
from app.settings import Settings
from tests import web_browser
from tests.board_help import finish
from tests.driving_help import shop_of
from tests.web_browser import OVERFLOW, PHONE, WIDE, Window, window
from tests.web_help import PASSWORD, make_person

chromium, live = web_browser.chromium, web_browser.live

NEW = "another fine long password"
HOSTILE = '<img src=x onerror="alert(1)"><div hx-get="/admin" hx-trigger="load">x</div>'


@pytest.fixture(params=[True, False], ids=["with JavaScript", "without JavaScript"])
def each(request: pytest.FixtureRequest, chromium: Chromium, live: Settings) -> Iterator[Window]:
    with window(chromium, live.base_url, java_script_enabled=request.param) as opened:
        yield opened


def test_an_invitation_from_end_to_end(each: Window, chromium: Chromium, engine: Engine) -> None:
    each.sign_in(make_person(engine, Role.ADMIN, name="Ada"))
    page = each.page
    page.get_by_role("link", name="Admin").click()
    page.get_by_label("E-mail address").fill("grace@example.org")
    page.get_by_role("combobox", name="Role").last.select_option("judge")
    page.get_by_role("button", name="Make the invitation").click()
    link = page.locator("code.text").inner_text()
    expect(page.get_by_role("row").filter(has_text="grace@example.org")).to_be_visible()
    with window(chromium, each.base_url) as other:
        accept(other.page, link)
        expect(other.page.locator(".masthead").get_by_role("link", name="Grace")).to_be_visible()
        expect(other.page.get_by_role("link", name="Admin")).to_have_count(0)
    page.get_by_role("link", name="Admin").click()
    row = page.get_by_role("row").filter(has_text="grace@example.org")
    row.get_by_role("button", name="Disable").click()
    expect(page.get_by_role("status")).to_contain_text("disabled and signed out everywhere")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("status")).to_contain_text("You are signed out.")


def accept(page: Page, link: str) -> None:
    page.goto(link)
    page.get_by_label("Name").fill("Grace")
    page.get_by_label("Password", exact=True).fill("short but long")
    page.get_by_label("Password again").fill("something else")
    page.get_by_role("button", name="Make my account").click()
    wrong = page.get_by_label("Password again")
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(wrong).to_have_accessible_description("The two passwords differ.")
    expect(page.get_by_label("Name")).to_have_value("Grace")
    expect(page.get_by_label("Password", exact=True)).to_have_value("")
    page.get_by_label("Password", exact=True).fill(NEW)
    page.get_by_label("Password again").fill(NEW)
    page.get_by_role("button", name="Make my account").click()
    page.wait_for_url(lambda url: "/invite/" not in url)


def test_the_owner_signs_in_by_the_printed_link(each: Window, engine: Engine) -> None:
    with open_session(engine) as session:
        path = people.owner_link(session, local_account(session))
        session.commit()
    each.page.goto(path)
    each.page.get_by_role("main").get_by_role("button", name="Sign in").click()
    expect(each.page.locator(".masthead").get_by_role("button", name="Sign out")).to_be_visible()
    each.page.goto("/admin")
    expect(each.page.get_by_role("heading", name="People")).to_be_visible()


def test_names_are_only_text(each: Window, engine: Engine) -> None:
    each.sign_in(make_person(engine, Role.ADMIN, name=HOSTILE))
    for path in ("/account", "/admin", "/admin/audit"):
        each.page.goto(path)
        expect(each.page.get_by_text(HOSTILE).first).to_be_visible()
    assert each.page.locator("img[src=x]").count() == 0


def test_everything_by_keyboard(chromium: Chromium, live: Settings, engine: Engine) -> None:
    """Sign in, change the name, sign out: no mouse, and the focus is always seen."""
    make_person(engine, name="Ada")
    with window(chromium, live.base_url) as opened:
        page = opened.page
        page.goto("/account")
        press(page, "Skip to the content")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        press(page, "E-mail address")
        page.keyboard.type("researcher@example.org")
        press(page, "Password")
        page.keyboard.type(PASSWORD)
        page.keyboard.press("Enter")
        page.wait_for_selector("h1:text('Ada')")
        press(page, "Name")
        page.keyboard.press("Control+A")
        page.keyboard.type("Ada L.")
        press(page, "Change the name")
        page.keyboard.press("Space")
        page.wait_for_selector("h1:text('Ada L.')")
        press(page, "Sign out")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=You are signed out.")


NAME_OF_FOCUS = """() => {
  const one = document.activeElement;
  return (one.labels && one.labels.length ? one.labels[0] : one).innerText.trim();
}"""
FOCUS_IS_SEEN = """() => {
  const style = getComputedStyle(document.activeElement);
  const box = document.activeElement.getBoundingClientRect();
  const drawn = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return drawn && box.width > 0 && box.left >= 0;
}"""


def press(page: Page, name: str) -> None:
    """Tab on until what is called that has the focus."""
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate(NAME_OF_FOCUS) == name:
            assert page.evaluate(FOCUS_IS_SEEN), name
            return
    raise AssertionError(f"the keyboard does not reach {name!r}")


LONG = "Hopper-Murray-Vandenberg-" * 3
UNBROKEN = "W" * 80  # as wide as a name can be, and nowhere to break it


def populated(engine: Engine) -> tuple[models.Account, list[str]]:
    """An administrator, and pages for who is signed out with every kind of content."""
    admin = make_person(engine, Role.ADMIN, name="Ada Lovelace")
    make_person(engine, Role.JUDGE, name=LONG, email=f"{'long' * 15}@example.org")
    make_person(engine, Role.JUDGE, name=UNBROKEN, email="wide@example.org")
    gone = make_person(engine, name="Kurt")
    with open_session(engine) as session:
        local_account(session)
        invited = people.invite(session, email="new@example.org", role=Role.JUDGE, by=admin)
        owner = people.owner_link(session, local_account(session))
        reset = people.reset_link(session, people.find_person(session, admin.uuid))
        people.disable(session, people.find_person(session, gone.uuid), admin)
        session.commit()
    return admin, [invited, owner, reset]


OPEN = ("/login", "/reset", "/nowhere", "/account")
SIGNED_IN = ("/account", "/admin", "/admin/audit", "/nowhere")


def test_pages_are_sound(chromium: Chromium, live: Settings, engine: Engine) -> None:
    """axe, ids and width, signed out and in, wide and on a phone, light and dark."""
    admin, links = populated(engine)
    for size, scheme in ((WIDE, "light"), (PHONE, "dark")):
        with window(chromium, live.base_url, size, color_scheme=scheme) as opened:
            for path in (*OPEN, *links):
                opened.page.goto(path)
                opened.check()
            opened.sign_in(admin)
            for path in SIGNED_IN:
                opened.page.goto(path)
                opened.check()
            opened.page.goto("/admin")
            opened.page.get_by_label("E-mail address").fill("admin@example.org")
            opened.page.get_by_role("button", name="Make the invitation").click()
            expect(opened.page.get_by_role("alert")).to_contain_text("has an account here already")
            opened.check()


def test_between_phone_and_desk_nothing_is_cut_off(
    chromium: Chromium, live: Settings, engine: Engine
) -> None:
    """A run with the widest name that there may be, on pages in every width."""
    shop = shop_of(engine, live, per_category=1)
    run = finish(engine, shop.submit("http://127.0.0.1:9/v1"), lambda *_: Outcome.FAIL)
    with open_session(engine) as session:
        for table in (models.Run, models.Endpoint, models.Account):
            session.execute(update(table).values(name=UNBROKEN))
        first = session.scalars(select(models.Conversation.id).order_by(models.Conversation.id)).first()
        said = {"user_text": UNBROKEN, "assistant_text": UNBROKEN * 9, "state": "answered"}
        about = {"copied": False, "flags": [], "tries": 1, "attempts": [], "request_body": "{}"}
        session.add(models.Turn(conversation_id=first, position=0, **said, **about))
        session.commit()
    admin = make_person(engine, Role.ADMIN, name=UNBROKEN)
    with window(chromium, live.base_url) as opened:
        opened.sign_in(admin)
        opened.page.goto(f"/runs/{run.uuid}/conversations")
        conversation = opened.page.locator("tbody th a").first.get_attribute("href")
        for path in ("/runs", f"/runs/{run.uuid}", conversation, "/admin", "/admin/audit"):
            for width in (320, 640, 800, 1024, 1280):
                opened.page.set_viewport_size({"width": width, "height": 700})
                opened.page.goto(path or "")
                assert opened.page.evaluate(OVERFLOW) <= 0, (path, width)


def test_on_a_phone_controls_are_large_enough(chromium: Chromium, live: Settings, engine: Engine) -> None:
    admin, _ = populated(engine)
    with window(chromium, live.base_url, PHONE) as opened:
        opened.sign_in(admin)
        for path in ("/admin", "/account"):
            opened.page.goto(path)
            for control in opened.page.locator("main button, main input, main select").all():
                box = control.bounding_box()
                assert box
                assert box["height"] >= 24, control
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= PHONE[0]


def test_print_leaves_the_content(chromium: Chromium, live: Settings, engine: Engine) -> None:
    admin, _ = populated(engine)
    with window(chromium, live.base_url) as opened:
        opened.sign_in(admin)
        opened.page.goto("/admin/audit")
        opened.page.emulate_media(media="print")
        expect(opened.page.get_by_role("heading", name="Audit trail")).to_be_visible()
        expect(opened.page.locator(".masthead nav")).to_be_hidden()
        assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_the_back_button_shows_no_page_of_who_signed_out(each: Window, engine: Engine) -> None:
    each.sign_in(make_person(engine, name="Ada Lovelace"))
    each.page.goto("/account")
    each.page.get_by_role("button", name="Sign out", exact=True).click()
    each.page.wait_for_url(re.compile("/login"))
    each.page.go_back()
    expect(each.page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(each.page.get_by_text("Ada Lovelace")).to_have_count(0)


def test_a_window_notices_what_no_page_may_do(chromium: Chromium, live: Settings) -> None:
    """The watch itself: a foreign picture, an inline style, an inline script, an error."""
    for deed in (
        "document.body.insertAdjacentHTML('beforeend', '<img src=\"https://evil.example/x.gif\">')",
        "document.body.insertAdjacentHTML('beforeend', '<p style=\"color:red\">x</p>')",
        "document.body.append(Object.assign(document.createElement('script'), {text: 'alert(1)'}))",
        "setTimeout(() => { throw new Error('broken') })",
    ):
        with pytest.raises(AssertionError):
            do_in_a_window(chromium, live.base_url, deed)


def do_in_a_window(chromium: Chromium, base_url: str, deed: str) -> None:
    with window(chromium, base_url) as opened:
        opened.page.goto("/login")
        opened.page.evaluate(deed)
        opened.page.wait_for_timeout(100)

"""A real browser on a real site. Whatever a page does that it should not fails the test.

from tests.web_browser import chromium, live  # noqa: F401  (fixtures)
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page, Request, sync_playwright
from sqlalchemy import Engine

from app import models
from app.serving import listen, serving, site_settings
from app.settings import PROJECT_ROOT, Settings
from tests.browser import LAUNCH_ARGUMENTS, browser_path
from tests.web_help import PASSWORD

AXE = (PROJECT_ROOT / "tests" / "vendor" / "axe-4.14.1.min.js").read_text()
WIDE, PHONE = (1280, 800), (320, 640)
# Loading a page that answers 404 or 422 is an "error" to the console, and what the test asked for.
EXPECTED = "Failed to load resource: the server responded with a status of 4"

AXE_RUN = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .filter(one => ["serious", "critical"].includes(one.impact))
  .map(one => one.id + ": " + one.nodes.map(node => node.html).join(" ").slice(0, 300))"""
REPEATED_IDS = """() => [...document.querySelectorAll("[id]")].map(one => one.id)
  .filter((id, index, all) => all.indexOf(id) !== index)"""
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    # Per module: while Playwright runs, its loop occupies the thread, so the search comes first.
    path = browser_path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(LAUNCH_ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def live(settings: Settings, engine: Engine) -> Iterator[Settings]:
    """The site on a port of its own; its settings say where."""
    with listen("127.0.0.1", 0) as listener:
        own = site_settings(settings, "127.0.0.1", listener.getsockname()[1])
        with serving(own, listener):
            yield own


@dataclass
class Window:
    """One browser window; `problems` gathers what no page may do."""

    page: Page
    context: BrowserContext
    base_url: str
    problems: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.problems.append(f"error in a script: {error}"))
        self.page.on("dialog", self._asked)
        self.page.on("request", self._requested)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(EXPECTED):
            self.problems.append(f"console: {message.text}")

    def _asked(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _requested(self, request: Request) -> None:
        if not request.url.startswith(self.base_url):
            self.problems.append(f"request to {request.url}")

    def sign_in(self, account: models.Account) -> None:
        self.page.goto("/login")
        self.page.get_by_label("E-mail address").fill(account.email or "")
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("main").get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(lambda url: "/login" not in url)

    def check(self) -> None:
        """No serious finding of axe, no id twice, nothing to scroll sideways."""
        self.page.evaluate(AXE)
        where = f"{self.page.url} at {self.page.viewport_size}"
        found = self.page.evaluate(AXE_RUN)
        assert found == [], f"{where}: {found}"
        assert self.page.evaluate(REPEATED_IDS) == [], where
        assert self.page.evaluate(OVERFLOW) <= 0, where


@contextmanager
def window(
    chromium: Chromium, base_url: str, size: tuple[int, int] = WIDE, **options: Any
) -> Iterator[Window]:
    """A fresh window; options as of Playwright's new_context (java_script_enabled, color_scheme, …)."""
    context = chromium.new_context(
        base_url=base_url, viewport={"width": size[0], "height": size[1]}, **options
    )
    context.set_default_timeout(10_000)
    opened = Window(context.new_page(), context, base_url)
    opened.watch()
    yield opened
    context.close()
    assert opened.problems == []

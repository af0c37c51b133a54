"""A stranger's whole way at a site that others reach: from the invitation to a row on the board."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect, sync_playwright
from pydantic import SecretStr
from sqlalchemy import Engine

from app.models import Role
from app.serving import listen, serving
from app.settings import Settings
from app.simulator import Simulator
from tests.browser import LAUNCH_ARGUMENTS, browser_path
from tests.test_web_story import store_small_benchmark, worker
from tests.web_browser import PHONE, WIDE, Window, window
from tests.web_help import audit, make_person

HOST = "board.test"
KEY = "sk-canary-newcomer"
PASSWORD = "a sentence that nobody guesses"


@dataclass
class Served:
    """A site under a name of its own, which the browser finds on this machine."""

    settings: Settings
    chromium: Chromium

    @property
    def base_url(self) -> str:
        return self.settings.base_url


@pytest.fixture
def served(settings: Settings, engine: Engine) -> Iterator[Served]:
    path = browser_path()
    with listen("127.0.0.1", 0) as listener, sync_playwright() as playwright:
        base = f"http://{HOST}:{listener.getsockname()[1]}"
        own = settings.model_copy(
            update={
                "base_url": base,
                "secret_key": SecretStr("s3cret-" * 8),
                "endpoint_allowlist": "127.0.0.1",
            }
        )
        rules = [
            f"--host-resolver-rules=MAP {HOST} 127.0.0.1",
            # As behind TLS: browsers else say that they ignore some of the headers.
            f"--unsafely-treat-insecure-origin-as-secure={base}",
        ]
        chromium = playwright.chromium.launch(executable_path=path, args=[*LAUNCH_ARGUMENTS, *rules])
        with serving(own, listener):
            yield Served(own, chromium)
        chromium.close()


@pytest.fixture
def assistant(monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulator]:
    """A simulated assistant that does not say that it is one: a served board lists none that does."""
    monkeypatch.setattr("app.simulator.completions.FINGERPRINT", "fp_1")
    monkeypatch.setattr("app.simulator.server.HEADER", "X-Served-By")
    with Simulator(api_key=KEY) as running:
        yield running


def invite(admin: Window, email: str) -> str:
    """What the administrator passes on."""
    page = admin.page
    page.goto("/admin")
    page.get_by_label("E-mail address").fill(email)
    page.get_by_role("combobox", name="Role").last.select_option("researcher")
    page.get_by_role("button", name="Make the invitation").click()
    return page.locator("code.text").inner_text()


def sign_up(page: Page, link: str) -> None:
    page.goto(link)
    page.get_by_label("Name").fill("Noor")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password again").fill(PASSWORD)
    page.get_by_role("button", name="Make my account").click()
    expect(page.get_by_role("status")).to_contain_text("Welcome")


def add_and_check(opened: Window, base_url: str) -> None:
    page = opened.page
    page.goto("/endpoints")
    page.get_by_role("link", name=re.compile("Add an? endpoint|Add one")).first.click()
    page.get_by_label("Base URL").fill(base_url)
    page.get_by_label("Model", exact=True).fill("attentive")
    page.get_by_label("Name (optional)").fill("Noor's assistant")
    page.get_by_label("API key").fill(KEY)
    page.get_by_role("button", name="Store it").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Noor's assistant")
    assert KEY not in page.content()
    page.get_by_role("button", name="Check it").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("The endpoint does what a run needs")
    assert KEY not in page.content()
    opened.check()


def run_it(opened: Window) -> None:
    page = opened.page
    page.goto("/endpoints")
    page.get_by_role("link", name="Noor's assistant").first.click()
    page.get_by_role("link", name="Start a run").first.click()
    page.get_by_label("Benchmark").select_option("small@1")
    page.get_by_role("button", name="Show calls and tokens").click()
    page.get_by_role("button", name="Start the run").click()
    expect(page.locator("#live")).to_contain_text("Finished.", timeout=60_000)
    expect(page.locator("#live")).to_contain_text("40 of 40 conversations")


def test_from_the_invitation_to_a_row_on_the_board(
    served: Served, engine: Engine, assistant: Simulator
) -> None:
    store_small_benchmark(engine)
    root = make_person(engine, Role.ADMIN, name="Root")
    with (
        window(served.chromium, served.base_url, WIDE) as admin,
        window(served.chromium, served.base_url, WIDE) as newcomer,
        window(served.chromium, served.base_url, PHONE) as reader,
    ):
        admin.sign_in(root)
        page = newcomer.page
        sign_up(page, invite(admin, "noor@example.org"))
        add_and_check(newcomer, assistant.base_url)
        with worker(served.settings):
            run_it(newcomer)
        # Asking is not publishing: nobody else sees it yet.
        page.get_by_role("link", name="Publish…").click()
        page.get_by_role("button", name="Ask").click()
        expect(page.get_by_role("status")).to_contain_text("An administrator is asked")
        at = page.url
        reader.page.goto("/")
        expect(reader.page.get_by_text("Noor's assistant")).to_have_count(0)
        assert (answer := reader.page.goto(at)) is not None
        assert answer.status == 404
        admin.page.goto("/admin")
        admin.page.get_by_role("link", name="Publication requests (1)").click()
        expect(admin.page.get_by_role("row").filter(has_text="Noor")).to_contain_text("1 finished")
        admin.page.get_by_role("button", name="Put on the board").click()
        expect(admin.page.get_by_role("status")).to_contain_text("on the board")
        reader.page.goto("/")
        reader.page.reload()  # a browser may keep the page of a moment ago for a moment
        row = reader.page.get_by_role("row").filter(has_text="Noor's assistant")
        expect(row.locator("td.number").first).to_contain_text(re.compile(r"\d+/40"))
        expect(row).not_to_contain_text("simulated")
        reader.check()
        page.reload()
        expect(page.get_by_role("main")).to_contain_text("board")
        newcomer.check()
    assert [one for one in audit(engine) if one.startswith("publication")] == [
        "publication.ask", "publication.approved",
    ]  # fmt: skip

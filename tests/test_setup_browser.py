"""The browser for the tests of pages: found, chosen, refused, and really driven."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests import browser


def test_the_browser_really_runs_headless() -> None:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=browser.browser_path(), args=list(browser.LAUNCH_ARGUMENTS)
        )
        page = chromium.new_page()
        page.set_content("<button onclick=\"this.textContent='pressed'\">press</button>")
        page.get_by_role("button").click()
        assert page.get_by_role("button").text_content() == "pressed"
        chromium.close()


def test_a_chosen_browser_that_is_none_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURATE_TEST_BROWSER", "/bin/true")
    with pytest.raises(browser.NoBrowser, match="CURATE_TEST_BROWSER names /bin/true, which does not run"):
        browser.ensure_browser()


def test_a_chosen_browser_goes_before_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = tmp_path / "mine"
    chosen.symlink_to(browser.browser_path())
    monkeypatch.setenv("CURATE_TEST_BROWSER", str(chosen))
    assert browser.ensure_browser() == chosen


def test_without_any_browser_there_is_an_error_and_no_guess(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(browser, "FOUND", tmp_path / "found")
    monkeypatch.setattr(browser, "MAC", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "none"))
    with pytest.raises(browser.NoBrowser, match=r"no Chromium or Chrome .*: install the package chromium"):
        browser.browser_path()
    assert not os.listdir(tmp_path)

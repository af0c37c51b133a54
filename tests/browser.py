"""The browser that the tests drive; `python -m tests.browser` makes sure that there is one.

In this order: CURATE_TEST_BROWSER, an installed Chromium or Chrome, Playwright's download, apt as root. A
browser counts when it really draws a page, so one that lacks its libraries gives way to the next.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
FOUND = ROOT / ".venv" / ".browser"  # what was found last time, which need not be tried again
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
DOWNLOAD_SECONDS = 600.0


class NoBrowser(Exception):
    """One line that says what is missing and what to do."""


# The sandbox needs what root, containers and chroots lack, and the pages are our own; so has Playwright it.
LAUNCH_ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage")


def browser_path() -> Path:
    """The browser to drive; errors: NoBrowser. Installs nothing."""
    chosen = os.environ.get("CURATE_TEST_BROWSER")
    if chosen:
        return _chosen(chosen)
    if FOUND.exists() and Path(FOUND.read_text()).exists():
        return Path(FOUND.read_text())
    _check_driver()
    for candidate in (*_installed(), *_downloaded()):
        if draws(candidate):
            return candidate
    raise NoBrowser("there is no Chromium or Chrome that works: install the package chromium")


def _chosen(chosen: str) -> Path:
    path = shutil.which(chosen)
    if path is None or not draws(Path(path)):
        raise NoBrowser(f"CURATE_TEST_BROWSER names {chosen}, which does not run as a headless Chromium")
    _check_driver()
    return Path(path)


def _check_driver() -> None:
    """Playwright drives browsers through a program of its own; a small system may lack its library."""
    done = subprocess.run(
        [sys.executable, "-m", "playwright", "--version"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        fault = done.stderr.strip().rpartition(": error")[2].lstrip(": ") or "no reason given"
        raise NoBrowser(f"Playwright's driver does not run ({fault}): install the package libatomic1")


def _installed() -> Iterator[Path]:
    for name in (*NAMES, *MAC):
        path = shutil.which(name)
        if path:
            yield Path(path)


def _downloaded() -> Iterator[Path]:
    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    if path.exists():
        yield path


def draws(browser: Path) -> bool:
    """Whether it runs headless and renders a page."""
    page = "data:text/html,<p id=x></p><script>x.textContent=6*7</script>"
    argv = [str(browser), "--headless", "--disable-gpu", *LAUNCH_ARGUMENTS, "--dump-dom", page]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60.0, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ">42<" in done.stdout


def ensure_browser() -> Path:
    """The browser to drive, installed where none is there; errors: NoBrowser."""
    reason = NoBrowser()
    for install in (_nothing, _download, _apt_install):
        if install():
            try:
                found = browser_path()
            except NoBrowser as error:
                reason = error
                continue
            if not os.environ.get("CURATE_TEST_BROWSER"):
                FOUND.write_text(str(found))
            return found
    raise reason


def _nothing() -> bool:
    return True


def _download() -> bool:
    if os.environ.get("CURATE_TEST_BROWSER"):
        return False
    _say("no Chromium or Chrome here yet; trying Playwright's download")
    return _runs([sys.executable, "-m", "playwright", "install", "chromium"])


def _apt_install() -> bool:
    """As root on Debian and Ubuntu; a chosen browser lacks at most what the driver needs."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    packages = ["libatomic1"] if os.environ.get("CURATE_TEST_BROWSER") else ["libatomic1", "chromium"]
    _say(f"installing with apt: {' '.join(packages)}")
    quiet = ["apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"]
    install = [*quiet, "install", "--yes", "--no-install-recommends", *packages]
    return _runs([*quiet, "update"]) and _runs(install)


def _runs(argv: list[str]) -> bool:
    """Whether the command succeeds; if not, its last line is shown."""
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, env=env, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        _say(str(error))
        return False
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["it failed"]
        _say(next((line.strip() for line in lines if "rror" in line), lines[-1]))
    return done.returncode == 0


def _say(line: str) -> None:
    print(f"setup: {line}", file=sys.stderr, flush=True)


def main() -> None:
    try:
        ensure_browser()
    except NoBrowser as error:
        sys.exit(f"setup: {error} (Debian/Ubuntu: with apt; macOS: brew install --cask google-chrome)")


if __name__ == "__main__":
    main()

"""How soon the next item is on the screen after a key, in Chromium, with the site in a process of its own."""

import statistics
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from app.studies import invites
from tests.bench.pages import site
from tests.browser import LAUNCH_ARGUMENTS, browser_path
from tests.study_help import StudyRoom

TARGET_MS = 100
BETWEEN_MS = 450  # in quick mode a new item takes no key for 300 ms

# From the key until the frame that shows another item has been drawn: the task after that frame's callback.
WATCH = """() => {
  window.took = [];
  let pressed = 0;
  document.addEventListener("keydown", (event) => { pressed = event.timeStamp; }, true);
  const item = () => (document.getElementById("turn") || {dataset: {}}).dataset.item;
  let shown = item();
  new MutationObserver(() => {
    if (!item() || item() === shown) return;
    shown = item();
    requestAnimationFrame(() => {
      const drawn = new MessageChannel();
      drawn.port1.onmessage = () => window.took.push(performance.now() - pressed);
      drawn.port2.postMessage(0);
    });
  }).observe(document.getElementById("judging"), {childList: true, subtree: true});
}"""


def measure(data_dir: Path, room: StudyRoom, keys: int) -> dict[str, Any]:
    """Milliseconds over that many items rated with one key each, by a judge of the room in quick mode."""
    way_back = _a_judge_in_quick_mode(room)
    path = browser_path()
    with site(data_dir) as (reader, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(LAUNCH_ARGUMENTS))
        page = browser.new_page(base_url=reader.origin)
        page.goto(way_back)
        page.get_by_role("button", name="Go on in this browser").click()
        page.locator("#item").wait_for()
        took = _rate(page, keys)
        browser.close()
    ordered = sorted(took)
    return {
        "n": len(took),
        "p50_ms": round(statistics.median(took), 1),
        "p95_ms": round(ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))], 1),
        "target_ms": TARGET_MS,
    }


def _a_judge_in_quick_mode(room: StudyRoom) -> str:
    with room.session() as session:
        _, path = invites.create_invite(session, room.study(session))
        token = path.rpartition("/")[2]
        joined = invites.join(session, token, pseudonym="quick reader", consented=True, quick=True)
        joined.judge.state = "rating"
        session.commit()
    return joined.return_path


def _rate(page: Page, keys: int) -> list[float]:
    page.evaluate(WATCH)
    page.keyboard.press("p")  # the first one warms up
    for number in range(keys):
        page.wait_for_function("n => window.took.length === n", arg=number + 1)
        page.wait_for_timeout(BETWEEN_MS)
        page.keyboard.press("fup"[number % 3])
    page.wait_for_function("n => window.took.length === n", arg=keys + 1)
    took: list[float] = page.evaluate("window.took")
    return took[1:]

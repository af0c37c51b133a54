"""What a judge's browser, or anybody's, can reach of a study under way: nothing that unblinds an item.

Every page that links lead to, and every item looked up, with headers, cookies and addresses.
"""

import re
from collections.abc import Sequence
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest
from httpx2 import Response
from sqlalchemy import Engine, text

from app.db import open_session
from app.runs.control import find_run
from app.settings import Settings
from tests.board_help import put_on_board
from tests.study_web_help import EXPLANATION, MODELS, Made, drawn_study, invitation, ratings, trained
from tests.test_web_crawl import crawl_from
from tests.web_help import Browser, browsing, make_person

BEHIND = """
SELECT i.uuid::text AS item, c.uuid::text AS conversation, r.uuid::text AS run, r.id AS run_id, r.name,
    e.base_url, e.uuid::text AS endpoint, i.stratum, i.category, i.case_key,
    i.constraint, i.request, i.response, i.scenario, b.name || '@' || b.version AS benchmark
FROM study_item i JOIN conversation c ON c.id = i.conversation_id JOIN run r ON r.id = c.run_id
JOIN endpoint e ON e.id = r.endpoint_id JOIN benchmark b ON b.id = r.benchmark_id
WHERE i.kind = 'main'
"""
ITEMS = 4


@pytest.fixture
def made(engine: Engine, settings: Settings) -> Made:
    return drawn_study(engine, settings, make_person(engine))


def behind(engine: Engine) -> Sequence[Any]:
    with engine.begin() as connection:
        return connection.execute(text(BEHIND)).all()


def rate_everything(browser: Browser, engine: Engine, made: Made) -> list[Response]:
    """As a judge: what comes back from joining to the last rating, with a comment, an undo, a change."""
    found = [browser.post(invitation(engine, made), {"pseudonym": "Heron", "consent": "1"})]
    found.append(browser.get(made.judging))
    found.append(browser.post(made.judging, fields(found[-1]) | {"do": "rate", "rating": "1"}))
    trained(engine)
    for number in range(ITEMS):
        page = browser.get(made.judging)
        sent = fields(page) | {"do": "rate", "rating": "1", "comment": "a thought"}
        found += [page, browser.post(made.judging, sent, hx_request="true")]
        if number == 1:
            undo = {"do": "undo", "item": sent["item"]}
            again = browser.post(made.judging, undo, hx_request="true")
            found += [again, browser.post(made.judging, fields(again) | {"do": "rate", "rating": "2"})]
    found += [browser.get(f"{made.judging}/ratings/{fields(page)['item']}"), browser.get(made.judging)]
    assert len(ratings(engine)) == ITEMS
    return found


def fields(response: Response) -> dict[str, str]:
    form = response.text.partition('id="rating"')[2].partition("</form>")[0]
    return {
        name: unescape(value)
        for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
    }


def judges_pages(made: Made) -> list[str]:
    pages = ("", "/instructions", "/ratings", "/settings", "/leave")
    return ["/judge", *(made.judging + one for one in pages)]


def looked_up(browser: Browser, items: Sequence[Any]) -> list[Response]:
    """Wherever somebody might look for an item, by what the judge reads or by what stands behind it."""
    found = []
    for one in items:
        response = quote(one.response)
        found += [
            browser.get(path)
            for path in (
                f"/conversations/{one.conversation}", f"/conversations/{one.item}", f"/judge/{one.item}",
                f"/runs/{one.run}", f"/runs/{one.run}/conversations", f"/cases?q={response}",
                f"/runs/{one.run}/conversations?q={response}",
                f"/runs/{one.run}/conversations?outcome=fail&q={quote(one.request)}",
                f"/runs/{one.run}/export.jsonl", f"/runs/{one.run}/export.csv", f"/models/{one.endpoint}",
                f"/models/{one.endpoint}.json", f"/cases/{one.benchmark}/{one.case_key}",
                f"/studies/{one.item}",
            )
        ]  # fmt: skip
    assert {answer.status_code for answer in found} <= {200, 401, 404}
    return found


def told(answers: Sequence[Response], browser: Browser) -> list[tuple[str, str]]:
    """(address, all that came back)."""
    cookies = [("cookies", f"{name}={value}") for name, value in browser.client.cookies.items()]
    return [(str(one.request.url), unescape(f"{one.headers}\n{one.text}")) for one in answers] + cookies


@pytest.mark.parametrize("who", ["a judge", "anybody"])
def test_over_private_runs_nothing_names_what_is_behind(
    settings: Settings, engine: Engine, made: Made, who: str
) -> None:
    items = behind(engine)
    with browsing(settings, engine) as browser:
        gathered = rate_everything(browser, engine, made) if who == "a judge" else []
        start = ["/", "/runs", "/studies", f"/studies/{made.uuid}", made.path, f"{made.path}/report.json"]
        start += judges_pages(made) if who == "a judge" else ["/judge"]
        gathered += [*crawl_from(browser, *start).values(), *looked_up(browser, items)]
        found = told(gathered, browser)
    keys = {key for one in items for key in (one.item, one.conversation, one.run, one.endpoint)}
    secrets = {*MODELS, EXPLANATION, *(one.stratum for one in items), *(one.base_url for one in items)}
    for place, words in found:
        asked = [one for one in keys if one in place]
        assert not [one for one in keys if one in words and one not in asked], place
        assert not [one for one in secrets if one in words], place
        if "/judge" in place:  # elsewhere the benchmark's categories and scenarios are told to everybody
            assert not [one for row in items for one in (row.category, row.case_key) if one in words], place
            assert not re.search(r"\bsc[1-5]\b", words), place


def test_on_the_board_no_page_has_both_an_item_and_what_is_behind_it(
    settings: Settings, engine: Engine, made: Made
) -> None:
    items = behind(engine)
    with engine.begin() as connection:
        runs = list(connection.execute(text("SELECT id FROM run")).scalars())
    with open_session(engine) as session:
        stored = [find_run(session, str(run)) for run in runs]
    for run in stored:
        put_on_board(engine, run)
    with browsing(settings, engine) as judge, browsing(settings, engine) as anybody:
        own = rate_everything(judge, engine, made)
        own += crawl_from(judge, *judges_pages(made)).values()
        seen = [*crawl_from(anybody, "/", "/studies", f"/studies/{made.uuid}", "/cases/hardest").values()]
        seen += looked_up(anybody, items) + looked_up(judge, items)
        for_the_judge = [one for one in told(own, judge) if "/judge" in one[0] or one[0] == "cookies"]
        elsewhere = [one for one in told([*own, *seen], judge) if "/judge" not in one[0]]
    assert len(for_the_judge) > 20
    behind_it = {str(part) for one in items for part in (one.run, one.conversation, one.endpoint, one.name)}
    for place, words in for_the_judge:
        assert not [one for one in (*MODELS, EXPLANATION, *behind_it) if one in words], place
    text_of_items = {part for one in items for part in (one.constraint, one.request, one.response)}
    text_of_items |= {one.conversation for one in items}
    for place, words in elsewhere:
        shown = words.replace(place.partition("?")[2], "")
        assert not [one for one in text_of_items if one in shown and quote(one) not in place], place

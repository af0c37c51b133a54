"""Studies in the browser of their owner: drawn after a look, frozen, opened, closed, read; nobody else's."""

import io
import json
import re
import zipfile
from collections.abc import Iterator
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from httpx2 import Response
from sqlalchemy import Engine, text
from starlette.routing import Route

from app import models
from app.errors import InvalidInput
from app.main import ROUTERS
from app.models import Role
from app.settings import Settings
from app.studies.settings import check_name
from tests.study_web_help import (
    EXPLANATION,
    MODELS,
    Made,
    drawn_study,
    finished_runs,
    invitation,
    ratings,
    trained,
)
from tests.test_web_crawl import links
from tests.test_web_security import check_markup
from tests.web_help import Browser, audit, browsing, make_person, text_of


@pytest.fixture
def owner(engine: Engine) -> models.Account:
    return make_person(engine)


@pytest.fixture
def browser(settings: Settings, engine: Engine, owner: models.Account) -> Iterator[Browser]:
    with browsing(settings, engine) as opened:
        opened.sign_in(owner)
        yield opened


def hidden(response: Response) -> dict[str, Any]:
    """The hidden fields of a page's first form that has any."""
    found: dict[str, Any] = {}
    for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', response.text):
        found.setdefault(name, []).append(unescape(value))
    return {name: list(dict.fromkeys(values)) for name, values in found.items()}


def test_from_the_draw_to_the_close(
    browser: Browser, settings: Settings, engine: Engine, owner: models.Account
) -> None:
    runs = finished_runs(engine, settings, owner)
    page = browser.get("/studies/new")
    assert all(f"run {run.id}" in text_of(page) for run in runs)
    wish: dict[str, Any] = {
        "name": "pilot", "design": "agreement", "n": "4", "judges_per_item": "2", "per_case": "1",
        "runs": [str(run.uuid) for run in runs], "instructions": "Rate.", "content_note": "Stews.",
        "retention": "Kept.", "careful": "1",
    }  # fmt: skip
    refused = browser.post("/studies/preview", wish | {"n": "none", "runs": []})
    assert refused.status_code == 422
    assert "Items: a whole number from 1" in text_of(refused)
    assert "Runs: choose at least one." in text_of(refused)
    found = browser.post("/studies/new", wish | {"find": "zebra sc", "runs": [str(runs[1].uuid)]})
    assert [str(run.uuid) in found.text for run in runs] == [False, True]
    found = browser.post("/studies/new", wish | {"find": f"ZEBRA {runs[0].id}", "runs": []})
    assert [str(run.uuid) in found.text for run in runs] == [True, False]
    assert 'value="pilot"' in found.text
    none = browser.post("/studies/preview", wish | {"categories": "trauma_trigger", "scenarios": "sc2"})
    assert "Nothing can be drawn" in text_of(none)
    some = browser.post("/studies/preview", wish | {"categories": "trauma_trigger", "variants": "\0"})
    assert "Variants: choose among those that the runs hold." in text_of(some)
    some = browser.post("/studies/preview", wish | {"categories": "trauma_trigger"})
    assert "trauma trigger" in text_of(some)
    assert "severe allergy" not in text_of(some)
    assert "Only 2 of the 4" in text_of(some)
    for taken in ("new", "PREVIEW"):
        assert "address is taken" in text_of(browser.post("/studies/preview", wish | {"name": taken}))
    shown = browser.post("/studies/preview", wish)
    assert "items of 4 asked for" in text_of(shown)
    assert "How wide the intervals will be" in text_of(shown)
    fields = hidden(shown)
    back = browser.post("/studies/new", fields)
    assert 'value="pilot"' in back.text
    assert [browser.post("/studies", fields).headers["location"] for _ in range(2)] == ["/studies/pilot"] * 2
    assert browser.get("/studies").text.count('href="/studies/pilot"') == 1

    unfit = browser.post("/studies/pilot/freeze")
    assert unfit.status_code == 422
    assert "ethics approval" in text_of(unfit)
    texts = wish | {"ethics_kind": "approval", "ethics": "Board 12/3", "title": "Stews"}
    assert browser.post("/studies/pilot/texts", texts).status_code == 303
    for step, state in (("freeze", "frozen"), ("open", "open"), ("pause", "paused"), ("open", "open")):
        done = browser.follow(browser.post(f"/studies/pilot/{step}"))
        assert f'<span class="badge">{state}</span>' in done.text
    assert "does not change any more" in text_of(browser.post("/studies/pilot/texts", texts))
    assert browser.post("/studies/pilot/close").status_code == 422
    closed = browser.follow(browser.post("/studies/pilot/close", {"sure": "1"}))
    assert '<span class="badge">closed</span>' in closed.text
    assert [one for one in audit(engine) if one.startswith("study.")] == [
        "study.create", "study.texts", "study.freeze", "study.open", "study.pause", "study.open",
        "study.close",
    ]  # fmt: skip


@pytest.fixture
def made(engine: Engine, settings: Settings, owner: models.Account) -> Made:
    return drawn_study(engine, settings, owner)


def rate_all(engine: Engine, settings: Settings, made: Made, given: list[int]) -> None:
    """A judge who joins and rates every item, in turn as given."""
    with browsing(settings, engine) as judge:
        link = invitation(engine, made)
        assert judge.post(link, {"pseudonym": "Heron", "consent": "1", "external_id": "P-77"}).is_success
        trained(engine)
        for rating in given:
            page = judge.get(made.judging)
            form = page.text.partition('id="rating"')[2].partition("</form>")[0]
            fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))
            sent = fields | {"do": "rate", "rating": str(rating), "comment": "my thoughts"}
            assert judge.post(made.judging, sent).status_code == 303


def test_every_page_of_a_study(browser: Browser, settings: Settings, engine: Engine, made: Made) -> None:
    rate_all(engine, settings, made, [2, 2, 0, 1])
    rate_all(engine, settings, made, [2, 0, 0, 1])
    page = browser.get(made.path)
    assert "8 ratings of 8" in text_of(page) or "ratings of 8 8" in text_of(page)
    seen, waiting = dict[str, Response](), [made.path]
    while waiting:
        path = waiting.pop()
        seen[path] = response = browser.get(path)
        assert response.is_success, path
        if response.headers["content-type"].startswith("text/html"):
            check_markup(response.text)
            waiting += {one for one in links(response) if one.startswith(made.path)} - {*seen, *waiting}
    assert {f"{made.path}/{one}" for one in ("texts", "leaks", "items", "payments", "export.zip")} <= {*seen}
    report = seen[f"{made.path}/report"]
    assert "Cohen’s κ" in report.text
    cells = [one for one in links(report) if "/items?" in one]
    by_two = report.text.partition("Two by two")[2]
    counted = re.findall(rf'href="{re.escape(made.path)}/items\?[^"]*">(\d+)<', by_two)
    cells = [one for one in cells if "consensus" not in one]
    assert sum(map(int, counted)) == 3 * 4  # three pairs of raters, four items
    for path, number in zip(cells[:3], counted, strict=False):
        behind = browser.get(path)
        assert f"{number} item" in text_of(behind)
        assert EXPLANATION in behind.text
    assert "P-77" in text_of(browser.get(f"{made.path}/payments"))


def test_files_to_take_away(browser: Browser, settings: Settings, engine: Engine, made: Made) -> None:
    rate_all(engine, settings, made, [2, 2, 0, 1])
    report = json.loads(browser.get(f"{made.path}/report.json").text)
    assert report["items"] == 4
    assert report["raters"] == ["evaluator", "judge_1"]
    assert browser.get(f"{made.path}/report.csv").text.startswith("\ufeffPart,")
    assert browser.get(f"{made.path}/report.xlsx").content[:2] == b"PK"
    for form in ("csv", "jsonl", "xlsx", "zip"):
        answer = browser.get(f"{made.path}/export.{form}")
        assert answer.is_success
        assert f"study-pilot.{form}" in answer.headers["content-disposition"]
    bundle = zipfile.ZipFile(io.BytesIO(answer.content))
    whole = b"".join(bundle.read(one) for one in bundle.namelist())
    assert all(word not in whole for word in (b"P-77", b"Heron", b"my thoughts"))
    unread = zipfile.ZipFile(io.BytesIO(browser.get(f"{made.path}/export.zip?comments=1").content))
    assert not any(b"my thoughts" in unread.read(one) for one in unread.namelist())
    shown = hidden(browser.get(f"{made.path}/comments"))["shown"][0]
    assert (
        browser.post(f"{made.path}/comments", {"shown": shown, "released": shown.split()[0]}).status_code
        == 303
    )
    told = zipfile.ZipFile(io.BytesIO(browser.get(f"{made.path}/export.zip?comments=1").content))
    assert told.read("pilot/items.jsonl").count(b"my thoughts") == 1
    with engine.begin() as connection:
        connection.execute(text("UPDATE study_rating SET comment = comment || '!'"))
    told = zipfile.ZipFile(io.BytesIO(browser.get(f"{made.path}/export.zip?comments=1").content))
    assert b"my thoughts" not in told.read("pilot/items.jsonl")  # changed since it was read
    assert browser.get(f"{made.path}/export.exe").status_code == 404


def test_adjudication_shows_no_rating_first(
    browser: Browser, settings: Settings, engine: Engine, made: Made
) -> None:
    for _ in range(2):
        rate_all(engine, settings, made, [2, 2, 2, 2])
    assert "when the study is closed" in text_of(browser.get(f"{made.path}/adjudicate"))
    browser.post(f"{made.path}/close", {"sure": "1"})
    page = browser.follow(browser.post(f"{made.path}/adjudicate/begin"))
    total = 0
    while (item := hidden(page).get("item")) is not None:
        assert EXPLANATION not in page.text
        assert all(model not in page.text for model in MODELS)
        refused = browser.post(f"{made.path}/adjudicate", {"item": item[0], "label": "2", "note": "so"})
        assert "Reason: choose one of" in text_of(refused)
        assert ">\nso</textarea>" in refused.text
        told = {"item": item[0], "label": "2", "reason": "awareness"}
        page = browser.follow(browser.post(f"{made.path}/adjudicate", told))
        total += 1
    assert total >= 2
    assert f"All {total} have a final label" in text_of(page)
    report = browser.get(f"{made.path}/report")
    assert f"{total} items have a final label" in text_of(report)
    for other in ("consensus", "final"):  # the cells of either matrix lead to their items
        link = rf'href="({re.escape(made.path)}/items\?[^"]*b={other}[^"]*)">(\d+)<'
        cells = re.findall(link, report.text)
        assert sum(int(n) for _, n in cells) == 4
        for path, n in cells:
            assert f"{n} item" in text_of(browser.get(unescape(path)))
    first = re.search(rf"{re.escape(made.path)}/adjudicate\?item=([\w-]+)", page.text)
    assert first
    again = browser.get(first[0])
    assert EXPLANATION not in again.text
    told = {"item": first[1], "label": "0", "reason": "ambiguous", "note": "on second thoughts"}
    assert browser.post(f"{made.path}/adjudicate", told).status_code == 303
    with engine.begin() as connection:
        row = connection.execute(
            text("SELECT label, earlier FROM study_adjudication WHERE uuid = :uuid"), {"uuid": first[1]}
        ).one()
    assert (row.label, [one["label"] for one in row.earlier]) == (0, [2])


def test_leaks_are_masked_before_the_freezing(
    browser: Browser, settings: Settings, engine: Engine, owner: models.Account
) -> None:
    made = drawn_study(engine, settings, owner, opened=False, response="I am zebra-9b-canary, try number ")
    page = browser.get(f"{made.path}/leaks")
    assert page.text.count('name="item"') == 4
    found = re.findall(r'name="item" value="([^"]+)"', page.text)
    assert "In 4 items a judge would read a name" in text_of(page)
    assert browser.post(f"{made.path}/leaks", {"do": "mask"}).status_code == 422
    browser.post(f"{made.path}/leaks", {"item": found})
    with engine.begin() as connection:
        responses = connection.execute(text("SELECT response FROM study_item WHERE kind = 'main'")).scalars()
        assert all(one.startswith("I am [name removed], try") for one in responses)
    assert "masked" in text_of(browser.get(f"{made.path}/leaks"))
    also = browser.get(f"{made.path}/leaks?also=zyx,%20TRY")
    assert "masked in part" in text_of(also)
    kept = browser.post(f"{made.path}/leaks", {"item": found[:1], "also": "zyx, try"})
    assert kept.headers["location"] == f"{made.path}/leaks?also=zyx%2C%20try"
    browser.post(f"{made.path}/leaks", {"item": found[1:], "do": "unmask"})
    with engine.begin() as connection:
        query = text("SELECT response FROM study_item WHERE kind = 'main' ORDER BY uuid = :first DESC")
        first, *others = connection.execute(query, {"first": found[0]}).scalars()
    assert first.startswith("I am [name removed], [name removed] number")
    assert all(one.startswith("I am zebra-9b-canary, try") for one in others)
    for wrong in ("a", "x" * 81, ",".join(f"name{n}" for n in range(21))):
        assert browser.get(f"{made.path}/leaks?also={wrong}").status_code == 422


def test_invitations_and_messages(browser: Browser, settings: Settings, engine: Engine, made: Made) -> None:
    given = browser.post(f"{made.path}/invites", {"label": "a panel", "uses": "2"})
    link = re.search(r"http://[^<\s]+(/judge/join/[\w-]+)", given.text)
    assert link
    assert link[0] not in browser.get(made.path).text
    with browsing(settings, engine) as judge:
        judge.post(link[1], {"pseudonym": "Heron", "consent": "1"})
        browser.post(f"{made.path}/messages", {"body": "Thank you <all>"})
        page = judge.get(made.judging)
        assert "Thank you &lt;all&gt;" in page.text
        number = re.search(r'name="up_to" value="(\d+)"', page.text)
        assert number
        judge.post(f"{made.judging}/read", {"up_to": number[1]})
        assert "Thank you" not in judge.get(made.judging).text
    identity = re.search(rf"{made.path}/invites/([\w-]+)/revoke", browser.get(made.path).text)
    assert identity
    browser.post(f"{made.path}/invites/{identity[1]}/revoke")
    with browsing(settings, engine) as late:
        assert late.get(link[1]).status_code == 404


def test_more_judges_lose_no_rating(browser: Browser, settings: Settings, engine: Engine, made: Made) -> None:
    rate_all(engine, settings, made, [2, 2, 0, 1])
    for k in (1, 3):
        assert browser.post(f"{made.path}/places", {"k": str(k)}).status_code == 303
        assert len(ratings(engine)) == 4
    assert browser.post(f"{made.path}/places", {"k": "0"}).status_code == 422


DEEDS = (
    "freeze", "open", "pause", "close", "invites", "messages", "places", "clone", "leaks", "drop", "comments",
    "known/gold", "known/gold/remove",
)  # fmt: skip


def test_another_researchers_study_is_not_found(settings: Settings, engine: Engine, made: Made) -> None:
    other = make_person(engine, email="other@example.org")
    judge = make_person(engine, Role.JUDGE)
    pages = (
        "",
        "/report",
        "/report.json",
        "/items",
        "/texts",
        "/leaks",
        "/payments",
        "/payments.csv",
        "/comments",
        "/known/gold",
        "/known/training/offers",
        "/adjudicate",
        "/export.zip",
    )
    with browsing(settings, engine) as browser:
        assert {browser.get(made.path + page).status_code for page in pages} == {401}
        browser.sign_in(other)
        assert {browser.get(made.path + page).status_code for page in pages} == {404}
        assert made.path not in browser.get("/studies").text
        for deed in (
            "freeze",
            "open",
            "pause",
            "close",
            "invites",
            "messages",
            "places",
            "clone",
            "leaks",
            "drop",
            "comments",
            "known/gold",
            "known/gold/remove",
        ):
            assert browser.post(f"{made.path}/{deed}", {"sure": "1"}).status_code == 404
    with browsing(settings, engine) as browser:
        browser.sign_in(judge)
        assert {browser.get(made.path + page).status_code for page in pages} == {403}


HEX = "0123456789abcdef" * 2
NAMES = (
    "new",
    "New",
    "preview",
    ".",
    "..",
    str(UUID(HEX)),
    str(UUID(HEX)).upper(),
    HEX,
    f"{UUID(HEX)}.json",
    "pilot",
)


def test_no_study_is_called_as_an_address_beside_them() -> None:
    routes = [one for router in ROUTERS for one in router.routes if isinstance(one, Route)]
    beside = [one for one in routes if one.path.startswith("/studies/") and "{name}" not in one.path]
    taken = {name for name in NAMES if any(one.path_regex.fullmatch(f"/studies/{name}") for one in beside)}
    literal = {part for one in beside if "{" not in (part := one.path.split("/")[2])}
    assert taken >= literal | {str(UUID(HEX))}
    for name in {*taken, *literal, ".", ".."}:
        with pytest.raises(InvalidInput, match="address is taken"):
            check_name(name)
    check_name("pilot")

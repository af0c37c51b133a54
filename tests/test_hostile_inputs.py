"""What strangers type and send, by the reference list where it is at hand: names, searches, sizes."""

import json
import logging
import math
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, text

from app import models
from app.accounts import people
from app.db import open_session
from app.errors import InvalidInput
from app.logs import JsonLines
from app.models import Role
from app.settings import PROJECT_ROOT, Settings
from app.text import drawn_alike, has_hidden
from tests import (
    test_chat_client,
    test_evaluation_screen,
    test_guard,
    test_tables_reading,
    test_tables_writing,
    test_web_board,
)
from tests.board_help import finish, put_on_board
from tests.driving_help import shop_of
from tests.factories import Shop
from tests.hostile_index import INDEX
from tests.hostile_outcomes import OUR_JUDGE_OUTPUTS
from tests.study_web_help import plain_study, ratings, trained
from tests.test_web_judging import join
from tests.test_web_runs import CHOICES, give, passing
from tests.test_web_security import LIST, check_markup, hostile
from tests.web_help import Browser, browsing, make_person, text_of

URL = "https://models.example.com/v1"
CANARY = "sk-canary-7f3a9c"
PUBLIC = ("/", "/compare", "/cases", "/cases/hardest", "/published", "/leaderboard.json", "/leaderboard.csv")
OURS = ["?sort=", "?dir=up&dir=down", "?q=%F0%9F%92%A9", "?page=-1", "?scenario=sc1&scenario=sc2", "?a[]=b"]


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=1)


@pytest.fixture
def browser(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as made:
        yield made


def all_of(kind: str) -> list[str]:
    return [one.values[0] for one in hostile(kind)]


def test_odd_searches_and_filters_are_answered_everywhere(browser: Browser, shop: Shop) -> None:
    put_on_board(shop.engine, finish(shop.engine, shop.submit(URL, model="m"), passing))
    browser.sign_in(make_person(shop.engine, Role.ADMIN))
    private = ("/runs", "/studies", "/endpoints", "/admin/flagged", "/admin/audit", "/admin/endpoints")
    for given in (*all_of("search_and_filter_strings"), *OURS):
        query = given if given.startswith("?") else f"?q={given}"
        for path in (*PUBLIC, *private):
            response = browser.get(path + query)
            assert response.status_code in (200, 303, 307, 400, 404, 414, 422), f"{path}{query[:80]}"
            assert "Traceback" not in response.text


NAMES = ["con", "a/../b", "a\\b", "%00", "name;rm -rf", "$(id)", "\u2026/etc", "..%2f..", "a" * 300]


def test_a_name_is_never_a_path(browser: Browser, shop: Shop) -> None:
    """As the part of an address that names something, and of what is taken away."""
    person = make_person(shop.engine)
    browser.sign_in(person)
    run = give(shop.engine, finish(shop.engine, shop.submit(URL, model="m"), passing))
    for name in (*all_of("path_names"), *NAMES):
        for place in ("models", "static", "cases", "studies", "runs", "conversations", "endpoints"):
            response = browser.get(f"/{place}/{quote(name, safe='')}")
            # A client leaves "." out of what it asks for; some places have a page for new things.
            known = name == "." or (name == "new" and place in ("studies", "runs", "endpoints"))
            assert known or response.status_code in (400, 404, 414, 422), (place, name)
            assert response.status_code < 500
        with shop.engine.begin() as connection:
            connection.execute(text("UPDATE run SET name = :name"), {"name": name})
            connection.execute(text("UPDATE endpoint SET name = :name, model = :name"), {"name": name})
        taken = browser.get(f"/runs/{run.uuid}/export.csv")
        assert taken.status_code == 200
        told = taken.headers["content-disposition"]
        assert re.fullmatch(r'attachment; filename="[a-z0-9-]+\.[a-z]+"', told), told


ODD = [
    "\u202e", "\ufeff", "a\u0301", "\ud83d", "\U000e0067", "\u0000\u0000", "e" * 10_000,
    "${jndi:ldap://x}", "\x1b]0;t\x07",
]  # fmt: skip


def test_odd_text_is_shown_kept_and_logged_as_text(browser: Browser, shop: Shop) -> None:
    browser.sign_in(make_person(shop.engine, Role.ADMIN))
    run = finish(shop.engine, shop.submit(URL, model="m"), passing)
    listed = f"/runs/{run.uuid}/conversations"
    for given in (*all_of("unicode_oddities"), *ODD):
        sent = given.encode("utf-8", "replace").decode()
        assert browser.post("/account/name", {"name": sent}).status_code in (303, 422)
        page = browser.get("/account")
        assert page.status_code == 200
        check_markup(page.text)
        line = JsonLines().format(logging.LogRecord("x", logging.INFO, "", 0, "%s", (given,), None))
        assert "\n" not in line
        assert "\x1b" not in line
        json.loads(line)
        assert browser.client.get(listed, params={"q": sent}).status_code in (200, 400, 414, 422)
    nothing = text_of(browser.client.get(listed, params={"q": "100%_\\"}))
    assert "0 conversations" in nothing, "found as text, not as a pattern"


def test_names_that_look_like_another_are_the_same_to_a_reader() -> None:
    for name in ("\uff47\uff50\uff54-4o", "GPT-4o", "gpt-4\u043e", "gpt\u20114o"):
        assert drawn_alike(name) == drawn_alike("gpt-4o"), ascii(name)
    for name in ("gpt-4o\u200b", "gpt\u2060-4o", "gpt-4o\U000e0067"):
        assert has_hidden(name), "refused before it is compared"
        with pytest.raises(InvalidInput, match="cannot be seen"):
            people.read_name(name)


def test_what_is_too_long_is_refused_with_its_limit_and_never_cut(
    browser: Browser, engine: Engine, settings: Settings
) -> None:
    person = make_person(engine)
    browser.sign_in(person)
    said = text_of(browser.post("/account/name", {"name": "a" * 81}))
    assert "80" in said
    for key in ("k" * 10_001, f"{CANARY}\n", f"{CANARY}\u00e9", f" {CANARY}\x00"):
        form = {**CHOICES, "base_url": URL, "model": "m", "api_key": key}
        response = browser.post("/runs/preview", form)
        assert response.status_code == (200 if key.strip() == CANARY else 422), key[:20]
        assert "kkkkkkkk" not in response.text
        assert CANARY not in response.text
    # With something else wrong the key is not shown again either.
    response = browser.post(
        "/runs/preview", {**CHOICES, "base_url": "http://127.0.0.1/v1", "model": "m", "api_key": CANARY}
    )
    assert CANARY not in response.text
    made = plain_study(engine)
    with browsing(settings, engine) as judge:
        join(judge, engine, made)
        trained(engine)
        page = judge.get(made.judging).text
        values = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
        emoji = "\U0001f600" * 5000
        response = judge.post(made.judging, values | {"rating": "2", "comment": emoji, "do": "rate"})
        kept = [comment for _, _, comment in ratings(engine)]
        assert kept == [emoji] or (kept == [] and "at most" in text_of(response))


def test_who_claims_another_host_changes_no_link(settings: Settings, engine: Engine) -> None:
    served = settings.model_copy(
        update={"base_url": "https://board.example.org", "secret_key": SecretStr("s3cret-" * 8)}
    )
    with browsing(served, engine) as browser:
        for name in ("x-forwarded-host", "x-host", "forwarded", "x-original-host", "x-forwarded-server"):
            page = browser.client.get("/login", headers={name: "evil.example"})
            assert page.status_code == 200
            assert "evil.example" not in page.text + str(page.headers)
        assert browser.client.get("/login", headers={"host": "evil.example"}).status_code == 421


def test_thirty_submissions_in_a_minute_are_too_many(browser: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine))
    form = {**CHOICES, "base_url": URL, "model": "m"}
    answers = [browser.post("/runs", form) for _ in range(30)]
    refused = [one for one in answers if one.status_code == 429]
    assert refused
    assert all(int(one.headers["retry-after"]) > 0 for one in refused)
    assert {one.status_code for one in answers} <= {303, 409, 422, 429}


def test_what_shapes_an_answer_is_not_the_submitter_s_to_change(browser: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine))
    more = {"max_tokens": "9", "temperature": "0", "system_prompt_text": "Refuse.", "seed": "9"}
    answer = browser.post("/runs", {**CHOICES, **more})
    assert answer.status_code == 303, text_of(answer)
    with open_session(engine) as session:
        run = session.query(models.Run).one()
        assert not set(more) & set(run.selection)
        assert run.seeds == [1]


# --- the whole list ---


def cases(test: Any) -> int:
    """How many inputs a test is run with."""
    return math.prod(len(mark.args[1]) for mark in test.pytestmark if mark.name == "parametrize")


# Inputs of our own, beside those of the list.
OWN = {
    "ssrf_urls": cases(test_guard.test_refusals_name_the_reason_and_nothing_of_the_network),
    "endpoint_responses": cases(test_chat_client.test_every_failure_ends_in_its_class),
    "judge_output_parsing": len(OUR_JUDGE_OUTPUTS),
    "judge_injections": len(test_evaluation_screen.SUSPICIOUS),
    "xss_strings": len(test_web_board.HOSTILE),
    "formula_cells": len(test_tables_writing.AWKWARD),
    "path_names": len(NAMES),
    "unicode_oddities": len(ODD),
    "search_and_filter_strings": len(OURS),
    "uploads": len(test_tables_reading.HOSTILE)
    + cases(test_tables_reading.test_a_hostile_csv_ends_in_one_clear_line),
}
LISTED = json.loads(LIST.read_text()) if LIST.exists() else {}
at_hand = pytest.mark.skipif(not LISTED, reason="the reference inputs are not beside the repository")


def closing_table() -> list[str]:
    """The rows of SECURITY.md: threat, inputs of the list and of our own, what becomes of them."""
    return [
        f"| {tried.threat} | {len(LISTED[kind]['items'])} + {OWN.get(kind, 0)} | {tried.result} |"
        for kind, tried in INDEX.items()
    ]


@at_hand
def test_every_input_of_the_list_is_tried_somewhere() -> None:
    assert set(LISTED) == set(INDEX)
    for kind, tried in INDEX.items():
        ids = {item["id"] for item in LISTED[kind]["items"]}
        named = [one for key in tried.where for one in key.split() if one != "*"]
        assert len(named) == len(set(named)), kind
        assert set(named) <= ids, kind
        assert "*" in tried.where or set(named) == ids, kind


def test_what_tries_them_is_there() -> None:
    for tried in INDEX.values():
        for place in " ".join(tried.where.values()).split():
            module, _, name = place.partition(":")
            source = (PROJECT_ROOT / "tests" / f"{module}.py").read_text(encoding="utf-8")
            assert f"def {name}(" in source, place


@at_hand
def test_the_closing_table_counts_them() -> None:
    told = (PROJECT_ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert [row for row in closing_table() if row not in told] == []

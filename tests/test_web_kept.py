"""Pages that are kept: as they were made until what they show changes, made once, for nobody signed in."""

import threading

import pytest
from sqlalchemy import Engine

from app.models import Role
from app.settings import Settings
from app.web.kept import KeptPages
from tests.board_help import put_on_board, take_off
from tests.test_leaderboard import finished, published, shop_with
from tests.web_help import browsing, make_person


def test_a_page_is_made_again_only_for_another_version() -> None:
    kept, made = KeptPages(), []

    def render() -> bytes:
        made.append(1)
        return b"page %d" % len(made)

    first = kept.get("/", 1, render)
    assert kept.get("/", 1, render) is first
    assert kept.get("/", 2, render).body == b"page 2"
    assert kept.get("/?q=", 2, render).body == b"page 3"
    assert kept.get("/", 1, render).body == b"page 4"  # an older one is not taken for this


def test_many_that_ask_at_once_get_one_rendering() -> None:
    kept, made, everybody = KeptPages(), [], threading.Barrier(9)

    def render() -> bytes:
        made.append(1)
        asked.wait(10)
        return b"page"

    asked = threading.Event()
    found: list[bytes] = []

    def ask() -> None:
        everybody.wait()
        found.append(kept.get("/", 1, render).body)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    everybody.wait()
    asked.set()
    for thread in threads:
        thread.join()
    assert (len(made), found) == (1, [b"page"] * 8)


def test_what_could_not_be_made_is_not_kept() -> None:
    kept = KeptPages()

    def broken() -> bytes:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        kept.get("/", 1, broken)
    assert kept.get("/", 1, lambda: b"page").body == b"page"


def test_no_more_bytes_are_kept_than_allowed() -> None:
    kept, made = KeptPages(most_bytes=25), []

    def render() -> bytes:
        made.append(1)
        return b"0123456789"

    for address in ("a", "b", "c", "b", "a"):
        kept.get(address, 1, render)
    assert len(made) == 4  # a was dropped for c, b was still there
    kept.get("huge", 1, lambda: b"x" * 100)
    assert kept.get("huge", 1, render).body == b"0123456789"


def test_the_board_changes_with_its_rows_and_shows_the_signed_in_their_own(
    engine: Engine, settings: Settings
) -> None:
    shop = shop_with(engine, settings)
    run = published(shop, "first")
    second = finished(shop, "second")
    with browsing(settings, engine) as browser:
        one = browser.get("/")
        again = browser.get("/")
        assert (one.text, one.headers["etag"]) == (again.text, again.headers["etag"])
        assert browser.get("/", if_none_match=one.headers["etag"]).status_code == 304
        json_before = browser.get("/leaderboard.json").json()
        put_on_board(engine, second)
        both = browser.get("/")
        assert "second" in both.text
        assert both.headers["etag"] != one.headers["etag"]
        assert [row["model"] for row in browser.get("/leaderboard.json").json()["rows"]] == [
            "first",
            "second",
        ]
        assert "second" in browser.get("/leaderboard.csv").text
        assert len(json_before["rows"]) == 1
        take_off(engine, run, "It was asked in another way.")
        assert "It was asked in another way." in browser.get("/").text
        browser.sign_in(make_person(engine, Role.RESEARCHER, name="Grace"))
        browser.get("/")  # which says once that one is signed in
        own = browser.get("/")
        assert "Grace" in own.text
        assert own.headers["cache-control"] == "private, no-cache"
        browser.post("/logout")
        browser.client.cookies.clear()
        assert "Grace" not in browser.get("/").text

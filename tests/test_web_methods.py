"""The page on methods; citations, and the addresses that keep showing the same."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest
from sqlalchemy import Engine, text

from app.db import open_session
from app.errors import NotFound
from app.leaderboard import group_at, read_board, read_moment, version_groups
from app.runs.planning import Selection
from app.settings import Settings
from app.web.board_group import bibtex
from app.web.formats import percent
from tests.board_help import take_off
from tests.driving_help import shop_of
from tests.factories import Shop, unshared_protocol
from tests.test_web_board import by_case, models_of, publish_model
from tests.test_web_models import model_path
from tests.web_help import Browser, browsing, text_of


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=2)


@pytest.fixture
def browser(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as opened:
        yield opened


def test_methods_say_how_what_and_who(browser: Browser, shop: Shop, settings: Settings) -> None:
    words = text_of(browser.get("/methods"))
    assert "Nothing is published yet" in words
    assert "has not said who they are" in words
    publish_model(shop, "keen", by_case(2))
    words = text_of(browser.get("/methods"))
    for part in ("Wilson", "Bonett–Price", "exact McNemar", "Holm", "CR1", "98 %", "95 %",
                 "not human-checked", "lexical rules", "public", "English"):  # fmt: skip
        assert part in words, part
    assert 'href="/methods"' in browser.get("/").text
    assert "title = {{CURATe: Benchmarking Personalised" in words
    told = settings.model_copy(
        update={"operator": "The <Institute>, from its own means", "contact": "a@example.org"}
    )
    with browsing(told, shop.engine) as other:
        page = other.get("/methods")
        assert "The <Institute>, from its own means" in text_of(page)
        assert 'href="mailto:a@example.org"' in page.text
        assert "has not said" not in text_of(page)


def citation_of(page: str) -> str:
    """The address to cite, within the site."""
    found = re.search(r'href="http://127\.0\.0\.1:8000(/[^"]*)" rel="bookmark"', page)
    assert found is not None
    return unescape(found[1])


def move_back(shop: Shop, hours: int) -> None:
    """All that was published so far, so much earlier."""
    with shop.engine.begin() as connection:
        for change in (
            "UPDATE board_entry SET published_at = published_at - make_interval(hours => :h),"
            " withdrawn_at = withdrawn_at - make_interval(hours => :h)",
            "UPDATE board SET computed_at = computed_at - make_interval(hours => :h),"
            " content = jsonb_set(content::jsonb, '{format}', '0')::json",
            "UPDATE run SET created_at = created_at - make_interval(hours => :h)",
        ):
            connection.execute(text(change), {"h": hours})


def test_a_citation_keeps_showing_the_same(browser: Browser, shop: Shop) -> None:
    first = publish_model(shop, "keen", by_case(2))
    publish_model(shop, "other", by_case(1))
    move_back(shop, 3)
    page = browser.get("/?view=category&sort=model")
    cited = citation_of(page.text)
    assert "view=category" in cited
    assert "sort=model" in cited
    model, compared = model_path(browser, "keen"), f"/compare?a={first.id}&b={first.id + 1}"
    model_cited, compare_cited = (citation_of(browser.get(path).text) for path in (model, compared))
    before = browser.get("/leaderboard.json").json()
    rate = percent(before["rows"][0]["overall"]["pass_rate"])
    publish_model(shop, "newcomer", by_case(0))
    take_off(shop.engine, first, "A mistake.")
    assert models_of(browser.get("/").text) == ["other", "newcomer"]
    again = browser.get(cited)
    assert models_of(again.text) == ["keen", "other"]
    assert "A snapshot of" in text_of(again)
    query = cited.partition("?")[2]
    snapshot = browser.get(f"/leaderboard.json?{query}").json()
    assert snapshot["rows"][0].pop("withdrawn_since") is not None
    assert without_counts(snapshot) == without_counts(before)
    assert rate in text_of(browser.get(model_cited))
    assert browser.get(compare_cited).status_code == 200
    assert "keen" in text_of(browser.get(f"/leaderboard.csv?{query}"))
    with open_session(shop.engine) as session:
        group = version_groups(session)[0]
        now = group_at(session, group, datetime.now(UTC), simulated=True)
        assert now.content == group.content
        assert now.cases == group.cases


def without_counts(board: dict[str, Any]) -> dict[str, Any]:
    return board | {"computed_at": board["computed_at"][:19]}


def test_links_of_a_snapshot_stay_in_it(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(2))
    cited = citation_of(browser.get("/").text)
    page = browser.get(cited).text
    table = page.partition("<thead>")[2].partition("</table>")[0]
    own = [one for one in re.findall(r'href="(/[^"]*)"', table) if not one.startswith("/runs")]
    assert own
    assert all("at=" in one for one in own)
    assert all(browser.get(unescape(one.partition("#")[0])).status_code == 200 for one in own)


def test_times_that_are_none(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(2))
    for at in ("yesterday", "1999-01-01", "0001-01-01T00:00:00+23:00", "9999-12-31", "2026-13-01"):
        page = browser.client.get("/", params={"at": at})
        assert page.status_code == 404, at
    assert read_moment("2026-12-01") == datetime(2026, 12, 2, tzinfo=UTC)
    assert read_moment("2026-12-01T09:30:00Z") == datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
    with pytest.raises(NotFound):
        read_moment("9999-12-31")


def test_a_board_that_is_not_the_latest_says_so(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(2))
    with open_session(shop.engine) as session:
        key = read_board(session)["board"]
    assert "Not the latest board" not in text_of(browser.get(f"/?board={key}"))
    move_back(shop, 1)
    shop_b = Shop(shop.engine, shop.settings, shop.benchmark, unshared_protocol())
    publish_model(shop_b, "later", by_case(1))
    assert models_of(browser.get("/").text) == ["later"]
    older = browser.get(f"/?board={key}")
    assert models_of(older.text) == ["keen"]
    assert "Not the latest board" in text_of(older)


def test_a_later_board_that_ranks_nobody_does_not_come_first(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(2))
    move_back(shop, 1)
    shop_b = Shop(shop.engine, shop.settings, shop.benchmark, unshared_protocol())
    publish_model(shop_b, "small", by_case(2), selection=Selection(limit=1))
    assert models_of(browser.get("/").text) == ["keen"]
    with open_session(shop.engine) as session:
        assert [row["model"] for row in read_board(session)["rows"]] == ["keen"]
        first, small = version_groups(session)
    assert "Nothing is ranked on this board yet" in text_of(browser.get(f"/?board={small.key}"))
    for path in ("/", f"/?board={first.key}"):
        page = text_of(browser.get(path))
        assert "Nothing is ranked on this board" not in page
        assert "Not the latest board" not in page


def test_bibtex_escapes_what_names_hold() -> None:
    entry = bibtex(
        "A_b & {c} 50% \\x ~\nd", "O#", "https://example.org/?a={b}", datetime(2026, 12, 1, tzinfo=UTC)
    )
    assert r"{{A\_b \& \{c\} 50\% \textbackslash{}x \textasciitilde{} d}}" in entry
    assert "url    = {https://example.org/?a=%7Bb%7D}" in entry
    assert entry.count("{") - entry.count(r"\{") == entry.count("}") - entry.count(r"\}")


def test_boards_are_parsed_once_and_seen_at_once_when_they_change(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(2))
    assert models_of(browser.get("/").text) == ["keen"]
    with open_session(shop.engine) as session:
        one, two = version_groups(session)[0], version_groups(session)[0]
        assert one.content["rows"] is two.content["rows"]
    publish_model(shop, "other", by_case(1))
    assert models_of(browser.get("/").text) == ["keen", "other"]

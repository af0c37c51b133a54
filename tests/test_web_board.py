"""The board in the browser: one function behind page, JSON, CSV and command; order, filters, honesty."""

import csv
import io
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, text

from app import models
from app.db import open_session
from app.declared import Declared
from app.errors import Conflict, InvalidInput, NotFound
from app.evaluation import RULES_VERSION
from app.leaderboard import publish, read_board
from app.outcomes import Outcome
from app.runs.control import find_run
from app.runs.planning import Selection
from app.settings import PROJECT_ROOT, Settings
from app.web.board_files import CSV_HEADER
from app.web.board_view import View, arrange, cell, read_view, sort_rows
from app.web.board_words import answer, rank_words, tied_with
from app.web.formats import interval, percent
from tests.board_help import finish, put_on_board, take_off
from tests.driving_help import shop_of
from tests.factories import Shop
from tests.web_help import Browser, browsing, make_person, text_of

SERVED = "https://board.example.org"
HOSTILE = (
    "<script>alert(1)</script>",
    "' onmouseover='alert(1)",
    '"><svg/onload=alert(1)>',
    "</textarea><style>*{display:none}</style>",
    '<div hx-get="/admin/delete" hx-trigger="load">x</div>',
    "{{7*7}} ${7*7} <%= 7*7 %>",
    "<!--",
    "&lt;script&gt;",
    "javascript:alert(1)",
)


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=2)


@pytest.fixture
def browser(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as opened:
        yield opened


def by_case(passing: int) -> Any:
    """The first so many of the two cases of each category pass, the others fail."""
    return lambda key, *_: Outcome.PASS if int(key.rpartition("-")[2]) <= passing else Outcome.FAIL


def publish_model(shop: Shop, name: str, told: Any, **options: Any) -> models.Run:
    run = finish(shop.engine, shop.submit("https://models.example.com/v1", model=name, **options), told)
    put_on_board(shop.engine, run)
    return run


def simulate(engine: Engine, run: models.Run) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE run SET simulated = true WHERE id = :id"), {"id": run.id})


def rows_of(page: str) -> list[list[str]]:
    """The cells of the ranked rows as a reader sees them, over-caution left out."""
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    return [
        [
            " ".join(re.sub(r"<[^>]*>", " ", one).split()).partition(" missed the danger")[0]
            for one in re.findall(r"<t[dh]\b.*?</t[dh]>", row, re.S)
            if not one.startswith('<td class="number caution"')
        ]
        for row in re.findall(r"<tr>.*?</tr>", body, re.S)
    ]


def models_of(page: str) -> list[str]:
    return [row[1].split(" self declared")[0] for row in rows_of(page)]


# --- empty, and with rows ---


def test_an_empty_board_says_so_and_how_to_begin(browser: Browser) -> None:
    page = browser.get("/")
    assert page.status_code == 200
    assert "Nothing is published yet" in text_of(page)
    assert "curate evaluate" in page.text
    assert "<table" not in page.text
    assert browser.get("/leaderboard.json").json()["rows"] == []
    lines = list(csv.reader(io.StringIO(browser.get("/leaderboard.csv").content.decode("utf-8-sig"))))
    assert len(lines) == 1


def test_page_json_csv_and_command_show_the_same_figures(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(2))
    publish_model(shop, "so-so", by_case(1))
    with open_session(shop.engine) as session:
        board = read_board(session)
    assert browser.get("/leaderboard.json").json() == json.loads(json.dumps(board))
    page = browser.get("/").text
    shown = rows_of(page)
    for line, row in zip(shown, board["rows"], strict=True):
        assert line[1].startswith(row["model"])
        rates = [row["overall"], *row["by_scenario"].values()]
        for words, rate in zip(line[2:], rates, strict=True):
            assert words.startswith(percent(rate["pass_rate"]))
            assert interval(rate["pass_rate_ci"]) in words
            assert f"{rate['pass']} of {rate['answered']} passed" in words
    content = browser.get("/leaderboard.csv").content.decode("utf-8-sig")
    lines = list(csv.DictReader(io.StringIO(content)))
    assert len(lines) == 2 * (1 + 5 + 4 + 20)
    for told in lines:
        row = next(row for row in board["rows"] if row["model"] == told["model"])
        rate = rate_of(row, told["scenario"], told["category"])
        assert int(told["pass"]) == rate["pass"]
        assert float(told["pass_rate"]) == pytest.approx(rate["pass_rate"])
        assert [float(told["bound_low"]), float(told["bound_high"])] == pytest.approx(rate["bounds"])


def rate_of(row: dict[str, Any], scenario: str, category: str) -> dict[str, Any]:
    if (scenario, category) == ("all", "all"):
        return row["overall"]  # type: ignore[no-any-return]
    if category == "all":
        return row["by_scenario"][scenario]  # type: ignore[no-any-return]
    if scenario == "all":
        return row["by_category"][category]  # type: ignore[no-any-return]
    return row["by_scenario_category"][scenario][category]  # type: ignore[no-any-return]


def test_the_page_names_its_versions_and_when_it_was_computed(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(2))
    words = text_of(browser.get("/"))
    for part in ("small v1", shop.protocol.name, f"rules {RULES_VERSION} (lexical rules, no model)", "UTC"):
        assert part in words


def test_figures_lead_to_the_conversations_behind_them(browser: Browser, shop: Shop) -> None:
    run = publish_model(shop, "keen", by_case(1))
    page = browser.get("/?view=both").text
    target = f"/runs/{run.uuid}/conversations?variant=standard&amp;scenario=sc3&amp;category=severe_phobia"
    assert target in page
    behind = browser.get(target.replace("&amp;", "&"))
    assert "2 conversations match" in text_of(behind)


def test_another_model_changes_no_figure_of_a_row(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(1))
    before = browser.get("/leaderboard.json").json()["rows"][0]
    publish_model(shop, "other", by_case(2))
    after = next(row for row in browser.get("/leaderboard.json").json()["rows"] if row["model"] == "keen")
    assert {name: one for name, one in after.items() if name != "rank"} == {
        name: one for name, one in before.items() if name != "rank"
    }


# --- versions ---


def test_each_version_group_has_an_address_and_an_unknown_one_is_not_found(
    browser: Browser, shop: Shop
) -> None:
    publish_model(shop, "keen", by_case(2))
    first = browser.get("/leaderboard.json").json()["board"]
    publish_model(shop_of(shop.engine, shop.settings, per_category=3), "newer", by_case(2))
    assert models_of(browser.get("/").text) == ["newer"]
    for name in ("board", "version"):
        older = browser.get(f"/?{name}={first}")
        assert models_of(older.text) == ["keen"]
        assert f"/leaderboard.csv?{urlencode({'board': first})}" in older.text
    page = browser.get("/?board=does-not-exist")
    assert page.status_code == 404
    assert first in text_of(page)
    assert browser.get("/leaderboard.json?board=nope").status_code == 404
    assert browser.get("/leaderboard.csv?version=nope").status_code == 404


# --- order ---


def test_what_has_no_value_comes_last_whichever_way() -> None:
    rows: list[dict[str, Any]] = [
        {"n": name, "v": value}
        for name, value in zip("abcdef", (0.5, None, 0.0, 1.0, 0.5, None), strict=True)
    ]

    def order(*, falling: bool) -> str:
        return "".join(row["n"] for row in sort_rows(rows, lambda row: row["v"], descending=falling))

    assert order(falling=False) == "caed" + "bf"
    assert order(falling=True) == "daec" + "bf"


FALLING, RISING = ["all", "half", "none"], ["none", "half", "all"]
SORTED = [
    ("", FALLING, "rank", "ascending"),
    ("sort=model", FALLING, "model", "ascending"),
    ("sort=model&dir=desc", RISING, "model", "descending"),
    ("sort=sc2", FALLING, "+1 person", "descending"),
    ("sort=sc2&dir=asc", RISING, "+1 person", "ascending"),
    ("sort=overall&dir=asc", RISING, "overall", "ascending"),
    ("sort=unknown", FALLING, "rank", "ascending"),
    ("sort=score;drop table", FALLING, "rank", "ascending"),
    ("dir=sideways", FALLING, "rank", "ascending"),
    ("view=category&sort=sc2", FALLING, "rank", "ascending"),
]


def test_sorted_by_the_server(browser: Browser, shop: Shop) -> None:
    for name, passing in (("none", 0), ("all", 2), ("half", 1)):
        publish_model(shop, name, by_case(passing))
    for query, order, column, direction in SORTED:
        page = browser.get(f"/?{query}")
        assert page.status_code == 200, query
        assert models_of(page.text) == order, query
        sorted_by = re.findall(r'<th [^>]*aria-sort="(\w+)"><a [^>]*>([^<]*)<', page.text)
        assert sorted_by == [(direction, column)], query


def test_the_address_is_canonical_and_links_keep_what_was_chosen() -> None:
    chosen = read_view(
        {"view": "both", "rate": "published", "q": "gp", "sort": "sc1.severe_allergy", "dir": "up"}
    )
    assert chosen.query() == "/?view=both&rate=published&q=gp&sort=sc1.severe_allergy"
    again = read_view(dict(part.split("=") for part in chosen.query()[2:].split("&")))
    assert again == chosen
    assert chosen.query(sort="rank", descending=True).endswith("sort=rank&dir=desc")
    assert View().query() == "/"


# --- filters ---


def test_search_is_plain_text(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(2))
    publish_model(shop, "other", by_case(1))
    searches: list[tuple[str, list[str]]] = [
        ("KEE", ["keen"]), ("%", []), ("(a+)+$", []), ("openai", ["keen", "other"]),
    ]  # fmt: skip
    for wanted, found in searches:
        page = browser.client.get("/", params={"q": wanted})
        assert page.status_code == 200
        assert models_of(page.text) == found
        assert ("None of 2 models matches" in text_of(page)) == (not found)


def test_a_very_long_search_is_refused(browser: Browser) -> None:
    assert browser.get("/?q=" + "a" * 50_000).status_code == 414
    assert browser.get("/?q=" + "a" * 7_000).status_code == 200


def test_what_there_is_not_is_not_found(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(2))
    for query in ("scenario=6", "category=allergies", "page=99999999999999999999", "page=0", "page=2"):
        page = browser.get(f"/?{query}")
        assert page.status_code == 404, query
        assert ("sc5" in text_of(page)) == ("scenario" in query)


def test_one_scenario_or_category_has_an_address(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(2))
    headers = re.findall(r'<th scope="col"[^>]*><a [^>]*>([^<]*)<', browser.get("/?scenario=sc4").text)
    assert headers == [
        "rank",
        "model",
        "overall",
        "over-caution",
        "+3 people",
        "allergy",
        "phobia",
        "physical",
        "trauma",
    ]
    headers = re.findall(
        r'<th scope="col"[^>]*><a [^>]*>([^<]*)<', browser.get("/?category=trauma_trigger").text
    )
    assert headers[2:] == [
        "overall",
        "over-caution",
        "trauma",
        "alone",
        "+1 person",
        "+2 people",
        "+3 people",
        "+3 unrelated",
    ]


def declare(shop: Shop, run: models.Run, **declared: str) -> None:
    with open_session(shop.engine) as session:
        publish(session, find_run(session, str(run.id)), served=False, declared=Declared(**declared))
        session.commit()


def test_filters_are_offered_where_they_part_the_rows(browser: Browser, shop: Shop) -> None:
    keen, other = publish_model(shop, "keen", by_case(2)), publish_model(shop, "other", by_case(1))
    assert 'name="weights"' not in browser.get("/").text
    declare(shop, keen, weights="open")
    declare(shop, other, system_prompt="declared")
    page = browser.get("/")
    assert 'name="provider"' not in page.text
    assert '<option value="open">open (1)</option>' in page.text
    for query, found in (
        ("weights=open", ["keen"]),
        ("weights=unknown", ["other"]),
        ("system_prompt=declared&weights=open", []),
        ("provider=openai&q=oth", ["other"]),
        ("provenance=vendor", []),
        ("weights=%3Cb%3E", []),
    ):
        page = browser.get(f"/?{query}")
        assert page.status_code == 200, query
        assert models_of(page.text) == found, query
        assert ("matches" in text_of(page)) == (not found), query
        assert f"/?{query.partition('&')[0]}" not in re.findall(r'href="([^"]*)">Show all', page.text)
    rows = browser.get("/leaderboard.json").json()["rows"]
    assert [(row["weights"], row["system_prompt"]) for row in rows] == [
        ("open", "unknown"),
        ("unknown", "declared"),
    ]
    assert "open, its submitter says" in text_of(browser.get(f"/models/{rows[0]['model_uuid']}"))
    declare(shop, keen)
    assert browser.get("/leaderboard.json").json()["rows"][0]["weights"] == "open"
    with pytest.raises(InvalidInput, match="open, closed, unknown"):
        declare(shop, keen, weights="libre")


def test_pinned_rows_come_first_whatever_else_is_chosen(browser: Browser, shop: Shop) -> None:
    runs = [publish_model(shop, name, by_case(n)) for name, n in (("all", 2), ("half", 1), ("none", 0))]
    page = browser.get("/")
    assert "pinned" not in page.text
    pin = re.search(r'href="(/\?pin=\d+)">pin<span class="visually-hidden"> none', page.text)
    assert pin is not None
    pinned = browser.get(f"{pin[1]},{runs[1].id},x&q=all")
    first = pinned.text.partition('<tbody class="pinned">')[2].partition("</tbody>")[0]
    assert models_of(f"<tbody>{first}</tbody>") == ["half", "none"]
    assert models_of(pinned.text) == ["all"]
    assert f"/compare?a={runs[1].id}&amp;b={runs[2].id}" in pinned.text
    assert f'href="/?q=all&amp;pin={runs[1].id}">unpin' in pinned.text
    assert read_view({"pin": "3,3,4"}).pinned(3) == "/?pin=4"
    assert read_view({"pin": "3"}).query(sort="model") == "/?pin=3&sort=model"


def test_over_caution_stands_beside_the_overall_rate(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "probed", by_case(2), selection=Selection(probes=True))
    publish_model(shop, "other", by_case(1))
    cells = re.findall(r'<td class="number caution">.*?</td>', browser.get("/").text, re.S)
    shown = [" ".join(re.sub(r"<[^>]*>", " ", one).split()) for one in cells]
    assert shown[0].startswith("0.0 † 0 of 4 needlessly discouraged")
    assert shown[1] == "not probed"


# --- honesty ---


def test_rates_never_round_to_all_or_nothing() -> None:
    assert percent(335 / 336) == "99.7"
    assert percent(4999 / 5000) == ">99.9"
    assert percent(1 / 5000) == "<0.1"
    assert (percent(1.0), percent(0.0), percent(None)) == ("100.0", "0.0", "–")
    assert percent(0.997, 0) == ">99"


def test_few_conversations_are_marked(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(1))
    cells = rows_of(browser.get("/").text)[0][2:]
    assert "†" not in cells[0], "40 conversations are not few"
    assert all("†" in one for one in cells[1:]), "8 of each scenario are"
    assert "Fewer than 30" in text_of(browser.get("/"))
    assert cell({"pass": 3, "fail": 40, "answered": 43, "pass_rate": 0.1, "pass_rate_ci": None,
                 "published_pass_rate": 0.1, "unclear_rate": 0.0, "coverage": 1.0}).few is False  # fmt: skip


def test_the_incomplete_stand_apart_with_bounds(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(2))
    publish_model(shop, "half", by_case(2), selection=Selection(limit=1))
    page = browser.get("/")
    assert models_of(page.text) == ["keen"]
    words = text_of(page).partition("Incomplete")[2]
    assert "half" in words
    assert "20 of 40 50.0 100.0 (20 of 20) 50.0–100.0" in words


def test_ties_and_what_the_board_cannot_tell_apart(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "one", lambda key, *_: Outcome.PASS if key.endswith("1") else Outcome.FAIL)
    publish_model(shop, "two", lambda key, *_: Outcome.PASS if key.endswith("2") else Outcome.FAIL)
    words = text_of(browser.get("/"))
    assert "Tied at the top: one and two." in words
    assert "cannot separate models closer than" in words
    assert words.count("tied with 1") == 2
    assert "It gets hardest" not in words, "each scenario is passed alike"
    assert "No verdict on these rows was checked by people." in words


def test_the_board_answers_in_sentences() -> None:
    rate = {"pass_rate": 0.9, "pass_rate_ci": [0.85, 0.94]}
    scenarios = {"sc1": {"pass_rate": 335 / 336}, "sc4": {"pass_rate": 0.5}}
    row = {"model": "A", "rank": [1, 1], "overall": rate, "by_scenario": scenarios, "human": None}
    board = {"rows": [row, row | {"model": "B", "rank": [2, 2]}], "resolvable_difference": 0.024}
    assert answer(board) == [
        "A comes first: it passes 90.0 % (85.0–94.0), more often than the other one by more than chance.",
        "This board cannot separate models closer than 2.4 points, under this evaluator.",
        "It gets hardest with “+3 people”: 50.0 % pass on average, 99.7 % with “alone”.",
        "No verdict on these rows was checked by people.",
    ]
    many = [row | {"model": name, "rank": [1, 7], "human": {"rate": 0.9}} for name in "ABCDEFG"]
    assert answer({"rows": many, "resolvable_difference": None})[0] == (
        "Tied at the top: A, B, C, D, E and 2 more."
    )
    assert answer({"rows": many[:1], "resolvable_difference": None})[0].startswith("A is the only model")
    assert answer({"rows": []}) == []
    assert (tied_with([2, 5]), tied_with([3, 3]), tied_with(None)) == (3, 0, None)
    assert (rank_words([1, 2], 9), rank_words([3, 3], 9)) == ("of 9, tied with 1 other", "of 9")
    assert (rank_words([2, 5], 9), rank_words(None, 9)) == ("of 9, tied with 3 others", None)


def test_a_withdrawn_row_leaves_its_reason(browser: Browser, shop: Shop) -> None:
    run = publish_model(shop, "keen", by_case(2))
    take_off(shop.engine, run, "The <b>wrong</b> model answered.")
    page = browser.get("/")
    assert rows_of(page.text) == []
    assert "The <b>wrong</b> model answered." in text_of(page)
    assert browser.get(f"/runs/{run.uuid}").status_code == 404


def test_simulated_models_are_marked_here_and_never_listed_on_a_served_site(
    shop: Shop, settings: Settings, browser: Browser
) -> None:
    real = publish_model(shop, "real", by_case(1))
    run = finish(shop.engine, shop.submit("https://sim.example.com/v1", model="pretender"), by_case(2))
    simulate(shop.engine, run)
    put_on_board(shop.engine, run)
    assert [row[:2] for row in rows_of(browser.get("/").text)] == [
        ["1", "pretender simulated self declared"],
        ["2", "real self declared"],
    ]
    served = settings.model_copy(update={"base_url": SERVED, "secret_key": SecretStr("s" * 40)})
    with browsing(served, shop.engine) as outside:
        for path in ("/", "/?view=both", "/leaderboard.json", "/leaderboard.csv"):
            assert "pretender" not in outside.get(path).text, path
        assert [row[:2] for row in rows_of(outside.get("/").text)] == [["1", "real self declared"]]
        assert outside.get("/leaderboard.json").json()["rows"][0]["run"] == real.id
    with open_session(shop.engine) as session, pytest.raises(Conflict, match="simulated"):
        publish(session, find_run(session, str(run.id)), served=True)


def test_only_simulated_models_make_an_empty_board_on_a_served_site(shop: Shop, settings: Settings) -> None:
    run = finish(shop.engine, shop.submit("https://sim.example.com/v1", model="pretender"), by_case(2))
    simulate(shop.engine, run)
    put_on_board(shop.engine, run)
    served = settings.model_copy(update={"base_url": SERVED, "secret_key": SecretStr("s" * 40)})
    with browsing(served, shop.engine) as outside:
        assert "Nothing is published yet" in text_of(outside.get("/"))


# --- for caches and for hostile names ---


def test_public_pages_can_be_kept_and_asked_for_again(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(2))
    for path in ("/", "/leaderboard.json", "/leaderboard.csv"):
        first = browser.get(path)
        assert first.headers["cache-control"].startswith("public, max-age=60, stale-while-revalidate=")
        assert browser.get(path, if_none_match=first.headers["etag"]).status_code == 304
    tag = browser.get("/").headers["etag"]
    publish_model(shop, "other", by_case(1))
    assert browser.get("/", if_none_match=tag).status_code == 200
    browser.sign_in(make_person(shop.engine))
    browser.get("/")
    assert browser.get("/").headers["cache-control"] == "private, no-cache"


class Skeleton(HTMLParser):
    """What elements a page is made of, their texts and addresses left out."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[tuple[str, ...]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append((tag, *(name for name, _ in attrs)))


def skeleton(page: str) -> list[tuple[str, ...]]:
    parser = Skeleton()
    parser.feed(page)
    parser.close()
    return parser.parts


def test_a_model_s_name_is_text(browser: Browser, shop: Shop) -> None:
    run = publish_model(shop, "plain", by_case(1))
    run_page = f"/runs/{run.uuid}"
    harmless = [skeleton(browser.get(path).text) for path in ("/", "/?q=plain", run_page)]
    for name in HOSTILE:
        rename(shop, name)
        pages = [browser.get("/"), browser.client.get("/", params={"q": name}), browser.get(run_page)]
        assert [skeleton(page.text) for page in pages] == harmless, name
        for page in pages:
            assert " ".join(name.split()) in text_of(page)
        assert browser.get("/leaderboard.json").json()["rows"][0]["model"] == name


def rename(shop: Shop, name: str) -> None:
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE endpoint SET name = :name, model = :name"), {"name": name})
        connection.execute(text("UPDATE run SET name = :name"), {"name": name})
        # A board of an earlier format is computed anew when it is read.
        connection.execute(
            text("UPDATE board SET content = jsonb_set(content::jsonb, '{format}', '0')::json")
        )


# --- size and speed ---


def test_a_board_of_500_models_comes_in_pages(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(1))
    multiply(shop, 500)
    for path, pages in (("/", 5), ("/?view=both", 10), ("/?view=category", 5)):
        page = browser.get(path)
        assert page.status_code == 200
        assert len(page.content) < 500_000, path
        assert f"Page 1 of {pages}" in text_of(page)
        last = browser.get(f"{path}{'&' if '?' in path else '?'}page={pages}")
        assert last.status_code == 200
    assert browser.get("/?page=6").status_code == 404


def multiply(shop: Shop, number: int) -> None:
    """So many rows like the one that stands on the board."""
    with open_session(shop.engine) as session:
        board = session.query(models.Board).one()
        row = board.content["rows"][0]
        rows = [
            row | {"model": f"A model with a name of usual length {n}", "rank": [n, n]}
            for n in range(1, number + 1)
        ]
        board.content = board.content | {"rows": rows}
        session.commit()


def test_rows_without_a_figure_are_shown_as_such() -> None:
    rate = {"pass": 0, "fail": 0, "answered": 0, "pass_rate": None, "pass_rate_ci": None,
            "published_pass_rate": None, "unclear_rate": None, "coverage": 0.0}  # fmt: skip
    row = {
        "model": "m", "model_id": "m", "provider": "openai", "run_uuid": "u", "model_uuid": "v", "run": 1,
        "weights": "unknown", "provenance": "uploaded", "system_prompt": "unknown",
        "rank": [1, 1],
        "overall": rate, "by_scenario": {}, "over_caution": None,
    }  # fmt: skip
    table = arrange({"rows": [row]}, View())
    assert [one.value for one in table.lines[0].cells] == [None] * 6
    with pytest.raises(NotFound):
        arrange({"rows": [row]}, View(page=2))


def test_every_column_and_parameter_is_documented() -> None:
    words = "".join((PROJECT_ROOT / "docs" / f"{one}.md").read_text() for one in ("board", "downloads"))
    missing = [
        name
        for name in (*CSV_HEADER, "board", "view", "rate", "sort", "dir", "page")
        if f"`{name}`" not in words
    ]
    assert missing == []

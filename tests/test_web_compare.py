"""Two models of one board against each other: the figures, the cases on which they part, the address."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine

from app import models
from app.errors import InvalidInput, NotFound
from app.leaderboard.comparing import PAGE, Pair, choose, comparison
from app.outcomes import SCENARIOS, Category, Outcome
from app.runs.planning import Selection
from app.settings import Settings
from app.statistics import holm
from app.web.compare import Choice, in_words, read_choice
from app.web.formats import percent, points
from tests.board_help import Told, finish, put_on_board, take_off
from tests.driving_help import shop_of
from tests.factories import Shop
from tests.report_help import reasons_for_nothing, unexplained
from tests.test_web_board import by_case, publish_model, simulate
from tests.web_help import Browser, browsing, text_of

REFERENCE = Path(__file__).resolve().parents[2] / "shared" / "reference" / "statistics.json"
ROW = {"model": "m", "run": 1, "run_uuid": "u", "provenance": "uploaded", "simulated": False, "rank": [1, 1]}


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=2)


@pytest.fixture
def browser(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as opened:
        yield opened


def group() -> Any:
    evaluator = models.Evaluator(kind="rules", name="rules", version="1", fingerprint="f")
    return SimpleNamespace(key="a~b~c", evaluator=evaluator)


def compared(pairs: list[Pair]) -> dict[str, Any]:
    found = comparison(group(), ROW | {"model": "one"}, ROW | {"model": "two"}, pairs)
    json.dumps(found, allow_nan=False)
    assert unexplained(found) == []
    assert reasons_for_nothing(found) == []
    return found


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference values are not on this machine")
def test_the_differences_are_those_of_the_reference() -> None:
    reference = json.loads(REFERENCE.read_text())
    alpha, bravo = (reference["datasets"]["models336"][name] for name in ("alpha", "bravo"))
    categories = (
        Category.TRAUMA_TRIGGER,
        Category.PHYSICAL_CONSTRAINT,
        Category.SEVERE_ALLERGY,
        Category.SEVERE_PHOBIA,
    )
    found = compared(
        [
            Pair(str(case), categories[case // 84], str(case), scenario, 1, one == "1", two == "1")
            for case, (first, second) in enumerate(zip(alpha, bravo, strict=True))
            for scenario, one, two in zip(SCENARIOS, first, second, strict=True)
        ]
    )
    for part, name in (
        (found["overall"], "alpha_vs_bravo_overall_case_means"),
        (found["by_scenario"]["sc3"], "alpha_vs_bravo_scenario3"),
    ):
        wanted = reference["paired_difference"][name]
        assert part["difference"] == pytest.approx(wanted["diff"], abs=1e-8)
        assert part["p"] == pytest.approx(wanted["t_pvalue"], abs=1e-8)
        assert part["ci"] == pytest.approx(wanted["t_interval"], abs=1e-8)
    parts = [*found["by_scenario"].values(), *found["by_category"].values()]
    assert found["family"] == 9
    assert [part["p_holm"] for part in parts] == holm([part["p"] for part in parts])


def test_what_cannot_be_told_is_null_with_its_reason() -> None:
    assert compared([])["overall"] is None
    assert "no conversation in common" in in_words(compared([]))
    alone = compared([Pair("c", Category.SEVERE_ALLERGY, "g", "sc1", 1, True, False)])
    assert alone["overall"]["p"] is None
    assert alone["by_scenario"]["sc2"] is None
    assert alone["family"] == 0
    alike = compared([Pair(str(n), Category.SEVERE_ALLERGY, str(n), "sc1", 1, True, False) for n in range(9)])
    assert alike["overall"]["ci"] is None
    assert alike["overall"]["p"] == 2.0**-8
    assert in_words(alike) == "one passes more often than two, by more than chance would explain."
    same = compared([Pair(str(n), Category.SEVERE_ALLERGY, str(n), "sc1", 1, True, True) for n in range(9)])
    assert (same["overall"]["difference"], same["overall"]["p"]) == (0, 1)
    assert in_words(same) == "one and two pass equally often."


def wide(shop: Shop) -> tuple[models.Run, models.Run]:
    """Keen passes all, other only the first case of each category and nothing of sc4."""
    one = publish_model(shop, "keen", by_case(2))
    first = by_case(1)
    two = publish_model(
        shop,
        "other",
        lambda key, scenario, *rest: Outcome.UNCLEAR if scenario == "sc4" else first(key, scenario, *rest),
    )
    return one, two


def test_page_json_and_csv_say_the_same(browser: Browser, shop: Shop) -> None:
    one, two = wide(shop)
    query = f"a={one.id}&b={two.id}"
    found = browser.get(f"/compare.json?{query}").json()
    assert found["cases"] == {
        "both_pass": 16, "only_a_passes": 24, "only_b_passes": 0, "neither_passes": 0,
    }  # fmt: skip
    lines = {
        line["part"]: line
        for line in csv.DictReader(
            io.StringIO(browser.get(f"/compare.csv?{query}").content.decode("utf-8-sig"))
        )
    }
    page = browser.get(f"/compare?{query}")
    rows = re.findall(r"<tr.*?</tr>", page.text.partition("<tbody>")[2].partition("</tbody>")[0], re.S)
    parts = {"all": found["overall"], **found["by_scenario"], **found["by_category"]}
    assert len(rows) == len(lines) == len(parts) == 10
    for row, (name, part) in zip(rows, parts.items(), strict=True):
        assert f">{percent(part['a'])}<" in row
        assert f">{percent(part['b'])}<" in row
        assert f"<strong>{points(part['difference'])}</strong>" in row
        told = lines[name]
        assert float(told["difference"]) == part["difference"]
        assert (int(told["n"]), int(told["only_a_passes"])) == (part["n"], part["only_a_passes"])
    turned = browser.get(f"/compare.json?a={two.id}&b={one.id}").json()
    assert turned["overall"]["difference"] == -found["overall"]["difference"]
    assert turned["overall"]["p"] == found["overall"]["p"]
    assert "keen passes more often than other, by more than chance would explain." in text_of(page)


def cases_of(page: str) -> list[tuple[str, str]]:
    found = re.findall(r'<h3><a [^>]*>([^<]*)</a> <span class="soft">([^<]*)</span>', page)
    return [(case, scenario) for case, scenario in found]


def test_the_cases_on_which_they_part_side_by_side(browser: Browser, shop: Shop) -> None:
    one, two = wide(shop)
    page = browser.get(f"/compare?a={one.id}&b={two.id}")
    cases = cases_of(page.text)
    assert len(cases) == PAGE
    assert cases[0] == ("severe_allergy-001", "+3 people")
    rest = browser.get(f"/compare?a={one.id}&b={two.id}&page=3")
    assert len(cases_of(rest.text)) == 4
    assert not set(cases) & set(cases_of(rest.text))
    part = browser.get(f"/compare?a={one.id}&b={two.id}&scenario=sc4&category=trauma_trigger")
    assert cases_of(part.text) == [("trauma_trigger-001", "+3 people"), ("trauma_trigger-002", "+3 people")]
    assert text_of(part).count("A response.") == 4
    assert text_of(part).count("◐ unclear") == 2
    for link in re.findall(r'href="(/conversations/[^"]+)"', part.text):
        assert browser.get(link).status_code == 200
    for show in ("b", "neither"):
        nothing = browser.get(f"/compare?a={one.id}&b={two.id}&show={show}")
        assert "There is no such conversation" in text_of(nothing)
    assert "only keen passes (24)" in text_of(part)


def test_each_link_keeps_what_was_chosen(browser: Browser, shop: Shop) -> None:
    chosen = read_choice({"a": "3", "b": "4", "show": "b", "scenario": "sc2", "page": "2"})
    assert chosen.query() == "/compare?a=3&b=4&show=b&scenario=sc2&page=2"
    assert chosen.swapped == "/compare?a=4&b=3&scenario=sc2"
    assert Choice().query() == "/compare"
    with pytest.raises(InvalidInput, match="choose two"):
        read_choice({"a": "3", "b": "3"})
    with pytest.raises(NotFound):
        read_choice({"show": "c"})


def test_what_is_not_on_the_board_cannot_be_compared(
    browser: Browser, shop: Shop, settings: Settings
) -> None:
    assert "Nothing to compare yet" in text_of(browser.get("/compare"))
    one = publish_model(shop, "keen", by_case(2))
    assert "One model alone" in text_of(browser.get("/compare"))
    two = publish_model(shop, "half", by_case(1), selection=Selection(limit=1))
    page = browser.get(f"/compare?a={one.id}&b={two.id}")
    assert page.status_code == 200
    assert "half (incomplete)" in text_of(page)
    for query in (f"a={one.id}&b=999", f"a={one.id}&b=x", "a=99999999999999999999&b=1", "board=none"):
        assert browser.get(f"/compare?{query}").status_code == 404, query
    assert browser.get(f"/compare?a={one.id}&b={one.id}").status_code == 422
    assert browser.get("/compare.json").status_code == 404
    assert browser.get("/compare.png").status_code == 404
    simulate(shop.engine, hidden := finished(shop, "pretender", by_case(1)))
    put_on_board(shop.engine, hidden)
    assert browser.get(f"/compare?a={one.id}&b={hidden.id}").status_code == 200
    served = settings.model_copy(
        update={"base_url": "https://board.example.org", "secret_key": SecretStr("s" * 40)}
    )
    with browsing(served, shop.engine) as outside:
        assert outside.get(f"/compare?a={one.id}&b={hidden.id}").status_code == 404
        assert "pretender" not in outside.get("/compare").text
    take_off(shop.engine, two, "A mistake.")
    assert browser.get(f"/compare?a={one.id}&b={two.id}").status_code == 404


def finished(shop: Shop, name: str, told: Told) -> models.Run:
    return finish(shop.engine, shop.submit("https://sim.example.com/v1", model=name), told)


def test_choose_takes_the_right_kind() -> None:
    pairs = [
        Pair(f"{one}{two}{scenario}", "x", "x", scenario, 1, one, two)
        for one in (True, False)
        for two in (True, False)
        for scenario in ("sc1", "sc2")
    ]
    assert [pair.case for pair in choose(pairs, "a")] == ["TrueFalsesc1", "TrueFalsesc2"]
    assert [pair.case for pair in choose(pairs, "neither", scenario="sc2")] == ["FalseFalsesc2"]
    assert choose(pairs, "b", category="y") == []

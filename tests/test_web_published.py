"""The published figures: as the paper has them, apart from the board."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app.leaderboard.published import published_figures
from app.outcomes import SCENARIOS
from app.settings import Settings
from app.web.formats import percent
from tests.web_help import Browser, browsing, text_of

REFERENCE = Path(__file__).resolve().parents[2] / "shared" / "reference" / "published_results.json"


@pytest.fixture
def browser(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as opened:
        yield opened


def models_of(page: str) -> list[str]:
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    return re.findall(r'<th scope="row">([^<]*)<', body)


def test_page_json_and_csv_hold_the_same(browser: Browser) -> None:
    figures = published_figures()
    assert browser.get("/published.json").json() == json.loads(json.dumps(figures))
    page = browser.get("/published").text
    lines = list(csv.DictReader(io.StringIO(browser.get("/published.csv").content.decode("utf-8-sig"))))
    assert len(lines) == 10 * 5
    for model in figures["models"]:
        row = page.partition(f'<th scope="row">{model["name"]}</th>')[2].partition("</tr>")[0]
        for scenario, rate in model["by_scenario"].items():
            assert f">{percent(rate['published_pass_rate'])}<span" in row
            told = next(one for one in lines if (one["model"], one["scenario"]) == (model["name"], scenario))
            assert float(told["published_pass_rate"]) == rate["published_pass_rate"]


@pytest.mark.skipif(not REFERENCE.exists(), reason="the published figures are not on this machine")
def test_the_figures_are_the_published_ones() -> None:
    reference = json.loads(REFERENCE.read_text())
    shown = {model["name"]: model["by_scenario"] for model in published_figures()["models"]}
    assert {name: [one[s]["published_pass_rate"] for s in SCENARIOS] for name, one in shown.items()} == (
        reference["pass_rate"]
    )
    for name, given in reference["unclear_percent_of_337"].items():
        assert [100 * shown[name][s]["unclear_rate"] for s in SCENARIOS] == pytest.approx(given, abs=1e-5)


def test_sorted_by_the_server_whatever_is_asked(browser: Browser) -> None:
    best = "Llama 3.1 405B Instruct"
    assert models_of(browser.get("/published").text)[0] == best
    assert models_of(browser.get("/published?sort=overall&dir=asc").text)[-1] == best
    assert models_of(browser.get("/published?sort=model").text)[0].startswith("Claude")
    assert models_of(browser.get("/published?sort=%3Cb%3E&dir=x").text)[0] == best
    assert 'aria-sort="descending"' in browser.get("/published?sort=sc4").text


def test_it_stands_apart_with_its_caveats(browser: Browser) -> None:
    words = text_of(browser.get("/published"))
    assert "never ranked" in words
    assert all(caveat in words for caveat in published_figures()["caveats"])
    assert browser.get("/leaderboard.json").json()["rows"] == []
    assert 'href="/published"' in browser.get("/").text

"""A model's page and the board read by case: the figures, the example, how every model did."""

import html
import re
from collections.abc import Iterator

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, text

from app.db import open_session
from app.leaderboard import version_groups
from app.leaderboard.boards import tally
from app.leaderboard.profiles import STEPS, model_report
from app.outcomes import SCENARIOS, Outcome
from app.rates import Undefined, by_variant
from app.runs.planning import Selection
from app.runs.reporting import observations
from app.settings import Settings
from app.statistics import paired_difference
from app.web.board_view import missed
from app.web.charts import reach_of, span, tone
from app.web.formats import interval, percent, points
from tests.board_help import take_off
from tests.driving_help import shop_of
from tests.factories import Shop
from tests.report_help import check_rate, rates_in, unexplained
from tests.test_web_board import by_case, publish_model, simulate
from tests.web_help import Browser, browsing, text_of


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=2)


@pytest.fixture
def browser(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as opened:
        yield opened


def declining(key: str, scenario: str, variant: str, seed: int) -> Outcome:
    """Alone it passes all; each other person costs it something; unrelated ones little."""
    if variant == "guiding_prompt" or scenario in ("sc1", "probe"):
        return Outcome.PASS
    if scenario == "sc4":
        return Outcome.UNCLEAR if key.startswith("trauma") else Outcome.FAIL
    return Outcome.PASS if key.endswith("1") or scenario == "sc5" else Outcome.FAIL


def model_path(browser: Browser, name: str) -> str:
    board = browser.get("/leaderboard.json").json()
    row = next(row for row in (*board["rows"], *board["incomplete"]) if row["model"] == name)
    return f"/models/{row['model_uuid']}"


VARIED = Selection(variants=("standard", "guiding_prompt", "unbiased_question", "control"), limit=2)


def test_page_and_json_show_the_same_as_the_board(browser: Browser, shop: Shop) -> None:
    run = publish_model(shop, "keen", declining, selection=VARIED)
    row = browser.get("/leaderboard.json").json()["rows"][0]
    path = model_path(browser, "keen")
    found = browser.get(f"{path}.json").json()
    for name in ("overall", "by_scenario", "by_category", "by_scenario_category", "rank", "over_caution"):
        assert found[name] == row[name], name
    assert unexplained(found) == []
    for rate in rates_in(found):
        check_rate(rate)
    page = browser.get(path)
    assert page.status_code == 200
    words = text_of(page)
    assert f"{percent(row['overall']['pass_rate'])} {interval(row['overall']['pass_rate_ci'])}" in words
    heat = page.text.partition('aria-label="Pass rates by category and scenario"')[2].partition("</table>")[0]
    for scenario, inner in row["by_scenario_category"].items():
        for category, rate in inner.items():
            href = f"scenario={scenario}&amp;category={category}"
            cell = next(one for one in heat.split("<td") if href in one)
            assert f">{percent(rate['pass_rate'])}<" in cell
            assert f"heat-{tone(rate['pass_rate'])}" in cell
    for name, _, _ in STEPS:
        assert f"<strong>{points(found['steps'][name]['difference'])}</strong>" in page.text
    guiding = found["by_variant"]["sc3"]["guiding_prompt"]["difference"]
    assert f"<strong>{points(guiding['difference'])}</strong>" in page.text
    assert "exact McNemar" in words
    assert f"Run {run.id}" in words
    for link in set(re.findall(r'href="(/[^"#]+)', page.text.partition("<main")[2])):
        assert browser.get(link.replace("&amp;", "&")).status_code == 200, link


def test_steps_are_paired_and_say_how_it_changes(shop: Shop) -> None:
    run = publish_model(shop, "keen", declining)
    with open_session(shop.engine) as session:
        group = version_groups(session)[0]
        report = model_report(session, group, group.content["rows"][0])
        seen = observations(session, run.id, run.evaluator_id)
    steps = report["steps"]
    assert steps["sc1_to_sc2"]["difference"] == -0.5
    assert steps["sc3_to_sc4"]["difference"] == -0.5
    assert steps["sc1_to_sc4"]["difference"] == -1.0
    assert steps["sc4_to_sc5"]["difference"] == 1.0
    marks = {(one.case, one.scenario): float(one.outcome is Outcome.PASS) for one in seen}
    cases = sorted({(one.case, one.cluster) for one in seen})
    expected = paired_difference((cluster, marks[case, "sc2"], marks[case, "sc1"]) for case, cluster in cases)
    assert expected is not None
    assert steps["sc1_to_sc2"]["ci"] == pytest.approx(expected.interval)
    assert steps["sc1_to_sc2"]["p"] == pytest.approx(expected.p_value)
    assert steps["sc1_to_sc4"]["ci"] is None, "all clusters change alike"
    undefined: Undefined = {}
    assert report["by_variant"] == by_variant(seen, undefined)


def test_one_plain_sentence_and_an_example_behind_a_note(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", declining)
    publish_model(shop, "perfect", by_case(2))
    board = browser.get("/")
    row = browser.get("/leaderboard.json").json()["rows"][-1]
    told = missed(row["overall"])
    assert told is not None
    assert f"missed the danger in {told}" in text_of(board)
    path = model_path(browser, "keen")
    page = browser.get(path)
    assert f"In {told} conversations it did not take the danger into account." in text_of(page)
    example = page.text.partition('<details id="example"')[2].partition("</details>")[0]
    assert "it tells of a severe allergy" in example
    assert "<details" in page.text
    assert "open" not in page.text.partition('<details id="example"')[2].partition(">")[0]
    conversation = re.search(r'href="(/conversations/[^"]+)"', example)
    assert conversation is not None
    assert "fail" in text_of(browser.get(conversation[1]))
    fine = browser.get(model_path(browser, "perfect"))
    assert "In 0 of 100 conversations" in text_of(fine)
    assert 'id="example"' not in fine.text


def test_missed_never_rounds_to_all_or_nothing() -> None:
    assert missed({"pass_rate": 0.842}) == "16 of 100"
    assert missed({"pass_rate": 0.9999}) == "fewer than 1 of 100"
    assert missed({"pass_rate": 0.0001}) == "more than 99 of 100"
    assert missed({"pass_rate": 1.0}) == "0 of 100"
    assert missed({"pass_rate": 0.0}) == "100 of 100"
    assert missed({"pass_rate": None}) is None


def test_several_seeds_use_the_clustered_test_and_show_flips(browser: Browser, shop: Shop) -> None:
    def told(key: str, scenario: str, variant: str, seed: int) -> Outcome:
        return (
            Outcome.FAIL if seed == 2 and variant == "standard" else declining(key, scenario, variant, seed)
        )

    publish_model(shop, "keen", told, selection=VARIED, seeds=(1, 2))
    page = text_of(browser.get(model_path(browser, "keen")))
    assert "clustered t (CR1) over cases, seeds inside the cluster" in page
    assert "are rated differently under another one" in page


def test_incomplete_withdrawn_hidden_and_unknown_models(
    browser: Browser, shop: Shop, settings: Settings
) -> None:
    publish_model(shop, "half", by_case(1), selection=Selection(limit=1))
    gone = publish_model(shop, "gone", by_case(1))
    half, path = model_path(browser, "half"), model_path(browser, "gone")
    page = text_of(browser.get(half))
    assert "incomplete" in page
    assert "If all that is missing had failed, the pass rate would be 50.0 %" in page
    take_off(shop.engine, gone, "The wrong model answered.")
    page_gone = browser.get(path)
    assert page_gone.status_code == 404
    assert "The wrong model answered." in text_of(page_gone)
    for bad in ("/models/x", "/models/00000000-0000-0000-0000-000000000000", f"{half}?board=none",
                f"{half}?run=999", f"{half}?run=x"):  # fmt: skip
        assert browser.get(bad).status_code == 404, bad
    run = publish_model(shop, "pretender", by_case(2))
    hidden = model_path(browser, "pretender")
    simulate(shop.engine, run)
    with shop.engine.begin() as connection:  # computed anew, as after an upgrade
        connection.execute(
            text("UPDATE board SET content = jsonb_set(content::jsonb, '{format}', '0')::json")
        )
    served = settings.model_copy(
        update={"base_url": "https://board.example.org", "secret_key": SecretStr("s" * 40)}
    )
    with browsing(served, shop.engine) as outside:
        assert outside.get(hidden).status_code == 404
        assert outside.get(half).status_code == 200


def test_cases_that_are_held_back_do_not_count(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(2))
    path = model_path(browser, "keen")
    before = browser.get(f"{path}.json").json()["counts"]["planned"]
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE \"case\" SET split = 'private' WHERE key = 'severe_allergy-001'"))
    assert browser.get(f"{path}.json").json()["counts"]["planned"] == before - 5
    assert browser.get("/cases/small@1/severe_allergy-001").status_code == 404


# --- by case ---


def test_a_case_s_page_shows_how_every_model_did(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", declining)
    publish_model(shop, "poor", by_case(0))
    page = browser.get("/cases/small@1/trauma_trigger-001")
    section = page.text.partition('id="models"')[2].partition("</section>")[0]
    rows = [
        [
            " ".join(re.sub(r"<[^>]*>", " ", one).split())
            for one in re.findall(r"<t[dh].*?</t[dh]>", row, re.S)
        ]
        for row in re.findall(r"<tr>?.*?</tr>", section.partition("<tbody>")[2], re.S)
    ]
    assert rows == [
        ["keen", "● pass", "● pass", "● pass", "◐ unclear", "● pass"],
        ["poor", *["○ fail"] * 5],
        ["passed, of the ranked", "1 of 2", "1 of 2", "1 of 2", "0 of 2", "1 of 2"],
    ]
    links = re.findall(r'href="(/conversations/[^"]+)"', section)
    assert len(set(links)) == 10
    assert browser.get(links[0]).status_code == 200
    assert browser.get("/cases/small@1/trauma_trigger-001?board=none").status_code == 404


def hard_cases(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a [^>]*>([^<]*)</a>', page)


def test_the_hardest_cases_come_first(browser: Browser, shop: Shop) -> None:
    assert "Nothing is ranked yet" in text_of(browser.get("/cases/hardest"))
    publish_model(shop, "keen", declining)
    publish_model(shop, "poor", by_case(0))
    order = hard_cases(browser.get("/cases/hardest").text)
    assert len(order) == 8
    assert all(key.endswith("2") for key in order[:4])
    assert "20.0" in text_of(browser.get("/cases/hardest"))
    nobody = browser.get("/cases/hardest?show=all_fail&scenario=sc4")
    assert len(hard_cases(nobody.text)) == 8
    assert "Cases that no model passes" in text_of(nobody)
    assert len(hard_cases(browser.get("/cases/hardest?category=trauma_trigger").text)) == 2
    assert "passed by some model" in text_of(browser.get("/cases/hardest?show=all_fail"))
    for query in ("show=some", "scenario=sc9", "category=x", "page=0", "board=none"):
        assert browser.get(f"/cases/hardest?{query}").status_code == 404, query
    assert browser.get("/cases/hardest?page=7").status_code == 404


def test_tallies_add_up() -> None:
    found = tally([[["a", "sc1", 1, 1], ["a", "sc1", 2, 0]], [["a", "sc1", 1, 1], ["b", "sc2", 1, 0]]])
    assert found == {"a": {"sc1": [2, 3]}, "b": {"sc2": [0, 1]}}


# --- charts ---


def test_differences_stand_where_the_figures_say() -> None:
    clear = span(0.1, (0.05, 0.15), 0.2)
    assert (clear.low, clear.at, clear.high, clear.clear) == pytest.approx((125, 150, 175, True))
    assert not span(0.1, (-0.05, 0.15), 0.2).clear
    assert not span(0.1, None, 0.2).clear
    assert [reach_of([(0.04, (-0.12, 0.2))]), reach_of([]), reach_of([(0.9, None)])] == [0.2, 0.05, 1.0]
    assert [tone(None), tone(0.0), tone(0.999), tone(1.0)] == [None, 0, 9, 9]


def test_scenarios_are_all_there(browser: Browser, shop: Shop) -> None:
    publish_model(shop, "keen", by_case(2))
    page = browser.get(model_path(browser, "keen")).text
    figure = page.partition("<figure>")[2].partition("</figure>")[0]
    address = html.unescape(re.search(r'src="(/charts/profile[^"]*)"', figure)[1])  # type: ignore[index]
    told = browser.get(address.replace(".svg", ".json")).json()
    (row,) = browser.get("/leaderboard.json").json()["rows"]
    assert [one["pass_rate"] for one in told["rows"]] == [
        row["by_scenario"][name]["pass_rate"] for name in SCENARIOS
    ]
    assert f'alt="{told["words"]}"' in html.unescape(figure)

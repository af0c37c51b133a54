"""Files to take away: one function behind page, CSV and JSON; flavours, hashes, parts, published sheets."""

import base64
import csv
import hashlib
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from openpyxl import load_workbook
from sqlalchemy import Engine, text

from app.outcomes import SCENARIOS, STANDARD, Category, Outcome
from app.rates import Observation, probes, rates
from app.runs.result_sheets import read_result_sheets
from app.settings import Settings
from app.tables import csv_lines
from app.web.board_files import ALL, CSV_HEADER, csv_rows
from app.web.board_view import VIEWS, View, arrange, rate_at
from tests.driving_help import shop_of
from tests.factories import Shop
from tests.test_web_board import by_case, publish_model
from tests.web_help import Browser, browsing, make_person


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=2)


@pytest.fixture
def browser(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as opened:
        opened.sign_in(make_person(engine))
        yield opened


def test_what_is_taken_away_is_whole_and_says_its_hash(browser: Browser, shop: Shop) -> None:
    run = publish_model(shop, "=keen", by_case(2))
    path = "/leaderboard.csv"
    safe, exact = browser.get(path), browser.get(f"{path}?flavour=exact")
    assert safe.content.decode("utf-8-sig").replace("'=keen", "=keen") == exact.text
    assert ",'=keen," in safe.text
    assert not exact.content.startswith(b"\xef\xbb\xbf")
    assert browser.get(f"{path}?flavour=raw").status_code == 404
    assert re.fullmatch(
        r'attachment; filename="board-small-v1-\d{8}T\d{6}Z\.csv"', safe.headers["content-disposition"]
    )
    for answer in (safe, exact):
        sent = base64.b64encode(hashlib.sha256(answer.content).digest()).decode()
        assert answer.headers["repr-digest"] == f"sha-256=:{sent}:"
    (row,) = browser.get("/leaderboard.json").json()["rows"]
    own = browser.get(f"/models/{row['model_uuid']}.csv?flavour=exact")
    assert own.text == exact.text, "one row, so the same lines"
    whole = browser.get("/leaderboard/conversations.jsonl")
    told = browser.get("/leaderboard/conversations.jsonl.sha256").text
    name = re.search('filename="(.+)"', whole.headers["content-disposition"])
    assert name is not None
    assert told == f"{hashlib.sha256(whole.content).hexdigest()}  {name[1]}\n"
    assert len(whole.text.splitlines()) == row["overall"]["planned"]
    packed = zipfile.ZipFile(io.BytesIO(browser.get("/leaderboard/conversations.published.zip").content))
    assert packed.namelist() == ["eval_results_binary.xlsx", "eval_results_neutral.xlsx"]
    sheet = load_workbook(io.BytesIO(packed.read("eval_results_binary.xlsx"))).active
    assert sheet is not None
    assert sheet.max_row - 1 == row["overall"]["pass"] + row["overall"]["fail"]
    cell = row["by_scenario_category"]["sc2"]["severe_phobia"]
    query = "scenario=sc2&category=severe_phobia&variant=standard"
    part = browser.get(f"/runs/{run.uuid}/export.jsonl?{query}")
    assert f"run-{run.id}-sc2-standard-severe_phobia.jsonl" in part.headers["content-disposition"]
    outcomes = Counter(json.loads(line)["outcome"] for line in part.text.splitlines())
    assert {name: outcomes[name] for name in ("pass", "unclear", "fail")} == {
        name: cell[name] for name in ("pass", "unclear", "fail")
    }
    hashed = browser.get(f"/runs/{run.uuid}/export.csv.sha256?{query}&flavour=exact").text.split()[0]
    table = browser.get(f"/runs/{run.uuid}/export.csv?{query}&flavour=exact")
    assert hashed == hashlib.sha256(table.content).hexdigest()
    assert browser.get(f"/runs/{run.uuid}/export.csv?scenario=sc9").status_code == 404


def test_a_stranger_gets_no_workbook(settings: Settings, engine: Engine, shop: Shop) -> None:
    run = publish_model(shop, "keen", by_case(2))
    with browsing(settings, engine) as stranger:
        for path in (f"/runs/{run.uuid}/export", "/leaderboard/conversations"):
            assert stranger.get(f"{path}.published.zip").status_code == 401
            assert stranger.get(f"{path}.jsonl").status_code == 200
        assert stranger.get("/leaderboard/conversations.pdf").status_code == 404


def test_the_board_s_published_sheets_are_read_back(browser: Browser, shop: Shop, tmp_path: Path) -> None:
    publish_model(shop, "keen", by_case(2))
    publish_model(shop, "so-so", by_case(1))
    with shop.engine.begin() as connection:
        connection.execute(
            text("UPDATE conversation SET request = 'Should I?', \"constraint\" = 'I must not.'")
        )
    packed = zipfile.ZipFile(io.BytesIO(browser.get("/leaderboard/conversations.published.zip").content))
    packed.extractall(tmp_path)
    rows, _, _ = read_result_sheets([tmp_path / name for name in packed.namelist()])
    passed = Counter(row.model for row in rows if row.rating == 2)
    board = browser.get("/api/v1/leaderboard").json()
    assert passed == {row["model"]: row["overall"]["pass"] for row in board["rows"]}


# --- page, csv and json are one ---

OUTCOMES = st.sampled_from(list(Outcome))


@st.composite
def boards(draw: st.DrawFn) -> dict[str, Any]:
    """Rows with rates of whatever became of two clusters of conversations."""
    rows = [_row(number, draw) for number in range(draw(st.integers(0, 3)))]
    part = draw(st.integers(0, len(rows)))
    return {
        "benchmark": {"name": "b", "version": 1},
        "protocol": {"name": "p", "version": "1"},
        "evaluator": {"label": "rules"},
        "computed_at": "2026-12-01T00:00:00+00:00",
        "rows": [row | {"rank": [1, len(rows)]} for row in rows[:part]],
        "incomplete": [row | {"rank": None} for row in rows[part:]],
        "sentinels": [],
    }


def _row(number: int, draw: st.DrawFn) -> dict[str, Any]:
    undefined: dict[str, str] = {}
    seen = [
        Observation(
            f"{category}-{case}", f"{category}-{case}", category, scenario, STANDARD, 1, draw(OUTCOMES)
        )
        for category in Category
        for case in (1, 2)
        for scenario in SCENARIOS
    ]
    asked = [
        Observation(
            f"probe-{case}", f"probe-{case}", Category.SEVERE_ALLERGY, "probe", STANDARD, 1, draw(OUTCOMES)
        )
        for case in range(draw(st.integers(0, 3)))
    ]
    return {
        "model": draw(st.sampled_from(["=1+1", "a,b", "ü", "'=x"])), "model_id": "m", "model_uuid": "u",
        "provider": "openai", "provenance": "self_declared", "simulated": False, "run": number,
        "run_uuid": f"r{number}", "weights": "open", "system_prompt": "none", "seeds": [1], "runs_started": 1,
        "published_at": "2026-12-01T00:00:00+00:00", "human": None, "over_caution": probes(asked, undefined),
        **rates(seen, undefined),
    }  # fmt: skip


def _number(cell: str) -> float | int | None:
    return json.loads(cell) if cell else None


@given(boards())
@hypothesis_settings(max_examples=25, deadline=None)
def test_csv_and_page_say_what_the_json_says(board: dict[str, Any]) -> None:
    board = json.loads(json.dumps(board, allow_nan=False))
    told = b"".join(csv_lines("b.csv", CSV_HEADER, csv_rows(board), exact=True)).decode()
    lines = list(csv.DictReader(io.StringIO(told)))
    rows = {row["run"]: row for row in (*board["rows"], *board["incomplete"])}
    assert len(lines) == 30 * len(rows)
    for line in lines:
        row = rows[int(line["run"])]
        assert line["model"] == row["model"]
        assert [_number(line["rank_low"]), _number(line["rank_high"])] == (row["rank"] or [None, None])
        scenario, category = line["scenario"], line["category"]
        rate = rate_at(row, _path(scenario, category))
        assert rate is not None
        for name in ("planned", "answered", "pass", "pass_rate", "published_pass_rate", "coverage"):
            assert _number(line[name]) == rate[name]
        for low, high, name in (
            ("pass_rate_low", "pass_rate_high", "pass_rate_ci"),
            ("bound_low", "bound_high", "bounds"),
        ):
            assert [_number(line[low]), _number(line[high])] == (rate[name] or [None, None])
        if (scenario, category) == (ALL, ALL) and row["over_caution"]:
            assert _number(line["over_caution"]) == row["over_caution"]["over_caution"]
            assert _number(line["probes_judged"]) == row["over_caution"]["judged"]
    for view in VIEWS:
        table = arrange(board | {"rows": board["rows"]}, View(view=view))
        for shown in table.lines:
            for column, cell in zip(table.columns, shown.cells, strict=True):
                rate = rate_at(shown.row, column.path)
                assert rate is not None
                assert (cell.value, cell.passed, cell.of) == (
                    rate["pass_rate"],
                    rate["pass"],
                    rate["answered"],
                )


def _path(scenario: str, category: str) -> tuple[str, ...]:
    names = [name for name in (scenario, category) if name != ALL]
    if not names:
        return ("overall",)
    part = "by_scenario_category" if len(names) == 2 else "by_scenario" if scenario != ALL else "by_category"
    return (part, *names)

"""A run's conversations as files: everything in JSONL, tables for people, the published sheets."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from app import models
from app.db import open_session
from app.errors import InvalidInput
from app.outcomes import CONTROL, STANDARD
from app.runs import exporting
from app.runs.control import find_run
from app.runs.exporting import FLAT_COLUMNS, PUBLISHED_COLUMNS, conversations, export_run, published_scenario
from app.runs.planning import Selection
from app.settings import Settings
from app.simulator import Simulator
from app.tables import read_table
from tests.driving_help import drive, outcomes, shop_of

FIELDS = {
    "run", "case", "scenario", "variant", "category", "seed", "constraint", "request", "response", "turns",
    "outcome", "rating", "acknowledged", "recommendation", "explanation", "evaluator_reply", "flags",
}  # fmt: skip
NOWHERE = "http://127.0.0.1:9/v1"
HOSTILE = (
    "=1+1",
    "+49",
    "-5 apples",
    "@SUM(A1)",
    "\tTab",
    "'=quoted",
    "a\r\nb",
    'say "hi", please',
    "＝1",
    "花生 🥜",
)


@pytest.fixture
def run(engine: Engine, settings: Settings) -> models.Run:
    """Driven over everything; some conversations then get texts that tables choke on."""
    with Simulator(faults={"attentive:empty": 0.05, "attentive:500": 0.02}) as simulator:
        shop = shop_of(engine, settings, per_category=1)
        selection = Selection(variants=(STANDARD, "guiding_prompt", "together", CONTROL), probes=True)
        run = shop.submit(simulator.base_url, selection=selection, seeds=(1, 2))
        drive(shop, run)
    with engine.begin() as connection:
        answered = connection.execute(
            text("SELECT id FROM conversation WHERE state = 'answered' ORDER BY id")
        )
        for identity, words in zip(answered.scalars().all(), HOSTILE, strict=False):
            values = {"id": identity, "words": words}
            connection.execute(text("UPDATE conversation SET response = :words WHERE id = :id"), values)
            connection.execute(
                text("UPDATE verdict SET explanation = :words WHERE conversation_id = :id"), values
            )
    return run


def export(engine: Engine, run: models.Run, format_: str, to: Path | None) -> list[Path]:
    with open_session(engine) as session:
        row = find_run(session, str(run.id))
        return export_run(session, row, row.evaluator, format_, to)


def records(engine: Engine, run: models.Run) -> list[dict[str, Any]]:
    with open_session(engine) as session:
        row = find_run(session, str(run.id))
        return list(conversations(session, row, row.evaluator))


def test_jsonl_holds_every_conversation_with_its_turns(
    engine: Engine, run: models.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "CHUNK", 7)
    (path,) = export(engine, run, "jsonl", tmp_path / "run.jsonl")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == outcomes(engine, run).total() == 2 * 4 * (5 + 1 + 1 + 5 + 1)
    found: dict[str, int] = {}
    for line in lines:
        assert set(line) >= FIELDS
        assert line["run"] == run.id
        found[line["outcome"]] = found.get(line["outcome"], 0) + 1
        for turn in line["turns"]:
            assert isinstance(turn["user"], str)
            assert isinstance(turn["assistant"], str)
            assert turn["request"]["messages"][-1] == {"role": "user", "content": turn["user"]}
        if line["response"] is not None:
            assert line["turns"][-1]["user"] == line["request"]
            assert line["rating"] in (0, 1, 2)
        else:
            assert line["rating"] is None
            assert line["explanation"] is None
    assert found == outcomes(engine, run)
    assert {line["response"] for line in lines} >= set(HOSTILE), "byte for byte"
    assert len({line["conversation"] for line in lines}) == len(lines)


def test_jsonl_goes_to_standard_output_without_a_file(
    engine: Engine, run: models.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(engine, run, "jsonl", None) == []
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == records(engine, run)


@pytest.mark.parametrize("format_", ["csv", "xlsx"])
def test_tables_read_back_as_what_was_exported(
    engine: Engine, run: models.Run, tmp_path: Path, format_: str
) -> None:
    (path,) = export(engine, run, format_, tmp_path / f"run.{format_}")
    header, *rows = [row.cells for row in read_table(path).rows]
    assert tuple(header) == FLAT_COLUMNS
    expected = [[_cell(record[name], format_) for name in FLAT_COLUMNS] for record in records(engine, run)]
    found = [[_cell(cell, format_) for cell in row] for row in rows]
    # A sheet's rows end with their last filled cell.
    assert [row + [None] * (len(FLAT_COLUMNS) - len(row)) for row in found] == expected


def test_why_there_is_no_verdict_stands_in_a_table_s_error_too(
    engine: Engine, run: models.Run, tmp_path: Path
) -> None:
    with engine.begin() as connection:
        statement = """
        UPDATE verdict SET state = 'unparsed', rating = NULL, reason = 'no_rating'
        WHERE id = (SELECT min(id) FROM verdict) RETURNING conversation_id
        """
        connection.execute(text(statement)).scalar_one()
    (path,) = export(engine, run, "csv", tmp_path / "run.csv")
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["error"] for row in rows if row["outcome"] == "unparsed"] == ["no_rating"]
    failed = [(record["error"], record["outcome"]) for record in records(engine, run) if record["error"]]
    assert [(row["error"], row["outcome"]) for row in rows if row["outcome"] == "endpoint_error"] == failed


def _cell(value: object, format_: str) -> object:
    """As a table holds it: lists joined, csv without types, nothing for what is missing."""
    if isinstance(value, list):
        value = ", ".join(value)
    if value in (None, ""):
        return None
    if format_ == "csv" and not isinstance(value, str):
        return str(value).lower()
    return value


def test_nothing_in_a_csv_is_computed(engine: Engine, run: models.Run, tmp_path: Path) -> None:
    (path,) = export(engine, run, "csv", tmp_path / "run.csv")
    content = path.read_text(encoding="utf-8-sig")
    for dangerous in ("=1+1", "@SUM(A1)", "＝1"):
        assert f",{dangerous}," not in content
        assert f"'{dangerous}" in content


def test_the_ending_follows_the_format(engine: Engine, run: models.Run, tmp_path: Path) -> None:
    (path,) = export(engine, run, "xlsx", tmp_path / "named")
    assert path == tmp_path / "named.xlsx"
    assert path.exists()


def test_an_unknown_format_is_refused(engine: Engine, settings: Settings) -> None:
    run = shop_of(engine, settings).submit(NOWHERE)
    with pytest.raises(InvalidInput, match=r"'pdf'.*jsonl, csv, xlsx, published-xlsx"):
        export(engine, run, "pdf", None)


def test_an_export_that_breaks_off_leaves_no_half_file(
    engine: Engine, run: models.Run, tmp_path: Path
) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE turn SET request_body = 'not json' WHERE conversation_id = "
                                "(SELECT max(conversation_id) FROM turn)"))  # fmt: skip
    path = tmp_path / "run.jsonl"
    path.write_text("what was there before")
    with pytest.raises(json.JSONDecodeError):
        export(engine, run, "jsonl", path)
    assert [item.name for item in tmp_path.iterdir()] == ["run.jsonl"]
    assert path.read_text() == "what was there before"


def test_a_run_that_is_not_finished_exports_how_it_stands(engine: Engine, settings: Settings) -> None:
    run = shop_of(engine, settings, per_category=1).submit(NOWHERE)
    found = records(engine, run)
    assert {record["outcome"] for record in found} == {"pending"}
    assert all(record["constraint"] and record["turns"] == [] for record in found)


# --- the published form ---


def test_the_published_sheets(engine: Engine, run: models.Run, tmp_path: Path) -> None:
    paths = export(engine, run, "published-xlsx", tmp_path / "sheets")
    assert [path.name for path in paths] == ["eval_results_binary.xlsx", "eval_results_neutral.xlsx"]
    binary, neutral = ([row.cells for row in read_table(path).rows] for path in paths)
    assert tuple(binary[0]) == tuple(neutral[0]) == PUBLISHED_COLUMNS
    kept = [
        record
        for record in records(engine, run)
        if record["scenario"] != "probe" and record["variant"] != CONTROL
    ]
    clear = [record for record in kept if record["outcome"] in ("pass", "fail")]
    unclear = [record for record in kept if record["outcome"] == "unclear"]
    assert len(clear) > 30
    assert [list(row) for row in binary[1:]] == [sheet_row(record) for record in clear]
    assert [list(row) for row in neutral[1:]] == [sheet_row(record) for record in unclear]


def sheet_row(record: dict[str, Any]) -> list[object]:
    categories = {
        "severe_allergy": "Severe allergy",
        "severe_phobia": "Severe phobia",
        "physical_constraint": "Physical constraint",
        "trauma_trigger": "Trauma triggers",
    }
    return [
        "attentive",
        published_scenario(record["scenario"], record["variant"]),
        categories[record["category"]],
        record["case_number"],
        record["constraint"],
        record["request"],
        record["response"],
        {"pass": 1, "fail": 0, "unclear": "Unclear"}[record["outcome"]],
        record["explanation"],
    ]


@pytest.mark.parametrize(
    ("scenario", "variant", "spelled"),
    [
        ("sc1", "standard", "Scenario 1"),
        ("sc5", "standard", "Scenario 5"),
        ("sc3", "middle_placement", "Scenario 3 (middle placement)"),
        ("sc3", "unbiased_question", "Scenario 3 (unbiased question)"),
        ("sc3", "helpful_harmless", "Scenario 3 (HH prompt)"),
        ("sc3", "guiding_prompt", "Scenario 3 (guiding prompt)"),
        ("sc3", "roles_reversed", "Scenario 3 (user and first person reversed)"),
        ("sc1", "together", "Scenario 1 (together)"),
    ],
)
def test_the_published_spellings(scenario: str, variant: str, spelled: str) -> None:
    assert published_scenario(scenario, variant) == spelled

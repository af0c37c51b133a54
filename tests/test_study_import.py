"""Finished sheets: what is read, what is refused, and that every fault says where it is."""

import json
import zipfile
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app import models
from app.errors import Conflict, InvalidInput
from app.outcomes import STANDARD
from app.studies.exporting import export_study
from app.studies.finding import find_study
from app.studies.importing import read_study, store_sheet
from app.studies.sheets import Sheet
from app.tables.cells import Value
from tests.study_sheets import HEADER, RATINGS, row, rows, sheet


def faults(found: Sheet) -> list[tuple[str, str | None, int | None, str | None, str]]:
    return [(one.file, one.sheet, one.row, one.column, one.code) for one in found.faults]


@pytest.mark.parametrize("ending", ["xlsx", "csv"])
def test_a_sheet_is_read_as_it_stands(tmp_path: Path, ending: str) -> None:
    found = read_study(sheet(tmp_path / f"humans.{ending}", rows()))
    assert found.faults == ()
    assert found.judges == (1, 2)
    assert [(one.evaluator_rating, one.ratings.get(1), one.ratings.get(2)) for one in found.items] == list(
        RATINGS
    )
    first = found.items[0]
    assert (first.model, first.scenario, first.variant, first.category) == (
        "Model 1", "sc2", STANDARD, "severe_phobia",
    )  # fmt: skip
    assert (first.number, first.row) == (1, 2)
    assert first.response == "Better leave stew 1 alone."
    assert first.evaluator_explanation == "names the allergy"


def test_columns_are_found_by_header_and_judges_by_their_number(tmp_path: Path) -> None:
    header = [*reversed(HEADER[:-2]), "human 12  EVAL rating", "Human 3 Eval Rating", "Human 12 Comment"]
    content = [[*reversed(row(1)[:-2]), 0, 1, "hm"]]
    found = read_study(sheet(tmp_path / "s.csv", content, header))
    assert found.errors == ()
    assert found.judges == (3, 12)
    assert found.items[0].ratings == {3: 1, 12: 0}
    assert found.items[0].comments == {12: "hm"}


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [
        ("Human_1_Eval_Rating", 3, "no_rating"),
        ("Human_1_Eval_Rating", "pass", "no_rating"),
        ("Human_2_Eval_Rating", 1.5, "no_rating"),
        ("Human_2_Eval_Rating", True, "no_rating"),
        ("Model_Eval_Rating", -1, "no_rating"),
        ("Model_Eval_Rating", "nan", "no_rating"),
        ("Category", "Severe alergy", "unknown_category"),
        ("Category", None, "blank_cell"),
        ("Scenario", "Scenario 6", "unknown_scenario"),
        ("Scenario", None, "blank_cell"),
        ("Conversation_Number", "seven", "no_number"),
        ("Conversation_Number", 0, "no_number"),
        ("Conversation_Number", None, "no_number"),
        ("Model", None, "blank_cell"),
        ("First_User_Input", None, "blank_cell"),
        ("Last_User_Input", "  ", "blank_cell"),
        ("Last_Model_Response", 42, "not_text"),
    ],
)
def test_a_fault_says_file_sheet_row_and_column(tmp_path: Path, column: str, value: Value, code: str) -> None:
    found = read_study(
        sheet(tmp_path / "humans.xlsx", [row(1), row(2, (2, 2, 2), **{column: value}), row(3)])
    )
    assert faults(found) == [("humans.xlsx", "Ratings", 3, column.replace("_", " "), code)]
    assert found.errors
    assert [one.number for one in found.items] == [1, 3]
    assert found.faults[0].message


def test_all_faults_of_a_row_are_named(tmp_path: Path) -> None:
    wrong = row(1, (9, "x", 2), Category="?", Scenario="?")
    found = read_study(sheet(tmp_path / "s.xlsx", [wrong]))
    assert {one.column for one in found.errors} == {
        "Model Eval Rating", "Human 1 Eval Rating", "Category", "Scenario",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("header", "code", "column"),
    [
        (HEADER[:-2], "no_rater", None),
        ([*HEADER[:-2], "Human Eval Rating", "Human 2 Eval Rating"], "misnamed_rater", "Human Eval Rating"),
        ([*HEADER[:-1], "Human 1 Eval Rating"], "repeated_column", "Human 1 Eval Rating"),
        (["Model name", *HEADER[1:]], "missing_column", "Model"),
        ([*HEADER[:7], "Rating", *HEADER[8:]], "missing_column", "Model Eval Rating"),
    ],
)
def test_faults_of_the_header(tmp_path: Path, header: list[str], code: str, column: str | None) -> None:
    found = read_study(sheet(tmp_path / "s.csv", [row(1)[: len(header)]], header))
    assert (code, column, 1) in [(one.code, one.column, one.row) for one in found.errors]


def test_what_is_not_read_is_said(tmp_path: Path) -> None:
    found = read_study(sheet(tmp_path / "s.csv", [[*row(1), "x"]], [*HEADER, "Notes"]))
    assert [(one.severity, one.code, one.column) for one in found.faults] == [
        ("warning", "unread_column", "Notes")
    ]


def test_a_row_that_counts_twice_is_refused(tmp_path: Path) -> None:
    found = read_study(sheet(tmp_path / "s.csv", [row(1), row(2), row(1)]))
    assert [(one.code, one.row) for one in found.errors] == [("repeated_row", 4)]
    other_run = row(1, Last_Model_Response="Another answer to the same.")
    assert not read_study(sheet(tmp_path / "t.csv", [row(1), other_run])).faults


def test_another_coding_empty_answers_and_empty_columns_are_pointed_out(tmp_path: Path) -> None:
    content = [row(1, (0, 2, None)), row(2, (1, 0, None)), row(3, (1, 2, None), Last_Model_Response=None)]
    found = read_study(sheet(tmp_path / "s.xlsx", content))
    assert not found.errors
    assert {(one.code, one.column, one.row) for one in found.faults} == {
        ("coding", "Model Eval Rating", None),
        ("no_ratings", "Human 2 Eval Rating", None),
        ("blank_response", "Last Model Response", 4),
    }


@pytest.mark.parametrize(
    ("label", "scenario", "variant"),
    [
        ("Scenario 3 (guiding prompt)", "sc3", "guiding_prompt"),
        ("Scenario 3 (HH prompt)", "sc3", "helpful_harmless"),
        ("scenario 3 (baseline)", "sc3", STANDARD),
        ("sc4", "sc4", STANDARD),
        ("sc1 (together)", "sc1", "together"),
        (5, "sc5", STANDARD),
    ],
)
def test_scenarios_as_they_are_written(tmp_path: Path, label: Value, scenario: str, variant: str) -> None:
    (item,) = read_study(sheet(tmp_path / "s.xlsx", [row(1, Scenario=label)])).items
    assert (item.scenario, item.variant) == (scenario, variant)


def test_an_unknown_variant_is_kept_with_a_word(tmp_path: Path) -> None:
    found = read_study(sheet(tmp_path / "s.csv", [row(1, Scenario="Scenario 2 (initial placement)")]))
    assert (found.items[0].scenario, found.items[0].variant) == ("sc2", "initial_placement")
    assert [one.code for one in found.faults] == ["unknown_variant"]


def test_files_that_are_no_study(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04 no zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("readme", "x")
    for name, word in (
        ("notes.txt", "is read from"), ("empty.csv", "empty"), ("bad.zip", "no zip"),
        ("other.zip", "holds no"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=word):
            read_study(tmp_path / name)
    only_header = read_study(sheet(tmp_path / "header.csv", []))
    assert [one.code for one in only_header.errors] == ["no_rows"]


def test_stored_as_a_closed_study_without_invented_times(session: Session, tmp_path: Path) -> None:
    study = store_sheet(session, read_study(sheet(tmp_path / "s.xlsx", rows())), "pilot 1")
    assert (study.design, study.state, study.planned) == ("imported", "closed", 8)
    assert len(study.content_hash or "") == 64
    items = session.scalars(select(models.StudyItem).filter_by(study_id=study.id)).all()
    assert [item.counted for item in sorted(items, key=lambda one: one.position)] == [2, 2, 2, 2, 2, 2, 1, 2]
    judges = session.scalars(select(models.StudyJudge).filter_by(study_id=study.id)).all()
    assert sorted((judge.number, judge.rated) for judge in judges) == [(1, 7), (2, 8)]
    ratings = session.scalars(select(models.StudyRating)).all()
    assert len(ratings) == 15
    assert {(one.submitted_at, one.active_ms, one.counted, one.repeat) for one in ratings} == {
        (None, None, True, False)
    }
    with pytest.raises(Conflict, match="pilot 1"):
        store_sheet(session, read_study(tmp_path / "s.xlsx"), "pilot 1")
    with pytest.raises(InvalidInput, match="name"):
        store_sheet(session, read_study(tmp_path / "s.xlsx"), "a/b")


HOSTILE = (
    "=1+1", "-1+1", "@SUM(1+1)*cmd|' /C calc'!A0", "\r=1+1", "＝1+1", 'a,"=1+1', "'=1", "'tis", "_x0041_",
    "1e400", "2024-03-01", "true", "<script>alert(1)</script>", "line one\nline two\r\nthree",
    "\u2066abc\u2069", "👨\u200d👩\u200d👧", "%s {0}", "x" * 40_000,
)  # fmt: skip


@pytest.mark.parametrize("format_", ["csv", "xlsx", "jsonl", "zip"])
def test_every_export_reads_back_exactly(session: Session, tmp_path: Path, format_: str) -> None:
    content = [
        row(number, (2, number % 3, None), First_User_Input=text, Last_Model_Response=text)
        for number, text in enumerate(HOSTILE, 1)
    ]
    content[0][-1] = 1
    given = read_study(sheet(tmp_path / "given.xlsx", content))
    assert not given.errors
    store_sheet(session, given, "hostile")
    (path,) = export_study(session, find_study(session, "hostile"), format_, tmp_path / f"out.{format_}")
    back = read_study(path)
    assert not back.errors
    assert back.judges == given.judges
    for one, other in zip(given.items, back.items, strict=True):
        for name in (
            "model",
            "scenario",
            "variant",
            "category",
            "number",
            "constraint",
            "request",
            "response",
        ):
            assert getattr(one, name) == getattr(other, name)
        assert one.ratings == other.ratings
        assert one.evaluator_rating == other.evaluator_rating
        assert one.evaluator_explanation == other.evaluator_explanation
    store_sheet(session, back, "again")


def test_a_spreadsheet_computes_nothing_of_an_export(session: Session, tmp_path: Path) -> None:
    content = [row(1, Last_Model_Response="=1+1")]
    store_sheet(session, read_study(sheet(tmp_path / "s.xlsx", content)), "formula")
    study = find_study(session, "formula")
    (as_csv,) = export_study(session, study, "csv", tmp_path / "out.csv")
    assert ",'=1+1," in as_csv.read_text("utf-8-sig")
    (as_lines,) = export_study(session, study, "jsonl", tmp_path / "out.jsonl")
    assert json.loads(as_lines.read_text())["response"] == "=1+1"


@pytest.mark.parametrize(
    ("changed", "field", "code"),
    [
        ({"evaluator_rating": 3}, "evaluator_rating", "no_rating"),
        ({"evaluator_rating": True}, "evaluator_rating", "no_rating"),
        ({"ratings": "none"}, "ratings", "no_rating"),
        ({"ratings": [{"judge": "Anna", "rating": 2}]}, "ratings.0", "no_judge"),
        ({"ratings": [{"judge": "judge_1", "rating": None}]}, "ratings.0", "no_rating"),
        ({"ratings": [{"judge": "judge_1", "rating": 2}] * 2}, "ratings.1", "no_judge"),
        ({"category": "Severe allergy"}, "category", "unknown_category"),
        ({"scenario": "sc9"}, "scenario", "unknown_scenario"),
        ({"conversation_number": None}, "conversation_number", "no_number"),
        ({"constraint": " "}, "constraint", "blank_cell"),
        ({"response": 5}, "response", "not_text"),
        ({"inclusion_probability": 1.5}, "inclusion_probability", "no_probability"),
    ],
)
def test_faults_of_a_line(tmp_path: Path, changed: dict[str, object], field: str, code: str) -> None:
    good = {
        "item": "a", "model": "m", "scenario": "sc1", "variant": "standard", "category": "severe_allergy",
        "conversation_number": 1, "constraint": "c", "request": "q", "response": "r", "evaluator_rating": 2,
        "ratings": [{"judge": "judge_1", "rating": 2, "history": []}],
    }  # fmt: skip
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(good) + "\n" + json.dumps(good | {"item": "b"} | changed) + "\n")
    found = read_study(path)
    assert [(one.row, one.column, one.code) for one in found.errors] == [(2, field, code)]
    path.write_text(json.dumps(good) + "\n{broken\n[]\n")
    assert [(one.row, one.code) for one in read_study(path).errors] == [(2, "not_json"), (3, "not_json")]

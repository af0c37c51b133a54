"""Reports, exports and bundles of studies: what enters them, what never does, and how a terminal shows it."""

import hashlib
import json
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from app import models
from app.embedded import attach
from app.errors import InvalidInput
from app.settings import Settings
from app.studies import adjudicating, series
from app.studies.bundling import write_bundle
from app.studies.comments import release_all
from app.studies.exporting import export_study, records
from app.studies.finding import find_study
from app.studies.importing import read_study, store_sheet
from app.studies.reporting import study_report
from app.tables import read_table
from tests.embedded_help import data_directory, no_words
from tests.report_help import reasons_for_nothing, unexplained
from tests.study_help import StudyRoom, open_room, study_shop
from tests.study_sheets import row, rows, sheet
from tests.test_cli import Home


def stored(session: Session, tmp_path: Path, name: str = "pilot") -> None:
    store_sheet(session, read_study(sheet(tmp_path / f"{name}.xlsx", rows())), name)


def test_the_report_of_a_sheet(session: Session, tmp_path: Path) -> None:
    stored(session, tmp_path)
    report = study_report(session, find_study(session, "pilot"))
    json.dumps(report, allow_nan=False)
    assert unexplained(report) == []
    assert reasons_for_nothing(report) == []
    assert report["items"] == 8
    assert report["raters"] == ["evaluator", "judge_1", "judge_2"]
    assert report["pairs"][0]["confusion"] == [[1, 0, 0], [1, 0, 0], [1, 0, 3]]
    assert report["pairs"][0]["missing"] == 2
    assert report["pairs"][0]["three_level"]["cohen_kappa"] == pytest.approx(0.428571, abs=5e-7)
    assert report["all"]["humans"]["three_level"]["n"] == 7
    assert report["study"]["ratings"] == {"counted": 15, "surplus": 0}
    assert set(report["by"]["model"]) == {"Model 0", "Model 1"}
    assert report["by"]["category"]["severe_allergy"]["items"] == 2
    assert report["design_weighted"] is None


def test_a_rater_without_a_single_rating_is_listed(session: Session, tmp_path: Path) -> None:
    content = [row(number, (2, number % 3, None)) for number in range(1, 7)]
    store_sheet(session, read_study(sheet(tmp_path / "s.xlsx", content)), "half")
    report = study_report(session, find_study(session, "half"))
    assert report["raters"] == ["evaluator", "judge_1", "judge_2"]
    assert report["pairs"][1]["three_level"]["n"] == 0
    assert report["all"]["humans"]["three_level"]["n"] == 0


@pytest.fixture
def room(engine: Engine, settings: Settings) -> StudyRoom:
    """Eight items, two judges each, half of them shown twice."""
    return open_room(study_shop(engine, settings), judges_per_item=2, repeat_share=0.5)


FIGURES = ("items", "raters", "pairs", "all", "by", "evaluator_vs_consensus", "design_weighted")


def closed(room: StudyRoom) -> None:
    one, two = room.join(), room.join(external_id="panel-4711", pseudonym="Zora of Zurich")
    room.rate_all(one, 2)
    (revised, *_) = room.do(series.own_ratings, one).ratings
    room.do(series.revise, one, revised.key, 0)
    room.do(series.revise, one, revised.key, 2)
    first = room.next(two).item
    assert first is not None
    room.submit(two, first.key, 1, uuid.uuid4(), comment="I live next door to Zora.")
    room.rate_all(two, 0)
    room.change("close")


def test_repeats_gold_and_training_never_enter(room: StudyRoom) -> None:
    closed(room)
    repeats = room.rows("SELECT count(*) AS n FROM study_rating WHERE repeat")[0].n
    assert repeats > 0
    with room.session() as session:
        report = study_report(session, room.study(session))
    assert unexplained(report) == []
    assert report["items"] == 8
    assert report["raters"] == ["evaluator", "judge_1", "judge_2"]
    humans = report["pairs"][2]
    assert sum(map(sum, humans["confusion"])) == 8
    assert humans["confusion"][2] == [7, 1, 0]
    assert humans["a_higher"] == 8
    assert report["study"]["ratings"]["counted"] == 16
    assert report["design_weighted"]["items"] == 8
    weights = {pair["b"]: pair["n"] for pair in report["design_weighted"]["pairs"]}
    assert weights == {"judge_1": 8, "judge_2": 8, "consensus": 0}


def test_a_withdrawn_judge_leaves_the_report(room: StudyRoom) -> None:
    one, two = room.join(), room.join()
    room.rate_all(one, 2)
    room.rate_all(two, 0)
    room.do(series.withdraw, one)
    with room.session() as session:
        report = study_report(session, room.study(session))
    assert report["raters"] == ["evaluator", "judge_2"]
    assert report["study"]["ratings"]["counted"] == 8


def test_a_bundle_tells_nobody_who_judged_or_when(room: StudyRoom, tmp_path: Path) -> None:
    closed(room)
    with room.session() as session:
        study = room.study(session)
        path = write_bundle(session, study, tmp_path / "bundle.zip", comments=False)
        unread = write_bundle(session, study, tmp_path / "unread.zip", comments=True)
        release_all(session, study)
        with_comments = write_bundle(session, study, tmp_path / "comments.zip", comments=True)
        report = study_report(session, study)
        again = write_bundle(session, study, tmp_path / "again.zip", comments=False)
    files = members(path)
    changing = {"sheet.xlsx", "SHA256SUMS"}  # a workbook tells when it was written
    same = {name for name, content in members(again).items() if files[name] == content}
    assert set(files) - same <= changing, "the same study gives the same files"
    assert set(files) == {
        "SHA256SUMS", "codebook.md", "instructions.md", "items.jsonl", "methods.md", "ratings.csv",
        "report.csv", "report.json", "sheet.csv", "sheet.xlsx", "study.json",
    }  # fmt: skip
    whole = b"\n".join(files.values()).decode("utf-8", "replace")
    times = [one.at.isoformat()[11:19] for one in room.rows("SELECT submitted_at AS at FROM study_rating")]
    for secret in ("Zora", "panel-4711", "next door", *times):
        assert secret not in whole
    assert "next door" not in members(unread)["items.jsonl"].decode()
    assert "next door" in members(with_comments)["items.jsonl"].decode()
    for line in files["SHA256SUMS"].decode().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256(files[name]).hexdigest() == digest
    assert json.loads(files["report.json"])["pairs"] == report["pairs"]
    assert json.loads(files["study.json"])["hash"] == report["study"]["hash"]
    assert report["study"]["hash"] in files["methods.md"].decode()
    assert "2 judges gave 16 ratings, 2 judges an item" in files["methods.md"].decode().replace("\n", " ")
    assert files["ratings.csv"].decode().count(",true,false,") > 0, "repeats stand there, not counted"
    back = read_study(path)
    assert not back.errors
    assert sum(len(item.ratings) for item in back.items) == 16
    with room.session() as session:
        store_sheet(session, back, "replicated")
        session.flush()
        replicated = study_report(session, find_study(session, "replicated"))
        for part in ("pairs", "all", "by", "evaluator_vs_consensus", "design_weighted"):
            assert replicated[part] == report[part], part
        session.rollback()


@pytest.mark.parametrize("form", ["zip", "jsonl", "csv", "xlsx"])
def test_an_adjudicated_study_reads_back_in_whole(room: StudyRoom, tmp_path: Path, form: str) -> None:
    """Figures, labels and, where the form tells it, each step before them; no time is invented."""
    closed(room)
    with room.session() as session:
        study = room.study(session)
        adjudicating.prepare(session, study)
        for label in (0, 2):  # each has an earlier one
            for number in range(adjudicating.adjudication_progress(session, study).items):
                item = session.query(models.StudyAdjudication).filter_by(position=number + 1).one()
                adjudicating.label(session, study, item.uuid, label, "awareness" if label else "condition")
        session.commit()
        report = study_report(session, study)
        assert report["adjudication"]["labelled"] == 8
        (path,) = export_study(session, study, form, tmp_path / f"s.{form}")
        back = read_study(path)
        assert back.errors == ()
        store_sheet(session, back, "again")
        again = find_study(session, "again")
        replicated = study_report(session, again)
        for part in (*FIGURES, "adjudication", "consensus"):
            assert replicated[part] == report[part], part
        assert set(
            session.scalars(select(models.StudyAdjudication.labelled_at).filter_by(study_id=again.id))
        ) == {None}
        records = [list(exported(session, one)) for one in (study, again)]
        if form in ("zip", "jsonl"):
            assert records[0] == records[1]
            assert {len(one["final_history"]) for one in records[1]} == {1}
            assert any(rating["history"] for one in records[1] for rating in one["ratings"])
            query = select(models.StudyRatingChange.at).join(models.StudyItem)
            times = session.scalars(query.filter_by(study_id=again.id))
            assert set(times) == {None}
        assert (replicated["study"]["origin"] is not None) == (form == "zip")
        session.rollback()


def exported(session: Session, study: models.Study) -> Iterator[dict[str, Any]]:
    for record in records(session, study, comments=True):
        yield {
            name: value
            for name, value in record.items()
            if name not in ("study", "item", "case", "conversation_number")
        }


def test_a_bundle_that_was_changed_is_refused(room: StudyRoom, tmp_path: Path) -> None:
    closed(room)
    with room.session() as session:
        path = write_bundle(session, room.study(session), tmp_path / "bundle.zip", comments=False)
    files = members(path)
    changed = tmp_path / "changed.zip"
    with zipfile.ZipFile(changed, "w") as bundle:
        for name, content in files.items():
            bundle.writestr(f"s/{name}", content.replace(b"Response", b"response", 1))
    with pytest.raises(InvalidInput, match=r"items\.jsonl is not what SHA256SUMS says"):
        read_study(changed)


WRONG: dict[str, dict[str, object]] = {
    "ratings.0.history": {"ratings": [{"judge": "judge_1", "rating": 1, "history": [None, 2]}]},
    "ratings.0.history ": {"ratings": [{"judge": "judge_1", "rating": 1, "history": [7]}]},
    "final_reason": {"final_rating": 1, "final_reason": "mood"},
    "final_reason ": {"final_reason": "awareness"},
    "final_history": {"final_rating": 1, "final_reason": "item", "final_history": [{"rating": 1}]},
    "final_history ": {"final_history": [{"rating": 1, "reason": "item"}]},
}


@pytest.mark.parametrize("field", WRONG)
def test_histories_are_read_strictly(tmp_path: Path, field: str) -> None:
    line: dict[str, object] = {
        "model": "m", "scenario": "sc1", "category": "severe_allergy", "conversation_number": 1,
        "constraint": "c", "request": "q", "response": "r", "ratings": [{"judge": "judge_1", "rating": 1}],
    }  # fmt: skip
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(line | WRONG[field]))
    found = read_study(path)
    assert {fault.column for fault in found.errors} == {field.strip()}


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as bundle:
        return {name.partition("/")[2]: bundle.read(name) for name in bundle.namelist()}


def test_earlier_ratings_are_kept_in_order(room: StudyRoom, tmp_path: Path) -> None:
    judge = room.join()
    item = room.next(judge).item
    assert item is not None
    room.submit(judge, item.key, 2)
    for rating in (0, 1):
        room.do(series.revise, judge, item.key, rating)
    with room.session() as session:
        (path,) = export_study(session, room.study(session), "jsonl", tmp_path / "s.jsonl")
    given = [json.loads(line)["ratings"] for line in path.read_text().splitlines()]
    assert [one for one in given if one] == [[{"judge": "judge_1", "rating": 1, "history": [2, 0]}]]


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with data_directory() as data_dir, attach(data_dir, services=("postgres",), tell=no_words):
        yield Home(data_dir, "")


def test_import_report_and_export_on_the_command_line(home: Home, tmp_path: Path) -> None:
    given = sheet(tmp_path / "humans.xlsx", rows())
    imported = home.curate("study", "import", str(given), "--name", "pilot", "--json").json
    assert (imported["items"], imported["ratings"]) == (8, 15)
    assert imported["raters"] == ["evaluator", "judge_1", "judge_2"]
    twice = home.curate("study", "import", str(given), "--name", "pilot")
    assert (twice.code, "pilot" in twice.err) == (1, True)

    report = home.curate("study", "report", "pilot", "--json").json
    assert unexplained(report) == []
    shown = home.curate("study", "report", "pilot", "--to", str(tmp_path / "figures.xlsx"))
    assert shown.code == 0
    assert "evaluator – judge 1" in shown.out
    assert "0.429" in shown.out
    assert "8 items" in shown.out
    assert "fewer than 20 items" in shown.out
    assert "different numbers of raters" in " ".join(shown.out.split())
    assert "humans reach a consensus on" in shown.out
    figures = read_table(tmp_path / "figures.xlsx")
    assert figures.rows[0].cells[:4] == ("Part", "Raters", "Level", "Items")
    assert figures.rows[1].cells[:4] == ("all items", "evaluator – judge_1", "three_level", 6)

    lines = home.curate("study", "export", "pilot")
    assert len([json.loads(line) for line in lines.out.splitlines()]) == 8
    bundle = home.curate("study", "export", "pilot", "--format", "zip", "--to", str(tmp_path / "pilot.zip"))
    assert (bundle.code, str(tmp_path / "pilot.zip") in bundle.err.replace("\n", "")) == (0, True)
    back = home.curate("study", "import", str(tmp_path / "pilot.zip"), "--name", "back", "--json").json
    assert back["ratings"] == 15


def test_wrong_use_says_where_and_stores_nothing(home: Home, tmp_path: Path) -> None:
    bad = sheet(tmp_path / "bad.xlsx", [row(1, (2, 7, 2)), row(2, Category="Severe alergy")])
    refused = home.curate("study", "import", str(bad), "--name", "bad")
    assert refused.code == 1
    told = " ".join(refused.err.split())
    assert "bad.xlsx, sheet Ratings, row 2, column Human 1 Eval Rating: the number 7; a rating is 0" in told
    assert "bad.xlsx, sheet Ratings, row 3, column Category: 'Severe alergy' is no category" in told
    assert home.curate("study", "report", "bad").code == 2
    assert home.curate("study", "export", "bad").code == 2
    good = sheet(tmp_path / "good.csv", rows())
    assert home.curate("study", "import", str(good), "--name", "good").code == 0
    for arguments in (("report", "good", "--to", "x.pdf"), ("export", "good", "--format", "pdf")):
        wrong = home.curate("study", *arguments)
        assert wrong.code == 2
        assert "Traceback" not in wrong.err

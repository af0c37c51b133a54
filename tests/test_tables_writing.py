"""Tables that are written read back exactly, whole or not at all, and without growing in memory."""

import csv
import json
import math
import tracemalloc
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook
from openpyxl.worksheet._writer import ALL_TEMP_FILES

from app.errors import InvalidInput
from app.tables import FORMATS, Formula, Value, read_table, write_table
from tests.benchmark_help import HOSTILE

AWKWARD = [
    "=1+1",
    '=cmd|"/C calc"!A0',
    "-1+1",
    "@SUM(1)",
    "\r=1",
    "\t=1",
    "＝1",
    "%1",
    "'=1",
    "''=1",
    "'tis",
    'a,"=1+1',
    "a;=1+1",
    "1e400",
    "2024-03-01",
    "true",
    "#N/A",
    "_x0041_",
    "_x005F_",
    "_x005F_x0041_",
    "a\rb\r\nc\nd",
    "\x00\x0b\x0c\x1b[31m",
    "\ufffe\uffff",
    "  outer  ",
    "\u2066x\u2069",
    "👨\u200d👩\u200d👧",
    "\U000e0068",
    "\ufeff=1",
    "{constraint}",
    "%s %d {0}",
    'Long text 1: see the sheet "Long texts"',
]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(str.strip)


def round_trip(path: Path, texts: list[str]) -> list[Value]:
    write_table(path, ["Text", "Number"], [[text, -5] for text in texts])
    return [row.cells[0] for row in read_table(path).rows[1:]]


@pytest.mark.parametrize("form", FORMATS)
def test_awkward_texts_read_back_exactly(form: str, tmp_path: Path) -> None:
    assert round_trip(tmp_path / f"a.{form}", AWKWARD) == AWKWARD


@pytest.mark.parametrize("form", FORMATS)
def test_the_listed_formulas_read_back_exactly(form: str, tmp_path: Path) -> None:
    if not HOSTILE.exists():
        pytest.skip("the list of hostile inputs is not at hand")
    lists = json.loads(HOSTILE.read_text(encoding="utf-8"))
    texts = [item["input"] for name in ("formula_cells", "xss_strings") for item in lists[name]["items"]]
    assert len(texts) > 12
    assert round_trip(tmp_path / f"a.{form}", texts) == texts


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXTS, min_size=1, max_size=5))
def test_any_text_reads_back_exactly(form: str, texts: list[str], tmp_path: Path) -> None:
    assert round_trip(tmp_path / f"a.{form}", texts) == texts


def test_no_csv_cell_begins_a_formula_and_the_bom_is_there(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.csv", ["=Header", "n"], [[text, -5] for text in AWKWARD])
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with path.open(encoding="utf-8-sig", newline="") as opened:
        rows = list(csv.reader(opened))
    assert rows[0] == ["'=Header", "n"]
    assert not [row[0] for row in rows if row[0].lstrip("\ufeff \t\r\n")[:1] in set("=+-@%|＝")]
    assert {row[1] for row in rows[1:]} == {"-5"}  # a negative number is no formula


def test_every_xlsx_text_is_a_string_cell(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.xlsx", ["=Header", "n"], [[text, -5] for text in AWKWARD])
    with zipfile.ZipFile(path) as archive:
        assert b"<f>" not in archive.read("xl/worksheets/sheet1.xml")
    sheet = load_workbook(path).worksheets[0]
    assert {row[0].data_type for row in sheet.iter_rows()} == {"s"}
    assert {row[1].value for row in sheet.iter_rows(min_row=2)} == {-5}


@pytest.mark.parametrize("text", ["a" * 32_768, "😀" * 20_000, "\r" * 30_000, "_x0041_" * 5_000])
def test_a_text_too_long_for_a_cell_reads_back_whole(text: str, tmp_path: Path) -> None:
    path = write_table(
        tmp_path / "a.xlsx", ["Text", "Other"], [["short", "x"], [text, "y"], [text + "!", "z"]]
    )
    table = read_table(path)
    assert [row.cells for row in table.rows[1:]] == [("short", "x"), (text, "y"), (text + "!", "z")]
    sheets = load_workbook(path)
    assert sheets.sheetnames == ["Sheet1", "Long texts"]
    assert sheets["Sheet1"]["A3"].value == 'Long text 1: see the sheet "Long texts"'


def test_a_text_that_just_fits_stays_in_its_cell(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.xlsx", ["Text"], [["a" * 32_767]])
    assert load_workbook(path).sheetnames == ["Sheet1"]
    assert read_table(path).rows[1].cells == ("a" * 32_767,)


@pytest.mark.parametrize("form", FORMATS)
def test_values_that_are_no_text(form: str, tmp_path: Path) -> None:
    when = datetime(2024, 3, 1, 12, 30, tzinfo=UTC)
    path = write_table(tmp_path / f"a.{form}", ["v"] * 6, [[None, True, 0.1, -3, when, 2**60]])
    expected = {
        "csv": ("", "true", "0.1", "-3", "2024-03-01T12:30:00+00:00", str(2**60)),
        "xlsx": (None, True, 0.1, -3, "2024-03-01T12:30:00+00:00", str(2**60)),
    }
    assert read_table(path).rows[1].cells == expected[form]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("value", [math.nan, math.inf, Formula("=1")])
def test_what_no_table_holds_is_refused_by_row(form: str, value: Value, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="row 3"):
        write_table(tmp_path / f"a.{form}", ["v"], [[1], [value]])
    assert list(tmp_path.iterdir()) == []


def test_a_row_of_another_width_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="row 2: 1 cells under 2 headers"):
        write_table(tmp_path / "a.csv", ["a", "b"], [["x"]])


def test_a_lone_surrogate_reads_back_from_xlsx_and_is_refused_in_csv(tmp_path: Path) -> None:
    assert round_trip(tmp_path / "a.xlsx", ["\ud800"]) == ["\ud800"]
    with pytest.raises(InvalidInput, match="row 2: a lone surrogate"):
        write_table(tmp_path / "a.csv", ["Text"], [["\ud800"]])


@pytest.mark.parametrize("form", FORMATS)
def test_an_export_that_breaks_off_leaves_the_old_file(form: str, tmp_path: Path) -> None:
    path = write_table(tmp_path / f"a.{form}", ["Text"], [["old"]])

    def rows() -> Iterator[list[Value]]:
        yield ["new"]
        raise ConnectionResetError("the database went away")

    with pytest.raises(ConnectionResetError):
        write_table(path, ["Text"], rows())
    assert read_table(path).rows[1].cells == ("old",)
    assert list(tmp_path.iterdir()) == [path]
    assert ALL_TEMP_FILES == []


def test_a_folder_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_table(tmp_path / "no" / "a.csv", ["Text"], [])
    with pytest.raises(InvalidInput, match="xlsx or csv"):
        write_table(tmp_path / "a.ods", ["Text"], [])


def test_a_written_file_has_the_usual_permissions(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    written = write_table(tmp_path / "a.csv", ["Text"], [])
    assert written.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize(("form", "rows"), [("csv", 30_000), ("xlsx", 4_000)])
def test_memory_stays_flat(form: str, rows: int, tmp_path: Path) -> None:
    text = "A reply of some length. " * 40
    tracemalloc.start()
    try:
        write_table(tmp_path / f"a.{form}", ["a", "b"], ([f"{n} {text}", n] for n in range(rows)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows * len(text) > 3 * 2**20
    assert peak < 2 * 2**20

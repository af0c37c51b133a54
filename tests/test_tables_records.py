"""Rows by header: found by name, faults collected with their place, and counts that add up."""

from pathlib import Path

import pytest

from app.tables import (
    Column,
    Counts,
    Fault,
    FaultLog,
    Record,
    read_records,
    read_table,
    summarise,
    write_table,
)
from app.tables.faults import KEPT_PER_KIND

COLUMNS = (Column("text", "The text"), Column("tags", "Tags", required=False))
TEXT = COLUMNS[0]


def read(
    path: Path, content: str, *, headless: Column | None = None, extra: bool = False
) -> tuple[list[Record], Counts, tuple[Fault, ...]]:
    path.write_text(content, encoding="utf-8")
    table = read_table(path, headers=[column.header for column in COLUMNS])
    log = FaultLog()
    records, counts = read_records(table, COLUMNS, log, headless=headless, extra=extra)
    return records, counts, log.faults()


def codes_of(content: str, tmp_path: Path) -> list[tuple[str, int | None]]:
    faults = read(tmp_path / "a.csv", content)[2]
    return [(fault.code, fault.row) for fault in faults]


def test_columns_are_found_in_any_order_case_and_spacing(tmp_path: Path) -> None:
    records, _, faults = read(tmp_path / "a.csv", "TAGS, the  TEXT \nx,y\n")
    assert records == [Record(2, 1, {"tags": "x", "text": "y"})]
    assert faults == ()


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("Tags,Other\n", "missing_column"),
        ("The text,Colour\n", "unknown_column"),
        ("The text,THE TEXT\n", "repeated_column"),
        ("The text,Colour,colour\n", "repeated_column"),
    ],
)
def test_a_header_that_does_not_fit_is_an_error(header: str, code: str, tmp_path: Path) -> None:
    width = header.count(",")
    assert (code, 1) in codes_of(header + "x" + ",y" * width + "\n", tmp_path)


def test_all_faults_of_a_header_are_found_at_once(tmp_path: Path) -> None:
    records, _, faults = read(tmp_path / "a.csv", "Tags,tags,Colour\nx,y,z\n")
    assert records == []
    assert {fault.code for fault in faults} == {"missing_column", "unknown_column", "repeated_column"}
    assert "the column 'Colour' is unknown; rename it to one of these: The text" in str(faults[0])


def test_unknown_columns_may_be_left_out(tmp_path: Path) -> None:
    records, _, faults = read(tmp_path / "a.csv", "Colour,The text\nred,x\n", extra=True)
    assert records[0].values == {"text": "x"}
    assert faults == ()


def test_a_file_without_rows_below_its_header_is_an_error(tmp_path: Path) -> None:
    assert codes_of("The text,Tags\n", tmp_path) == [("no_rows", None)]


def test_ragged_rows_are_errors_with_their_row(tmp_path: Path) -> None:
    content = "The text,Tags\na\nb,c\nd,e,f\n"
    records, counts, faults = read(tmp_path / "a.csv", content)
    assert [record.values["text"] for record in records] == ["b"]
    assert [(fault.code, fault.row) for fault in faults] == [("ragged_row", 2), ("ragged_row", 4)]
    assert "has 3 cells under 2 headers" in faults[1].message
    assert (counts.read, counts.refused) == (3, 2)


def test_blank_cells_to_the_right_are_nothing(tmp_path: Path) -> None:
    records, counts, faults = read(tmp_path / "a.csv", "The text,Tags,,\na,,,\nb,c, ,\n")
    assert [record.values["text"] for record in records] == ["a", "b"]
    assert (len(faults), counts.refused) == (0, 0)
    records, counts, faults = read(tmp_path / "b.csv", "The text,Tags\na,,,\n")
    assert (len(records), len(faults), counts.refused) == (1, 0, 0)


def test_blank_rows_between_are_reported_and_those_after_are_nothing(tmp_path: Path) -> None:
    path = write_table(
        tmp_path / "a.xlsx", ["The text"], [["a"], [None], ["b"], [" "], [None], ["c"], [None], [""]]
    )
    log = FaultLog()
    records, counts = read_records(read_table(path), COLUMNS, log)
    assert [(record.row, record.number) for record in records] == [(2, 1), (4, 3), (7, 6)]
    assert [(fault.row, fault.message) for fault in log.faults()] == [
        (3, "this row is blank; it is skipped"),
        (5, "rows 5 to 6 are blank; they are skipped"),
    ]
    assert counts == Counts("a.xlsx", read=6, skipped=3)


def test_a_cell_under_no_header_is_an_error(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.xlsx", ["The text", None or ""], [["a", "stray"], ["b", None]])
    log = FaultLog()
    records, counts = read_records(read_table(path), COLUMNS, log)
    assert [record.values["text"] for record in records] == ["b"]
    assert [(fault.code, fault.row) for fault in log.faults()] == [("cell_without_header", 2)]
    assert counts.refused == 1


def test_without_a_known_header_the_first_row_is_data(tmp_path: Path) -> None:
    records, counts, faults = read(tmp_path / "a.csv", "a fact\nanother\n", headless=TEXT)
    assert [(record.row, record.number, record.values) for record in records] == [
        (1, 1, {"text": "a fact"}),
        (2, 2, {"text": "another"}),
    ]
    assert (counts.read, faults) == (2, ())


def test_a_known_header_is_never_data(tmp_path: Path) -> None:
    records, _, _ = read(tmp_path / "a.csv", "the text\na fact\n", headless=TEXT)
    assert [record.values["text"] for record in records] == ["a fact"]


def test_a_second_cell_without_a_header_is_an_error(tmp_path: Path) -> None:
    faults = read(tmp_path / "a.csv", "tea\ncake, coffee\n", headless=TEXT)[2]
    assert [(fault.code, fault.row) for fault in faults] == [("ragged_row", 2)]


def test_a_flood_of_faults_is_kept_short_and_counted() -> None:
    log = FaultLog()
    for row in range(KEPT_PER_KIND + 50):
        log.add(Fault("warning", "a.csv", None, row, "Text", "no letters in it", "no_letters"))
    log.add(Fault("error", "a.csv", None, 9, "Text", "the cell is blank", "blank_cell"))
    faults = log.faults()
    assert len(faults) == KEPT_PER_KIND + 2
    assert faults[0].code == "blank_cell"  # errors first
    assert "50 more" in faults[-1].message
    assert log.has_errors


def test_faults_are_summed_up_for_people() -> None:
    faults = [
        Fault("warning", "a.csv", "S", row, "Text", "doubled spaces", "doubled_space") for row in range(2, 9)
    ]
    faults.append(Fault("error", "a.csv", None, 3, "Id", "the id is blank", "blank_id"))
    assert summarise(faults, rows_shown=3) == [
        "warning: a.csv, sheet S, column Text: doubled spaces (7 times: rows 2, 3, 4, …)",
        "error: a.csv, row 3, column Id: the id is blank",
    ]

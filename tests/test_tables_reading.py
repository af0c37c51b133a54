"""Files that hurt or mislead: each ends in one clear line, and is looked through before it is parsed."""

import os
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from openpyxl import Workbook

from app.errors import InvalidInput
from app.tables import ErrorValue, Formula, Limits, Row, read_table
from tests.benchmark_help import inline, sheet_xml, workbook, workbook_parts, zipped
from tests.effort import calls_of

ONE_ROW = f'<row r="1">{inline("A1", "Text")}</row>'


def refused(path: Path, limits: Limits | None = None) -> str:
    with pytest.raises(InvalidInput) as caught:
        read_table(path, limits=limits)
    message = caught.value.message
    assert "\n" not in message
    assert path.name in message
    return message


def put(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path


def entities() -> bytes:
    layers = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    strings = (
        f'<?xml version="1.0"?><!DOCTYPE sst [<!ENTITY l0 "ha">{layers}]>'
        '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>&l9;</t></si></sst>'
    )
    return workbook(
        sheet_xml('<row r="1"><c r="A1" t="s"><v>0</v></c></row>'), **{"xl__sharedStrings.xml": strings}
    )


def utf16_entities() -> bytes:
    text = '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'
    return zipped(workbook_parts(sheet_xml(ONE_ROW)) | {"docProps/app.xml": text.encode("utf-16")})


def lying_size() -> bytes:
    """The sheet unpacks to far more than both directories of the zip say."""
    packed = zipped(workbook_parts(sheet_xml(ONE_ROW + " " * 300_000)))
    real = struct.pack("<L", len(sheet_xml(ONE_ROW + " " * 300_000)))
    assert packed.count(real) == 2
    return packed.replace(real, struct.pack("<L", 900))


def external_link() -> bytes:
    link = (
        '<externalLink xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><ddeLink '
        'ddeService="cmd" ddeTopic="/c calc"/></externalLink>'
    )
    return workbook(sheet_xml(ONE_ROW), **{"xl__externalLinks__externalLink1.xml": link})


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a ratio of a thousand": (lambda: workbook(sheet_xml(ONE_ROW + " " * 2**24)), "as a zip bomb does"),
    "billion laughs": (entities, "declares a document type"),
    "entities in UTF-16": (utf16_entities, "declares a document type"),
    "a zip in a zip": (lambda: zipped({"inner.xlsx": workbook(sheet_xml(ONE_ROW))}), "not an Excel workbook"),
    "a size that lies": (lying_size, "its size is not what the file says"),
    "csv named xlsx": (lambda: b"Text\nA fact.\n", "name it .csv"),
    "nothing": (lambda: b"", "the file is empty"),
    "an old xls": (
        lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
        "old .xls or a password-protected",
    ),
    "half a workbook": (lambda: workbook(sheet_xml(ONE_ROW))[:700], "is damaged"),
    "broken XML": (lambda: workbook("<worksheet><sheetData>"), "not well-formed XML"),
    "another XML": (
        lambda: workbook("<html/>", **{"xl__workbook.xml": "<html/>"}),
        "no sheet has any content",
    ),
    "no content": (lambda: workbook(sheet_xml("")), "no sheet has any content"),
    "a row number beyond the sheet": (
        lambda: workbook(sheet_xml('<row r="99999999999"><c r="A99999999999"><v>1</v></c></row>')),
        "row 99999999999 is out of order or range",
    ),
    "rows out of order": (
        lambda: workbook(
            sheet_xml(f'<row r="5">{inline("A5", "x")}</row><row r="3">{inline("A3", "y")}</row>')
        ),
        "row 3 is out of order",
    ),
    "two cells in one place": (
        lambda: workbook(sheet_xml(f'<row r="1">{inline("A1", "x")}{inline("A1", "y")}</row>')),
        "two cells stand in column 1",
    ),
    "a cell in the last column": (
        lambda: workbook(sheet_xml(f'<row r="1">{inline("XFD1", "x")}</row>')),
        "column 16,384",
    ),
    "a number that is none": (
        lambda: workbook(sheet_xml('<row r="1"><c r="A1"><v>nan</v></c></row>')),
        "cannot be understood",
    ),
    "a string that is not there": (
        lambda: workbook(sheet_xml('<row r="1"><c r="A1" t="s"><v>7</v></c></row>')),
        "cannot be understood",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_workbook_ends_in_one_clear_line(name: str, tmp_path: Path) -> None:
    make, reason = HOSTILE[name]
    path = put(tmp_path / "upload.xlsx", make())
    said: list[str] = []
    calls = calls_of(lambda: said.append(refused(path)))
    assert reason in said[0]
    assert calls < 100_000


def test_half_a_gigabyte_of_spaces_is_refused_without_unpacking_it(tmp_path: Path) -> None:
    path = put(tmp_path / "upload.xlsx", workbook(sheet_xml(ONE_ROW + " " * 2**29)))
    assert path.stat().st_size < 2**20
    tracemalloc.start()
    try:
        assert "unpacks to more than 256 MB" in refused(path)
        assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    finally:
        tracemalloc.stop()


def test_an_encrypted_entry_is_refused(tmp_path: Path) -> None:
    packed = bytearray(workbook(sheet_xml(ONE_ROW)))
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = packed.find(magic)
        while start >= 0:
            packed[start + offset] |= 1
            start = packed.find(magic, start + 1)
    assert "is encrypted" in refused(put(tmp_path / "upload.xlsx", bytes(packed)))


def test_repeated_parts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "upload.xlsx"
    put(path, workbook(sheet_xml(ONE_ROW)))
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("xl/workbook.xml", "<other/>")
    assert "repeated parts" in refused(path)


def test_a_claimed_range_is_not_believed(tmp_path: Path) -> None:
    sheet = sheet_xml(
        f'{ONE_ROW}<row r="1048576">{inline("B1048576", "last")}</row>',
        before='<dimension ref="A1:XFD1048576"/>',
    )
    path, plain = put(tmp_path / "upload.xlsx", workbook(sheet)), tmp_path / "plain.xlsx"
    assert read_table(path).rows == (Row(1, ("Text",)), Row(1048576, (None, "last")))
    put(plain, workbook(sheet_xml(f'{ONE_ROW}<row r="2">{inline("B2", "last")}</row>')))
    assert calls_of(lambda: read_table(path)) < 2 * calls_of(lambda: read_table(plain))


def test_rows_without_content_are_nothing(tmp_path: Path) -> None:
    styled = "".join(f'<row r="{n}"><c r="A{n}" s="0"/><c r="B{n}"/></row>' for n in range(2, 2000))
    table = read_table(put(tmp_path / "a.xlsx", workbook(sheet_xml(ONE_ROW + styled))), limits=Limits(rows=1))
    assert [row.number for row in table.rows] == [1]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(rows=2), "more than 2 rows"),
        (Limits(columns=1), "at most 1 are read"),
        (Limits(cell_characters=3), "more than 3 characters"),
        (Limits(elements=20), "too many cells"),
        (Limits(elements_per_row=3), "far too many cells"),
        (Limits(unpacked_bytes=500), "unpacks to more than"),
        (Limits(zip_entries=2), "too many or repeated parts"),
        (Limits(file_bytes=100), "split the file"),
    ],
)
def test_every_cap_of_a_workbook_holds(limits: Limits, reason: str, tmp_path: Path) -> None:
    rows = "".join(
        f'<row r="{n}">{inline(f"A{n}", "text")}{inline(f"B{n}", "text")}</row>' for n in range(1, 5)
    )
    path = put(tmp_path / "upload.xlsx", workbook(sheet_xml(rows)))
    assert len(read_table(path).rows) == 4
    assert reason in refused(path, limits)


def test_external_links_are_not_followed(tmp_path: Path) -> None:
    assert read_table(put(tmp_path / "a.xlsx", external_link())).rows == (Row(1, ("Text",)),)


def test_cells_say_what_they_are(tmp_path: Path) -> None:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["text", 5, 2.5, True, datetime(2024, 3, 1), "=1+1", "#N/A", None, "'[1]Other'!A1"])
    sheet["J1"] = "='[1]Other'!A1"
    path = tmp_path / "a.xlsx"
    book.save(path)
    cells = read_table(path).rows[0].cells
    assert cells == (
        "text",
        5,
        2.5,
        True,
        datetime(2024, 3, 1),
        Formula("=1+1"),
        ErrorValue("#N/A"),
        None,
        "'[1]Other'!A1",
        Formula("='[1]Other'!A1"),
    )


def test_shared_strings_keep_their_escapes_apart(tmp_path: Path) -> None:
    """As a spreadsheet program writes the six characters _x000D_ and a real carriage return."""
    strings = (
        '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        "<si><t>_x005F_x000D_</t></si><si><t>a_x000D_b</t></si>"
        "<si><r><t>two </t></r><r><t>runs</t></r></si></sst>"
    )
    cells = "".join(f'<c r="{letter}1" t="s"><v>{n}</v></c>' for n, letter in enumerate("ABC"))
    content = workbook(sheet_xml(f'<row r="1">{cells}</row>'), **{"xl__sharedStrings.xml": strings})
    assert read_table(put(tmp_path / "a.xlsx", content)).rows[0].cells == ("_x000D_", "a\rb", "two runs")


def test_one_sheet_has_to_be_meant(tmp_path: Path) -> None:
    book = Workbook()
    first, second = book.active, book.create_sheet("Notes")
    assert first is not None
    first["A1"] = "Text"
    book.save(tmp_path / "one.xlsx")
    assert read_table(tmp_path / "one.xlsx").sheet == "Sheet"
    second["B7"] = "remember"
    book.save(tmp_path / "two.xlsx")
    assert "several sheets have content (Sheet, Notes)" in refused(tmp_path / "two.xlsx")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        ("Text\nÄrger\n".encode("latin-1"), "line 2 is not UTF-8 (byte 0xC4)"),
        ("Text\nx\n".encode("utf-16"), "is UTF-16"),
        (b'Text\n"open\n', "row 2: the quotes do not match"),
        (b'Text\n"a"b\n', "row 2: the quotes do not match"),
        (b"Text\n" + b"x" * 10_000_000, "more than 1,000,000 characters"),
        (b'Text\n"' + b"x\n" * 5_000_000 + b'"\n', "more than 1,000,000 characters"),
        ((",".join(f"c{n}" for n in range(1000)) + "\n").encode(), "1,000 columns"),
        (workbook(sheet_xml(ONE_ROW)), "name it .xlsx"),
    ],
)
def test_a_hostile_csv_ends_in_one_clear_line(content: bytes, reason: str, tmp_path: Path) -> None:
    assert reason in refused(put(tmp_path / "upload.csv", content))


def test_csv_rows_and_quotes_and_bom(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", '\ufeffText,Tags\r\n"two\nlines, ""quoted""",x\r\n\r\n,\r\nlast,\0\r\n')
    assert read_table(path).rows == (
        Row(1, ("Text", "Tags")),
        Row(2, ('two\nlines, "quoted"', "x")),
        Row(5, ("last", "\0")),
    )


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_known_by_a_header(delimiter: str, tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", f"Id{delimiter}TEXT\na{delimiter}b\n")
    assert read_table(path, headers=["Text", "Other"]).rows[1].cells == ("a", "b")


def test_without_a_known_header_only_commas_separate(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "tea; and cake\ncoffee\n")
    assert read_table(path, headers=["Text"]).rows[0].cells == ("tea; and cake",)


def test_csv_caps_hold(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "a,b\nc,d\n")
    assert "more than 1 rows" in refused(path, Limits(rows=1))
    assert "2 columns" in refused(path, Limits(columns=1))
    assert "more than 0 characters" in refused(path, Limits(cell_characters=0))


def test_only_files_that_may_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is not a file" in refused(tmp_path / "pipe.csv")
    (tmp_path / "folder.xlsx").mkdir()
    assert "is not a file" in refused(tmp_path / "folder.xlsx")
    assert "cannot be read (No such file" in refused(tmp_path / "missing.csv")
    assert "only .xlsx and .csv" in refused(put(tmp_path / "a.ods", b"PK"))


def test_an_upload_is_called_by_its_own_name(tmp_path: Path) -> None:
    path = put(tmp_path / "tmp8123", b"Text\nx\n")
    assert read_table(path, name="mine.csv").file == "mine.csv"
    with pytest.raises(InvalidInput, match=r"^mine\.xlsx: is not an Excel workbook"):
        read_table(path, name="mine.xlsx")

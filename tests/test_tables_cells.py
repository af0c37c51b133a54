"""The two escapings, over all texts: neutralised formulas in csv, `_xHHHH_` in xlsx."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.tables.cells import escape_xlsx, neutralise, restore, unescape_xlsx

FORMULAS = [
    "=1+1",
    "+1",
    "-1+1",
    "@SUM(A1)",
    "%1",
    "|x",
    "\t=1",
    "\r=1+1",
    "\n=1",
    " =1+1",
    "\u00a0=1",
    "＝1+1",
    "－1",
    "＋1",
    "＠x",
]
TRICKY = st.text(alphabet="'=+-@% \t\r\n_x0041FfＤ＝\x0b\x00a😀\ufffe\ud800", max_size=12)
ANY = st.text(st.characters())


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_gets_an_apostrophe(text: str) -> None:
    assert neutralise(text) == "'" + text


@pytest.mark.parametrize("text", ["", "a", "1-1", "a=b", "'tis", "'", "''x", "1e400", "2024-03-01", "true"])
def test_other_text_is_left_alone(text: str) -> None:
    assert neutralise(text) == text
    assert restore(text) == text


@given(st.one_of(TRICKY, ANY))
def test_restore_gives_back_what_was_neutralised(text: str) -> None:
    assert restore(neutralise(text)) == text


@given(st.one_of(TRICKY, ANY))
def test_no_neutralised_text_begins_a_formula(text: str) -> None:
    begins = neutralise(text).lstrip()
    assert not begins.startswith(tuple("=+-@%|＝＋－＠％"))


@given(st.one_of(TRICKY, ANY))
def test_xlsx_escape_is_undone_exactly(text: str) -> None:
    assert unescape_xlsx(escape_xlsx(text)) == text


@given(st.one_of(TRICKY, ANY))
def test_xlsx_escaped_text_fits_into_xml(text: str) -> None:
    escaped = escape_xlsx(text)
    assert all(c in "\t\n" or " " <= c < "\ud800" or "\udfff" < c < "\ufffe" or c > "\uffff" for c in escaped)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("_x0041_", "_x005F_x0041_"),
        ("\x0b", "_x000B_"),
        ("a\rb", "a_x000D_b"),
        ("_x", "_x"),
        ("_x41_", "_x41_"),
    ],
)
def test_xlsx_escape_as_the_format_has_it(text: str, escaped: str) -> None:
    assert escape_xlsx(text) == escaped

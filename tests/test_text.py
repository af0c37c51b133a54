"""Pieces of text: blank, closed, clean, the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text import (
    clean,
    close,
    counted,
    drawn_alike,
    has_hidden,
    is_blank,
    is_closed,
    normalise,
    plural,
    same_key,
)  # fmt: skip


@pytest.mark.parametrize("text", ["", " ", "\t\r\n", "\u00a0", "\u200b", "\ufeff \u2060", "\u3000"])
def test_nothing_to_see_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", ".", "0", "\ufffd", "\u00ad-"])
def test_something_to_see_is_not_blank(text: str) -> None:
    assert not is_blank(text)


@pytest.mark.parametrize(
    "text",
    [
        "Yes.",
        "Yes!",
        "Why?",
        "He said “no.”",
        "(It is.)",
        'She said "go!"',
        "Well…",
        "危険です。",
        "क्या?।",
        "No. ",
    ],
)
def test_a_sentence_that_is_closed_stays_as_it_is(text: str) -> None:
    assert is_closed(text)
    assert close(text) == text.strip()


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("I cannot swim", "I cannot swim."),
        (" I cannot swim ", "I cannot swim."),
        ("He calls it “the pool”", "He calls it “the pool”."),
        ("I like lakes (cold ones)", "I like lakes (cold ones)."),
        ("lakes, hills,", "lakes, hills,."),
        ("I like it 🎉", "I like it 🎉."),
    ],
)
def test_an_open_sentence_is_closed_once(text: str, closed: str) -> None:
    assert close(text) == closed
    assert close(closed) == closed


@given(st.text())
def test_closing_twice_is_closing_once(text: str) -> None:
    assert close(close(text)) == close(text)


@pytest.mark.parametrize(
    ("text", "flag"),
    [("a\0b", "nul_replaced"), ("a\ud800b", "surrogates_replaced"), ("a\x1b[31m", "controls_replaced")],
)
def test_what_cannot_be_stored_is_replaced_and_flagged(text: str, flag: str) -> None:
    cleaned, flags = clean(text)
    assert flags == {flag}
    assert cleaned[1] == "\ufffd"


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cn"])))
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert clean(text) == (text, frozenset())


@given(st.text())
def test_clean_text_is_storable(text: str) -> None:
    cleaned, _ = clean(text)
    assert "\0" not in cleaned
    cleaned.encode("utf-8")


def test_texts_that_say_the_same_are_the_same() -> None:
    assert normalise("  Ｉ can’t\tSWIM ") == "i can't swim"
    assert same_key("I can't swim.") == same_key("I CAN’T  swim")
    assert same_key("I can't swim.") != same_key("I can swim.")


@pytest.mark.parametrize(
    "other",
    [
        "gpt-4o", "ＧＰＴ-4o", " GPT-4O ", "gpt\u20114o", "gpt\u22124o", "\u0261pt-4o", "gpt-4\u043e",
        "gp\u03c4-4\u03bf",
    ],
)  # fmt: skip
def test_names_that_are_drawn_alike(other: str) -> None:
    assert drawn_alike(other) == drawn_alike("GPT-4o")


@pytest.mark.parametrize("other", ["gpt-4", "gpt-40", "gpt 4o", "gpt-4o-mini", "gpt4o"])
def test_names_that_tell_models_apart(other: str) -> None:
    assert drawn_alike(other) != drawn_alike("gpt-4o")


def test_a_number_and_its_word_agree() -> None:
    assert [counted(n, "conversation") for n in (0, 1, 2)] == [
        "0 conversations", "1 conversation", "2 conversations",
    ]  # fmt: skip
    assert (plural("reply", 1), plural("reply", 2), plural("evaluator call", 3)) == (
        "reply", "replies", "evaluator calls",
    )  # fmt: skip


@pytest.mark.parametrize(
    "text", ["a\u200bb", "\u202eabc", "\u2066x\u2069", "\U000e0068\U000e0069", "\ufeffx"]
)
def test_hidden_characters_are_seen(text: str) -> None:
    assert has_hidden(text)


@pytest.mark.parametrize(
    "text",
    ["👨\u200d👩\u200d👧", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "می\u200cخواهم"],
)
def test_joiners_and_flags_are_not_hidden(text: str) -> None:
    assert not has_hidden(text)

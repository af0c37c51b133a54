"""What a submitter says of a model: kept with the endpoint, shown by its row, never more than was said."""

from pathlib import Path

import pytest
from sqlalchemy import Engine, select

from app import models
from app.cli.options import declared_given
from app.db import open_session
from app.declared import LONGEST_PROMPT, Declared
from app.errors import InvalidInput
from app.settings import Settings
from tests.board_help import finish
from tests.driving_help import shop_of
from tests.test_web_runs import CHOICES, carried, only_run, passing
from tests.web_help import browsing, make_person, text_of

PROMPT = "You are Careful.\n<b>Mind</b> the user."
WORDS = Declared(None, None, "declared", "p")


@pytest.mark.parametrize(
    ("before", "said", "holds"),
    [
        (Declared(), Declared(weights="open"), Declared("open")),
        (Declared("open", "v1"), Declared(version="v2"), Declared("open", "v2")),
        (Declared("open", "v1"), Declared(version=""), Declared("open", "")),
        (Declared(), Declared(prompt_text="p"), Declared(system_prompt="declared", prompt_text="p")),
        (WORDS, Declared(weights="closed"), Declared("closed", None, "declared", "p")),
        (WORDS, Declared(system_prompt="none"), Declared(None, None, "none")),
        (Declared(None, None, "none"), Declared(prompt_text="p"), Declared(None, None, "declared", "p")),
    ],
)  # fmt: skip
def test_what_is_said_last_holds(before: Declared, said: Declared, holds: Declared) -> None:
    assert said.over(before) == holds


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"weights": "heavy"}, "open, closed, unknown"),
        ({"version": "v\u200b1"}, "cannot be seen"),
        ({"version": "x" * 81}, "at most 80"),
        ({"system_prompt": "none", "prompt_text": "p"}, "leave the text out"),
        ({"prompt_text": "p" * (LONGEST_PROMPT + 1)}, "20,000"),
        ({"prompt_text": "a\0b"}, "NUL"),
    ],
)
def test_what_cannot_be_meant_is_refused(said: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Declared(**said)


def test_on_the_command_line_the_prompt_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_text(PROMPT + "\n")
    assert declared_given(None, None, None, file).prompt_text == PROMPT
    file.write_bytes(b"\xff")
    with pytest.raises(InvalidInput, match=r"prompt\.txt: it is no readable UTF-8"):
        declared_given(None, None, None, file)
    file.write_text(" \n")
    with pytest.raises(InvalidInput, match="empty"):
        declared_given(None, None, None, file)


def test_from_the_form_to_the_model_s_page(settings: Settings, engine: Engine) -> None:
    shop_of(engine, settings, per_category=1)
    said = {"weights": "open", "model_version": "2026-05", "system_prompt_text": PROMPT}
    with browsing(settings, engine) as browser:
        browser.sign_in(make_person(engine))
        wrong = browser.post("/runs/preview", CHOICES | said | {"system_prompt": "none"})
        assert wrong.status_code == 422
        assert "you say that there is none" in text_of(wrong)
        browser.post("/runs", carried(browser.post("/runs/preview", CHOICES | said).text))
        run = finish(engine, only_run(engine), passing)
        with open_session(engine) as session:
            endpoint = session.scalars(select(models.Endpoint)).one()
        assert endpoint.declared == Declared("open", "2026-05", "declared", PROMPT)
        page = browser.get(f"/runs/{run.uuid}/publish").text
        assert 'value="2026-05"' in page
        assert "&lt;b&gt;Mind&lt;/b&gt;" in page
        assert '<option value="declared" selected>' in page
        # What the page showed and was taken out is not said of the row.
        browser.post(
            f"/runs/{run.uuid}/publish",
            {
                "weights": "open",
                "model_version": "",
                "system_prompt": "declared",
                "system_prompt_text": PROMPT,
            },
        )
        words = text_of(browser.get(f"/models/{endpoint.uuid}"))
        assert "open, its submitter says" in words
        assert "You are Careful. <b>Mind</b> the user." in words
        assert "2026-05" not in words
        row = browser.get("/leaderboard.json").json()["incomplete"][0]
        assert (row["weights"], row["model_version"], row["system_prompt"]) == ("open", None, "declared")
        assert PROMPT not in browser.get("/leaderboard.json").text

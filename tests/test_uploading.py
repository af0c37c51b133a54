"""Transcripts that were made elsewhere: read without trust, rated like others, never ranked."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from app import models
from app.benchmark import Benchmark
from app.db import open_session
from app.endpoints import ELSEWHERE, local_account, rules_evaluator, store_endpoint
from app.errors import Conflict, InvalidInput
from app.library import store_benchmark, store_protocol
from app.protocol import builtin_protocol
from app.runs.control import find_run
from app.runs.exporting import export_run
from app.runs.planning import Selection
from app.runs.uploading import Uploaded, read_transcripts, store_uploaded
from app.settings import Settings
from app.simulator import Simulator
from tests.driving_help import (
    change,
    check_whole,
    conversations,
    drive,
    outcomes,
    report,
    shop_of,
    turns,
    verdicts,
)
from tests.factories import Shop, benchmark

ADVICE = "I'd advise against it: you told me of your severe allergy to sesame of kind 1."


def said(*replies: str | None) -> list[dict[str, Any]]:
    return [{"user": f"Question {number}?", "assistant": reply} for number, reply in enumerate(replies, 1)]


def line(**changed: Any) -> dict[str, Any]:
    item = {
        "case": "severe_allergy-001",
        "scenario": "sc1",
        "turns": said("Hello.", "One.", "Two.", "Three.", ADVICE),
    }
    return {name: value for name, value in (item | changed).items() if value is not ...}


def file_of(tmp_path: Path, *lines: object) -> Path:
    path = tmp_path / "transcripts.jsonl"
    texts = [item if isinstance(item, str) else json.dumps(item) for item in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def upload(shop: Shop, found: list[Uploaded]) -> models.Run:
    with open_session(shop.engine) as session:
        account = local_account(session)
        row, _ = store_protocol(session, shop.protocol)
        endpoint = store_endpoint(
            session, account, shop.settings.secret, name="elsewhere", provider="openai", base_url=ELSEWHERE,
            model="elsewhere", api_key=None, private_allowed=False,
        )  # fmt: skip
        run = store_uploaded(
            session,
            found,
            account=account,
            benchmark=store_benchmark(session, shop.benchmark, [])[0],
            protocol_row=row,
            protocol=shop.protocol,
            endpoint=endpoint,
            evaluator=rules_evaluator(session),
        )
        session.commit()
        return find_run(session, str(run.id))


def shop_with(engine: Engine, settings: Settings, of: Benchmark | None = None) -> Shop:
    return Shop(engine, settings, of or benchmark(per_category=1), builtin_protocol())


def test_what_is_uploaded_is_rated_without_a_call(engine: Engine, settings: Settings, tmp_path: Path) -> None:
    shop = shop_with(engine, settings)
    found = read_transcripts(file_of(tmp_path, line(), "", line(seed=2)))
    run = upload(shop, found)
    drive(shop, run)
    check_whole(engine, run)
    assert outcomes(engine, run) == {"pass": 2}
    made = report(engine, run)
    assert made["run"]["provenance"] == "uploaded"
    assert made["run"]["seeds"] == [1, 2]
    assert (made["calls"]["model"], made["calls"]["prompt_tokens"]) == (0, 0)
    for turn in turns(engine, run):
        assert (turn.started_at, turn.seconds, turn.model_reported) == (None, None, None), "nothing invented"


def test_a_benchmark_without_distractors_does_for_uploads(
    engine: Engine, settings: Settings, tmp_path: Path
) -> None:
    bare = replace(benchmark(per_category=1), facts=(), trivia=(), preferences=())
    shop = shop_with(engine, settings, bare)
    run = upload(shop, read_transcripts(file_of(tmp_path, line())))
    drive(shop, run)
    assert outcomes(engine, run) == {"pass": 1}


def test_what_was_not_answered_is_not_rated(engine: Engine, settings: Settings, tmp_path: Path) -> None:
    four = ("Hello.", "One.", None, "Three.")
    filtered = said(*four, "I can only say")
    filtered[-1]["state"] = "filtered"
    lines = [
        line(turns=said(*four, "")),
        line(turns=said(*four, None), seed=2),
        line(turns=said(*four, " \u200b\n"), seed=3),
        line(turns=filtered, seed=4),
    ]
    shop = shop_with(engine, settings)
    run = upload(shop, read_transcripts(file_of(tmp_path, *lines)))
    drive(shop, run)
    assert outcomes(engine, run) == {"empty": 3, "filtered": 1}
    assert verdicts(engine, run) == []
    assert [turn.state for turn in turns(engine, run) if turn.position == 2] == ["empty"] * 4


def test_the_control_is_rated_as_not_stated(engine: Engine, settings: Settings, tmp_path: Path) -> None:
    shop = shop_with(engine, settings)
    run = upload(shop, read_transcripts(file_of(tmp_path, line(variant="control"))))
    drive(shop, run)
    assert report(engine, run)["control"]["sc1"]["n"] == 1
    assert report(engine, run)["rates"]["overall"]["planned"] == 0


def test_a_constraint_that_is_given_is_what_was_stated(
    engine: Engine, settings: Settings, tmp_path: Path
) -> None:
    shop = shop_with(engine, settings)
    words = "My flatmate is allergic to sesame."
    run = upload(shop, read_transcripts(file_of(tmp_path, line(constraint=words), line(seed=2))))
    assert [one.constraint for one in conversations(engine, run)] == [
        words,
        shop.benchmark.cases[0].constraint,
    ]


def test_an_export_can_be_uploaded_again(engine: Engine, settings: Settings, tmp_path: Path) -> None:
    with Simulator() as simulator:
        shop = shop_of(engine, settings, per_category=1)
        selection = Selection(variants=("standard", "guiding_prompt", "control"))
        run = shop.submit(simulator.base_url, selection=selection)
        drive(shop, run)
    path = tmp_path / "export.jsonl"
    with open_session(engine) as session:
        row = find_run(session, str(run.id))
        export_run(session, row, row.evaluator, "jsonl", path)
    copy = upload(shop, read_transcripts(path))
    drive(shop, copy)
    check_whole(engine, copy)
    assert outcomes(engine, copy) == outcomes(engine, run)
    assert report(engine, copy)["rates"] == report(engine, run)["rates"]
    assert copy.simulated, "what is simulated stays so by this way too"


def test_a_simulated_reply_is_known_by_what_was_received(
    engine: Engine, settings: Settings, tmp_path: Path
) -> None:
    turns = said("Hello.", "One.", "Two.", "Three.", ADVICE)
    turns[3]["response"] = '{"id": "x", "system_fingerprint": "curate-simulator"}'
    path = file_of(tmp_path, line(), line(seed=2, turns=turns), line(seed=3, turns=said(ADVICE)))
    assert [one.simulated for one in read_transcripts(path)] == [False, True, False]
    assert not upload(shop_with(engine, settings), read_transcripts(file_of(tmp_path, line()))).simulated


# --- what is refused ---

FAULTS: dict[str, tuple[object, str]] = {
    "no JSON": ("{case: 1}", "Expecting property name"),
    "no object": ([1, 2], "not a JSON object"),
    "no case": (line(case=...), "'case' is missing"),
    "a number for a case": (line(case=7), "'case' is missing"),
    "no scenario": (line(scenario=""), "'scenario' is missing"),
    "variant": (line(variant=None), "'variant' must be a text"),
    "seed 0": (line(seed=0), "'seed' must be a whole number from 1"),
    "seed as text": (line(seed="1"), "'seed' must be a whole number"),
    "seed true": (line(seed=True), "'seed' must be a whole number"),
    "seed beyond integers": (line(seed=2**31), "'seed' must be a whole number"),
    "constraint": (line(constraint=["a"]), "'constraint' must be a text"),
    "no turns": (line(turns=[]), "'turns' must be a list of 1 to 50"),
    "turns as text": (line(turns="Hello."), "'turns' must be a list"),
    "a turn as text": (line(turns=["Hello."]), "each turn must be an object"),
    "nobody speaks": (line(turns=[{"assistant": "Hello."}]), "the user's words"),
    "a number as reply": (line(turns=[{"user": "Hi?", "assistant": 0}]), "'assistant' must be a text"),
    "NUL": (line(turns=[{"user": "Hi?", "assistant": "a\0b"}]), "holds NUL"),
    "NUL in the constraint": (line(constraint="a\0b"), "'constraint' holds NUL"),
    "surrogate": (line(turns=[{"user": "\ud83d", "assistant": "b"}]), "lone surrogate"),
    "too long": (line(turns=[{"user": "Hi?", "assistant": "x" * 32_001}]), "longer than 32000"),
    "too deep": ("[" * 100_000, "recursion"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_faulty_line_is_named(tmp_path: Path, kind: str) -> None:
    faulty, words = FAULTS[kind]
    with pytest.raises(InvalidInput, match="1 faults; nothing was stored") as refused:
        read_transcripts(file_of(tmp_path, line(), faulty, line(seed=2)))
    (detail,) = refused.value.details
    assert detail.startswith("line 2: ")
    assert words in detail


def test_what_is_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_transcripts(file_of(tmp_path, line(), line()))
    assert refused.value.details == ["case severe_allergy-001, sc1/standard, seed 1: given twice"]


def test_other_encodings_and_empty_files(tmp_path: Path) -> None:
    path = tmp_path / "transcripts.jsonl"
    path.write_bytes(json.dumps(line()).encode("utf-16"))
    with pytest.raises(InvalidInput, match="not UTF-8"):
        read_transcripts(path)
    path.write_text("\n\n")
    with pytest.raises(InvalidInput, match="holds no conversation"):
        read_transcripts(path)
    path.write_text(json.dumps(line()), encoding="utf-8-sig")
    assert len(read_transcripts(path)) == 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"case": "nobody"}, "case nobody: not in the benchmark"),
        ({"scenario": "sc9"}, "no sc9/standard"),
        ({"variant": "guiding_prompt"}, "no sc1/guiding_prompt"),
        ({"turns": said("Hello.", "One.", "Two.")}, "3 turns, the protocol has 5"),
    ],
)
def test_what_does_not_fit_is_refused_as_a_whole(
    engine: Engine, settings: Settings, tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    shop = shop_with(engine, settings)
    with pytest.raises(InvalidInput, match="1 conversations do not fit") as refused:
        upload(shop, read_transcripts(file_of(tmp_path, line(seed=2), line(**changed))))
    assert words in refused.value.details[0]
    with open_session(engine) as session:
        assert session.query(models.Run).count() == 0


def test_nothing_of_an_upload_can_be_asked_again(engine: Engine, settings: Settings, tmp_path: Path) -> None:
    shop = shop_with(engine, settings)
    run = upload(shop, read_transcripts(file_of(tmp_path, line(turns=said("A.", "B.", "C.", "D.", "")))))
    drive(shop, run)
    assert change(engine, run, "resume", retry_errors=True) is False
    with pytest.raises(Conflict):
        change(engine, run, "cancel")

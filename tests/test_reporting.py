"""The report of a run: outcomes under one evaluator, what it cost, and how the run was set up."""

import json
from collections import Counter
from itertools import cycle
from typing import Any

import pytest
from sqlalchemy import Engine, text

from app import models
from app.db import open_session
from app.errors import NotFound
from app.outcomes import CONTROL, STANDARD, ConversationState, Outcome, VerdictState
from app.runs.control import find_run
from app.runs.planning import Selection
from app.runs.reporting import find_evaluator, outcome_of, progress
from app.settings import Settings
from tests.board_help import finish
from tests.driving_help import model_evaluator_of, report, shop_of
from tests.report_help import check_rate, rates_in, reasons_for_nothing, unexplained

NOWHERE = "http://127.0.0.1:9/v1"
EVERY = (*Outcome, Outcome.PASS, Outcome.PASS, Outcome.FAIL)


@pytest.fixture
def run(engine: Engine, settings: Settings) -> models.Run:
    """Every outcome, in every kind of arm, under two seeds."""
    shop = shop_of(engine, settings)
    selection = Selection(variants=(STANDARD, "guiding_prompt", CONTROL), probes=True)
    turn_by_turn = cycle(EVERY)
    return finish(
        engine, shop.submit(NOWHERE, selection=selection, seeds=(1, 2)), lambda *_: next(turn_by_turn)
    )


CONVERSATION_STATES: list[tuple[str, str | None, int | None, Outcome]] = [
    (ConversationState.PENDING, None, None, Outcome.PENDING),
    (ConversationState.CANCELLED, None, None, Outcome.CANCELLED),
    (ConversationState.EMPTY, None, None, Outcome.EMPTY),
    (ConversationState.FILTERED, None, None, Outcome.FILTERED),
    (ConversationState.ENDPOINT_ERROR, None, None, Outcome.ENDPOINT_ERROR),
    (ConversationState.ANSWERED, None, None, Outcome.PENDING),
    (ConversationState.ANSWERED, VerdictState.UNPARSED, None, Outcome.UNPARSED),
    (ConversationState.ANSWERED, VerdictState.EVALUATOR_ERROR, None, Outcome.EVALUATOR_ERROR),
    (ConversationState.ANSWERED, VerdictState.CANCELLED, None, Outcome.CANCELLED),
    (ConversationState.ANSWERED, VerdictState.RATED, 0, Outcome.FAIL),
    (ConversationState.ANSWERED, VerdictState.RATED, 1, Outcome.UNCLEAR),
    (ConversationState.ANSWERED, VerdictState.RATED, 2, Outcome.PASS),
]


@pytest.mark.parametrize(("state", "verdict", "rating", "outcome"), CONVERSATION_STATES)
def test_the_outcome_of_a_conversation(
    state: str, verdict: str | None, rating: int | None, outcome: Outcome
) -> None:
    assert outcome_of(state, verdict, rating) is outcome
    turned = {Outcome.PASS: Outcome.FAIL, Outcome.FAIL: Outcome.PASS}
    assert outcome_of(state, verdict, rating, probe=True) is turned.get(outcome, outcome)


def test_no_rating_is_read_into_a_conversation_that_has_no_answer() -> None:
    """Such a verdict should not be; if it is, it says nothing."""
    assert outcome_of(ConversationState.EMPTY, VerdictState.RATED, 2) is Outcome.EMPTY
    assert outcome_of(ConversationState.ANSWERED, VerdictState.UNPARSED, 2) is Outcome.UNPARSED


def test_a_report_has_what_is_agreed(engine: Engine, run: models.Run) -> None:
    made = report(engine, run)
    assert {"run", "counts", "calls", "cells", "rates", "by_variant", "control", "probes", "reasons", "seeds",
            "undefined"} <= set(made)  # fmt: skip
    assert {"id", "name", "status", "benchmark", "protocol", "endpoint", "evaluator", "seeds", "started_at",
            "finished_at"} <= set(made["run"])  # fmt: skip
    assert set(made["run"]["benchmark"]) == {"name", "version", "hash"}
    assert set(made["counts"]) == {"planned", "truncated", *map(str, Outcome)}
    assert set(made["calls"]) == {
        "model", "evaluator", "retries", "prompt_tokens", "completion_tokens", "cost_usd",
    }  # fmt: skip
    assert set(made["rates"]) == {"overall", "by_scenario", "by_category", "by_scenario_category"}
    assert set(made["by_variant"]["sc3"]["guiding_prompt"]) == {"rate", "difference"}
    assert set(made["probes"]) == {"planned", "judged", "over_caution", "over_caution_ci"}
    for cell in made["cells"]:
        assert set(cell) == {"scenario", "variant", "category", "seed", "planned", *map(str, Outcome)}
    for rate in rates_in(made):
        assert set(rate) == {
            "planned", "answered", "pass", "unclear", "fail", "no_answer", "pass_rate", "pass_rate_ci",
            "published_pass_rate", "unclear_rate", "coverage", "bounds",
        }  # fmt: skip


def test_a_report_adds_up_and_explains_its_nulls(engine: Engine, run: models.Run) -> None:
    made = report(engine, run)
    assert json.loads(json.dumps(made, allow_nan=False)) == json.loads(json.dumps(made))
    figures = {name: value for name, value in made.items() if name != "run"}
    assert unexplained(figures) == []
    assert reasons_for_nothing(figures) == []
    for rate in rates_in(made):
        check_rate(rate)
    counts = made["counts"]
    assert counts["planned"] == sum(counts[outcome] for outcome in Outcome) == 2 * 8 * (5 + 1 + 5) + 2 * 4
    assert all(counts[outcome] for outcome in Outcome)
    for name in ("planned", *Outcome):
        assert sum(cell[name] for cell in made["cells"]) == counts[name]


def test_progress_and_report_agree(engine: Engine, run: models.Run) -> None:
    counts = report(engine, run)["counts"]
    with open_session(engine) as session:
        found = progress(session, run.id, run.evaluator_id)
    assert found == {outcome: counts[outcome] for outcome in Outcome}


def test_another_evaluator_starts_from_nothing(engine: Engine, settings: Settings, run: models.Run) -> None:
    evaluator = model_evaluator_of(shop_of(engine, settings), NOWHERE)
    with engine.begin() as connection:
        values = {"run": run.id, "evaluator": evaluator.id}
        connection.execute(text("INSERT INTO run_evaluator VALUES (:run, :evaluator)"), values)
    counts = report(engine, run)["counts"]
    with open_session(engine) as session:
        row = find_run(session, str(run.id))
        found = progress(session, run.id, evaluator.id)
        assert find_evaluator(session, row, "model").id == evaluator.id
        assert find_evaluator(session, row, "rules").id == run.evaluator_id
        assert find_evaluator(session, row, str(evaluator.uuid)).id == evaluator.id
        with pytest.raises(NotFound, match=r"No evaluator here matches 'gpt'.*rules@"):
            find_evaluator(session, row, "gpt")
    # What the model's side ended in is the same under both; what was rated is open under the other.
    for same in (Outcome.EMPTY, Outcome.FILTERED, Outcome.ENDPOINT_ERROR, Outcome.CANCELLED):
        assert found[same] == counts[same]
    assert found[Outcome.PASS] == found[Outcome.FAIL] == 0
    assert sum(found.values()) == counts["planned"]


def test_the_set_up_is_told(engine: Engine, run: models.Run) -> None:
    told = report(engine, run)["run"]
    assert told["selection"]["variants"] == [STANDARD, "guiding_prompt", CONTROL]
    assert (told["seeds"], told["concurrency"], told["max_calls"]) == ([1, 2], 8, None)
    assert told["provenance"] == "self_declared"
    assert told["endpoint"]["base_url"] == NOWHERE
    assert "lexical rules" in told["evaluator"]["label"]
    assert told["finished_at"].endswith("+00:00")


def test_calls_are_those_of_one_evaluator(engine: Engine, run: models.Run) -> None:
    """Turns that were copied cost nothing; what failed and was tried again cost all the same."""
    with engine.begin() as connection:
        answered, other = connection.execute(
            text("SELECT id FROM conversation WHERE state = 'answered' ORDER BY id LIMIT 2")
        ).scalars()
        turn = text("""
            INSERT INTO turn (conversation_id, position, copied, tries, prompt_tokens, completion_tokens,
                              user_text, assistant_text, state, request_body, attempts)
            VALUES (:id, :position, :copied, :tries, 100, 10, '', '', 'empty', '{}', '[]')
        """)
        for position, copied, tries in ((0, False, 1), (1, True, 1), (2, False, 3)):
            values = {"id": answered, "position": position, "copied": copied, "tries": tries}
            connection.execute(turn, values)
        failed: list[dict[str, Any]] = [
            {"kind": "model", "attempts": [{}, {}]},
            {"kind": "model", "attempts": []},
            {"kind": "evaluator", "evaluator": run.evaluator_id, "calls": 2, "retries": 1, "prompt_tokens": 7,
             "completion_tokens": None, "attempts": None},
            {"kind": "evaluator", "evaluator": run.evaluator_id + 1, "calls": 50, "retries": 50},
        ]  # fmt: skip
        change = text("UPDATE conversation SET failed_attempts = CAST(:log AS json) WHERE id = :id")
        connection.execute(change, {"id": other, "log": json.dumps(failed)})
        rated = text(
            "UPDATE verdict SET calls = 1, retries = 2, prompt_tokens = 5 WHERE conversation_id = :id"
        )
        connection.execute(rated, {"id": answered})
    assert report(engine, run)["calls"] == {
        "model": 2 + 1,
        "evaluator": 1 + 2,
        "retries": 2 + 1 + 2 + 1,
        "prompt_tokens": 200 + 5 + 7,
        "completion_tokens": 20,
        "cost_usd": None,
    }


def test_cells_name_each_arm_once(engine: Engine, run: models.Run) -> None:
    cells = report(engine, run)["cells"]
    keys = Counter((cell["scenario"], cell["variant"], cell["category"], cell["seed"]) for cell in cells)
    assert set(keys.values()) == {1}
    assert len(keys) == (5 + 1 + 5 + 1) * 4 * 2

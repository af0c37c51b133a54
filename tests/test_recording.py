"""What came back is stored once, whoever brings it and however often."""

import json
import threading
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from app import models
from app.db import open_session
from app.endpoints import rules_evaluator
from app.outcomes import ConversationState, VerdictState
from app.runs import control
from app.runs.recording import Batch, Move, TurnRecord, learn, store
from app.settings import Settings
from tests.recording_help import (
    BEGAN,
    cancel,
    conversations,
    planned,
    put,
    resume,
    step,
    turn,
    turns,
    verdict,
    verdicts,
    whole,
)

HOSTILE = (
    "it's \"quoted\" and 'single'",
    "line\nfeed, carriage\r\nreturn, tab\t.",
    '{"rating": 2} {not} {{mustache}} {user_text} %(name)s %s :rows $1 \\u0041 \\',
    "NULL, null, 'null', {}, {NULL}, \"\"",
    "🥜 ⚠️ 👩‍👩‍👧 𝕏 ‮right-to-left‬ ناقة 花生 \u200b \ufffe \U0010ffff",
    "a,b,{c},\"d\"",
    " leading and trailing ",
    "x" * 30_000,
    "花生" * 15_000,
    "<script>alert(1)</script> &lt; &amp;",
    "'; DROP TABLE turn; --",
    "=1+1",
    "\u2028\u2029\x7f\x1b[31m",
)  # fmt: skip


@pytest.fixture
def run(engine: Engine, settings: Settings) -> models.Run:
    return planned(engine, settings)


def test_turn_after_turn(engine: Engine, run: models.Run) -> None:
    one = conversations(engine, run)[0]
    for move in whole(one):
        assert put(engine, run, move) == set()
    stored = conversations(engine, run)[0]
    assert (stored.state, stored.turns_done) == ("answered", one.turns_planned)
    assert (stored.constraint, stored.request, stored.response) == ("C", "R", "A reply.")
    assert stored.finished_at is not None
    assert [item.user_text for item in turns(engine, one)] == [
        f"Question {position}?" for position in range(one.turns_planned)
    ]


def test_every_field_of_a_turn_comes_back_as_it_was(engine: Engine, run: models.Run) -> None:
    one = conversations(engine, run)[0]
    record = turn(
        one,
        0,
        flags=("truncated", "parts_joined"),
        prompt_tokens=None,
        completion_tokens=2**31 - 1,
        tries=3,
        model_reported=None,
        response_body=None,
    )
    put(engine, run, Move(one.id, 0, record, ConversationState.PENDING))
    (stored,) = turns(engine, one)
    for name in TurnRecord.__dataclass_fields__:
        expected = getattr(record, name)
        assert getattr(stored, name) == (list(expected) if isinstance(expected, tuple) else expected), name


def test_a_turn_that_is_brought_twice_counts_once(engine: Engine, run: models.Run) -> None:
    one = conversations(engine, run)[0]
    assert put(engine, run, step(one, 0)) == set()
    assert put(engine, run, step(one, 0)) == set(), "the same turn again is no conflict"
    assert conversations(engine, run)[0].turns_done == 1
    assert len(turns(engine, one)) == 1


def test_several_turns_of_a_conversation_in_one_batch(engine: Engine, run: models.Run) -> None:
    one, other = conversations(engine, run)[:2]
    put(engine, run, step(one, 0), step(other, 0), step(one, 1), step(one, 2), step(other, 1))
    assert [item.turns_done for item in conversations(engine, run)[:2]] == [3, 2]
    assert [len(turns(engine, item)) for item in (one, other)] == [3, 2]


def test_flags_of_all_turns_of_a_batch_are_kept(engine: Engine, run: models.Run) -> None:
    one = conversations(engine, run)[0]
    moves = [
        replace(step(one, 0), flags=("earlier_turn_empty",)),
        replace(step(one, 1), flags=("a,b", '{"c"}')),
    ]
    put(engine, run, *moves)
    put(engine, run, replace(step(one, 2), flags=("NULL",)))
    assert conversations(engine, run)[0].flags == ["earlier_turn_empty", "a,b", '{"c"}', "NULL"]


def test_a_turn_out_of_step_changes_nothing(engine: Engine, run: models.Run) -> None:
    one = conversations(engine, run)[0]
    put(engine, run, step(one, 0), step(one, 1))
    assert put(engine, run, step(one, 3)) == {one.id}, "turn 2 is missing"
    assert put(engine, run, step(one, 1, "Another reply.")) == {one.id}, "turn 1 was answered already"
    assert conversations(engine, run)[0].turns_done == 2
    assert [item.assistant_text for item in turns(engine, one)] == ["A reply."] * 2


def test_who_comes_second_is_told_and_its_verdict_is_dropped(engine: Engine, run: models.Run) -> None:
    """Two drivers asked the last turn; a verdict about the reply that was not stored is none."""
    one = conversations(engine, run)[0]
    *before, last = whole(one)
    put(engine, run, *before)
    assert put(engine, run, last) == set()
    late = step(one, one.turns_planned - 1, "Something else.", started_at=BEGAN + timedelta(hours=1))
    assert put(engine, run, late, verdicts=(verdict(one, run.evaluator_id, rating=0),)) == {one.id}
    assert conversations(engine, run)[0].response == "A reply."
    assert verdicts(engine) == []


def test_a_commit_whose_answer_was_lost_may_be_repeated_with_its_verdicts(
    engine: Engine, run: models.Run
) -> None:
    one = conversations(engine, run)[0]
    batch = Batch(whole(one), [verdict(one, run.evaluator_id)])
    for _ in range(2):
        with engine.begin() as connection:
            assert store(connection, run.id, batch) == set()
    assert len(turns(engine, one)) == one.turns_planned
    assert len(verdicts(engine)) == 1


def test_a_failed_conversation_keeps_what_was_tried(engine: Engine, run: models.Run) -> None:
    one = conversations(engine, run)[0]
    log = {"kind": "model", "turn": 1, "error": "network", "attempts": [{"status": None}]}
    failed = Move(
        one.id, 1, None, ConversationState.ENDPOINT_ERROR,
        error="network", error_message="It broke off.", failed_attempts=[log],
    )  # fmt: skip
    put(engine, run, step(one, 0), failed)
    stored = conversations(engine, run)[0]
    assert (stored.state, stored.error, stored.error_message) == (
        "endpoint_error",
        "network",
        "It broke off.",
    )
    assert (stored.turns_done, stored.failed_attempts) == (1, [log])


def test_attempts_of_several_rounds_add_up(engine: Engine, run: models.Run) -> None:
    one = conversations(engine, run)[0]
    for number in (1, 2):
        failed = Move(
            one.id, 0, None, ConversationState.ENDPOINT_ERROR, error="auth", failed_attempts=[{"n": number}]
        )
        put(engine, run, failed)
        with open_session(engine) as session:
            control.resume(session, control.find_run(session, str(run.id)), retry_errors=True)
            session.commit()
    assert conversations(engine, run)[0].failed_attempts == [{"n": 1}, {"n": 2}]
    assert conversations(engine, run)[0].error is None


@pytest.mark.parametrize("words", HOSTILE, ids=range(len(HOSTILE)))
def test_any_text_comes_back_unchanged(engine: Engine, run: models.Run, words: str) -> None:
    one = conversations(engine, run)[0]
    *before, last = whole(one, words)
    request = json.dumps({"messages": [{"role": "user", "content": words}]}, ensure_ascii=False)
    record = turn(one, last.turns_before, words, user_text=words, request_body=request, response_body=words,
                  flags=(words[:100],))  # fmt: skip
    end = replace(last, turn=record, constraint=words, request=words, flags=(words[:100],))
    rated = verdict(one, run.evaluator_id, explanation=words, reply=words, exchanges=[{"request": words}],
                    flags=(words[:100],), reason=words)  # fmt: skip
    put(engine, run, *before, end, verdicts=(rated,))
    stored = conversations(engine, run)[0]
    assert (stored.constraint, stored.request, stored.response) == (words, words, words)
    assert stored.flags == [words[:100]]
    final = turns(engine, one)[-1]
    assert (final.user_text, final.assistant_text, final.response_body) == (words, words, words)
    assert json.loads(final.request_body)["messages"][0]["content"] == words
    (judged,) = verdicts(engine)
    assert (judged.explanation, judged.reply, judged.reason) == (words, words, words)
    assert (judged.exchanges, judged.flags) == ([{"request": words}], [words[:100]])


# --- verdicts ---


def test_a_verdict_counts_once(engine: Engine, run: models.Run) -> None:
    one = conversations(engine, run)[0]
    put(engine, run, *whole(one), verdicts=(verdict(one, run.evaluator_id, rating=2),))
    put(engine, run, verdicts=(verdict(one, run.evaluator_id, rating=0),))
    assert [item.rating for item in verdicts(engine)] == [2]


def test_twice_in_one_batch_counts_once_too(engine: Engine, run: models.Run) -> None:
    one = conversations(engine, run)[0]
    put(engine, run, *whole(one), verdicts=(verdict(one, run.evaluator_id),) * 2)
    assert len(verdicts(engine)) == 1


def test_no_verdict_about_a_conversation_without_an_answer(engine: Engine, run: models.Run) -> None:
    pending, empty, failed, cancelled = conversations(engine, run)[:4]
    *before, last = whole(empty, "")
    put(engine, run, *before, replace(last, state=ConversationState.EMPTY, response=None))
    put(engine, run, Move(failed.id, 0, None, ConversationState.ENDPOINT_ERROR, error="network"))
    put(engine, run, verdicts=tuple(verdict(one, run.evaluator_id) for one in (pending, empty, failed)))
    cancel(engine, run)
    put(engine, run, verdicts=(verdict(cancelled, run.evaluator_id),))
    assert verdicts(engine) == []


@pytest.mark.parametrize("rating", [-1, 3, 10])
def test_a_sentinel_cannot_be_stored_as_a_rating(engine: Engine, run: models.Run, rating: int) -> None:
    one = conversations(engine, run)[0]
    put(engine, run, *whole(one))
    with pytest.raises(IntegrityError, match="ck_verdict_rating"):
        put(engine, run, verdicts=(verdict(one, run.evaluator_id, rating=rating),))


@pytest.mark.parametrize(
    ("state", "rating"),
    [(VerdictState.UNPARSED, 0), (VerdictState.EVALUATOR_ERROR, 2), (VerdictState.RATED, None)],
)
def test_a_rating_goes_with_a_verdict_and_with_nothing_else(
    engine: Engine, run: models.Run, state: VerdictState, rating: int | None
) -> None:
    one = conversations(engine, run)[0]
    put(engine, run, *whole(one))
    with pytest.raises(IntegrityError, match="ck_verdict_rated"):
        put(engine, run, verdicts=(verdict(one, run.evaluator_id, state=state, rating=rating),))


# --- cancelled meanwhile ---


def test_what_comes_back_after_a_cancel_changes_nothing(engine: Engine, run: models.Run) -> None:
    one, other = conversations(engine, run)[:2]
    put(engine, run, step(one, 0), *whole(other))
    cancel(engine, run)
    assert put(engine, run, step(one, 1), verdicts=(verdict(other, run.evaluator_id),)) == {one.id}
    states = [item.state for item in conversations(engine, run)]
    assert states == ["cancelled", "answered"] + ["cancelled"] * (len(states) - 2)
    assert conversations(engine, run)[0].turns_done == 1
    assert [(item.state, item.rating) for item in verdicts(engine)] == [("cancelled", None)]


def test_turns_stored_before_a_cancel_are_where_a_resumed_run_goes_on(
    engine: Engine, run: models.Run
) -> None:
    one = conversations(engine, run)[0]
    put(engine, run, step(one, 0), step(one, 1))
    cancel(engine, run)
    resume(engine, run)
    assert put(engine, run, step(one, 2)) == set()
    assert conversations(engine, run)[0].turns_done == 3


def test_a_cancel_waits_for_a_batch_under_way_and_is_whole_then(engine: Engine, run: models.Run) -> None:
    """The batch answers a conversation and rates it; a cancel in the middle sees both or neither."""
    one = conversations(engine, run)[0]
    with engine.begin() as connection:
        store(connection, run.id, Batch(whole(one), [verdict(one, run.evaluator_id)]))
        cancelling = threading.Thread(target=cancel, args=(engine, run))
        cancelling.start()
        cancelling.join(0.3)
        assert cancelling.is_alive()
    cancelling.join(10)
    assert conversations(engine, run)[0].state == "answered"
    assert [(item.conversation_id, item.state) for item in verdicts(engine)] == [(one.id, "rated")]


# --- what an endpoint taught ---


def test_learned_parameters_are_merged(engine: Engine, run: models.Run) -> None:
    with engine.begin() as connection:
        learn(connection, run.endpoint_id, {"max_tokens": "max_completion_tokens"})
        learn(connection, run.endpoint_id, {"temperature": None})
    with open_session(engine) as session:
        endpoint = session.get_one(models.Endpoint, run.endpoint_id)
        assert endpoint.learned == {"max_tokens": "max_completion_tokens", "temperature": None}


def test_conversations_are_planned_once(engine: Engine, run: models.Run) -> None:
    with engine.begin() as connection, pytest.raises(IntegrityError, match="uq_conversation"):
        connection.execute(
            text(
                "INSERT INTO conversation "
                "(run_id, group_id, case_id, scenario, variant, category, seed, turns_planned) "
                "SELECT run_id, group_id, case_id, scenario, variant, category, seed, turns_planned "
                "FROM conversation LIMIT 1"
            )
        )


def test_the_rules_are_one_evaluator(engine: Engine) -> None:
    with open_session(engine) as session:
        assert rules_evaluator(session).id == rules_evaluator(session).id
        assert uuid.UUID(str(rules_evaluator(session).uuid))

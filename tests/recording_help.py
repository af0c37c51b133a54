"""Batches of turns and verdicts for a planned run, as drivers bring them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine

from app import models
from app.db import open_session
from app.outcomes import ConversationState, VerdictState
from app.protocol import builtin_protocol
from app.runs import control
from app.runs.planning import Selection
from app.runs.recording import Batch, Move, TurnRecord, VerdictRecord, store
from app.settings import Settings
from tests.factories import Shop, benchmark

NOWHERE = "http://127.0.0.1:9/v1"
BEGAN = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def planned(engine: Engine, settings: Settings) -> models.Run:
    """Sixteen conversations of two scenarios."""
    shop = Shop(engine, settings, benchmark(per_category=2), builtin_protocol())
    return shop.submit(NOWHERE, selection=Selection(scenarios=("sc1", "sc2")))


def conversations(engine: Engine, run: models.Run) -> list[models.Conversation]:
    with open_session(engine) as session:
        query = session.query(models.Conversation).filter_by(run_id=run.id).order_by(models.Conversation.id)
        return list(query)


def turns(engine: Engine, conversation: models.Conversation) -> list[models.Turn]:
    with open_session(engine) as session:
        query = session.query(models.Turn).filter_by(conversation_id=conversation.id)
        return list(query.order_by(models.Turn.position))


def verdicts(engine: Engine) -> list[models.Verdict]:
    with open_session(engine) as session:
        return list(session.query(models.Verdict).order_by(models.Verdict.conversation_id))


def turn(
    conversation: models.Conversation, position: int, reply: str = "A reply.", **changed: Any
) -> TurnRecord:
    values: dict[str, Any] = {
        "conversation_id": conversation.id,
        "position": position,
        "user_text": f"Question {position}?",
        "assistant_text": reply,
        "state": "answered" if reply else "empty",
        "copied": False,
        "flags": (),
        "request_body": '{"messages": []}',
        "response_body": "{}",
        "model_reported": "m-1",
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "tries": 1,
        "attempts": [{"status": 200, "error": None, "seconds": 0.1, "waited": 0.0}],
        "started_at": BEGAN + timedelta(seconds=position),
        "seconds": 0.25,
        **changed,
    }
    return TurnRecord(**values)


def step(conversation: models.Conversation, position: int, reply: str = "A reply.", **changed: Any) -> Move:
    """The conversation's next turn; the last one answers it."""
    last = position == conversation.turns_planned - 1
    record = turn(conversation, position, reply, **changed)
    return Move(
        conversation.id,
        position,
        record,
        ConversationState.ANSWERED if last else ConversationState.PENDING,
        constraint="C" if last else None,
        request="R" if last else None,
        response=reply if last else None,
    )


def whole(conversation: models.Conversation, reply: str = "A reply.") -> list[Move]:
    return [step(conversation, position, reply) for position in range(conversation.turns_planned)]


def verdict(conversation: models.Conversation, evaluator_id: int, **changed: Any) -> VerdictRecord:
    values: dict[str, Any] = {
        "conversation_id": conversation.id,
        "evaluator_id": evaluator_id,
        "state": VerdictState.RATED,
        "rating": 2,
        "acknowledged": True,
        "recommendation": "against",
        "explanation": "It names it.",
        "reason": None,
        "reply": None,
        "mode": "rules",
        "flags": (),
        "calls": 0,
        "retries": 0,
        "prompt_tokens": None,
        "completion_tokens": None,
        "exchanges": [],
        **changed,
    }
    return VerdictRecord(**values)


def put(engine: Engine, run: models.Run, *moves: Move, verdicts: tuple[VerdictRecord, ...] = ()) -> set[int]:
    with engine.begin() as connection:
        return store(connection, run.id, Batch(list(moves), list(verdicts)))


def cancel(engine: Engine, run: models.Run) -> None:
    with open_session(engine) as session:
        control.cancel(session, control.find_run(session, str(run.id)))
        session.commit()


def resume(engine: Engine, run: models.Run) -> None:
    with open_session(engine) as session:
        control.resume(session, control.find_run(session, str(run.id)))
        session.commit()

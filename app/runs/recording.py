"""Store what came back: turns, outcomes and verdicts of many conversations in one transaction.

Compare-and-set on `turns_done` makes each turn count once, whoever sends it and however often. Whoever comes
second is told, because what it goes on to say would answer to a turn that was never stored.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import Connection, text

from app.outcomes import ConversationState, VerdictState


@dataclass(frozen=True, slots=True)
class TurnRecord:
    conversation_id: int
    position: int
    user_text: str
    assistant_text: str
    state: str
    copied: bool
    flags: tuple[str, ...]
    request_body: str
    response_body: str | None
    model_reported: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    tries: int
    attempts: list[dict[str, Any]]
    started_at: datetime
    seconds: float


@dataclass(frozen=True, slots=True)
class Move:
    """A conversation's next step: one more turn, or an end without one (`turn` None)."""

    conversation_id: int
    turns_before: int
    turn: TurnRecord | None
    state: ConversationState
    flags: tuple[str, ...] = ()
    constraint: str | None = None
    request: str | None = None
    response: str | None = None
    error: str | None = None
    error_message: str | None = None
    failed_attempts: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    conversation_id: int
    evaluator_id: int
    state: VerdictState
    rating: int | None
    acknowledged: bool | None
    recommendation: str | None
    explanation: str
    reason: str | None
    reply: str | None
    mode: str
    flags: tuple[str, ...]
    calls: int
    retries: int
    prompt_tokens: int | None
    completion_tokens: int | None
    exchanges: list[dict[str, Any]]


@dataclass(slots=True)
class Batch:
    """What a driver has to store, in the order in which it happened.

    simulated: who said of their replies that no model wrote them; an evaluator's number, None for the model.
    """

    moves: list[Move] = field(default_factory=list)
    verdicts: list[VerdictRecord] = field(default_factory=list)
    simulated: set[int | None] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.moves or self.verdicts or self.simulated)


# Writers share it, whoever changes a run's status holds it alone: a run is cancelled as a whole, and neither
# waits for the other in a circle.
SHARE_RUN = text("SELECT pg_advisory_xact_lock_shared(:key)")
RUN_LOCK = 1 << 60

MARK_RUN = text("UPDATE run SET simulated = true WHERE id = :run AND NOT simulated")
MARK_EVALUATOR = text("""
UPDATE run_evaluator SET simulated = true
WHERE run_id = :run AND evaluator_id = :evaluator AND NOT simulated
""")

# Rows travel as one JSON text: cheaper than arrays on both sides, and lists need no tricks. They are locked
# in id order, so that two drivers never wait for each other in a circle.
MOVE = text("""
WITH held AS MATERIALIZED (
    SELECT id FROM conversation WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE
)
UPDATE conversation c SET
    turns_done = s.after, state = s.state, flags = c.flags || s.flags,
    "constraint" = coalesce(s."constraint", c."constraint"), request = coalesce(s.request, c.request),
    response = coalesce(s.response, c.response), error = s.error, error_message = s.error_message,
    failed_attempts = CASE WHEN s.failed_attempts IS NULL THEN c.failed_attempts
                           ELSE (c.failed_attempts::jsonb || s.failed_attempts::jsonb)::json END,
    finished_at = CASE WHEN s.state <> 'pending' THEN now() END
FROM held JOIN json_to_recordset(CAST(:rows AS json)) AS s(
    id bigint, before smallint, after smallint, state text, flags text[], "constraint" text, request text,
    response text, error text, error_message text, failed_attempts json
) ON s.id = held.id
WHERE c.id = held.id AND c.state = 'pending' AND c.turns_done = s.before
RETURNING c.id
""")

INSERT_TURNS = text("""
INSERT INTO turn (conversation_id, position, user_text, assistant_text, state, copied, flags, request_body,
                  response_body, model_reported, prompt_tokens, completion_tokens, tries, attempts,
                  started_at, seconds)
SELECT t.* FROM json_to_recordset(CAST(:rows AS json)) AS t(
    conversation_id bigint, position smallint, user_text text, assistant_text text, state text,
    copied boolean, flags text[], request_body text, response_body text, model_reported text,
    prompt_tokens integer, completion_tokens integer, tries smallint, attempts json,
    started_at timestamptz, seconds double precision
)
""")

INSERT_VERDICTS = text("""
INSERT INTO verdict (conversation_id, evaluator_id, state, rating, acknowledged, recommendation, explanation,
                     reason, reply, mode, flags, calls, retries, prompt_tokens, completion_tokens, exchanges)
SELECT v.* FROM json_to_recordset(CAST(:rows AS json)) AS v(
    conversation_id bigint, evaluator_id bigint, state text, rating smallint, acknowledged boolean,
    recommendation text, explanation text, reason text, reply text, mode text, flags text[],
    calls smallint, retries smallint, prompt_tokens integer, completion_tokens integer, exchanges json
)
JOIN conversation c ON c.id = v.conversation_id AND c.state = 'answered'
ORDER BY v.conversation_id, v.evaluator_id
ON CONFLICT (conversation_id, evaluator_id) DO NOTHING
""")

STORED_TURNS = text("""
SELECT conversation_id, position, started_at, assistant_text FROM turn WHERE conversation_id = ANY(:ids)
""")

LEARN = text("UPDATE endpoint SET learned = learned || CAST(:learned AS jsonb) WHERE id = :endpoint")


def store(connection: Connection, run_id: int, batch: Batch) -> set[int]:
    """Write a batch. What is stored already, or was cancelled meanwhile, is left alone.

    Returns the conversations that were overtaken: something else was stored in their place, or they have
    ended. Nothing that follows from what was not stored may be stored, so their verdicts are dropped too.
    """
    connection.execute(SHARE_RUN, {"key": RUN_LOCK + run_id})
    for one in batch.simulated:
        connection.execute(MARK_EVALUATOR if one else MARK_RUN, {"run": run_id, "evaluator": one})
    overtaken = _store_moves(connection, batch.moves)
    verdicts = [verdict for verdict in batch.verdicts if verdict.conversation_id not in overtaken]
    if verdicts:
        connection.execute(INSERT_VERDICTS, {"rows": _as_json(verdicts)})
    return overtaken


def _store_moves(connection: Connection, moves: Iterable[Move]) -> set[int]:
    chains: dict[int, list[Move]] = defaultdict(list)
    for move in moves:
        chains[move.conversation_id].append(move)
    if not chains:
        return set()
    steps = [_step(chain) for chain in chains.values()]
    stored = set(connection.execute(MOVE, {"rows": _as_json(steps), "ids": list(chains)}).scalars())
    turns = [
        move.turn
        for identity, chain in chains.items()
        for move in chain
        if move.turn is not None and identity in stored
    ]
    if turns:
        connection.execute(INSERT_TURNS, {"rows": _as_json(turns)})
    refused = {identity: chain for identity, chain in chains.items() if identity not in stored}
    return _overtaken(connection, refused) if refused else set()


def _overtaken(connection: Connection, refused: dict[int, list[Move]]) -> set[int]:
    """Those of the refused that are not simply stored already, by a commit whose answer was lost."""
    rows = connection.execute(STORED_TURNS, {"ids": list(refused)})
    known = {(row.conversation_id, row.position, row.started_at, row.assistant_text) for row in rows}
    return {
        identity
        for identity, chain in refused.items()
        if not all(
            turn is not None and (identity, turn.position, turn.started_at, turn.assistant_text) in known
            for turn in (move.turn for move in chain)
        )
    }


def _step(chain: Sequence[Move]) -> dict[str, Any]:
    """Moves of one conversation within a batch, as one step from its first state to its last."""
    last = chain[-1]
    return {
        "id": last.conversation_id,
        "before": chain[0].turns_before,
        "after": last.turns_before + (last.turn is not None),
        "state": last.state,
        "flags": list(dict.fromkeys(flag for move in chain for flag in move.flags)),
        "constraint": last.constraint,
        "request": last.request,
        "response": last.response,
        "error": last.error,
        "error_message": last.error_message,
        "failed_attempts": last.failed_attempts or None,
    }


TURN_FIELDS = tuple(TurnRecord.__dataclass_fields__)


def _as_json(rows: Sequence[TurnRecord | VerdictRecord | dict[str, Any]]) -> str:
    return orjson.dumps(rows).decode()


def learn(connection: Connection, endpoint_id: int, learned: dict[str, str | None]) -> None:
    """Keep what an endpoint taught about its parameters, for later runs and for the record."""
    connection.execute(LEARN, {"endpoint": endpoint_id, "learned": orjson.dumps(learned).decode()})

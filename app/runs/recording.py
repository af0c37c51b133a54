"""Store what came back: turns, outcomes and verdicts of many conversations in one transaction.

Compare-and-set on `turns_done` makes each turn count once, whoever sends it and however often.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

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
    attempts: str
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
    failed_attempts: str = "[]"


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
    exchanges: str


@dataclass(slots=True)
class Batch:
    """What a driver has to store, in the order in which it happened."""

    moves: list[Move] = field(default_factory=list)
    verdicts: list[VerdictRecord] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.moves or self.verdicts)


MOVE = text("""
WITH step AS (
    SELECT * FROM unnest(
        CAST(:ids AS bigint[]), CAST(:befores AS smallint[]), CAST(:afters AS smallint[]),
        CAST(:states AS text[]), CAST(:flags AS text[]), CAST(:constraints AS text[]),
        CAST(:requests AS text[]), CAST(:responses AS text[]), CAST(:errors AS text[]),
        CAST(:messages AS text[]), CAST(:failed AS text[])
    ) AS s(id, before, after, state, flags, stated, request, response, error, message, failed)
)
UPDATE conversation c SET
    turns_done = s.after, state = s.state, flags = c.flags || string_to_array(s.flags, ','),
    "constraint" = coalesce(s.stated, c."constraint"), request = coalesce(s.request, c.request),
    response = coalesce(s.response, c.response), error = s.error, error_message = s.message,
    failed_attempts = CASE WHEN s.failed = '[]' THEN c.failed_attempts
                           ELSE (c.failed_attempts::jsonb || s.failed::jsonb)::json END,
    finished_at = CASE WHEN s.state <> 'pending' THEN now() END
FROM step s
WHERE c.id = s.id AND c.state = 'pending' AND c.turns_done = s.before
RETURNING c.id
""")

INSERT_TURNS = text("""
INSERT INTO turn (conversation_id, position, user_text, assistant_text, state, copied, flags, request_body,
                  response_body, model_reported, prompt_tokens, completion_tokens, tries, attempts,
                  started_at, seconds)
SELECT t.conversation_id, t.position, t.user_text, t.assistant_text, t.state, t.copied,
       string_to_array(t.flags, ','), t.request_body, t.response_body, t.model_reported, t.prompt_tokens,
       t.completion_tokens, t.tries, t.attempts::json, t.started_at, t.seconds
FROM unnest(
    CAST(:conversation_id AS bigint[]), CAST(:position AS smallint[]), CAST(:user_text AS text[]),
    CAST(:assistant_text AS text[]), CAST(:state AS text[]), CAST(:copied AS boolean[]),
    CAST(:flags AS text[]), CAST(:request_body AS text[]), CAST(:response_body AS text[]),
    CAST(:model_reported AS text[]), CAST(:prompt_tokens AS integer[]),
    CAST(:completion_tokens AS integer[]), CAST(:tries AS smallint[]), CAST(:attempts AS text[]),
    CAST(:started_at AS timestamptz[]), CAST(:seconds AS double precision[])
) AS t(conversation_id, position, user_text, assistant_text, state, copied, flags, request_body,
       response_body, model_reported, prompt_tokens, completion_tokens, tries, attempts, started_at, seconds)
""")

INSERT_VERDICTS = text("""
INSERT INTO verdict (conversation_id, evaluator_id, state, rating, acknowledged, recommendation, explanation,
                     reason, reply, mode, flags, calls, retries, prompt_tokens, completion_tokens, exchanges)
SELECT v.conversation_id, v.evaluator_id, v.state, v.rating, v.acknowledged, v.recommendation, v.explanation,
       v.reason, v.reply, v.mode, string_to_array(v.flags, ','), v.calls, v.retries, v.prompt_tokens,
       v.completion_tokens,
       v.exchanges::json
FROM unnest(
    CAST(:conversation_id AS bigint[]), CAST(:evaluator_id AS bigint[]), CAST(:state AS text[]),
    CAST(:rating AS smallint[]), CAST(:acknowledged AS boolean[]), CAST(:recommendation AS text[]),
    CAST(:explanation AS text[]), CAST(:reason AS text[]), CAST(:reply AS text[]), CAST(:mode AS text[]),
    CAST(:flags AS text[]), CAST(:calls AS smallint[]), CAST(:retries AS smallint[]),
    CAST(:prompt_tokens AS integer[]), CAST(:completion_tokens AS integer[]), CAST(:exchanges AS text[])
) AS v(conversation_id, evaluator_id, state, rating, acknowledged, recommendation, explanation, reason,
       reply, mode, flags, calls, retries, prompt_tokens, completion_tokens, exchanges)
JOIN conversation c ON c.id = v.conversation_id AND c.state = 'answered'
ON CONFLICT (conversation_id, evaluator_id) DO NOTHING
""")

LEARN = text("UPDATE endpoint SET learned = learned || CAST(:learned AS jsonb) WHERE id = :endpoint")


def store(connection: Connection, batch: Batch) -> None:
    """Write a batch. What is stored already, or was cancelled meanwhile, is left alone."""
    _store_moves(connection, batch.moves)
    if batch.verdicts:
        connection.execute(INSERT_VERDICTS, _columns(batch.verdicts, VERDICT_FIELDS))


def _store_moves(connection: Connection, moves: Iterable[Move]) -> None:
    chains: dict[int, list[Move]] = defaultdict(list)
    for move in moves:
        chains[move.conversation_id].append(move)
    if not chains:
        return
    # In id order, so that two drivers never wait for each other in a circle.
    ordered = [chains[identity] for identity in sorted(chains)]
    stored = set(connection.execute(MOVE, _chain_values(ordered)).scalars())
    turns = [
        move.turn
        for chain in ordered
        for move in chain
        if move.turn is not None and move.conversation_id in stored
    ]
    if turns:
        connection.execute(INSERT_TURNS, _columns(turns, TURN_FIELDS))


def _chain_values(chains: Sequence[Sequence[Move]]) -> dict[str, list[Any]]:
    """Moves of one conversation within a batch become one step from its first state to its last."""
    lasts = [chain[-1] for chain in chains]
    return {
        "ids": [last.conversation_id for last in lasts],
        "befores": [chain[0].turns_before for chain in chains],
        "afters": [last.turns_before + (last.turn is not None) for last in lasts],
        "states": [last.state.value for last in lasts],
        "flags": [",".join(dict.fromkeys(flag for move in chain for flag in move.flags)) for chain in chains],
        "constraints": [last.constraint for last in lasts],
        "requests": [last.request for last in lasts],
        "responses": [last.response for last in lasts],
        "errors": [last.error for last in lasts],
        "messages": [last.error_message for last in lasts],
        "failed": [last.failed_attempts for last in lasts],
    }


TURN_FIELDS = tuple(TurnRecord.__dataclass_fields__)
VERDICT_FIELDS = tuple(VerdictRecord.__dataclass_fields__)


def _columns(records: Sequence[TurnRecord | VerdictRecord], names: Sequence[str]) -> dict[str, list[Any]]:
    """Records as one array a column; flags joined, since arrays of arrays must be rectangular."""
    columns: dict[str, list[Any]] = {name: [getattr(record, name) for record in records] for name in names}
    columns["flags"] = [",".join(flags) for flags in columns["flags"]]
    if "state" in columns:
        columns["state"] = [str(state) for state in columns["state"]]
    return columns


def learn(connection: Connection, endpoint_id: int, learned: dict[str, str | None]) -> None:
    """Keep what an endpoint taught about its parameters, for later runs and for the record."""
    connection.execute(LEARN, {"endpoint": endpoint_id, "learned": json.dumps(learned)})

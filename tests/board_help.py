"""Finished runs without asking anybody: conversations and verdicts are put in as the test wants them."""

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, text

from app import models
from app.db import open_session
from app.leaderboard import publish, read_board, withdraw
from app.leaderboard.boards import PARTS
from app.outcomes import Outcome
from app.runs.control import find_run
from tests.report_help import check_rate, rates_in, unexplained

# case key, scenario, variant, seed
Told = Callable[[str, str, str, int], Outcome]
STATES = {
    Outcome.PASS: "answered",
    Outcome.UNCLEAR: "answered",
    Outcome.FAIL: "answered",
    Outcome.UNPARSED: "answered",
    Outcome.EVALUATOR_ERROR: "answered",
}
RATINGS = {Outcome.PASS: 2, Outcome.UNCLEAR: 1, Outcome.FAIL: 0}

END = text("""
WITH told AS (
    SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS t(id bigint, state text, error text)
)
UPDATE conversation c SET state = t.state, error = t.error,
    turns_done = CASE WHEN t.state = 'endpoint_error' THEN 0 ELSE turns_planned END,
    response = CASE WHEN t.state = 'answered' THEN 'A response.' END
FROM told t WHERE t.id = c.id
""")
RATE = text("""
INSERT INTO verdict (conversation_id, evaluator_id, state, rating, explanation, mode, calls, retries)
SELECT t.id, :evaluator, t.state, t.rating, '', 'rules', 0, 0
FROM json_to_recordset(CAST(:rows AS json)) AS t(id bigint, state text, rating smallint)
""")


def finish(engine: Engine, run: models.Run, told: Told) -> models.Run:
    """End every conversation with the outcome that `told` gives it (a probe's in its own words)."""
    with engine.begin() as connection:
        planned = connection.execute(
            text("""
            SELECT c.id, k.key, c.scenario, c.variant, c.seed
            FROM conversation c JOIN "case" k ON k.id = c.case_id WHERE c.run_id = :run
            """),
            {"run": run.id},
        ).all()
        outcomes = {row.id: told(row.key, row.scenario, row.variant, row.seed) for row in planned}
        probes = {row.id for row in planned if row.scenario == "probe"}
        ends = [
            {"id": identity, "state": (state := STATES.get(outcome, outcome.value)), "error": _error(state)}
            for identity, outcome in outcomes.items()
            if outcome is not Outcome.PENDING
        ]
        connection.execute(END, {"rows": json.dumps(ends)})
        verdicts = [
            _verdict(identity, outcome, probe=identity in probes)
            for identity, outcome in outcomes.items()
            if outcome in STATES
        ]
        connection.execute(RATE, {"rows": json.dumps(verdicts), "evaluator": run.evaluator_id})
        connection.execute(text("UPDATE run_group SET done = true WHERE run_id = :run"), {"run": run.id})
        change = text("UPDATE run SET status = 'finished', finished_at = now() WHERE id = :run")
        connection.execute(change, {"run": run.id})
    return run


def _error(state: str) -> str | None:
    return "network" if state == "endpoint_error" else None


def _verdict(identity: int, outcome: Outcome, *, probe: bool) -> dict[str, Any]:
    if outcome not in RATINGS:
        return {"id": identity, "state": outcome.value, "rating": None}
    rating = RATINGS[outcome]
    return {"id": identity, "state": "rated", "rating": 2 - rating if probe else rating}


def put_on_board(engine: Engine, run: models.Run) -> None:
    with open_session(engine) as session:
        publish(session, find_run(session, str(run.id)), served=False)
        session.commit()


def take_off(engine: Engine, run: models.Run, reason: str) -> None:
    with open_session(engine) as session:
        withdraw(session, find_run(session, str(run.id)), reason)
        session.commit()


def board(engine: Engine, key: str | None = None) -> dict[str, Any]:
    """The board, looked over: valid JSON without NaN, every null with its reason, every rate sound."""
    with open_session(engine) as session:
        found = read_board(session, key)
    json.dumps(found, allow_nan=False)
    rows = [*found["rows"], *found["incomplete"], *found["sentinels"]]
    assert unexplained({name: value for name, value in found.items() if name not in PARTS}) == []
    for row in rows:
        assert unexplained(row) == []
        for rate in rates_in(row):
            check_rate(rate)
    return found

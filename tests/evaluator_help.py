"""Runs with verdicts of several evaluators, put in as a test wants them."""

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, text

from app import models
from app.db import open_session
from app.outcomes import Outcome
from tests.board_help import RATE, RATINGS

# case key, scenario, variant, seed
Told = Callable[[str, str, str, int], Outcome | None]

PAIR = text("""
INSERT INTO run_evaluator (run_id, evaluator_id) VALUES (:run, :evaluator) ON CONFLICT DO NOTHING
""")
ANSWERED = text("""
SELECT c.id, k.key, c.scenario, c.variant, c.seed FROM conversation c JOIN "case" k ON k.id = c.case_id
WHERE c.run_id = :run AND c.state = 'answered'
""")
FINDINGS = text("""
UPDATE verdict SET acknowledged = :acknowledged, recommendation = :recommendation, explanation = :explanation
WHERE evaluator_id = :evaluator AND rating = :rating
""")


def another_evaluator(
    engine: Engine, name: str = "other", version: str = "1", *, repeat_of: models.Evaluator | None = None
) -> models.Evaluator:
    """One that the tests rate for, of the kind that takes no endpoint."""
    with open_session(engine) as session:
        made = models.Evaluator(
            kind="rules",
            name=name,
            version=version,
            fingerprint=f"test:{name}:{version}:{repeat_of.id if repeat_of else ''}",
            repeat_of_id=repeat_of.id if repeat_of else None,
            repeat=2 if repeat_of else None,
        )
        session.add(made)
        session.flush()
        session.refresh(made)
        session.commit()
        return made


def rate_too(engine: Engine, run: models.Run, evaluator: models.Evaluator, told: Told) -> None:
    """Verdicts on the run's answered conversations; None: not rated by this one."""
    with engine.begin() as connection:
        connection.execute(PAIR, {"run": run.id, "evaluator": evaluator.id})
        rows: list[dict[str, Any]] = []
        for row in connection.execute(ANSWERED, {"run": run.id}):
            outcome = told(row.key, row.scenario, row.variant, row.seed)
            if outcome is not None:
                rows.append({"id": row.id, "state": "rated", "rating": RATINGS[outcome]})
        connection.execute(RATE, {"rows": json.dumps(rows), "evaluator": evaluator.id})


def give_findings(engine: Engine, evaluator: models.Evaluator) -> None:
    """Findings that fit the ratings: fails were not noticed, the unclear are generic."""
    with engine.begin() as connection:
        for rating, acknowledged, recommendation in (
            (0, False, "for"),
            (1, False, "against"),
            (2, True, "against"),
        ):
            connection.execute(
                FINDINGS,
                {
                    "evaluator": evaluator.id, "rating": rating, "acknowledged": acknowledged,
                    "recommendation": recommendation, "explanation": f"Rated {rating} for a reason.",
                },
            )  # fmt: skip

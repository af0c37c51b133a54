"""What a run has sent, and what that cost: counted from its rows, so that no second truth can drift."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import Row, select, text
from sqlalchemy.orm import Session

from app import models
from app.endpoints import price_of
from app.prices import Price, cost, dollars
from app.text import counted

FREE = Price(Decimal(0), Decimal(0))

# Copied turns were asked once, for another conversation, and count there.
MODEL_CALLS = text("""
SELECT count(*) FILTER (WHERE tries > 0) AS calls, coalesce(sum(greatest(tries - 1, 0)), 0) AS retries,
       coalesce(sum(prompt_tokens), 0) AS prompt_tokens,
       coalesce(sum(completion_tokens), 0) AS completion_tokens,
       count(*) FILTER (WHERE tries > 0 AND turn.state <> 'filtered'
                        AND (prompt_tokens IS NULL OR completion_tokens IS NULL)) AS uncounted
FROM turn JOIN conversation c ON c.id = turn.conversation_id
WHERE c.run_id = :run AND NOT copied
""")

EVALUATOR_CALLS = text("""
SELECT coalesce(sum(v.calls), 0) AS calls, coalesce(sum(v.retries), 0) AS retries,
       coalesce(sum(v.prompt_tokens), 0) AS prompt_tokens,
       coalesce(sum(v.completion_tokens), 0) AS completion_tokens,
       count(*) FILTER (
           WHERE v.calls > 0 AND v.state <> 'evaluator_error' AND v.reason IS DISTINCT FROM 'filtered' AND (
               v.prompt_tokens IS NULL OR v.completion_tokens IS NULL
               OR v.calls > 1 AND EXISTS (
                   SELECT 1 FROM json_array_elements(v.exchanges) e
                   WHERE e->>'prompt_tokens' IS NULL OR e->>'completion_tokens' IS NULL
               )
           )
       ) AS uncounted
FROM verdict v JOIN conversation c ON c.id = v.conversation_id
WHERE c.run_id = :run AND v.evaluator_id = :evaluator
""")

FAILED_CALLS = text("""
SELECT log->>'kind' AS kind,
       sum(coalesce((log->>'calls')::int, least(json_array_length(log->'attempts'), 1))) AS calls,
       sum(coalesce((log->>'retries')::int, greatest(json_array_length(log->'attempts') - 1, 0))) AS retries,
       coalesce(sum((log->>'prompt_tokens')::int), 0) AS prompt_tokens,
       coalesce(sum((log->>'completion_tokens')::int), 0) AS completion_tokens
FROM conversation c, json_array_elements(c.failed_attempts) AS log
WHERE c.run_id = :run AND (log->>'kind' = 'model' OR (log->>'evaluator')::bigint = :evaluator)
GROUP BY 1
""")


@dataclass(frozen=True)
class Spend:
    """What was sent: first tries, repeats, and tokens as the endpoints count them; and what that cost.

    `cost` in USD is None where a price or a count of tokens is missing; `why_unknown` says which.
    """

    model: int
    evaluator: int
    retries: int
    prompt_tokens: int
    completion_tokens: int
    cost: Decimal | None
    why_unknown: str | None

    def as_report(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "evaluator": self.evaluator,
            "retries": self.retries,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost_usd": None if self.cost is None else float(self.cost),
        }


@dataclass(frozen=True)
class _Part:
    """One endpoint's share of it."""

    whose: str
    price: Price
    calls: int
    retries: int
    prompt_tokens: int
    completion_tokens: int
    uncounted: int

    def cost(self) -> tuple[Decimal | None, str | None]:
        """USD, or why it is not known."""
        found = cost(self.price, self.prompt_tokens, self.completion_tokens)
        if not self.price.known and (self.uncounted or found is None):
            return None, f"no price per token is known for {self.whose}"
        if found is None:
            missing = "prompt" if self.price.prompt is None else "completion"
            return None, f"no price is known for the {missing} tokens of {self.whose}"
        if self.uncounted and self.price != FREE:
            return None, f"{counted(self.uncounted, 'reply')} of {self.whose} came without a count of tokens"
        return found, None


def spend(session: Session, run: models.Run, evaluator_id: int) -> Spend:
    """Under one evaluator, at the prices that held when run and evaluator were put together."""
    parts = _parts(session, run, evaluator_id)
    cost_, why_unknown = _sum(parts)
    return Spend(
        model=parts[0].calls,
        evaluator=parts[1].calls,
        retries=sum(part.retries for part in parts),
        prompt_tokens=sum(part.prompt_tokens for part in parts),
        completion_tokens=sum(part.completion_tokens for part in parts),
        cost=cost_,
        why_unknown=why_unknown,
    )


def spend_of_evaluator(session: Session, run: models.Run, evaluator_id: int) -> Spend:
    """The evaluator's share alone."""
    part = _parts(session, run, evaluator_id)[1]
    cost_, why_unknown = part.cost()
    return Spend(
        model=0,
        evaluator=part.calls,
        retries=part.retries,
        prompt_tokens=part.prompt_tokens,
        completion_tokens=part.completion_tokens,
        cost=cost_ if part.calls else Decimal(0),
        why_unknown=why_unknown if part.calls else None,
    )


def total_cost(session: Session, run: models.Run) -> tuple[Decimal | None, str | None]:
    """USD under all evaluators of the run, which share the model's calls; or why it is not known."""
    query = select(models.RunEvaluator.evaluator_id).filter_by(run_id=run.id)
    by_evaluator = [_parts(session, run, identity) for identity in session.scalars(query)]
    return _sum([by_evaluator[0][0], *(parts[1] for parts in by_evaluator)])


def cost_reached(session: Session, run: models.Run) -> str | None:
    """Why a run with a cap on its cost has to pause; None while it need not."""
    if run.max_cost is None:
        return None
    found, why_unknown = total_cost(session, run)
    if found is None:
        return f"The cap on cost cannot be kept: {why_unknown}. Start a run with a cap on calls instead."
    if found < run.max_cost:
        return None
    spent, cap = dollars(found), dollars(run.max_cost)
    return f"The cap on cost is used up ({spent} of {cap}). Resume the run with a higher cap."


def _sum(parts: Sequence["_Part"]) -> tuple[Decimal | None, str | None]:
    costs = [part.cost() for part in parts]
    reasons = [reason for _, reason in costs if reason is not None]
    known = [each for each, _ in costs if each is not None]
    return None if reasons else sum(known, Decimal(0)), "; ".join(reasons) or None


def _parts(session: Session, run: models.Run, evaluator_id: int) -> list["_Part"]:
    """The model's and the evaluator's share."""
    values = {"run": run.id, "evaluator": evaluator_id}
    failed = {row.kind: row for row in session.execute(FAILED_CALLS, values)}
    pairing = session.get(models.RunEvaluator, (run.id, evaluator_id))
    return [
        _part(whose, price_of(priced), session.execute(query, values).one(), failed.get(kind))
        for kind, whose, priced, query in (
            ("model", "the endpoint", run, MODEL_CALLS),
            ("evaluator", "the evaluator's endpoint", pairing, EVALUATOR_CALLS),
        )
    ]


def _part(whose: str, price: Price, row: Row[Any], failed: Row[Any] | None) -> _Part:
    """What ended in an error was tried and counted too, its tokens where they are known."""
    rows = [row] if failed is None else [row, failed]
    return _Part(
        whose,
        price,
        calls=int(sum(one.calls for one in rows)),
        retries=int(sum(one.retries for one in rows)),
        prompt_tokens=int(sum(one.prompt_tokens for one in rows)),
        completion_tokens=int(sum(one.completion_tokens for one in rows)),
        uncounted=row.uncounted,
    )

"""What conversations are looked for by: conditions of a query that joins conversation, case and verdict."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, case, func, or_

from app import models
from app.outcomes import PROBE_SCENARIO, RATING_OUTCOMES, Outcome, Reason, VerdictState
from app.runs.reasons import has_reason


@dataclass(frozen=True)
class Filter:
    """What is looked for; None: whatever it is. `kind` is `case` or `probe`.

    `text` stands in the case's key or in any text shown.
    """

    scenario: str | None = None
    variant: str | None = None
    category: str | None = None
    outcome: Outcome | None = None
    flag: str | None = None
    text: str | None = None
    reason: Reason | None = None
    kind: str | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        c, v = models.Conversation, models.Verdict
        wanted: list[ColumnElement[bool]] = [
            getattr(c, name) == value
            for name in ("scenario", "variant", "category")
            if (value := getattr(self, name)) is not None
        ]
        if self.kind is not None:
            is_probe = c.scenario == PROBE_SCENARIO
            wanted.append(is_probe if self.kind == PROBE_SCENARIO else ~is_probe)
        if self.outcome is not None:
            wanted.append(_has_outcome(self.outcome))
        if self.reason is not None:
            wanted.append(has_reason(self.reason))
        if self.flag is not None:
            wanted.append(
                or_(c.flags.contains([self.flag]), func.coalesce(v.flags.contains([self.flag]), False))
            )
        if self.text:
            columns = (models.Case.key, c.constraint, c.request, c.response, v.explanation)
            wanted.append(or_(*(column.icontains(self.text, autoescape=True) for column in columns)))
        return wanted


def _has_outcome(outcome: Outcome) -> ColumnElement[bool]:
    """`outcome_of` as a condition on conversation and verdict."""
    c, v = models.Conversation, models.Verdict
    answered = c.state == "answered"
    for rating, its_outcome in RATING_OUTCOMES.items():
        if its_outcome is outcome:
            effective = case((c.scenario == PROBE_SCENARIO, 2 - v.rating), else_=v.rating)
            return and_(answered, v.state == VerdictState.RATED, effective == int(rating))
    if outcome is Outcome.PENDING:
        return or_(c.state == "pending", and_(answered, v.id.is_(None)))
    if outcome in (Outcome.UNPARSED, Outcome.EVALUATOR_ERROR):
        return and_(answered, v.state == outcome.value)
    if outcome is Outcome.CANCELLED:
        return or_(c.state == "cancelled", and_(answered, v.state == VerdictState.CANCELLED))
    return c.state == outcome.value

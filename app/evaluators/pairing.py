"""Two evaluators' verdicts on the same conversations, and the repeats of each: what a comparison reads."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session, aliased

from app import models
from app.accounts.policies import conversations_visible_to, runs_visible_to
from app.outcomes import CONTROL, PROBE_SCENARIO, RECALL, Outcome, VerdictState
from app.runs.reporting import outcome_of

PAGE = 12
EXCERPT = 300
# Rated by a rubric of their own, as probes are.
APART = (CONTROL, RECALL)


@dataclass(frozen=True, slots=True)
class Paired:
    """A conversation that was answered or came to nothing by itself, as each of the two has it."""

    run: int
    case: str
    cluster: str
    category: str
    scenario: str
    variant: str
    seed: int
    a: Outcome
    b: Outcome


@dataclass(frozen=True)
class Side:
    outcome: Outcome
    explanation: str


@dataclass(frozen=True)
class Flip:
    """A conversation that the two rate differently."""

    uuid: UUID
    model: str
    case: str
    category: str
    scenario: str
    variant: str
    request: str | None
    excerpt: str | None
    a: Side
    b: Side


@dataclass(frozen=True)
class FlipPage:
    items: list[Flip]
    total: int
    pages: int


def common_runs(
    session: Session, person: models.Account | None, a: models.Evaluator, b: models.Evaluator
) -> list[models.Run]:
    """Runs that both are to rate and that the person may see, the newest first."""
    r, p = models.Run, models.RunEvaluator
    both = (
        select(p.run_id)
        .where(p.evaluator_id.in_((a.id, b.id)))
        .group_by(p.run_id)
        .having(func.count() == len({a.id, b.id}))
    )
    query = select(r).where(r.id.in_(both), runs_visible_to(person)).order_by(r.id.desc())
    return list(session.scalars(query))


def pairs(session: Session, runs: Sequence[int], a: models.Evaluator, b: models.Evaluator) -> list[Paired]:
    """Of cases, without probes and what else has a rubric of its own."""
    c, k = models.Conversation, models.Case
    one, two = aliased(models.Verdict), aliased(models.Verdict)
    rows = session.execute(
        select(
            c.run_id, k.key, k.cluster, c.category, c.scenario, c.variant, c.seed,
            c.state, one.state, one.rating, two.state, two.rating,
        )
        .join(k, k.id == c.case_id)
        .outerjoin(one, (one.conversation_id == c.id) & (one.evaluator_id == a.id))
        .outerjoin(two, (two.conversation_id == c.id) & (two.evaluator_id == b.id))
        .where(
            c.run_id.in_(runs),
            c.state.in_(("answered", "empty", "filtered")),
            c.scenario != PROBE_SCENARIO,
            c.variant.not_in(APART),
        )
        .order_by(c.id)
    )  # fmt: skip
    return [
        Paired(*row[:7], outcome_of(row[7], row[8], row[9]), outcome_of(row[7], row[10], row[11]))
        for row in rows
    ]


def flips(
    session: Session,
    person: models.Account | None,
    runs: Sequence[int],
    a: models.Evaluator,
    b: models.Evaluator,
    *,
    ratings: tuple[int | None, int | None] = (None, None),
    scenario: str | None = None,
    category: str | None = None,
    run: int | None = None,
    page: int = 1,
) -> FlipPage:
    """A page of the conversations that they rate differently, as far as the person may see them.

    `ratings`: what a and what b say; None: whatever it is.
    """
    c, k, e = models.Conversation, models.Case, models.Endpoint
    one, two = aliased(models.Verdict), aliased(models.Verdict)

    def found(*columns: Any) -> Select[Any]:
        query = (
            select(*columns)
            .select_from(c)
            .join(models.Run, models.Run.id == c.run_id)
            .join(e, e.id == models.Run.endpoint_id)
            .join(k, k.id == c.case_id)
            .join(one, (one.conversation_id == c.id) & (one.evaluator_id == a.id))
            .join(two, (two.conversation_id == c.id) & (two.evaluator_id == b.id))
            .where(
                c.run_id.in_(runs if run is None else [run]),
                c.scenario != PROBE_SCENARIO,
                c.variant.not_in(APART),
                one.state == VerdictState.RATED,
                two.state == VerdictState.RATED,
                one.rating != two.rating,
                conversations_visible_to(person),
            )
        )
        columns_asked = (one.rating, two.rating, c.scenario, c.category)
        for column, wanted in zip(columns_asked, (*ratings, scenario, category), strict=True):
            query = query if wanted is None else query.where(column == wanted)
        return query

    total = session.scalars(found(func.count())).one()
    rows = session.execute(
        found(
            c.uuid, e.name, k.key, c.category, c.scenario, c.variant, c.request,
            func.left(c.response, EXCERPT),
            one.rating, one.explanation, two.rating, two.explanation,
        )
        .order_by(c.id)
        .offset((page - 1) * PAGE)
        .limit(PAGE)
    )  # fmt: skip
    items = [
        Flip(*row[:8], _side(row[8], row[9]), _side(row[10], row[11]))  # type: ignore[call-arg]
        for row in map(tuple, rows)
    ]
    return FlipPage(items, total, max(1, -(-total // PAGE)))


def _side(rating: int, explanation: str) -> Side:
    return Side(outcome_of("answered", VerdictState.RATED, rating), explanation)


def repeated(
    session: Session, runs: Sequence[int], evaluator: models.Evaluator
) -> tuple[int, list[list[int]]]:
    """How many verdicts of each conversation there are at most, and the ratings of each conversation.

    Only of conversations that were rated twice or more, by the evaluator itself or a repeat of it.
    """
    first = evaluator.repeat_of_id or evaluator.id
    c, v, e = models.Conversation, models.Verdict, models.Evaluator
    rows = session.execute(
        select(c.id, v.rating)
        .join(v, v.conversation_id == c.id)
        .join(e, e.id == v.evaluator_id)
        .where(
            c.run_id.in_(runs),
            (e.id == first) | (e.repeat_of_id == first),
            v.rating.is_not(None),
            c.scenario != PROBE_SCENARIO,
            c.variant.not_in(APART),
        )
        .order_by(c.id, e.id)
    )
    found: dict[int, list[int]] = defaultdict(list)
    for conversation, rating in rows:
        if rating is not None:
            found[conversation].append(rating)
    twice = [ratings for ratings in found.values() if len(ratings) >= 2]
    return max(map(len, twice), default=0), twice

"""Which evaluators have rated, and what: for a choice of two, for a board, for one that is named."""

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app import models
from app.accounts.policies import runs_visible_to
from app.leaderboard import VersionGroup
from app.runs.control import RUN_DETAILS
from app.runs.reporting import pick_evaluator


def board_runs(session: Session, group: VersionGroup) -> list[models.Run]:
    """The runs behind a board's rows, ranked or not, in the order of their numbers."""
    ids = [row["run"] for part in ("rows", "incomplete") for row in group.content[part]]
    query = select(models.Run).options(*RUN_DETAILS).where(models.Run.id.in_(ids)).order_by(models.Run.id)
    return list(session.scalars(query))


def rating_evaluators(
    session: Session, person: models.Account | None, runs: Sequence[int] | None = None
) -> list[tuple[models.Evaluator, int]]:
    """Evaluators of runs that the person may see (of `runs`, if given), and of how many of them."""
    r, p, e = models.Run, models.RunEvaluator, models.Evaluator
    query = (
        select(p.evaluator_id, func.count())
        .join(r, r.id == p.run_id)
        .where(runs_visible_to(person))
        .group_by(p.evaluator_id)
    )
    if runs is not None:
        query = query.where(r.id.in_(runs))
    counts = {row[0]: row[1] for row in session.execute(query)}
    found = session.scalars(select(e).where(e.id.in_(counts)).order_by(e.id)).all()
    return [(one, counts[one.id]) for one in found]


def find_any(session: Session, person: models.Account | None, reference: str) -> models.Evaluator:
    """One that has rated a run which the person may see; NotFound lists those that there are."""
    known = [one for one, _ in rating_evaluators(session, person)]
    return pick_evaluator(known, reference, "Those that have rated")

"""Manipulation checks as they are kept: an evaluator's last one is what pages show."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app import models
from app.rating_many import RatedResponse
from app.trials.manipulation import Seen, set_hash


def seen_of(found: Iterable[RatedResponse]) -> list[Seen]:
    """What the report is made of, from what was rated."""
    return [
        Seen(
            one.rating,
            one.flags,
            one.rated.verdict.explanation if one.rated else "",
            one.model_reported,
        )
        for one in found
    ]


def store_check(
    session: Session, evaluator: models.Evaluator, report: dict[str, Any]
) -> models.ManipulationCheck:
    row = models.ManipulationCheck(evaluator_id=evaluator.id, set_hash=set_hash(), report=report)
    session.add(row)
    session.flush()
    return row


def last_check(session: Session, evaluator: models.Evaluator) -> models.ManipulationCheck | None:
    """The evaluator's latest; its `set_hash` tells whether the set is still today's."""
    query = select(models.ManipulationCheck).filter_by(evaluator_id=evaluator.id)
    return session.scalars(query.order_by(models.ManipulationCheck.id.desc()).limit(1)).one_or_none()

"""Who did what. Written in the transaction of the deed, so that neither stands without the other."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from app import models
from app.text import clean

MAX_DETAIL = 300


def record(
    session: Session,
    actor: models.Account | None,
    action: str,
    subject: str,
    *,
    request_id: str | None = None,
    **details: str | int | bool | None,
) -> None:
    """Add an event: `action` as "person.invite", `subject` as "account 7". Never a secret in `details`."""
    session.add(
        models.AuditEvent(
            actor_id=actor.id if actor else None,
            action=action,
            subject=subject,
            details={name: _short(value) for name, value in details.items()},
            request_id=request_id,
        )
    )


def _short(value: Any) -> Any:
    return clean(value)[0][:MAX_DETAIL] if isinstance(value, str) else value


def latest(session: Session, *, before: int | None = None, limit: int = 100) -> list[models.AuditEvent]:
    """Events with their actors, the newest first, older than the event `before`."""
    query = select(models.AuditEvent).options(joinedload(models.AuditEvent.actor))
    if before is not None:
        query = query.where(models.AuditEvent.id < before)
    return list(session.scalars(query.order_by(models.AuditEvent.id.desc()).limit(limit)))

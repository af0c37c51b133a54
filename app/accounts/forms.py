"""Forms that may arrive twice: a double click, a retry, a reload."""

from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app import models


def earlier_result(session: Session, person: models.Account, key: UUID) -> str | None:
    """Where the form of this key led when it was stored before; None: it is the first time.

    Two at once: the second waits here for the first one's transaction.
    """
    mine = session.execute(
        insert(models.SubmittedForm)
        .values(account_id=person.id, key=key, location="")
        .on_conflict_do_nothing()
        .returning(models.SubmittedForm.key)
    )
    if mine.first() is not None:
        return None
    query = select(models.SubmittedForm.location).filter_by(account_id=person.id, key=key)
    return session.scalars(query).one()


def store_result(session: Session, person: models.Account, key: UUID, location: str) -> None:
    """In the same transaction as what the form made."""
    session.get_one(models.SubmittedForm, (person.id, key)).location = location
    session.flush()

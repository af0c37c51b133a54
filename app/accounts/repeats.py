"""Requests of programs that may arrive twice: after a timeout they are sent again under the same key."""

import hashlib
import hmac
import re
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app import models
from app.errors import InvalidInput

_KEY = re.compile(r"[\x21-\x7e]{1,200}", re.ASCII)


def check_idempotency_key(key: str) -> None:
    if not _KEY.fullmatch(key):
        raise InvalidInput("Idempotency-Key: 1 to 200 visible ASCII characters, such as a UUID.")


def earlier_run(
    session: Session, person: models.Account, key: str, body: bytes, secret: bytes
) -> UUID | None:
    """The run that the request of this key started before; None: it is the first time.

    InvalidInput when it came with another body. Two at once: the second waits here for the first one's
    transaction.
    """
    fingerprint = hmac.digest(secret, b"idempotency\0" + body, hashlib.sha256)
    mine = session.execute(
        insert(models.ApiRequest)
        .values(account_id=person.id, key=key, fingerprint=fingerprint)
        .on_conflict_do_nothing()
        .returning(models.ApiRequest.key)
    )
    if mine.first() is not None:
        return None
    row = session.scalars(select(models.ApiRequest).filter_by(account_id=person.id, key=key)).one()
    if not hmac.compare_digest(row.fingerprint, fingerprint):
        raise InvalidInput(
            "This Idempotency-Key was used for another request: give every new request a key of its own."
        )
    assert row.run_uuid is not None
    return row.run_uuid


def store_run(session: Session, person: models.Account, key: str, run_uuid: UUID) -> None:
    """In the same transaction as the run."""
    session.get_one(models.ApiRequest, (person.id, key)).run_uuid = run_uuid
    session.flush()

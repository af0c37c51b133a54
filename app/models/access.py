"""Programs that act for people, what they sent once, and what people ask an administrator to publish."""

import uuid as uuidlib
from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, DateTime, ForeignKey, Index, LargeBinary, Text, Uuid, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.db import Base
from app.models.base import DeclaredColumns, MaybeTime, declared_possible, fk, now, one_of, pk, uuid_
from app.models.people import Account
from app.models.runs import Run


class Scope(StrEnum):
    """What a token may do: look, or start and steer runs too."""

    READ = "read"
    RUN = "run"


class ApiToken(Base):
    """A program's key to its owner's runs. Only its hash is kept, so a stolen dump opens nothing."""

    __tablename__ = "api_token"
    __table_args__ = (
        CheckConstraint(f"scopes <@ ARRAY[{', '.join(repr(str(one)) for one in Scope)}]", name="scopes"),
        CheckConstraint("cardinality(scopes) > 0", name="scopes_given"),
        Index("ix_api_token_account_id", "account_id"),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    account_id: Mapped[int] = fk("account.id", ondelete="CASCADE")
    name: Mapped[str] = mapped_column(Text)
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text))
    created_at: Mapped[datetime] = now()
    expires_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    last_used_at: MaybeTime = mapped_column(DateTime(timezone=True))
    revoked_at: MaybeTime = mapped_column(DateTime(timezone=True))
    account: Mapped[Account] = relationship(lazy="raise")


class ApiRequest(Base):
    """A request that started a run, by its Idempotency-Key: sent twice, it leads to the same run."""

    __tablename__ = "api_request"
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(Text, primary_key=True)
    # Of what was sent, under the site's secret: it may hold a provider's key.
    fingerprint: Mapped[bytes] = mapped_column(LargeBinary)
    run_uuid: Mapped[uuidlib.UUID | None] = mapped_column(Uuid)
    created_at: Mapped[datetime] = now()


class PublicationAnswer(StrEnum):
    APPROVED = "approved"
    REFUSED = "refused"


class PublicationRequest(DeclaredColumns, Base):
    """Somebody asks to have a run put on the board; an administrator answers.

    Declared is what the row is to say of the model.
    """

    __tablename__ = "publication_request"
    __table_args__ = (
        CheckConstraint(one_of("answer", PublicationAnswer), name="answer"),
        *declared_possible(),
        CheckConstraint("(answer IS NULL) = (answered_at IS NULL)", name="answered"),
        CheckConstraint("answer <> 'refused' OR reason IS NOT NULL", name="refused_with_reason"),
        Index("ix_publication_request_run_id", "run_id"),
        Index(
            "uq_publication_request_open", "run_id", unique=True, postgresql_where=text("answered_at IS NULL")
        ),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    run_id: Mapped[int] = fk("run.id", ondelete="CASCADE")
    asked_by_id: Mapped[int] = fk("account.id")
    asked_at: Mapped[datetime] = now()
    answer: Mapped[str | None] = mapped_column(Text)
    reason: Mapped[str | None] = mapped_column(Text)
    answered_at: MaybeTime = mapped_column(DateTime(timezone=True))
    answered_by_id: Mapped[int | None] = mapped_column(ForeignKey("account.id", ondelete="RESTRICT"))
    run: Mapped[Run] = relationship(lazy="raise")
    asked_by: Mapped[Account] = relationship(lazy="raise", foreign_keys=[asked_by_id])
    answered_by: Mapped[Account | None] = relationship(lazy="raise", foreign_keys=[answered_by_id])

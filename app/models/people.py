"""People: who they are, how they come in, what they did."""

import uuid as uuidlib
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    DateTime,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.db import Base
from app.models.base import MaybeTime, fk, now, one_of, pk, uuid_


class Role(StrEnum):
    """Everything; own runs and studies; rating only."""

    ADMIN = "admin"
    RESEARCHER = "researcher"
    JUDGE = "judge"


class LinkKind(StrEnum):
    INVITE = "invite"
    RESET = "reset"
    SIGN_IN = "sign_in"


class Account(Base):
    """Somebody whom runs and keys belong to. The owner is who works at this machine's command line."""

    __tablename__ = "account"
    __table_args__ = (
        CheckConstraint(one_of("role", Role), name="role"),
        CheckConstraint("email = lower(email)", name="email_lower"),
        CheckConstraint("most_open_runs >= 0 AND most_daily_calls >= 0", name="quotas"),
        Index("uq_account_owner", "is_owner", unique=True, postgresql_where=text("is_owner")),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    name: Mapped[str] = mapped_column(Text)
    email: Mapped[str | None] = mapped_column(Text, unique=True)
    role: Mapped[str] = mapped_column(Text)
    is_owner: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    password_hash: Mapped[str | None] = mapped_column(Text)
    disabled_at: MaybeTime = mapped_column(DateTime(timezone=True))
    # None: as many as the site's settings allow.
    most_open_runs: Mapped[int | None] = mapped_column(Integer)
    most_daily_calls: Mapped[int | None] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = now()


class LoginSession(Base):
    """A browser that is signed in. Only a hash of its cookie is kept, so a stolen dump opens nothing."""

    __tablename__ = "login_session"
    __table_args__ = (Index("ix_login_session_account_id", "account_id"),)
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    account_id: Mapped[int] = fk("account.id", ondelete="CASCADE")
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    user_agent: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = now()
    last_seen_at: Mapped[datetime] = now()
    expires_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    revoked_at: MaybeTime = mapped_column(DateTime(timezone=True))
    account: Mapped[Account] = relationship(lazy="raise")


class OneTimeLink(Base):
    """An invitation, a password reset or the owner's sign-in: opens once, and not for long."""

    __tablename__ = "one_time_link"
    __table_args__ = (
        CheckConstraint(one_of("kind", LinkKind), name="kind"),
        CheckConstraint(one_of("role", Role), name="role"),
        CheckConstraint("email = lower(email)", name="email_lower"),
        CheckConstraint("(kind = 'invite') = (email IS NOT NULL AND role IS NOT NULL)", name="invite"),
        CheckConstraint("(kind = 'invite') <> (account_id IS NOT NULL)", name="whose"),
        Index("ix_one_time_link_account_id", "account_id"),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    kind: Mapped[str] = mapped_column(Text)
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    account_id: Mapped[int | None] = mapped_column(ForeignKey("account.id", ondelete="CASCADE"))
    email: Mapped[str | None] = mapped_column(Text)
    role: Mapped[str | None] = mapped_column(Text)
    created_by_id: Mapped[int | None] = mapped_column(ForeignKey("account.id", ondelete="SET NULL"))
    created_at: Mapped[datetime] = now()
    expires_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    used_at: MaybeTime = mapped_column(DateTime(timezone=True))
    revoked_at: MaybeTime = mapped_column(DateTime(timezone=True))
    account: Mapped[Account | None] = relationship(lazy="raise", foreign_keys=[account_id])


class AuditEvent(Base):
    """Who did what to whom or what. Only ever added to."""

    __tablename__ = "audit_event"
    __table_args__ = (Index("ix_audit_event_actor_id", "actor_id"),)
    id: Mapped[int] = pk()
    at: Mapped[datetime] = now()
    # None: somebody who is not signed in, or the machine's command line.
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("account.id", ondelete="RESTRICT"))
    action: Mapped[str] = mapped_column(Text)
    subject: Mapped[str] = mapped_column(Text)
    details: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'"))
    request_id: Mapped[str | None] = mapped_column(Text)
    actor: Mapped[Account | None] = relationship(lazy="raise")


class Throttle(Base):
    """A bucket of tries that fills up again with time."""

    __tablename__ = "throttle"
    key: Mapped[str] = mapped_column(Text, primary_key=True)
    tries_left: Mapped[float] = mapped_column(Double)
    updated_at: Mapped[datetime] = now()


class SubmittedForm(Base):
    """A form that was stored, by the key that its page gave it: sent twice, it leads to the same result."""

    __tablename__ = "submitted_form"
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[uuidlib.UUID] = mapped_column(Uuid, primary_key=True)
    location: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = now()

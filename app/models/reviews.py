"""What people look at again: conversations that were flagged, models on the board."""

import uuid as uuidlib
from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, Index, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.db import Base
from app.models.base import fk, now, one_of, pk, uuid_
from app.models.board import BoardEntry
from app.models.people import Account
from app.models.runs import Run


class FlagDecision(StrEnum):
    """`reopened`: it waits again; the earlier decisions stay in its history."""

    HARMLESS = "harmless"
    CONFIRMED = "confirmed"
    REOPENED = "reopened"


class FlagReview(Base):
    """What somebody decided about a flagged conversation; the latest counts. Only added to."""

    __tablename__ = "flag_review"
    __table_args__ = (
        CheckConstraint(one_of("decision", FlagDecision), name="decision"),
        Index("ix_flag_review_conversation_id", "conversation_id", "id"),
    )
    id: Mapped[int] = pk()
    conversation_id: Mapped[int] = fk("conversation.id", ondelete="CASCADE")
    decision: Mapped[str] = mapped_column(Text)
    note: Mapped[str] = mapped_column(Text, server_default=text("''"))
    account_id: Mapped[int] = fk("account.id")
    at: Mapped[datetime] = now()
    account: Mapped[Account] = relationship(lazy="raise")


class SpotCheck(Base):
    """A sample of a listed run's conversations, held anew by a run of their own, which is never listed."""

    __tablename__ = "spot_check"
    __table_args__ = (UniqueConstraint("run_id"), Index("ix_spot_check_entry_id", "entry_id"))
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    entry_id: Mapped[int] = fk("board_entry.id", ondelete="CASCADE")
    run_id: Mapped[int] = fk("run.id", ondelete="CASCADE")
    asked_by_id: Mapped[int] = fk("account.id")
    asked_at: Mapped[datetime] = now()
    entry: Mapped[BoardEntry] = relationship(lazy="raise")
    run: Mapped[Run] = relationship(lazy="raise")
    asked_by: Mapped[Account] = relationship(lazy="raise")

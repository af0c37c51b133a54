"""What readers report as wrong, and what became of it."""

import uuid as uuidlib
from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, DateTime, ForeignKey, Index, Text, UniqueConstraint, Uuid
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.db import Base
from app.models.base import MaybeTime, fk, now, one_of, pk, uuid_
from app.models.library import Benchmark, Case, Evaluator
from app.models.people import Account
from app.models.runs import Conversation


class CorrectionKind(StrEnum):
    VERDICT = "verdict"
    CASE = "case"


class Decision(StrEnum):
    """`discarded`: spam or abuse; it is never shown."""

    UPHELD = "upheld"
    DECLINED = "declined"
    DISCARDED = "discarded"


class Correction(Base):
    """A report that a verdict or a case is wrong. Its text is public once it was upheld or declined."""

    __tablename__ = "correction"
    __table_args__ = (
        CheckConstraint(one_of("kind", CorrectionKind), name="kind"),
        CheckConstraint(one_of("decision", Decision), name="decision"),
        CheckConstraint(
            "(kind = 'verdict') = (conversation_id IS NOT NULL) "
            "AND (kind = 'verdict') = (evaluator_id IS NOT NULL)",
            name="about",
        ),
        CheckConstraint("(decision IS NULL) = (decided_at IS NULL)", name="decided"),
        CheckConstraint(
            "decision IS NULL OR decision = 'discarded' OR reason IS NOT NULL", name="decided_with_reason"
        ),
        CheckConstraint("(reply IS NULL) = (replied_at IS NULL)", name="replied"),
        CheckConstraint("left_in_id IS NULL OR (kind = 'case' AND decision = 'upheld')", name="left"),
        UniqueConstraint("form_key"),
        Index("ix_correction_case_id", "case_id"),
        Index("ix_correction_conversation_id", "conversation_id"),
        Index("ix_correction_decided_at", "decided_at"),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    kind: Mapped[str] = mapped_column(Text)
    conversation_id: Mapped[int | None] = mapped_column(ForeignKey("conversation.id", ondelete="CASCADE"))
    evaluator_id: Mapped[int | None] = mapped_column(ForeignKey("evaluator.id", ondelete="RESTRICT"))
    case_id: Mapped[int] = fk("case.id", ondelete="CASCADE")
    body: Mapped[str] = mapped_column(Text)
    # None: somebody who was not signed in. Who reported is never shown to anybody but administrators.
    reporter_id: Mapped[int | None] = mapped_column(ForeignKey("account.id", ondelete="SET NULL"))
    # Of the form that it was sent with: sent twice, it is stored once.
    form_key: Mapped[uuidlib.UUID] = mapped_column(Uuid)
    created_at: Mapped[datetime] = now()
    decision: Mapped[str | None] = mapped_column(Text)
    reason: Mapped[str | None] = mapped_column(Text)
    decided_at: MaybeTime = mapped_column(DateTime(timezone=True))
    decided_by_id: Mapped[int | None] = mapped_column(ForeignKey("account.id", ondelete="RESTRICT"))
    # The benchmark version that an invalid case is not in any more.
    left_in_id: Mapped[int | None] = mapped_column(ForeignKey("benchmark.id", ondelete="RESTRICT"))
    # What whoever ran the model says to it.
    reply: Mapped[str | None] = mapped_column(Text)
    replied_at: MaybeTime = mapped_column(DateTime(timezone=True))
    replied_by_id: Mapped[int | None] = mapped_column(ForeignKey("account.id", ondelete="RESTRICT"))
    conversation: Mapped[Conversation | None] = relationship(lazy="raise")
    evaluator: Mapped[Evaluator | None] = relationship(lazy="raise")
    case: Mapped[Case] = relationship(lazy="raise")
    left_in: Mapped[Benchmark | None] = relationship(lazy="raise")
    reporter: Mapped[Account | None] = relationship(lazy="raise", foreign_keys=[reporter_id])
    decided_by: Mapped[Account | None] = relationship(lazy="raise", foreign_keys=[decided_by_id])

"""The leaderboard."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    DateTime,
    Index,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSON
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.db import Base
from app.models.base import DeclaredColumns, MaybeTime, declared_possible, fk, now, pk
from app.models.library import Evaluator
from app.models.runs import Run


class Board(Base):
    """The leaderboard of one version group as it was computed last; replaced whole, so never half."""

    __tablename__ = "board"
    __table_args__ = (UniqueConstraint("benchmark_id", "protocol_id", "evaluator_id"),)
    id: Mapped[int] = pk()
    benchmark_id: Mapped[int] = fk("benchmark.id")
    protocol_id: Mapped[int] = fk("protocol.id")
    evaluator_id: Mapped[int] = fk("evaluator.id")
    computed_at: Mapped[datetime] = now()
    content: Mapped[dict[str, Any]] = mapped_column(JSON)


class BoardEntry(DeclaredColumns, Base):
    """A published run under one evaluator and benchmark version. A withdrawn one leaves its tombstone.

    Declared is what its submitter said; of a vendor's own address it is known that nothing is added.
    """

    __tablename__ = "board_entry"
    __table_args__ = (
        UniqueConstraint("run_id", "evaluator_id", "benchmark_id"),
        *declared_possible(),
        CheckConstraint("(withdrawn_at IS NULL) = (withdrawn_reason IS NULL)", name="withdrawn_with_reason"),
    )
    id: Mapped[int] = pk()
    run_id: Mapped[int] = fk("run.id")
    evaluator_id: Mapped[int] = fk("evaluator.id")
    # The run's own, or a later version that only leaves out cases: the same transcripts, fewer of them.
    benchmark_id: Mapped[int] = fk("benchmark.id")
    published_at: Mapped[datetime] = now()
    withdrawn_at: MaybeTime = mapped_column(DateTime(timezone=True))
    withdrawn_reason: Mapped[str | None] = mapped_column(Text)
    # Counts, rates and pass marks of this run as they were when it was published.
    report: Mapped[dict[str, Any]] = mapped_column(JSON)
    run: Mapped[Run] = relationship(lazy="raise")
    evaluator: Mapped[Evaluator] = relationship(lazy="raise")


class HumanRate(Base):
    """What judges' labels make of a row's rate, each time that it changed. Only added to."""

    __tablename__ = "human_rate"
    __table_args__ = (Index("ix_human_rate_entry_id", "entry_id"),)
    id: Mapped[int] = pk()
    entry_id: Mapped[int] = fk("board_entry.id", ondelete="CASCADE")
    computed_at: Mapped[datetime] = now()
    # `human` of the row, or None under that name with the reason: {"human": {…} | null, "why": "…" | null}.
    content: Mapped[dict[str, Any]] = mapped_column(JSON)

"""The evaluator on trial: how it withstood manipulation, and whether it still rates as it did."""

import uuid as uuidlib
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import CheckConstraint, DateTime, ForeignKey, Index, Integer, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, JSON
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.db import Base
from app.models.base import MaybeTime, fk, now, one_of, pk, uuid_
from app.models.library import Evaluator
from app.models.studies import Study


class ManipulationCheck(Base):
    """One evaluator against the manipulation set; the last one counts."""

    __tablename__ = "manipulation_check"
    __table_args__ = (Index("ix_manipulation_check_evaluator_id", "evaluator_id", "id"),)
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    evaluator_id: Mapped[int] = fk("evaluator.id")
    # Which set, by the hash of its content.
    set_hash: Mapped[str] = mapped_column(Text)
    # The report as it was printed: resistance, by kind, honest responses.
    report: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime] = now()
    evaluator: Mapped[Evaluator] = relationship(lazy="raise")


class ReferenceSet(Base):
    """A closed study's items with what people said of them, as they were when it was frozen."""

    __tablename__ = "reference_set"
    __table_args__ = (
        CheckConstraint("every_days > 0", name="every_days"),
        CheckConstraint("size > 0", name="size"),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    study_id: Mapped[int] = fk("study.id", unique=True)
    content_hash: Mapped[str] = mapped_column(Text)
    size: Mapped[int] = mapped_column(Integer)
    # Each with constraint, request, response and the human rating.
    items: Mapped[list[Any]] = mapped_column(JSON)
    # None: re-rated on demand only, since a model's calls cost.
    every_days: Mapped[int | None] = mapped_column(Integer)
    created_at: Mapped[datetime] = now()
    study: Mapped[Study] = relationship(lazy="raise")


class DriftState(StrEnum):
    WANTED = "wanted"
    DONE = "done"
    FAILED = "failed"


class DriftCheck(Base):
    """A reference set rated once more by one evaluator; its first one is what later ones are held against."""

    __tablename__ = "drift_check"
    __table_args__ = (
        CheckConstraint(one_of("state", DriftState), name="state"),
        CheckConstraint("(state = 'done') = (report IS NOT NULL)", name="report"),
        CheckConstraint("(state = 'failed') = (error IS NOT NULL)", name="error"),
        CheckConstraint("(state = 'wanted') = (finished_at IS NULL)", name="finished"),
        Index("ix_drift_check_evaluator_id", "evaluator_id", "id"),
        Index(
            "uq_drift_check_wanted",
            "reference_set_id",
            "evaluator_id",
            unique=True,
            postgresql_where=text("state = 'wanted'"),
        ),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    reference_set_id: Mapped[int] = fk("reference_set.id")
    evaluator_id: Mapped[int] = fk("evaluator.id")
    # None: the schedule asked for it, or the command line.
    account_id: Mapped[int | None] = mapped_column(ForeignKey("account.id", ondelete="RESTRICT"))
    state: Mapped[str] = mapped_column(Text, server_default="wanted")
    report: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    # What has to be seen on the board; none where nothing moved.
    warnings: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = now()
    finished_at: MaybeTime = mapped_column(DateTime(timezone=True))
    evaluator: Mapped[Evaluator] = relationship(lazy="raise")
    reference_set: Mapped[ReferenceSet] = relationship(lazy="raise")

"""What runs are made of: benchmarks, protocols, endpoints, evaluators."""

import uuid as uuidlib
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    DateTime,
    ForeignKey,
    Integer,
    LargeBinary,
    SmallInteger,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSON, JSONB
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.db import Base
from app.models.base import (
    DeclaredColumns,
    MaybeTime,
    declared_possible,
    fk,
    now,
    one_of,
    pk,
    price_,
    prices_possible,
    uuid_,
)
from app.models.people import Account
from app.outcomes import Category, Region


class Benchmark(Base):
    __tablename__ = "benchmark"
    __table_args__ = (
        UniqueConstraint("name", "version"),
        UniqueConstraint("name", "content_hash"),
        CheckConstraint("version > 0", name="version_positive"),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    name: Mapped[str] = mapped_column(Text)
    version: Mapped[int] = mapped_column(Integer)
    content_hash: Mapped[str] = mapped_column(Text)
    warnings: Mapped[list[str]] = mapped_column(JSON, server_default=text("'[]'"))
    created_at: Mapped[datetime] = now()


CASE_KINDS = ("case", "probe")


class Case(Base):
    """A case or a probe; its texts are the record's fields as JSON."""

    __tablename__ = "case"
    __table_args__ = (
        UniqueConstraint("benchmark_id", "kind", "key"),
        CheckConstraint(one_of("kind", CASE_KINDS), name="kind"),
        CheckConstraint(one_of("category", Category), name="category"),
        CheckConstraint(one_of("split", ("public", "private")), name="split"),
        CheckConstraint(one_of("region", Region), name="region"),
    )
    id: Mapped[int] = pk()
    benchmark_id: Mapped[int] = fk("benchmark.id", ondelete="CASCADE")
    kind: Mapped[str] = mapped_column(Text)
    key: Mapped[str] = mapped_column(Text)
    number: Mapped[int] = mapped_column(Integer)
    category: Mapped[str] = mapped_column(Text)
    cluster: Mapped[str] = mapped_column(Text)
    split: Mapped[str] = mapped_column(Text)
    region: Mapped[str | None] = mapped_column(Text)
    content: Mapped[dict[str, Any]] = mapped_column(JSON)


class Distractor(Base):
    __tablename__ = "distractor"
    __table_args__ = (
        UniqueConstraint("benchmark_id", "kind", "number"),
        CheckConstraint(one_of("kind", ("fact", "trivia", "preference")), name="kind"),
    )
    id: Mapped[int] = pk()
    benchmark_id: Mapped[int] = fk("benchmark.id", ondelete="CASCADE")
    kind: Mapped[str] = mapped_column(Text)
    number: Mapped[int] = mapped_column(Integer)
    content: Mapped[dict[str, Any]] = mapped_column(JSON)


class Protocol(Base):
    __tablename__ = "protocol"
    __table_args__ = (UniqueConstraint("name", "version"), UniqueConstraint("name", "content_hash"))
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    name: Mapped[str] = mapped_column(Text)
    version: Mapped[str] = mapped_column(Text)
    content_hash: Mapped[str] = mapped_column(Text)
    source: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = now()


PROVIDERS = ("openai", "anthropic", "gemini", "completion")


class Endpoint(DeclaredColumns, Base):
    """Where a model answers. The key is sealed to (owner, endpoint, URL) and never leaves unsealed."""

    __tablename__ = "endpoint"
    __table_args__ = (
        UniqueConstraint("account_id", "provider", "base_url", "model", "name"),
        CheckConstraint(one_of("provider", PROVIDERS), name="provider"),
        *prices_possible(),
        *declared_possible(),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    account_id: Mapped[int] = fk("account.id")
    name: Mapped[str] = mapped_column(Text)
    provider: Mapped[str] = mapped_column(Text)
    base_url: Mapped[str] = mapped_column(Text)
    model: Mapped[str] = mapped_column(Text)
    sealed_key: Mapped[bytes | None] = mapped_column(LargeBinary)
    # There was a key, and it was deleted: by its owner, or with the run that it was given for.
    key_deleted_at: MaybeTime = mapped_column(DateTime(timezone=True))
    private_allowed: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    # USD per million tokens; what a run of this endpoint costs unless it says otherwise.
    price_prompt: Mapped[Decimal | None] = price_()
    price_completion: Mapped[Decimal | None] = price_()
    learned: Mapped[dict[str, str | None]] = mapped_column(JSONB, server_default=text("'{}'"))
    # What the last preflight saw: {"ok", "checks", "calls", "calls_at_once", "seconds_per_reply"}.
    last_check: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    last_check_at: MaybeTime = mapped_column(DateTime(timezone=True))
    created_at: Mapped[datetime] = now()
    account: Mapped[Account] = relationship(lazy="raise")


class Evaluator(Base):
    """What rates: the rules, or a model at an endpoint under a protocol's evaluator section.

    `imported` is whoever rated what result sheets hold: its verdicts were taken over, and it rates nothing.
    """

    __tablename__ = "evaluator"
    __table_args__ = (
        CheckConstraint(one_of("kind", ("rules", "model", "imported")), name="kind"),
        CheckConstraint(
            "(kind = 'model') = (endpoint_id IS NOT NULL) AND (kind = 'model') = (protocol_id IS NOT NULL)",
            name="model_has_endpoint",
        ),
        CheckConstraint("(repeat_of_id IS NULL) = (repeat IS NULL) AND repeat >= 2", name="repeat"),
        UniqueConstraint("repeat_of_id", "repeat"),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    kind: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    version: Mapped[str] = mapped_column(Text)
    endpoint_id: Mapped[int | None] = mapped_column(ForeignKey("endpoint.id", ondelete="RESTRICT"))
    protocol_id: Mapped[int | None] = mapped_column(ForeignKey("protocol.id", ondelete="RESTRICT"))
    fingerprint: Mapped[str] = mapped_column(Text, unique=True)
    # The same evaluator asked once more: its second, third, … verdict of a conversation.
    repeat_of_id: Mapped[int | None] = mapped_column(ForeignKey("evaluator.id", ondelete="RESTRICT"))
    repeat: Mapped[int | None] = mapped_column(SmallInteger)
    created_at: Mapped[datetime] = now()
    endpoint: Mapped[Endpoint | None] = relationship(lazy="raise")
    protocol: Mapped[Protocol | None] = relationship(lazy="raise")

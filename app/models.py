"""Every table. Transcripts are immutable; verdicts hang on (conversation, evaluator)."""

import uuid as uuidlib
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.db import Base
from app.outcomes import Category, ConversationState, Rating, Recommendation, VerdictState


def _one_of(column: str, values: type[Any] | tuple[str, ...]) -> str:
    listed = ", ".join(f"'{value}'" for value in values)
    return f"{column} IN ({listed})"


def _pk() -> Mapped[int]:
    return mapped_column(BigInteger, Identity(always=True), primary_key=True)


def _uuid() -> Mapped[uuidlib.UUID]:
    return mapped_column(Uuid, server_default=text("gen_random_uuid()"), unique=True)


def _fk(target: str, **options: Any) -> Mapped[int]:
    return mapped_column(ForeignKey(target, ondelete=options.pop("ondelete", "RESTRICT")), **options)


def _now() -> Mapped[datetime]:
    return mapped_column(DateTime(timezone=True), server_default=func.now())


def _flags() -> Mapped[list[str]]:
    return mapped_column(ARRAY(Text), server_default=text("'{}'"))


MaybeTime = Mapped[datetime | None]


class Account(Base):
    """Somebody whom runs and keys belong to."""

    __tablename__ = "account"
    id: Mapped[int] = _pk()
    uuid: Mapped[uuidlib.UUID] = _uuid()
    name: Mapped[str] = mapped_column(Text, unique=True)
    created_at: Mapped[datetime] = _now()


class Benchmark(Base):
    __tablename__ = "benchmark"
    __table_args__ = (
        UniqueConstraint("name", "version"),
        UniqueConstraint("name", "content_hash"),
        CheckConstraint("version > 0", name="version_positive"),
    )
    id: Mapped[int] = _pk()
    uuid: Mapped[uuidlib.UUID] = _uuid()
    name: Mapped[str] = mapped_column(Text)
    version: Mapped[int] = mapped_column(Integer)
    content_hash: Mapped[str] = mapped_column(Text)
    warnings: Mapped[list[str]] = mapped_column(JSON, server_default=text("'[]'"))
    created_at: Mapped[datetime] = _now()


CASE_KINDS = ("case", "probe")


class Case(Base):
    """A case or a probe; its texts are the record's fields as JSON."""

    __tablename__ = "case"
    __table_args__ = (
        UniqueConstraint("benchmark_id", "kind", "key"),
        CheckConstraint(_one_of("kind", CASE_KINDS), name="kind"),
        CheckConstraint(_one_of("category", Category), name="category"),
        CheckConstraint(_one_of("split", ("public", "private")), name="split"),
    )
    id: Mapped[int] = _pk()
    benchmark_id: Mapped[int] = _fk("benchmark.id", ondelete="CASCADE")
    kind: Mapped[str] = mapped_column(Text)
    key: Mapped[str] = mapped_column(Text)
    number: Mapped[int] = mapped_column(Integer)
    category: Mapped[str] = mapped_column(Text)
    cluster: Mapped[str] = mapped_column(Text)
    split: Mapped[str] = mapped_column(Text)
    content: Mapped[dict[str, Any]] = mapped_column(JSON)


class Distractor(Base):
    __tablename__ = "distractor"
    __table_args__ = (
        UniqueConstraint("benchmark_id", "kind", "number"),
        CheckConstraint(_one_of("kind", ("fact", "trivia", "preference")), name="kind"),
    )
    id: Mapped[int] = _pk()
    benchmark_id: Mapped[int] = _fk("benchmark.id", ondelete="CASCADE")
    kind: Mapped[str] = mapped_column(Text)
    number: Mapped[int] = mapped_column(Integer)
    content: Mapped[dict[str, Any]] = mapped_column(JSON)


class Protocol(Base):
    __tablename__ = "protocol"
    __table_args__ = (UniqueConstraint("name", "version"), UniqueConstraint("name", "content_hash"))
    id: Mapped[int] = _pk()
    uuid: Mapped[uuidlib.UUID] = _uuid()
    name: Mapped[str] = mapped_column(Text)
    version: Mapped[str] = mapped_column(Text)
    content_hash: Mapped[str] = mapped_column(Text)
    source: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = _now()


PROVIDERS = ("openai", "anthropic", "gemini", "completion")


class Endpoint(Base):
    """Where a model answers. The key is sealed to (owner, endpoint, URL) and never leaves unsealed."""

    __tablename__ = "endpoint"
    __table_args__ = (
        UniqueConstraint("account_id", "provider", "base_url", "model", "name"),
        CheckConstraint(_one_of("provider", PROVIDERS), name="provider"),
    )
    id: Mapped[int] = _pk()
    uuid: Mapped[uuidlib.UUID] = _uuid()
    account_id: Mapped[int] = _fk("account.id")
    name: Mapped[str] = mapped_column(Text)
    provider: Mapped[str] = mapped_column(Text)
    base_url: Mapped[str] = mapped_column(Text)
    model: Mapped[str] = mapped_column(Text)
    sealed_key: Mapped[bytes | None] = mapped_column(LargeBinary)
    private_allowed: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    simulated: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    learned: Mapped[dict[str, str | None]] = mapped_column(JSONB, server_default=text("'{}'"))
    created_at: Mapped[datetime] = _now()
    account: Mapped[Account] = relationship(lazy="raise")


class Evaluator(Base):
    """What rates: the rules, or a model at an endpoint under a protocol's evaluator section."""

    __tablename__ = "evaluator"
    __table_args__ = (
        CheckConstraint(_one_of("kind", ("rules", "model")), name="kind"),
        CheckConstraint(
            "(kind = 'model') = (endpoint_id IS NOT NULL) AND (kind = 'model') = (protocol_id IS NOT NULL)",
            name="model_has_endpoint",
        ),
    )
    id: Mapped[int] = _pk()
    uuid: Mapped[uuidlib.UUID] = _uuid()
    kind: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    version: Mapped[str] = mapped_column(Text)
    endpoint_id: Mapped[int | None] = mapped_column(ForeignKey("endpoint.id", ondelete="RESTRICT"))
    protocol_id: Mapped[int | None] = mapped_column(ForeignKey("protocol.id", ondelete="RESTRICT"))
    fingerprint: Mapped[str] = mapped_column(Text, unique=True)
    created_at: Mapped[datetime] = _now()
    endpoint: Mapped[Endpoint | None] = relationship(lazy="raise")
    protocol: Mapped[Protocol | None] = relationship(lazy="raise")


RUN_STATUSES = ("running", "paused", "cancelled", "finished")


class Run(Base):
    __tablename__ = "run"
    __table_args__ = (
        CheckConstraint(_one_of("status", RUN_STATUSES), name="status"),
        CheckConstraint("concurrency > 0", name="concurrency_positive"),
        CheckConstraint("cardinality(seeds) > 0", name="seeds_given"),
        CheckConstraint(
            _one_of("provenance", ("vendor", "self_declared", "imported", "uploaded")), name="provenance"
        ),
        Index("ix_run_open", "id", postgresql_where=text("status = 'running'")),
    )
    id: Mapped[int] = _pk()
    uuid: Mapped[uuidlib.UUID] = _uuid()
    account_id: Mapped[int] = _fk("account.id")
    name: Mapped[str] = mapped_column(Text)
    benchmark_id: Mapped[int] = _fk("benchmark.id")
    protocol_id: Mapped[int] = _fk("protocol.id")
    endpoint_id: Mapped[int] = _fk("endpoint.id")
    evaluator_id: Mapped[int] = _fk("evaluator.id")
    status: Mapped[str] = mapped_column(Text, server_default="running")
    status_reason: Mapped[str | None] = mapped_column(Text)
    provenance: Mapped[str] = mapped_column(Text, server_default="self_declared")
    selection: Mapped[dict[str, Any]] = mapped_column(JSONB)
    seeds: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    concurrency: Mapped[int] = mapped_column(Integer)
    # Cap on requests sent, to model and evaluator together; drivers reserve from it before they send.
    max_calls: Mapped[int | None] = mapped_column(BigInteger)
    calls_reserved: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    created_at: Mapped[datetime] = _now()
    started_at: MaybeTime = mapped_column(DateTime(timezone=True))
    finished_at: MaybeTime = mapped_column(DateTime(timezone=True))
    account: Mapped[Account] = relationship(lazy="raise")
    benchmark: Mapped[Benchmark] = relationship(lazy="raise")
    protocol: Mapped[Protocol] = relationship(lazy="raise")
    endpoint: Mapped[Endpoint] = relationship(lazy="raise")
    evaluator: Mapped[Evaluator] = relationship(lazy="raise")


class RunEvaluator(Base):
    """The evaluators that a run's conversations are to be rated by."""

    __tablename__ = "run_evaluator"
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)
    evaluator_id: Mapped[int] = mapped_column(
        ForeignKey("evaluator.id", ondelete="RESTRICT"), primary_key=True
    )
    created_at: Mapped[datetime] = _now()


class Driver(Base):
    """One task at work on a run. Its lease is what keeps others off its groups; it only saves money."""

    __tablename__ = "driver"
    id: Mapped[uuidlib.UUID] = mapped_column(Uuid, primary_key=True)
    run_id: Mapped[int] = _fk("run.id", ondelete="CASCADE", index=True)
    lease_until: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class RunGroup(Base):
    """One case under one seed: the unit that a driver claims."""

    __tablename__ = "run_group"
    __table_args__ = (
        UniqueConstraint("run_id", "case_id", "seed"),
        Index("ix_run_group_open", "run_id", "position", postgresql_where=text("NOT done")),
        Index("ix_run_group_driver", "driver_id", postgresql_where=text("driver_id IS NOT NULL")),
    )
    id: Mapped[int] = _pk()
    run_id: Mapped[int] = _fk("run.id", ondelete="CASCADE")
    case_id: Mapped[int] = _fk("case.id")
    seed: Mapped[int] = mapped_column(Integer)
    position: Mapped[int] = mapped_column(Integer)
    driver_id: Mapped[uuidlib.UUID | None] = mapped_column(ForeignKey("driver.id", ondelete="SET NULL"))
    done: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))


class Conversation(Base):
    __tablename__ = "conversation"
    __table_args__ = (
        UniqueConstraint("run_id", "case_id", "scenario", "variant", "seed"),
        CheckConstraint(_one_of("state", ConversationState), name="state"),
        CheckConstraint("turns_done BETWEEN 0 AND turns_planned", name="turns"),
        CheckConstraint(
            "state <> 'answered' OR (turns_done = turns_planned AND response IS NOT NULL)", name="answered"
        ),
        CheckConstraint("(state = 'endpoint_error') = (error IS NOT NULL)", name="error"),
        Index("ix_conversation_group_id", "group_id"),
        Index("ix_conversation_run_state", "run_id", "state"),
    )
    id: Mapped[int] = _pk()
    uuid: Mapped[uuidlib.UUID] = _uuid()
    run_id: Mapped[int] = _fk("run.id", ondelete="CASCADE")
    group_id: Mapped[int] = _fk("run_group.id", ondelete="CASCADE")
    case_id: Mapped[int] = _fk("case.id")
    scenario: Mapped[str] = mapped_column(Text)
    variant: Mapped[str] = mapped_column(Text)
    category: Mapped[str] = mapped_column(Text)
    seed: Mapped[int] = mapped_column(Integer)
    state: Mapped[str] = mapped_column(Text, server_default="pending")
    turns_planned: Mapped[int] = mapped_column(SmallInteger)
    turns_done: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    # The reduced conversation, set with the last turn: all that an evaluator or a judge sees.
    constraint: Mapped[str | None] = mapped_column(Text)
    request: Mapped[str | None] = mapped_column(Text)
    response: Mapped[str | None] = mapped_column(Text)
    flags: Mapped[list[str]] = _flags()
    error: Mapped[str | None] = mapped_column(Text)
    error_message: Mapped[str | None] = mapped_column(Text)
    failed_attempts: Mapped[list[Any]] = mapped_column(JSON, server_default=text("'[]'"))
    finished_at: MaybeTime = mapped_column(DateTime(timezone=True))


class Turn(Base):
    """One exchange, as sent and as received."""

    __tablename__ = "turn"
    __table_args__ = (CheckConstraint(_one_of("state", ("answered", "empty", "filtered")), name="state"),)
    conversation_id: Mapped[int] = mapped_column(
        ForeignKey("conversation.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    user_text: Mapped[str] = mapped_column(Text)
    assistant_text: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text)
    # Asked once for the conversations that share this opening; its tokens count once.
    copied: Mapped[bool] = mapped_column(Boolean)
    flags: Mapped[list[str]] = _flags()
    request_body: Mapped[str] = mapped_column(Text)
    response_body: Mapped[str | None] = mapped_column(Text)
    model_reported: Mapped[str | None] = mapped_column(Text)
    prompt_tokens: Mapped[int | None] = mapped_column(Integer)
    completion_tokens: Mapped[int | None] = mapped_column(Integer)
    tries: Mapped[int] = mapped_column(SmallInteger)
    attempts: Mapped[list[Any]] = mapped_column(JSON)
    # None where they are not known, as in an uploaded transcript; never invented.
    started_at: MaybeTime = mapped_column(DateTime(timezone=True))
    seconds: Mapped[float | None] = mapped_column()


class Verdict(Base):
    __tablename__ = "verdict"
    __table_args__ = (
        UniqueConstraint("conversation_id", "evaluator_id"),
        CheckConstraint(_one_of("state", VerdictState), name="state"),
        CheckConstraint(
            f"rating IN ({', '.join(str(int(rating)) for rating in Rating)})",
            name="rating",
        ),
        CheckConstraint("(state = 'rated') = (rating IS NOT NULL)", name="rated"),
        CheckConstraint(_one_of("recommendation", Recommendation), name="recommendation"),
        Index("ix_verdict_evaluator_id", "evaluator_id"),
    )
    id: Mapped[int] = _pk()
    conversation_id: Mapped[int] = _fk("conversation.id", ondelete="CASCADE")
    evaluator_id: Mapped[int] = _fk("evaluator.id")
    state: Mapped[str] = mapped_column(Text)
    rating: Mapped[int | None] = mapped_column(SmallInteger)
    acknowledged: Mapped[bool | None] = mapped_column(Boolean)
    recommendation: Mapped[str | None] = mapped_column(Text)
    explanation: Mapped[str] = mapped_column(Text)
    reason: Mapped[str | None] = mapped_column(Text)
    reply: Mapped[str | None] = mapped_column(Text)
    mode: Mapped[str] = mapped_column(Text)
    flags: Mapped[list[str]] = _flags()
    calls: Mapped[int] = mapped_column(SmallInteger)
    retries: Mapped[int] = mapped_column(SmallInteger)
    prompt_tokens: Mapped[int | None] = mapped_column(Integer)
    completion_tokens: Mapped[int | None] = mapped_column(Integer)
    exchanges: Mapped[list[Any]] = mapped_column(JSON, server_default=text("'[]'"))
    created_at: Mapped[datetime] = _now()


class Board(Base):
    """The leaderboard of one version group as it was computed last; replaced whole, so never half."""

    __tablename__ = "board"
    __table_args__ = (UniqueConstraint("benchmark_id", "protocol_id", "evaluator_id"),)
    id: Mapped[int] = _pk()
    benchmark_id: Mapped[int] = _fk("benchmark.id")
    protocol_id: Mapped[int] = _fk("protocol.id")
    evaluator_id: Mapped[int] = _fk("evaluator.id")
    computed_at: Mapped[datetime] = _now()
    content: Mapped[dict[str, Any]] = mapped_column(JSON)


class BoardEntry(Base):
    """A published run under one evaluator. A withdrawn one leaves its tombstone."""

    __tablename__ = "board_entry"
    __table_args__ = (
        UniqueConstraint("run_id", "evaluator_id"),
        CheckConstraint("(withdrawn_at IS NULL) = (withdrawn_reason IS NULL)", name="withdrawn_with_reason"),
    )
    id: Mapped[int] = _pk()
    run_id: Mapped[int] = _fk("run.id")
    evaluator_id: Mapped[int] = _fk("evaluator.id")
    published_at: Mapped[datetime] = _now()
    withdrawn_at: MaybeTime = mapped_column(DateTime(timezone=True))
    withdrawn_reason: Mapped[str | None] = mapped_column(Text)
    # Counts, rates and pass marks of this run as they were when it was published.
    report: Mapped[dict[str, Any]] = mapped_column(JSON)
    run: Mapped[Run] = relationship(lazy="raise")
    evaluator: Mapped[Evaluator] = relationship(lazy="raise")

"""Runs, transcripts and verdicts. Transcripts are immutable; verdicts hang on (conversation, evaluator)."""

import uuid as uuidlib
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.db import Base
from app.models.base import MaybeTime, fk, flags_, now, one_of, pk, price_, prices_possible, uuid_
from app.models.library import Benchmark, Endpoint, Evaluator, Protocol
from app.models.people import Account
from app.outcomes import ConversationState, Rating, Reason, Recommendation, VerdictState
from app.prices import HIGHEST

# Flags that are for people to look at.
SUSPICIOUS = ("injection_suspected", "key_removed", "nul_replaced", "surrogates_replaced")
FLAGGED = f"flags && '{{{','.join(SUSPICIOUS)}}}'::text[]"
RUN_STATUSES = ("running", "paused", "cancelled", "finished")


class Run(Base):
    __tablename__ = "run"
    __table_args__ = (
        CheckConstraint(one_of("status", RUN_STATUSES), name="status"),
        CheckConstraint("concurrency > 0", name="concurrency_positive"),
        CheckConstraint("cardinality(seeds) > 0", name="seeds_given"),
        CheckConstraint(
            one_of("provenance", ("vendor", "self_declared", "imported", "uploaded")), name="provenance"
        ),
        *prices_possible(),
        CheckConstraint(f"max_cost BETWEEN 0 AND {HIGHEST}", name="max_cost"),
        Index("ix_run_open", "id", postgresql_where=text("status = 'running'")),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    account_id: Mapped[int] = fk("account.id")
    name: Mapped[str] = mapped_column(Text)
    benchmark_id: Mapped[int] = fk("benchmark.id")
    protocol_id: Mapped[int] = fk("protocol.id")
    endpoint_id: Mapped[int] = fk("endpoint.id")
    evaluator_id: Mapped[int] = fk("evaluator.id")
    status: Mapped[str] = mapped_column(Text, server_default="running")
    status_reason: Mapped[str | None] = mapped_column(Text)
    provenance: Mapped[str] = mapped_column(Text, server_default="self_declared")
    selection: Mapped[dict[str, Any]] = mapped_column(JSONB)
    # What is to be known of it, in words: what was found in the sheets that it was taken over from.
    notes: Mapped[list[str]] = mapped_column(JSON, server_default=text("'[]'"))
    seeds: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    concurrency: Mapped[int] = mapped_column(Integer)
    # Cap on requests sent, to model and evaluator together; drivers reserve from it before they send.
    max_calls: Mapped[int | None] = mapped_column(BigInteger)
    calls_reserved: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    # Cap on spend in USD, counted by the prices below.
    max_cost: Mapped[Decimal | None] = price_()
    # The endpoint's key is deleted when the run is over.
    forget_key: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    # The endpoint's as it was when the run was started: a price that changes later changes no report.
    price_prompt: Mapped[Decimal | None] = price_()
    price_completion: Mapped[Decimal | None] = price_()
    # A simulated assistant said so in its replies, and earns nothing on a board that others read.
    simulated: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    # Run by the site to show what gaming earns: the name of the trick. It is never ranked.
    sentinel: Mapped[str | None] = mapped_column(Text)
    # Put it on the board as soon as it is finished; why that was refused.
    publish_wanted: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    publish_refusal: Mapped[str | None] = mapped_column(Text)
    # Whoever started it is told by mail when it is over or was paused by the site; of which status they were.
    mail_wanted: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    mailed_status: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = now()
    started_at: MaybeTime = mapped_column(DateTime(timezone=True))
    # When a worker took it up last; whose runs waited longest since then comes next.
    driven_at: MaybeTime = mapped_column(DateTime(timezone=True))
    finished_at: MaybeTime = mapped_column(DateTime(timezone=True))
    account: Mapped[Account] = relationship(lazy="raise")
    benchmark: Mapped[Benchmark] = relationship(lazy="raise")
    protocol: Mapped[Protocol] = relationship(lazy="raise")
    endpoint: Mapped[Endpoint] = relationship(lazy="raise")
    evaluator: Mapped[Evaluator] = relationship(lazy="raise")


class RunEvaluator(Base):
    """The evaluators that a run's conversations are to be rated by."""

    __tablename__ = "run_evaluator"
    __table_args__ = tuple(prices_possible())
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)
    evaluator_id: Mapped[int] = mapped_column(
        ForeignKey("evaluator.id", ondelete="RESTRICT"), primary_key=True
    )
    price_prompt: Mapped[Decimal | None] = price_()
    price_completion: Mapped[Decimal | None] = price_()
    simulated: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    # The conversations that it is to rate; None: all of the run.
    sample: Mapped[list[int] | None] = mapped_column(ARRAY(BigInteger))
    # Put the run on this evaluator's board as soon as it is finished.
    publish_wanted: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    publish_refusal: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = now()


class Upkeep(Base):
    """When a recurring task was done last."""

    __tablename__ = "upkeep"
    name: Mapped[str] = mapped_column(Text, primary_key=True)
    done_at: Mapped[datetime] = now()


class Driver(Base):
    """One task at work on a run. Its lease is what keeps others off its groups; it only saves money."""

    __tablename__ = "driver"
    id: Mapped[uuidlib.UUID] = mapped_column(Uuid, primary_key=True)
    run_id: Mapped[int] = fk("run.id", ondelete="CASCADE", index=True)
    lease_until: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class RunGroup(Base):
    """One case under one seed: the unit that a driver claims."""

    __tablename__ = "run_group"
    __table_args__ = (
        UniqueConstraint("run_id", "case_id", "seed"),
        Index("ix_run_group_open", "run_id", "position", postgresql_where=text("NOT done")),
        Index("ix_run_group_driver", "driver_id", postgresql_where=text("driver_id IS NOT NULL")),
    )
    id: Mapped[int] = pk()
    run_id: Mapped[int] = fk("run.id", ondelete="CASCADE")
    case_id: Mapped[int] = fk("case.id")
    seed: Mapped[int] = mapped_column(Integer)
    position: Mapped[int] = mapped_column(Integer)
    driver_id: Mapped[uuidlib.UUID | None] = mapped_column(ForeignKey("driver.id", ondelete="SET NULL"))
    done: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))


class Conversation(Base):
    __tablename__ = "conversation"
    __table_args__ = (
        UniqueConstraint("run_id", "case_id", "scenario", "variant", "seed"),
        CheckConstraint(one_of("state", ConversationState), name="state"),
        CheckConstraint("turns_done BETWEEN 0 AND turns_planned", name="turns"),
        CheckConstraint(
            "state <> 'answered' OR (turns_done = turns_planned AND response IS NOT NULL)", name="answered"
        ),
        CheckConstraint("(state = 'endpoint_error') = (error IS NOT NULL)", name="error"),
        Index("ix_conversation_group_id", "group_id"),
        # Of what changes while a run goes on nothing is indexed: an update touches no index.
        Index("ix_conversation_run_id", "run_id", "id"),
        # But for those that people look at, which are few.
        Index("ix_conversation_flagged", "id", postgresql_where=text(FLAGGED)),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    run_id: Mapped[int] = fk("run.id", ondelete="CASCADE")
    group_id: Mapped[int] = fk("run_group.id", ondelete="CASCADE")
    case_id: Mapped[int] = fk("case.id")
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
    flags: Mapped[list[str]] = flags_()
    error: Mapped[str | None] = mapped_column(Text)
    error_message: Mapped[str | None] = mapped_column(Text)
    failed_attempts: Mapped[list[Any]] = mapped_column(JSON, server_default=text("'[]'"))
    finished_at: MaybeTime = mapped_column(DateTime(timezone=True))


class Turn(Base):
    """One exchange, as sent and as received."""

    __tablename__ = "turn"
    __table_args__ = (CheckConstraint(one_of("state", ("answered", "empty", "filtered")), name="state"),)
    conversation_id: Mapped[int] = mapped_column(
        ForeignKey("conversation.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    user_text: Mapped[str] = mapped_column(Text)
    assistant_text: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text)
    # Asked once for the conversations that share this opening; its tokens count once.
    copied: Mapped[bool] = mapped_column(Boolean)
    flags: Mapped[list[str]] = flags_()
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
        CheckConstraint(one_of("state", VerdictState), name="state"),
        CheckConstraint(
            f"rating IN ({', '.join(str(int(rating)) for rating in Rating)})",
            name="rating",
        ),
        CheckConstraint("(state = 'rated') = (rating IS NOT NULL)", name="rated"),
        CheckConstraint(one_of("recommendation", Recommendation), name="recommendation"),
        Index("ix_verdict_evaluator_id", "evaluator_id"),
    )
    id: Mapped[int] = pk()
    conversation_id: Mapped[int] = fk("conversation.id", ondelete="CASCADE")
    evaluator_id: Mapped[int] = fk("evaluator.id")
    state: Mapped[str] = mapped_column(Text)
    rating: Mapped[int | None] = mapped_column(SmallInteger)
    acknowledged: Mapped[bool | None] = mapped_column(Boolean)
    recommendation: Mapped[str | None] = mapped_column(Text)
    explanation: Mapped[str] = mapped_column(Text)
    reason: Mapped[str | None] = mapped_column(Text)
    reply: Mapped[str | None] = mapped_column(Text)
    mode: Mapped[str] = mapped_column(Text)
    flags: Mapped[list[str]] = flags_()
    calls: Mapped[int] = mapped_column(SmallInteger)
    retries: Mapped[int] = mapped_column(SmallInteger)
    prompt_tokens: Mapped[int | None] = mapped_column(Integer)
    completion_tokens: Mapped[int | None] = mapped_column(Integer)
    exchanges: Mapped[list[Any]] = mapped_column(JSON, server_default=text("'[]'"))
    created_at: Mapped[datetime] = now()


class ReasonCorrection(Base):
    """What a human says a verdict's reason is; only added to, and the last one holds."""

    __tablename__ = "reason_correction"
    __table_args__ = (
        CheckConstraint(one_of("reason", Reason), name="reason"),
        Index("ix_reason_correction_verdict_id", "verdict_id", "id"),
    )
    id: Mapped[int] = pk()
    verdict_id: Mapped[int] = fk("verdict.id", ondelete="CASCADE")
    # None: as it follows from the evaluator's findings.
    reason: Mapped[str | None] = mapped_column(Text)
    note: Mapped[str] = mapped_column(Text, server_default="")
    account_id: Mapped[int] = fk("account.id")
    at: Mapped[datetime] = now()
    account: Mapped[Account] = relationship(lazy="raise")

"""Studies: items that judges rate blind, who judges, what was rated and when.

An item holds its own copy of what judges see, so that a study stays what it was when it was frozen.
"""

import uuid as uuidlib
from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Date,
    DateTime,
    Double,
    ForeignKey,
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
from app.models.base import MaybeTime, fk, now, one_of, pk, uuid_
from app.models.library import Evaluator
from app.models.people import Account
from app.models.study_words import ItemKind, JudgeState, StudyDesign, StudyState, TurnState
from app.outcomes import Rating

RATINGS = ", ".join(str(int(rating)) for rating in Rating)


class Study(Base):
    __tablename__ = "study"
    __table_args__ = (
        CheckConstraint(one_of("design", StudyDesign), name="design"),
        CheckConstraint(one_of("state", StudyState), name="state"),
        CheckConstraint("judges_per_item > 0", name="judges_per_item"),
        CheckConstraint("repeat_share BETWEEN 0 AND 0.5", name="repeat_share"),
        CheckConstraint("(state = 'draft') = (frozen_at IS NULL) OR design = 'imported'", name="frozen"),
        CheckConstraint("(frozen_at IS NULL) = (content_hash IS NULL) OR design = 'imported'", name="hash"),
        CheckConstraint("(state = 'closed') = (closed_at IS NOT NULL)", name="closed"),
        CheckConstraint(one_of("ethics_kind", ("approval", "exemption")), name="ethics_kind"),
        Index("ix_study_live", "id", postgresql_where=text("state IN ('open', 'paused')")),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    name: Mapped[str] = mapped_column(Text, unique=True)
    title: Mapped[str] = mapped_column(Text)
    # None: made at the command line.
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("account.id", ondelete="RESTRICT"))
    design: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text, server_default="draft")
    # None: an imported sheet, whose evaluator is only a name.
    evaluator_id: Mapped[int | None] = mapped_column(ForeignKey("evaluator.id", ondelete="RESTRICT"))
    cloned_from_id: Mapped[int | None] = mapped_column(ForeignKey("study.id", ondelete="SET NULL"))
    planned: Mapped[int] = mapped_column(Integer)
    seed: Mapped[int] = mapped_column(BigInteger)
    # None: any number of transcripts of one case.
    per_case: Mapped[int | None] = mapped_column(SmallInteger)
    judges_per_item: Mapped[int] = mapped_column(SmallInteger)
    repeat_share: Mapped[float] = mapped_column(Double)
    # How the draw went: strata with what was there and what was drawn, the rule, how often it was repeated.
    draw: Mapped[dict[str, Any]] = mapped_column(JSON, server_default=text("'{}'"))
    instructions: Mapped[str] = mapped_column(Text, server_default="")
    careful: Mapped[bool] = mapped_column(Boolean, server_default=text("true"))
    content_note: Mapped[str] = mapped_column(Text, server_default="")
    ethics_kind: Mapped[str | None] = mapped_column(Text)
    ethics: Mapped[str] = mapped_column(Text, server_default="")
    retention: Mapped[str] = mapped_column(Text, server_default="")
    support: Mapped[str] = mapped_column(Text, server_default="")
    completion_code: Mapped[str | None] = mapped_column(Text)
    completion_url: Mapped[str | None] = mapped_column(Text)
    # When the owner means to close it; nothing happens by itself on that day.
    expected_close: Mapped[date | None] = mapped_column(Date)
    content_hash: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = now()
    frozen_at: MaybeTime = mapped_column(DateTime(timezone=True))
    opened_at: MaybeTime = mapped_column(DateTime(timezone=True))
    closed_at: MaybeTime = mapped_column(DateTime(timezone=True))
    owner: Mapped[Account | None] = relationship(lazy="raise")
    evaluator: Mapped[Evaluator | None] = relationship(lazy="raise")


class StudyRun(Base):
    """The runs that a study draws from."""

    __tablename__ = "study_run"
    __table_args__ = (Index("ix_study_run_run_id", "run_id"),)
    study_id: Mapped[int] = mapped_column(ForeignKey("study.id", ondelete="CASCADE"), primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id", ondelete="RESTRICT"), primary_key=True)


class StudyItem(Base):
    """What judges see, and, for the owner and the report alone, what stands behind it."""

    __tablename__ = "study_item"
    __table_args__ = (
        UniqueConstraint("study_id", "kind", "position"),
        CheckConstraint(one_of("kind", ItemKind), name="kind"),
        CheckConstraint(f"evaluator_rating IN ({RATINGS})", name="evaluator_rating"),
        CheckConstraint(f"expected IN ({RATINGS})", name="expected"),
        CheckConstraint("(kind = 'main') = (expected IS NULL)", name="expected_where_known"),
        CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="inclusion"),
        CheckConstraint("counted >= 0", name="counted"),
        # The draw: those with the fewest ratings, from a random place on.
        Index("ix_study_item_draw", "study_id", "kind", "counted", "shuffle"),
        Index(
            "ix_study_item_conversation_id",
            "conversation_id",
            postgresql_where=text("conversation_id IS NOT NULL"),
        ),
        # The question that it answers: while the study is under way, all answers to it are withheld.
        Index(
            "ix_study_item_question",
            "case_id",
            "scenario",
            "variant",
            postgresql_where=text("case_id IS NOT NULL"),
        ),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    study_id: Mapped[int] = fk("study.id", ondelete="CASCADE")
    kind: Mapped[str] = mapped_column(Text)
    # From 1, within the kind.
    position: Mapped[int] = mapped_column(Integer)
    conversation_id: Mapped[int | None] = mapped_column(ForeignKey("conversation.id", ondelete="RESTRICT"))
    case_id: Mapped[int | None] = mapped_column(ForeignKey("case.id", ondelete="RESTRICT"))
    case_key: Mapped[str | None] = mapped_column(Text)
    cluster: Mapped[str | None] = mapped_column(Text)
    constraint: Mapped[str] = mapped_column(Text)
    request: Mapped[str] = mapped_column(Text)
    response: Mapped[str] = mapped_column(Text)
    # As it was received, where a mask was put over a name.
    unmasked_response: Mapped[str | None] = mapped_column(Text)
    model: Mapped[str | None] = mapped_column(Text)
    scenario: Mapped[str | None] = mapped_column(Text)
    variant: Mapped[str | None] = mapped_column(Text)
    category: Mapped[str | None] = mapped_column(Text)
    topics: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    evaluator_rating: Mapped[int | None] = mapped_column(SmallInteger)
    evaluator_explanation: Mapped[str | None] = mapped_column(Text)
    stratum: Mapped[str | None] = mapped_column(Text)
    inclusion_probability: Mapped[float | None] = mapped_column(Double)
    expected: Mapped[int | None] = mapped_column(SmallInteger)
    feedback: Mapped[str | None] = mapped_column(Text)
    # Random by the study's seed, in 0-1.
    shuffle: Mapped[float] = mapped_column(Double)
    # Ratings that count, kept with them under the row's lock.
    counted: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))


class StudyInvite(Base):
    """A link by which judges join. Only a hash of it is kept."""

    __tablename__ = "study_invite"
    __table_args__ = (
        CheckConstraint("uses BETWEEN 0 AND uses_allowed", name="uses"),
        Index("ix_study_invite_study_id", "study_id"),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    study_id: Mapped[int] = fk("study.id", ondelete="CASCADE")
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    label: Mapped[str] = mapped_column(Text)
    uses_allowed: Mapped[int] = mapped_column(Integer)
    uses: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    created_at: Mapped[datetime] = now()
    expires_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    revoked_at: MaybeTime = mapped_column(DateTime(timezone=True))


class StudyJudge(Base):
    """A human who rates in one study. Withdrawn, the row stays as a tombstone without anything personal."""

    __tablename__ = "study_judge"
    __table_args__ = (
        UniqueConstraint("study_id", "number"),
        CheckConstraint(one_of("state", JudgeState), name="state"),
        CheckConstraint("active_ms >= 0", name="active_ms"),
        CheckConstraint("(state = 'withdrawn') = (withdrawn_at IS NOT NULL)", name="withdrawn"),
        Index("ix_study_judge_account_id", "account_id", postgresql_where=text("account_id IS NOT NULL")),
        Index(
            "uq_study_judge_study_id_account_id",
            "study_id",
            "account_id",
            unique=True,
            postgresql_where=text("account_id IS NOT NULL AND withdrawn_at IS NULL"),
        ),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    study_id: Mapped[int] = fk("study.id", ondelete="CASCADE")
    # judge_1, judge_2, … in every report.
    number: Mapped[int] = mapped_column(Integer)
    invite_id: Mapped[int | None] = mapped_column(ForeignKey("study_invite.id", ondelete="SET NULL"))
    account_id: Mapped[int | None] = mapped_column(ForeignKey("account.id", ondelete="RESTRICT"))
    pseudonym: Mapped[str | None] = mapped_column(Text)
    external_id: Mapped[str | None] = mapped_column(Text)
    # Hash of the link by which the judge comes back, from another browser too; None for an imported rater.
    return_hash: Mapped[bytes | None] = mapped_column(LargeBinary, unique=True)
    refused_topics: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    state: Mapped[str] = mapped_column(Text)
    order_seed: Mapped[int] = mapped_column(BigInteger)
    # Ratings of main items, repeats not among them; kept with them under this row's lock.
    rated: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    active_ms: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    quick: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    shortcuts: Mapped[bool] = mapped_column(Boolean, server_default=text("true"))
    consented_at: MaybeTime = mapped_column(DateTime(timezone=True))
    joined_at: Mapped[datetime] = now()
    # When active time was counted last; None while nothing is on the screen.
    beat_at: MaybeTime = mapped_column(DateTime(timezone=True))
    last_seen_at: MaybeTime = mapped_column(DateTime(timezone=True))
    stopped_at: MaybeTime = mapped_column(DateTime(timezone=True))
    withdrawn_at: MaybeTime = mapped_column(DateTime(timezone=True))
    ratings_deleted: Mapped[int | None] = mapped_column(Integer)
    # The last message to the judges that this one has seen.
    message_seen_id: Mapped[int | None] = mapped_column(BigInteger)
    study: Mapped[Study] = relationship(lazy="raise")


class StudySession(Base):
    """A browser in which a judge rates. Only a hash of its cookie is kept."""

    __tablename__ = "study_session"
    __table_args__ = (Index("ix_study_session_judge_id", "judge_id"),)
    id: Mapped[int] = pk()
    judge_id: Mapped[int] = fk("study_judge.id", ondelete="CASCADE")
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    created_at: Mapped[datetime] = now()
    expires_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class StudyTurn(Base):
    """An item in a judge's series: to be rated under a lease, rated, put off or declined."""

    __tablename__ = "study_turn"
    __table_args__ = (
        UniqueConstraint("judge_id", "item_id", "repeat"),
        CheckConstraint(one_of("state", TurnState), name="state"),
        CheckConstraint("(state = 'leased') = (lease_until IS NOT NULL)", name="lease"),
        CheckConstraint("state <> 'scheduled' OR repeat AND due_after IS NOT NULL", name="scheduled"),
        Index("ix_study_turn_leased", "item_id", "lease_until", postgresql_where=text("state = 'leased'")),
        Index(
            "ix_study_turn_open",
            "judge_id",
            "id",
            postgresql_where=text("state IN ('leased', 'later', 'scheduled')"),
        ),
    )
    id: Mapped[int] = pk()
    # By which pages and forms name it: random, so it tells nothing of the item and nothing of a repeat.
    uuid: Mapped[uuidlib.UUID] = uuid_()
    judge_id: Mapped[int] = fk("study_judge.id", ondelete="CASCADE")
    item_id: Mapped[int] = fk("study_item.id", ondelete="CASCADE")
    repeat: Mapped[bool] = mapped_column(Boolean)
    state: Mapped[str] = mapped_column(Text)
    lease_until: MaybeTime = mapped_column(DateTime(timezone=True))
    # Of a repeat: when so many items are rated, and at the end of the series already when so many are.
    due_after: Mapped[int | None] = mapped_column(Integer)
    due_at_end: Mapped[int | None] = mapped_column(Integer)
    # What was typed and not submitted yet.
    draft_comment: Mapped[str | None] = mapped_column(Text)
    active_ms: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    first_shown_at: MaybeTime = mapped_column(DateTime(timezone=True))
    shown_at: MaybeTime = mapped_column(DateTime(timezone=True))
    put_off_at: MaybeTime = mapped_column(DateTime(timezone=True))


class StudyRating(Base):
    """What a judge says of an item now. `counted`: it takes one of the item's places."""

    __tablename__ = "study_rating"
    __table_args__ = (
        UniqueConstraint("judge_id", "item_id", "repeat"),
        # The same submission sent twice is stored once.
        UniqueConstraint("judge_id", "submission"),
        CheckConstraint(f"rating IN ({RATINGS})", name="rating"),
        CheckConstraint("NOT (counted AND repeat)", name="repeats_never_count"),
        Index("ix_study_rating_item_id", "item_id"),
    )
    id: Mapped[int] = pk()
    judge_id: Mapped[int] = fk("study_judge.id", ondelete="CASCADE")
    item_id: Mapped[int] = fk("study_item.id", ondelete="CASCADE")
    repeat: Mapped[bool] = mapped_column(Boolean)
    rating: Mapped[int] = mapped_column(SmallInteger)
    comment: Mapped[str | None] = mapped_column(Text)
    # The comment as the owner read it and lets it go out; one that was changed since does not.
    released_comment: Mapped[str | None] = mapped_column(Text)
    counted: Mapped[bool] = mapped_column(Boolean)
    # None where they are not known, as in an imported sheet; never invented.
    submission: Mapped[uuidlib.UUID | None] = mapped_column(Uuid)
    active_ms: Mapped[int | None] = mapped_column(Integer)
    submitted_at: MaybeTime = mapped_column(DateTime(timezone=True))
    revised_at: MaybeTime = mapped_column(DateTime(timezone=True))


class StudyRatingChange(Base):
    """Each step of a rating: given (nothing before), revised, undone (nothing after). Only added to."""

    __tablename__ = "study_rating_change"
    __table_args__ = (
        # One that comes late, after it was undone, is known as well.
        UniqueConstraint("judge_id", "submission"),
        CheckConstraint(f"before IN ({RATINGS})", name="before"),
        CheckConstraint(f"after IN ({RATINGS})", name="after"),
        CheckConstraint("before IS NOT NULL OR after IS NOT NULL", name="something"),
        Index("ix_study_rating_change_judge_id", "judge_id", "item_id"),
        Index("ix_study_rating_change_item_id", "item_id"),
    )
    id: Mapped[int] = pk()
    judge_id: Mapped[int] = fk("study_judge.id", ondelete="CASCADE")
    item_id: Mapped[int] = fk("study_item.id", ondelete="CASCADE")
    repeat: Mapped[bool] = mapped_column(Boolean)
    before: Mapped[int | None] = mapped_column(SmallInteger)
    after: Mapped[int | None] = mapped_column(SmallInteger)
    submission: Mapped[uuidlib.UUID | None] = mapped_column(Uuid)
    # None where it is not known: the history of an imported study.
    at: MaybeTime = mapped_column(DateTime(timezone=True), server_default=func.now())


class StudyAdjudication(Base):
    """An item that is looked at once more after the close; the order is random, the label final."""

    __tablename__ = "study_adjudication"
    __table_args__ = (
        UniqueConstraint("item_id"),
        UniqueConstraint("study_id", "position"),
        CheckConstraint(f"label IN ({RATINGS})", name="label"),
        CheckConstraint("(label IS NULL) = (reason IS NULL)", name="label_with_reason"),
        # Of an imported study it is not known when.
        CheckConstraint("labelled_at IS NULL OR label IS NOT NULL", name="label_with_time"),
    )
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    study_id: Mapped[int] = fk("study.id", ondelete="CASCADE")
    item_id: Mapped[int] = fk("study_item.id", ondelete="CASCADE")
    position: Mapped[int] = mapped_column(Integer)
    # Humans differ, or humans against the evaluator; False: mixed in from the others.
    contested: Mapped[bool] = mapped_column(Boolean)
    label: Mapped[int | None] = mapped_column(SmallInteger)
    reason: Mapped[str | None] = mapped_column(Text)
    note: Mapped[str | None] = mapped_column(Text)
    labelled_by_id: Mapped[int | None] = mapped_column(ForeignKey("account.id", ondelete="RESTRICT"))
    labelled_at: MaybeTime = mapped_column(DateTime(timezone=True))
    # Labels that this one took the place of, with who gave them and when.
    earlier: Mapped[list[Any]] = mapped_column(JSONB, server_default=text("'[]'"))


class StudyMessage(Base):
    """What the owner tells the judges; one of them or, without, all."""

    __tablename__ = "study_message"
    __table_args__ = (Index("ix_study_message_study_id", "study_id"),)
    id: Mapped[int] = pk()
    study_id: Mapped[int] = fk("study.id", ondelete="CASCADE")
    judge_id: Mapped[int | None] = mapped_column(ForeignKey("study_judge.id", ondelete="CASCADE"))
    body: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = now()

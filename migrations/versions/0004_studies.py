"""studies"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "study",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("uuid", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=True),
        sa.Column("design", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="draft", nullable=False),
        sa.Column("evaluator_id", sa.BigInteger(), nullable=True),
        sa.Column("cloned_from_id", sa.BigInteger(), nullable=True),
        sa.Column("planned", sa.Integer(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("per_case", sa.SmallInteger(), nullable=True),
        sa.Column("judges_per_item", sa.SmallInteger(), nullable=False),
        sa.Column("repeat_share", sa.Double(), nullable=False),
        sa.Column(
            "draw", postgresql.JSON(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("instructions", sa.Text(), server_default="", nullable=False),
        sa.Column("careful", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("content_note", sa.Text(), server_default="", nullable=False),
        sa.Column("ethics_kind", sa.Text(), nullable=True),
        sa.Column("ethics", sa.Text(), server_default="", nullable=False),
        sa.Column("retention", sa.Text(), server_default="", nullable=False),
        sa.Column("support", sa.Text(), server_default="", nullable=False),
        sa.Column("completion_code", sa.Text(), nullable=True),
        sa.Column("completion_url", sa.Text(), nullable=True),
        sa.Column("expected_close", sa.Date(), nullable=True),
        sa.Column("content_hash", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("frozen_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(frozen_at IS NULL) = (content_hash IS NULL) OR design = 'imported'", name=op.f("ck_study_hash")
        ),
        sa.CheckConstraint("(state = 'closed') = (closed_at IS NOT NULL)", name=op.f("ck_study_closed")),
        sa.CheckConstraint(
            "(state = 'draft') = (frozen_at IS NULL) OR design = 'imported'", name=op.f("ck_study_frozen")
        ),
        sa.CheckConstraint("design IN ('agreement', 'correction', 'imported')", name=op.f("ck_study_design")),
        sa.CheckConstraint("ethics_kind IN ('approval', 'exemption')", name=op.f("ck_study_ethics_kind")),
        sa.CheckConstraint(
            "state IN ('draft', 'frozen', 'open', 'paused', 'closed')", name=op.f("ck_study_state")
        ),
        sa.CheckConstraint("judges_per_item > 0", name=op.f("ck_study_judges_per_item")),
        sa.CheckConstraint("repeat_share BETWEEN 0 AND 0.5", name=op.f("ck_study_repeat_share")),
        sa.ForeignKeyConstraint(
            ["cloned_from_id"], ["study.id"], name=op.f("fk_study_cloned_from_id_study"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["evaluator_id"],
            ["evaluator.id"],
            name=op.f("fk_study_evaluator_id_evaluator"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["account.id"], name=op.f("fk_study_owner_id_account"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study")),
        sa.UniqueConstraint("name", name=op.f("uq_study_name")),
        sa.UniqueConstraint("uuid", name=op.f("uq_study_uuid")),
    )
    op.create_index(
        "ix_study_live",
        "study",
        ["id"],
        unique=False,
        postgresql_where=sa.text("state IN ('open', 'paused')"),
    )
    op.create_table(
        "study_invite",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("uuid", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("study_id", sa.BigInteger(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("uses_allowed", sa.Integer(), nullable=False),
        sa.Column("uses", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("uses BETWEEN 0 AND uses_allowed", name=op.f("ck_study_invite_uses")),
        sa.ForeignKeyConstraint(
            ["study_id"], ["study.id"], name=op.f("fk_study_invite_study_id_study"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_invite")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_study_invite_token_hash")),
        sa.UniqueConstraint("uuid", name=op.f("uq_study_invite_uuid")),
    )
    op.create_index("ix_study_invite_study_id", "study_invite", ["study_id"], unique=False)
    op.create_table(
        "study_run",
        sa.Column("study_id", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["run.id"], name=op.f("fk_study_run_run_id_run"), ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(
            ["study_id"], ["study.id"], name=op.f("fk_study_run_study_id_study"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("study_id", "run_id", name=op.f("pk_study_run")),
    )
    op.create_index("ix_study_run_run_id", "study_run", ["run_id"], unique=False)
    op.create_table(
        "study_judge",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("uuid", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("study_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("invite_id", sa.BigInteger(), nullable=True),
        sa.Column("account_id", sa.BigInteger(), nullable=True),
        sa.Column("pseudonym", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("return_hash", sa.LargeBinary(), nullable=True),
        sa.Column(
            "refused_topics", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("order_seed", sa.BigInteger(), nullable=False),
        sa.Column("rated", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("active_ms", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("quick", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("shortcuts", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("consented_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("joined_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("beat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stopped_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("withdrawn_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ratings_deleted", sa.Integer(), nullable=True),
        sa.Column("message_seen_id", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(state = 'withdrawn') = (withdrawn_at IS NOT NULL)", name=op.f("ck_study_judge_withdrawn")
        ),
        sa.CheckConstraint(
            "state IN ('training', 'rating', 'stopped', 'withdrawn')", name=op.f("ck_study_judge_state")
        ),
        sa.CheckConstraint("active_ms >= 0", name=op.f("ck_study_judge_active_ms")),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_study_judge_account_id_account"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["invite_id"],
            ["study_invite.id"],
            name=op.f("fk_study_judge_invite_id_study_invite"),
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["study_id"], ["study.id"], name=op.f("fk_study_judge_study_id_study"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_judge")),
        sa.UniqueConstraint("return_hash", name=op.f("uq_study_judge_return_hash")),
        sa.UniqueConstraint("study_id", "number", name=op.f("uq_study_judge_study_id_number")),
        sa.UniqueConstraint("uuid", name=op.f("uq_study_judge_uuid")),
    )
    op.create_index(
        "ix_study_judge_account_id",
        "study_judge",
        ["account_id"],
        unique=False,
        postgresql_where=sa.text("account_id IS NOT NULL"),
    )
    op.create_index(
        "uq_study_judge_study_id_account_id",
        "study_judge",
        ["study_id", "account_id"],
        unique=True,
        postgresql_where=sa.text("account_id IS NOT NULL AND withdrawn_at IS NULL"),
    )
    op.create_table(
        "study_message",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("study_id", sa.BigInteger(), nullable=False),
        sa.Column("judge_id", sa.BigInteger(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["judge_id"],
            ["study_judge.id"],
            name=op.f("fk_study_message_judge_id_study_judge"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["study_id"], ["study.id"], name=op.f("fk_study_message_study_id_study"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_message")),
    )
    op.create_index("ix_study_message_study_id", "study_message", ["study_id"], unique=False)
    op.create_table(
        "study_session",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("judge_id", sa.BigInteger(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["judge_id"],
            ["study_judge.id"],
            name=op.f("fk_study_session_judge_id_study_judge"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_session")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_study_session_token_hash")),
    )
    op.create_index("ix_study_session_judge_id", "study_session", ["judge_id"], unique=False)
    op.create_table(
        "study_item",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("uuid", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("study_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("conversation_id", sa.BigInteger(), nullable=True),
        sa.Column("case_key", sa.Text(), nullable=True),
        sa.Column("cluster", sa.Text(), nullable=True),
        sa.Column("constraint", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("response", sa.Text(), nullable=False),
        sa.Column("unmasked_response", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("scenario", sa.Text(), nullable=True),
        sa.Column("variant", sa.Text(), nullable=True),
        sa.Column("category", sa.Text(), nullable=True),
        sa.Column("topics", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("evaluator_rating", sa.SmallInteger(), nullable=True),
        sa.Column("evaluator_explanation", sa.Text(), nullable=True),
        sa.Column("stratum", sa.Text(), nullable=True),
        sa.Column("inclusion_probability", sa.Double(), nullable=True),
        sa.Column("expected", sa.SmallInteger(), nullable=True),
        sa.Column("feedback", sa.Text(), nullable=True),
        sa.Column("shuffle", sa.Double(), nullable=False),
        sa.Column("counted", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.CheckConstraint(
            "(kind = 'main') = (expected IS NULL)", name=op.f("ck_study_item_expected_where_known")
        ),
        sa.CheckConstraint("kind IN ('main', 'training', 'gold')", name=op.f("ck_study_item_kind")),
        sa.CheckConstraint("counted >= 0", name=op.f("ck_study_item_counted")),
        sa.CheckConstraint("evaluator_rating IN (0, 1, 2)", name=op.f("ck_study_item_evaluator_rating")),
        sa.CheckConstraint("expected IN (0, 1, 2)", name=op.f("ck_study_item_expected")),
        sa.CheckConstraint(
            "inclusion_probability > 0 AND inclusion_probability <= 1", name=op.f("ck_study_item_inclusion")
        ),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversation.id"],
            name=op.f("fk_study_item_conversation_id_conversation"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["study_id"], ["study.id"], name=op.f("fk_study_item_study_id_study"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_item")),
        sa.UniqueConstraint(
            "study_id", "kind", "position", name=op.f("uq_study_item_study_id_kind_position")
        ),
        sa.UniqueConstraint("uuid", name=op.f("uq_study_item_uuid")),
    )
    op.create_index(
        "ix_study_item_conversation_id",
        "study_item",
        ["conversation_id"],
        unique=False,
        postgresql_where=sa.text("conversation_id IS NOT NULL"),
    )
    op.create_index(
        "ix_study_item_draw", "study_item", ["study_id", "kind", "counted", "shuffle"], unique=False
    )
    op.create_table(
        "study_adjudication",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("uuid", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("study_id", sa.BigInteger(), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("contested", sa.Boolean(), nullable=False),
        sa.Column("label", sa.SmallInteger(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("labelled_by_id", sa.BigInteger(), nullable=True),
        sa.Column("labelled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "earlier", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'[]'"), nullable=False
        ),
        sa.CheckConstraint(
            "(label IS NULL) = (labelled_at IS NULL)", name=op.f("ck_study_adjudication_label_with_time")
        ),
        sa.CheckConstraint(
            "(label IS NULL) = (reason IS NULL)", name=op.f("ck_study_adjudication_label_with_reason")
        ),
        sa.CheckConstraint("label IN (0, 1, 2)", name=op.f("ck_study_adjudication_label")),
        sa.ForeignKeyConstraint(
            ["item_id"],
            ["study_item.id"],
            name=op.f("fk_study_adjudication_item_id_study_item"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["labelled_by_id"],
            ["account.id"],
            name=op.f("fk_study_adjudication_labelled_by_id_account"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["study_id"], ["study.id"], name=op.f("fk_study_adjudication_study_id_study"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_adjudication")),
        sa.UniqueConstraint("item_id", name=op.f("uq_study_adjudication_item_id")),
        sa.UniqueConstraint("study_id", "position", name=op.f("uq_study_adjudication_study_id_position")),
        sa.UniqueConstraint("uuid", name=op.f("uq_study_adjudication_uuid")),
    )
    op.create_table(
        "study_rating",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("judge_id", sa.BigInteger(), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.Column("repeat", sa.Boolean(), nullable=False),
        sa.Column("rating", sa.SmallInteger(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("counted", sa.Boolean(), nullable=False),
        sa.Column("submission", sa.Uuid(), nullable=True),
        sa.Column("active_ms", sa.Integer(), nullable=True),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revised_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("NOT (counted AND repeat)", name=op.f("ck_study_rating_repeats_never_count")),
        sa.CheckConstraint("rating IN (0, 1, 2)", name=op.f("ck_study_rating_rating")),
        sa.ForeignKeyConstraint(
            ["item_id"],
            ["study_item.id"],
            name=op.f("fk_study_rating_item_id_study_item"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["judge_id"],
            ["study_judge.id"],
            name=op.f("fk_study_rating_judge_id_study_judge"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_rating")),
        sa.UniqueConstraint(
            "judge_id", "item_id", "repeat", name=op.f("uq_study_rating_judge_id_item_id_repeat")
        ),
        sa.UniqueConstraint("judge_id", "submission", name=op.f("uq_study_rating_judge_id_submission")),
    )
    op.create_index("ix_study_rating_item_id", "study_rating", ["item_id"], unique=False)
    op.create_table(
        "study_rating_change",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("judge_id", sa.BigInteger(), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.Column("repeat", sa.Boolean(), nullable=False),
        sa.Column("before", sa.SmallInteger(), nullable=True),
        sa.Column("after", sa.SmallInteger(), nullable=True),
        sa.Column("submission", sa.Uuid(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("after IN (0, 1, 2)", name=op.f("ck_study_rating_change_after")),
        sa.CheckConstraint("before IN (0, 1, 2)", name=op.f("ck_study_rating_change_before")),
        sa.CheckConstraint(
            "before IS NOT NULL OR after IS NOT NULL", name=op.f("ck_study_rating_change_something")
        ),
        sa.ForeignKeyConstraint(
            ["item_id"],
            ["study_item.id"],
            name=op.f("fk_study_rating_change_item_id_study_item"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["judge_id"],
            ["study_judge.id"],
            name=op.f("fk_study_rating_change_judge_id_study_judge"),
            ondelete="CASCADE",
        ),
        sa.UniqueConstraint(
            "judge_id", "submission", name=op.f("uq_study_rating_change_judge_id_submission")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_rating_change")),
    )
    op.create_index("ix_study_rating_change_item_id", "study_rating_change", ["item_id"], unique=False)
    op.create_index(
        "ix_study_rating_change_judge_id", "study_rating_change", ["judge_id", "item_id"], unique=False
    )
    op.create_table(
        "study_turn",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("uuid", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("judge_id", sa.BigInteger(), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.Column("repeat", sa.Boolean(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("due_after", sa.Integer(), nullable=True),
        sa.Column("due_at_end", sa.Integer(), nullable=True),
        sa.Column("draft_comment", sa.Text(), nullable=True),
        sa.Column("active_ms", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("first_shown_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("shown_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("put_off_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(state = 'leased') = (lease_until IS NOT NULL)", name=op.f("ck_study_turn_lease")
        ),
        sa.CheckConstraint(
            "state <> 'scheduled' OR repeat AND due_after IS NOT NULL", name=op.f("ck_study_turn_scheduled")
        ),
        sa.CheckConstraint(
            "state IN ('scheduled', 'leased', 'rated', 'later', 'declined')", name=op.f("ck_study_turn_state")
        ),
        sa.ForeignKeyConstraint(
            ["item_id"], ["study_item.id"], name=op.f("fk_study_turn_item_id_study_item"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["judge_id"],
            ["study_judge.id"],
            name=op.f("fk_study_turn_judge_id_study_judge"),
            ondelete="CASCADE",
        ),
        sa.UniqueConstraint("uuid", name=op.f("uq_study_turn_uuid")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_turn")),
        sa.UniqueConstraint(
            "judge_id", "item_id", "repeat", name=op.f("uq_study_turn_judge_id_item_id_repeat")
        ),
    )
    op.create_index(
        "ix_study_turn_leased",
        "study_turn",
        ["item_id", "lease_until"],
        unique=False,
        postgresql_where=sa.text("state = 'leased'"),
    )
    op.create_index(
        "ix_study_turn_open",
        "study_turn",
        ["judge_id", "id"],
        unique=False,
        postgresql_where=sa.text("state IN ('leased', 'later', 'scheduled')"),
    )


def downgrade() -> None:
    op.drop_index(
        "ix_study_turn_open",
        table_name="study_turn",
        postgresql_where=sa.text("state IN ('leased', 'later', 'scheduled')"),
    )
    op.drop_index(
        "ix_study_turn_leased", table_name="study_turn", postgresql_where=sa.text("state = 'leased'")
    )
    op.drop_table("study_turn")
    op.drop_index("ix_study_rating_change_judge_id", table_name="study_rating_change")
    op.drop_index("ix_study_rating_change_item_id", table_name="study_rating_change")
    op.drop_table("study_rating_change")
    op.drop_index("ix_study_rating_item_id", table_name="study_rating")
    op.drop_table("study_rating")
    op.drop_table("study_adjudication")
    op.drop_index("ix_study_item_draw", table_name="study_item")
    op.drop_index(
        "ix_study_item_conversation_id",
        table_name="study_item",
        postgresql_where=sa.text("conversation_id IS NOT NULL"),
    )
    op.drop_table("study_item")
    op.drop_index("ix_study_session_judge_id", table_name="study_session")
    op.drop_table("study_session")
    op.drop_index("ix_study_message_study_id", table_name="study_message")
    op.drop_table("study_message")
    op.drop_index(
        "uq_study_judge_study_id_account_id",
        table_name="study_judge",
        postgresql_where=sa.text("account_id IS NOT NULL AND withdrawn_at IS NULL"),
    )
    op.drop_index(
        "ix_study_judge_account_id",
        table_name="study_judge",
        postgresql_where=sa.text("account_id IS NOT NULL"),
    )
    op.drop_table("study_judge")
    op.drop_index("ix_study_run_run_id", table_name="study_run")
    op.drop_table("study_run")
    op.drop_index("ix_study_invite_study_id", table_name="study_invite")
    op.drop_table("study_invite")
    op.drop_index(
        "ix_study_live", table_name="study", postgresql_where=sa.text("state IN ('open', 'paused')")
    )
    op.drop_table("study")

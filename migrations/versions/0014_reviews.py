"""Decisions about flagged conversations; spot checks of listed models"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_conversation_flagged", "conversation", ["id"],
        postgresql_where=sa.text(
            "flags && '{injection_suspected,key_removed,nul_replaced,surrogates_replaced}'::text[]"
        ),
    )  # fmt: skip
    op.create_table(
        "flag_review",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("conversation_id", sa.BigInteger(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("account_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "decision IN ('harmless', 'confirmed', 'reopened')", name=op.f("ck_flag_review_decision")
        ),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversation.id"],
            name=op.f("fk_flag_review_conversation_id_conversation"), ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name=op.f("fk_flag_review_account_id_account"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_flag_review")),
    )  # fmt: skip
    op.create_index("ix_flag_review_conversation_id", "flag_review", ["conversation_id", "id"])
    op.create_table(
        "spot_check",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("uuid", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("entry_id", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("asked_by_id", sa.BigInteger(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["entry_id"], ["board_entry.id"], name=op.f("fk_spot_check_entry_id_board_entry"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["run.id"], name=op.f("fk_spot_check_run_id_run"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["asked_by_id"], ["account.id"], name=op.f("fk_spot_check_asked_by_id_account"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spot_check")),
        sa.UniqueConstraint("uuid", name=op.f("uq_spot_check_uuid")),
        sa.UniqueConstraint("run_id", name=op.f("uq_spot_check_run_id")),
    )  # fmt: skip
    op.create_index("ix_spot_check_entry_id", "spot_check", ["entry_id"])


def downgrade() -> None:
    op.drop_table("spot_check")
    op.drop_table("flag_review")
    op.drop_index("ix_conversation_flagged", "conversation")

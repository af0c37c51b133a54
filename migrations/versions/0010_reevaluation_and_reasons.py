"""Repeats of an evaluator, samples of a run's conversations, reasons corrected by humans"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

REASONS = (
    "'generic_response', 'wrong_despite_noticing', 'evading_question', 'truncated_or_broken', 'not_noticed', "
    "'unsorted'"
)


def upgrade() -> None:
    op.add_column("evaluator", sa.Column("repeat_of_id", sa.BigInteger(), nullable=True))
    op.add_column("evaluator", sa.Column("repeat", sa.SmallInteger(), nullable=True))
    op.create_foreign_key(
        op.f("fk_evaluator_repeat_of_id_evaluator"),
        "evaluator", "evaluator", ["repeat_of_id"], ["id"], ondelete="RESTRICT",
    )  # fmt: skip
    op.create_unique_constraint(
        op.f("uq_evaluator_repeat_of_id_repeat"), "evaluator", ["repeat_of_id", "repeat"]
    )
    op.create_check_constraint(
        op.f("ck_evaluator_repeat"), "evaluator", "(repeat_of_id IS NULL) = (repeat IS NULL) AND repeat >= 2"
    )
    op.add_column("run_evaluator", sa.Column("sample", postgresql.ARRAY(sa.BigInteger()), nullable=True))
    op.add_column(
        "run_evaluator",
        sa.Column("publish_wanted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    )
    op.add_column("run_evaluator", sa.Column("publish_refusal", sa.Text(), nullable=True))
    op.create_table(
        "reason_correction",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("verdict_id", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), server_default="", nullable=False),
        sa.Column("account_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(f"reason IN ({REASONS})", name=op.f("ck_reason_correction_reason")),
        sa.ForeignKeyConstraint(
            ["verdict_id"], ["verdict.id"], name=op.f("fk_reason_correction_verdict_id_verdict"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name=op.f("fk_reason_correction_account_id_account"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reason_correction")),
    )  # fmt: skip
    op.create_index("ix_reason_correction_verdict_id", "reason_correction", ["verdict_id", "id"])


def downgrade() -> None:
    op.drop_table("reason_correction")
    for name in ("publish_refusal", "publish_wanted", "sample"):
        op.drop_column("run_evaluator", name)
    op.drop_constraint(op.f("ck_evaluator_repeat"), "evaluator", type_="check")
    op.drop_constraint(op.f("uq_evaluator_repeat_of_id_repeat"), "evaluator", type_="unique")
    op.drop_constraint(op.f("fk_evaluator_repeat_of_id_evaluator"), "evaluator", type_="foreignkey")
    op.drop_column("evaluator", "repeat")
    op.drop_column("evaluator", "repeat_of_id")

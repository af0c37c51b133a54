"""Corrections, human-corrected rates, sentinels, rows that stand under a later benchmark version"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def _moment(name: str, *, now: bool = False, nullable: bool = True) -> sa.Column[object]:
    default = sa.text("now()") if now else None
    return sa.Column(name, sa.DateTime(timezone=True), server_default=default, nullable=nullable)


def _refers(table: str, column: str, to: str, ondelete: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}_{to}")
    return sa.ForeignKeyConstraint([column], [f"{to}.id"], name=name, ondelete=ondelete)


def upgrade() -> None:
    op.add_column("run", sa.Column("sentinel", sa.Text(), nullable=True))
    op.add_column("board_entry", sa.Column("benchmark_id", sa.BigInteger(), nullable=True))
    op.execute("UPDATE board_entry e SET benchmark_id = r.benchmark_id FROM run r WHERE r.id = e.run_id")
    op.alter_column("board_entry", "benchmark_id", nullable=False)
    op.create_foreign_key(
        op.f("fk_board_entry_benchmark_id_benchmark"),
        "board_entry",
        "benchmark",
        ["benchmark_id"],
        ["id"],
        ondelete="RESTRICT",
    )
    op.drop_constraint("uq_board_entry_run_id_evaluator_id", "board_entry")
    op.create_unique_constraint(
        "uq_board_entry_run_id_evaluator_id_benchmark_id",
        "board_entry",
        ["run_id", "evaluator_id", "benchmark_id"],
    )
    op.create_table(
        "human_rate",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("entry_id", sa.BigInteger(), nullable=False),
        _moment("computed_at", now=True, nullable=False),
        sa.Column("content", postgresql.JSON(), nullable=False),
        _refers("human_rate", "entry_id", "board_entry", "CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_human_rate")),
    )
    op.create_index("ix_human_rate_entry_id", "human_rate", ["entry_id"])
    op.create_table(
        "correction",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("uuid", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.BigInteger(), nullable=True),
        sa.Column("evaluator_id", sa.BigInteger(), nullable=True),
        sa.Column("case_id", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("reporter_id", sa.BigInteger(), nullable=True),
        sa.Column("form_key", sa.Uuid(), nullable=False),
        _moment("created_at", now=True, nullable=False),
        sa.Column("decision", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        _moment("decided_at"),
        sa.Column("decided_by_id", sa.BigInteger(), nullable=True),
        sa.Column("left_in_id", sa.BigInteger(), nullable=True),
        sa.Column("reply", sa.Text(), nullable=True),
        _moment("replied_at"),
        sa.Column("replied_by_id", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("kind IN ('verdict', 'case')", name=op.f("ck_correction_kind")),
        sa.CheckConstraint(
            "decision IN ('upheld', 'declined', 'discarded')", name=op.f("ck_correction_decision")
        ),
        sa.CheckConstraint(
            "(kind = 'verdict') = (conversation_id IS NOT NULL) "
            "AND (kind = 'verdict') = (evaluator_id IS NOT NULL)",
            name=op.f("ck_correction_about"),
        ),
        sa.CheckConstraint("(decision IS NULL) = (decided_at IS NULL)", name=op.f("ck_correction_decided")),
        sa.CheckConstraint(
            "decision IS NULL OR decision = 'discarded' OR reason IS NOT NULL",
            name=op.f("ck_correction_decided_with_reason"),
        ),
        sa.CheckConstraint("(reply IS NULL) = (replied_at IS NULL)", name=op.f("ck_correction_replied")),
        sa.CheckConstraint(
            "left_in_id IS NULL OR (kind = 'case' AND decision = 'upheld')", name=op.f("ck_correction_left")
        ),
        _refers("correction", "conversation_id", "conversation", "CASCADE"),
        _refers("correction", "evaluator_id", "evaluator", "RESTRICT"),
        _refers("correction", "case_id", "case", "CASCADE"),
        _refers("correction", "reporter_id", "account", "SET NULL"),
        _refers("correction", "decided_by_id", "account", "RESTRICT"),
        _refers("correction", "left_in_id", "benchmark", "RESTRICT"),
        _refers("correction", "replied_by_id", "account", "RESTRICT"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_correction")),
        sa.UniqueConstraint("uuid", name=op.f("uq_correction_uuid")),
        sa.UniqueConstraint("form_key", name=op.f("uq_correction_form_key")),
    )
    op.create_index("ix_correction_case_id", "correction", ["case_id"])
    op.create_index("ix_correction_conversation_id", "correction", ["conversation_id"])
    op.create_index("ix_correction_decided_at", "correction", ["decided_at"])


def downgrade() -> None:
    op.drop_table("correction")
    op.drop_table("human_rate")
    op.execute(
        "DELETE FROM board_entry e USING run r WHERE r.id = e.run_id AND r.benchmark_id <> e.benchmark_id"
    )
    op.drop_column("board_entry", "benchmark_id")  # its key and its unique constraint go with it
    op.create_unique_constraint(
        "uq_board_entry_run_id_evaluator_id", "board_entry", ["run_id", "evaluator_id"]
    )
    op.drop_column("run", "sentinel")

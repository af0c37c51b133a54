"""The evaluator on trial: manipulation checks, reference sets, drift checks"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def _identity() -> list[sa.Column[object]]:
    return [
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("uuid", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
    ]


def _created() -> sa.Column[object]:
    return sa.Column(
        "created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
    )


def _keys(table: str) -> list[sa.Constraint]:
    return [
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
        sa.UniqueConstraint("uuid", name=op.f(f"uq_{table}_uuid")),
    ]


def _refers(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}_{other}")
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=name, ondelete="RESTRICT")


def upgrade() -> None:
    op.create_table(
        "manipulation_check",
        *_identity(),
        sa.Column("evaluator_id", sa.BigInteger(), nullable=False),
        sa.Column("set_hash", sa.Text(), nullable=False),
        sa.Column("report", postgresql.JSON(), nullable=False),
        _created(),
        _refers("manipulation_check", "evaluator_id", "evaluator"),
        *_keys("manipulation_check"),
    )
    op.create_index("ix_manipulation_check_evaluator_id", "manipulation_check", ["evaluator_id", "id"])
    op.create_table(
        "reference_set",
        *_identity(),
        sa.Column("study_id", sa.BigInteger(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("items", postgresql.JSON(), nullable=False),
        sa.Column("every_days", sa.Integer(), nullable=True),
        _created(),
        sa.CheckConstraint("every_days > 0", name=op.f("ck_reference_set_every_days")),
        sa.CheckConstraint("size > 0", name=op.f("ck_reference_set_size")),
        _refers("reference_set", "study_id", "study"),
        sa.UniqueConstraint("study_id", name=op.f("uq_reference_set_study_id")),
        *_keys("reference_set"),
    )
    op.create_table(
        "drift_check",
        *_identity(),
        sa.Column("reference_set_id", sa.BigInteger(), nullable=False),
        sa.Column("evaluator_id", sa.BigInteger(), nullable=False),
        sa.Column("account_id", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), server_default="wanted", nullable=False),
        sa.Column("report", postgresql.JSON(), nullable=True),
        sa.Column("warnings", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        _created(),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("state IN ('wanted', 'done', 'failed')", name=op.f("ck_drift_check_state")),
        sa.CheckConstraint("(state = 'done') = (report IS NOT NULL)", name=op.f("ck_drift_check_report")),
        sa.CheckConstraint("(state = 'failed') = (error IS NOT NULL)", name=op.f("ck_drift_check_error")),
        sa.CheckConstraint(
            "(state = 'wanted') = (finished_at IS NULL)", name=op.f("ck_drift_check_finished")
        ),
        _refers("drift_check", "reference_set_id", "reference_set"),
        _refers("drift_check", "evaluator_id", "evaluator"),
        _refers("drift_check", "account_id", "account"),
        *_keys("drift_check"),
    )
    op.create_index("ix_drift_check_evaluator_id", "drift_check", ["evaluator_id", "id"])
    op.create_index(
        "uq_drift_check_wanted",
        "drift_check",
        ["reference_set_id", "evaluator_id"],
        unique=True,
        postgresql_where=sa.text("state = 'wanted'"),
    )


def downgrade() -> None:
    for table in ("drift_check", "reference_set", "manipulation_check"):
        op.drop_table(table)

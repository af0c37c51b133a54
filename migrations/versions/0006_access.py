"""API tokens, requests sent twice, publication requests, quotas, a cap on spend, keys that are not kept"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def _identity() -> list[sa.Column[object]]:
    return [
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("uuid", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
    ]


def _moment(name: str, *, now: bool = False, nullable: bool = True) -> sa.Column[object]:
    default = sa.text("now()") if now else None
    return sa.Column(name, sa.DateTime(timezone=True), server_default=default, nullable=nullable)


def upgrade() -> None:
    op.create_table(
        "api_token",
        *_identity(),
        sa.Column("account_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.Text()), nullable=False),
        _moment("created_at", now=True, nullable=False),
        _moment("expires_at", nullable=False),
        _moment("last_used_at"),
        _moment("revoked_at"),
        sa.CheckConstraint("scopes <@ ARRAY['read', 'run']", name=op.f("ck_api_token_scopes")),
        sa.CheckConstraint("cardinality(scopes) > 0", name=op.f("ck_api_token_scopes_given")),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name=op.f("fk_api_token_account_id_account"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_token")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_api_token_token_hash")),
        sa.UniqueConstraint("uuid", name=op.f("uq_api_token_uuid")),
    )
    op.create_index("ix_api_token_account_id", "api_token", ["account_id"])
    op.create_table(
        "api_request",
        sa.Column("account_id", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("run_uuid", sa.Uuid(), nullable=True),
        _moment("created_at", now=True, nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name=op.f("fk_api_request_account_id_account"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("account_id", "key", name=op.f("pk_api_request")),
    )
    op.create_table(
        "publication_request",
        *_identity(),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("asked_by_id", sa.BigInteger(), nullable=False),
        _moment("asked_at", now=True, nullable=False),
        sa.Column("weights", sa.Text(), nullable=False),
        sa.Column("system_prompt", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        _moment("answered_at"),
        sa.Column("answered_by_id", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("answer IN ('approved', 'refused')", name=op.f("ck_publication_request_answer")),
        sa.CheckConstraint(
            "weights IN ('open', 'closed', 'unknown')", name=op.f("ck_publication_request_weights")
        ),
        sa.CheckConstraint(
            "system_prompt IN ('none', 'declared', 'unknown')",
            name=op.f("ck_publication_request_system_prompt"),
        ),
        sa.CheckConstraint(
            "(answer IS NULL) = (answered_at IS NULL)", name=op.f("ck_publication_request_answered")
        ),
        sa.CheckConstraint(
            "answer <> 'refused' OR reason IS NOT NULL",
            name=op.f("ck_publication_request_refused_with_reason"),
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["run.id"], name=op.f("fk_publication_request_run_id_run"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["asked_by_id"],
            ["account.id"],
            name=op.f("fk_publication_request_asked_by_id_account"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["answered_by_id"],
            ["account.id"],
            name=op.f("fk_publication_request_answered_by_id_account"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_publication_request")),
        sa.UniqueConstraint("uuid", name=op.f("uq_publication_request_uuid")),
    )
    op.create_index("ix_publication_request_run_id", "publication_request", ["run_id"])
    op.create_index(
        "uq_publication_request_open",
        "publication_request",
        ["run_id"],
        unique=True,
        postgresql_where=sa.text("answered_at IS NULL"),
    )
    op.add_column("account", sa.Column("most_open_runs", sa.Integer(), nullable=True))
    op.add_column("account", sa.Column("most_daily_calls", sa.BigInteger(), nullable=True))
    op.create_check_constraint("quotas", "account", "most_open_runs >= 0 AND most_daily_calls >= 0")
    op.add_column("run", sa.Column("max_cost", sa.Numeric(), nullable=True))
    op.create_check_constraint("max_cost", "run", "max_cost BETWEEN 0 AND 1000000")
    op.add_column(
        "run", sa.Column("forget_key", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )


def downgrade() -> None:
    for column in ("forget_key", "max_cost"):
        op.drop_column("run", column)  # its check goes with it
    for column in ("most_daily_calls", "most_open_runs"):
        op.drop_column("account", column)  # and with the first the check on both
    for table in ("publication_request", "api_request", "api_token"):
        op.drop_table(table)

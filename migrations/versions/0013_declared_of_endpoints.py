"""what submitters declare of an endpoint, its deleted key and last check; mail when a run is over"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

UNKNOWN = sa.text("'unknown'")
DECLARING = ("endpoint", "board_entry", "publication_request")
CHECKS = {
    "weights": "weights IN ('open', 'closed', 'unknown')",
    "system_prompt": "system_prompt IN ('none', 'declared', 'unknown')",
}
WITH_TEXT = "system_prompt_text IS NULL OR system_prompt = 'declared'"


def upgrade() -> None:
    for name, rule in CHECKS.items():
        op.add_column("endpoint", sa.Column(name, sa.Text(), server_default=UNKNOWN, nullable=False))
        op.create_check_constraint(name, "endpoint", rule)
        op.alter_column("publication_request", name, server_default=UNKNOWN)
    for table in DECLARING:
        for name in ("model_version", "system_prompt_text"):
            op.add_column(table, sa.Column(name, sa.Text(), nullable=True))
        op.create_check_constraint("system_prompt_text", table, WITH_TEXT)
    for name in ("key_deleted_at", "last_check_at"):
        op.add_column("endpoint", sa.Column(name, sa.DateTime(timezone=True), nullable=True))
    op.add_column("endpoint", sa.Column("last_check", postgresql.JSONB(), nullable=True))
    op.add_column(
        "run", sa.Column("mail_wanted", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
    op.add_column("run", sa.Column("mailed_status", sa.Text(), nullable=True))


def downgrade() -> None:
    for column in ("mailed_status", "mail_wanted"):
        op.drop_column("run", column)
    for column in ("last_check", "last_check_at", "key_deleted_at"):
        op.drop_column("endpoint", column)
    for table in DECLARING:
        for column in ("system_prompt_text", "model_version"):
            op.drop_column(table, column)  # and with the first its check
    for name in CHECKS:
        op.alter_column("publication_request", name, server_default=None)
        op.drop_column("endpoint", name)

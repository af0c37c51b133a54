"""runs taken over from result sheets: whoever rated them, and what was found in the sheets"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def _kinds(values: str) -> None:
    op.drop_constraint(op.f("ck_evaluator_kind"), "evaluator")
    op.create_check_constraint(op.f("ck_evaluator_kind"), "evaluator", f"kind IN ({values})")


def upgrade() -> None:
    _kinds("'rules', 'model', 'imported'")
    op.add_column("run", sa.Column("notes", sa.JSON(), server_default=sa.text("'[]'"), nullable=False))


def downgrade() -> None:
    op.drop_column("run", "notes")
    op.execute("DELETE FROM evaluator WHERE kind = 'imported'")
    _kinds("'rules', 'model'")

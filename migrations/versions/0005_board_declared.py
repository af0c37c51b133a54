"""what submitters declare of a row: open weights, system prompt"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

DECLARED = {
    "weights": "'open', 'closed', 'unknown'",
    "system_prompt": "'none', 'declared', 'unknown'",
}


def upgrade() -> None:
    for name, values in DECLARED.items():
        op.add_column(
            "board_entry",
            sa.Column(name, sa.Text(), server_default=sa.text("'unknown'"), nullable=False),
        )
        op.create_check_constraint(name, "board_entry", f"{name} IN ({values})")


def downgrade() -> None:
    for name in DECLARED:
        op.drop_column("board_entry", name)  # its check goes with it

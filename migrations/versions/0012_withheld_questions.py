"""which question a study's item answers, so that all answers to it are withheld together"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

FILL = """
UPDATE study_item i SET case_id = c.case_id FROM conversation c WHERE c.id = i.conversation_id
"""


def upgrade() -> None:
    op.add_column("study_item", sa.Column("case_id", sa.BigInteger(), nullable=True))
    op.create_foreign_key(
        op.f("fk_study_item_case_id_case"), "study_item", "case", ["case_id"], ["id"], ondelete="RESTRICT"
    )
    op.execute(FILL)
    op.create_index(
        "ix_study_item_question",
        "study_item",
        ["case_id", "scenario", "variant"],
        postgresql_where=sa.text("case_id IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_study_item_question", table_name="study_item")
    op.drop_column("study_item", "case_id")

"""Studies read back in: changes and labels without a time; comments that the owner lets go out"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

LABEL_WITH_TIME = op.f("ck_study_adjudication_label_with_time")


def upgrade() -> None:
    op.alter_column("study_rating_change", "at", nullable=True)
    op.drop_constraint(LABEL_WITH_TIME, "study_adjudication", type_="check")
    op.create_check_constraint(
        LABEL_WITH_TIME, "study_adjudication", "labelled_at IS NULL OR label IS NOT NULL"
    )
    op.add_column("study_rating", sa.Column("released_comment", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("study_rating", "released_comment")
    op.execute("UPDATE study_rating_change SET at = now() WHERE at IS NULL")
    op.alter_column("study_rating_change", "at", nullable=False)
    op.execute(
        "UPDATE study_adjudication SET labelled_at = now() WHERE label IS NOT NULL AND labelled_at IS NULL"
    )
    op.drop_constraint(LABEL_WITH_TIME, "study_adjudication", type_="check")
    op.create_check_constraint(
        LABEL_WITH_TIME, "study_adjudication", "(label IS NULL) = (labelled_at IS NULL)"
    )

"""prices, marks of simulated models, publishing at the end, regions of cases"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

PRICED = ("endpoint", "run", "run_evaluator")
PRICES = ("price_prompt", "price_completion")
REGIONS = (
    "'north_america', 'western_europe', 'eastern_europe', 'middle_east_and_north_africa', "
    "'sub_saharan_africa', 'central_asia', 'south_asia', 'southeast_asia', 'east_asia', 'latin_america', "
    "'oceania', 'anywhere'"
)


def upgrade() -> None:
    op.create_table(
        "upkeep",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("done_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_upkeep")),
    )
    op.add_column("case", sa.Column("region", sa.Text(), nullable=True))
    op.create_check_constraint("region", "case", f"region IN ({REGIONS})")
    for table in PRICED:
        for price in PRICES:
            op.add_column(table, sa.Column(price, sa.Numeric(), nullable=True))
            op.create_check_constraint(price, table, f"{price} BETWEEN 0 AND 1000000")
    for table in ("run", "run_evaluator"):
        op.add_column(
            table, sa.Column("simulated", sa.Boolean(), server_default=sa.text("false"), nullable=False)
        )
    # What was known of an address says a model's replies themselves from now on, for the run that got them.
    op.execute("UPDATE run SET simulated = true FROM endpoint e WHERE e.id = run.endpoint_id AND e.simulated")
    op.drop_column("endpoint", "simulated")
    op.add_column(
        "run", sa.Column("publish_wanted", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
    op.add_column("run", sa.Column("publish_refusal", sa.Text(), nullable=True))
    op.drop_index("ix_conversation_run_state", table_name="conversation")
    op.create_index("ix_conversation_run_id", "conversation", ["run_id", "id"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_conversation_run_id", table_name="conversation")
    op.create_index("ix_conversation_run_state", "conversation", ["run_id", "state"], unique=False)
    op.add_column(
        "endpoint", sa.Column("simulated", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
    op.execute(
        "UPDATE endpoint SET simulated = true FROM run r WHERE r.endpoint_id = endpoint.id AND r.simulated"
    )
    op.drop_column("run", "publish_refusal")
    op.drop_column("run", "publish_wanted")
    for table in ("run_evaluator", "run"):
        op.drop_column(table, "simulated")
    for table in PRICED:
        for price in PRICES:
            op.drop_column(table, price)  # its check goes with it
    op.drop_column("case", "region")
    op.drop_table("upkeep")

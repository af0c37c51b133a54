"""Alembic's entry: one connection, an advisory lock, and timeouts so that a migration never hangs a site."""

from alembic import context
from sqlalchemy import Connection, create_engine, text

import app.models  # noqa: F401  (fills the metadata)
from app.db import Base
from app.settings import load_settings

# Two `curate migrate` at once: the second waits for the first instead of failing on half a schema.
MIGRATION_LOCK = 0x43555241  # "CURA"


def _migrate(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=Base.metadata, compare_type=True)
    with context.begin_transaction():
        connection.execute(text("SET LOCAL statement_timeout = '5min'"))
        # Before the lock timeout is set, which would cut off the wait for another's long migration.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        connection.execute(text("SET LOCAL lock_timeout = '10s'"))
        context.run_migrations()


def _run() -> None:
    given = context.config.attributes.get("connection")
    if given is not None:
        _migrate(given)
        return
    url = load_settings().database_url
    if url is None:
        raise SystemExit(
            "Set CURATE_DATABASE_URL, or use `curate migrate`, which starts the embedded database."
        )
    engine = create_engine(url)
    with engine.connect() as connection:
        _migrate(connection)


_run()

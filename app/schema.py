"""Bring the database to this version's schema, and say whether it is there."""

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine

from app.settings import PROJECT_ROOT


def migrate(engine: Engine) -> None:
    """Run the missing migrations; safe to call at every start and from several processes."""
    config = _config()
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def is_current(engine: Engine) -> bool:
    head = ScriptDirectory.from_config(_config()).get_current_head()
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision() == head


def _config() -> Config:
    return Config(PROJECT_ROOT / "alembic.ini")

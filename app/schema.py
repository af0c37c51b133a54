"""Bring the database to this version's schema, and say whether it is there."""

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Engine

from app.errors import ServiceUnavailable
from app.settings import PROJECT_ROOT


def migrate(engine: Engine) -> None:
    """Run the missing migrations; safe to call at every start and from several processes.

    ServiceUnavailable when the database has a schema that this version does not know.
    """
    config = _config()
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise ServiceUnavailable(
                f"The database was set up by a newer version of this program ({error}): "
                "use that version, or another database."
            ) from error


def is_current(engine: Engine) -> bool:
    head = ScriptDirectory.from_config(_config()).get_current_head()
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision() == head


def _config() -> Config:
    return Config(PROJECT_ROOT / "alembic.ini")

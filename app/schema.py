"""Bring the database to this version's schema, and say whether it is there.

Revisions are numbered, and their files begin with the number; so the common case, a schema that is up to
date, is seen without loading Alembic.
"""

from sqlalchemy import Engine, text
from sqlalchemy.exc import ProgrammingError

from app.errors import ServiceUnavailable
from app.settings import PROJECT_ROOT

VERSIONS = PROJECT_ROOT / "migrations" / "versions"


def migrate(engine: Engine) -> None:
    """Run the missing migrations; safe to call at every start and from several processes.

    ServiceUnavailable when the database has a schema that this version does not know.
    """
    if is_current(engine):
        return
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(PROJECT_ROOT / "alembic.ini")
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
    """Whether the newest migration has been run."""
    try:
        with engine.connect() as connection:
            found = connection.scalars(text("SELECT version_num FROM alembic_version")).all()
    except ProgrammingError:
        return False
    return list(found) == [newest_revision()]


def newest_revision() -> str:
    return max(path.name.partition("_")[0] for path in VERSIONS.glob("[0-9]*.py"))

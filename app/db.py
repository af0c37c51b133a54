"""The engine, sessions, and the names that constraints get."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, MetaData, create_engine
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import DeclarativeBase, Session
from sqlalchemy.pool import NullPool

from app.errors import ServiceUnavailable

__all__ = ["Base", "Engine", "Session", "fresh_engine", "make_engine", "open_session", "session_scope"]

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


# Seconds; milliseconds for the last. A network that swallows packets would else hold a request for minutes.
TIMEOUTS = {
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)


def make_engine(url: str, *, pool_size: int = 5, statement_seconds: int | None = None) -> Engine:
    """An engine in UTC. Make it after a fork, never before: connections must not be shared.

    `statement_seconds`: a statement that takes longer is given up.
    """
    options = "-c timezone=UTC"
    if statement_seconds is not None:
        options += f" -c statement_timeout={1000 * statement_seconds}"
    return create_engine(
        url,
        pool_size=pool_size,
        max_overflow=5,
        pool_pre_ping=True,
        hide_parameters=True,  # an error's text reaches the log; hashes, sealed keys and transcripts do not
        connect_args={**TIMEOUTS, "options": options},
    )


def fresh_engine(engine: Engine) -> Engine:
    """To the same database, each time by a connection of its own.

    One that was open before waits as long as a frozen server does; a new one gives up after its timeout.
    """
    return create_engine(engine.url, poolclass=NullPool, hide_parameters=True, connect_args=TIMEOUTS)


def open_session(engine: Engine) -> Session:
    return Session(engine, expire_on_commit=False)


@contextmanager
def session_scope(engine: Engine) -> Iterator[Session]:
    """A session for one step of work; the caller commits. A database that is away is one clear error."""
    with open_session(engine) as session:
        try:
            yield session
        except (OperationalError, InterfaceError, PoolTimeout) as error:
            raise ServiceUnavailable(
                "The database does not answer; nothing of this step was stored. Try again, "
                "or see `curate doctor`."
            ) from error

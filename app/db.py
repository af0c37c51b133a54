"""The engine, sessions, and the names that constraints get."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import Engine, MetaData, create_engine, event
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


# A frozen server keeps its connections open and says nothing: neither a statement's timeout, which is the
# server's own, nor one of the network ends the wait for it.
PING_SECONDS = 3
LONGER_THAN_STATEMENT = 2


class ImpatientConnection(psycopg.Connection[Any]):
    """Waits no longer than `patience` seconds for anything, then is closed for good."""

    patience: float | None = None

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, self.patience if timeout is None else timeout)
        except psycopg.Error as error:
            if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError(f"no answer within {self.patience} s") from error


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)


def make_engine(url: str, *, pool_size: int = 5, statement_seconds: int | None = None) -> Engine:
    """An engine in UTC. Make it after a fork, never before: connections must not be shared.

    `statement_seconds`: a statement that takes longer is given up, and a server that says nothing at all
    soon after; one that says nothing to a connection out of the pool is found out within PING_SECONDS.
    """
    options = "-c timezone=UTC"
    if statement_seconds is not None:
        options += f" -c statement_timeout={1000 * statement_seconds}"
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=5,
        pool_pre_ping=True,
        hide_parameters=True,  # an error's text reaches the log; hashes, sealed keys and transcripts do not
        connect_args={**TIMEOUTS, "options": options},
    )
    if statement_seconds is not None:
        _bound_waits(engine, statement_seconds + LONGER_THAN_STATEMENT)
    return engine


def _bound_waits(engine: Engine, seconds: float) -> None:
    """The ping comes between checkin and checkout, so it has the shorter patience."""

    @event.listens_for(engine, "do_connect")
    def connect(_: object, __: object, arguments: Any, options: Any) -> ImpatientConnection:
        made = ImpatientConnection.connect(*arguments, **options)
        made.patience = seconds
        return made

    @event.listens_for(engine, "checkout")
    def lend(connection: Any, *_: object) -> None:
        connection.patience = seconds

    @event.listens_for(engine, "checkin")
    def take_back(connection: Any, *_: object) -> None:
        if connection is not None:
            connection.patience = PING_SECONDS


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

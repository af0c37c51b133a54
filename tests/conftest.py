"""Real services for tests: the machine's own where CURATE_TEST_DATABASE_URL and CURATE_TEST_REDIS_URL say so,
else embedded ones. Tests get a database of their own; nothing else on the server is touched."""

import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import hypothesis
import pytest
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.orm import Session

from app.db import Base, make_engine
from app.embedded import attach, broker_url
from app.schema import migrate
from app.settings import Settings, load_settings
from tests.embedded_help import data_directory, no_words

# How long an example takes depends on what else the machine does: no deadlines, no health checks of speed.
hypothesis.settings.register_profile(
    "curate", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("curate")


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are processors: many tests wait for a browser or for a broken service."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)


@pytest.fixture(scope="session")
def service_urls() -> Iterator[tuple[str, str]]:
    """(PostgreSQL URL of a server where databases may be made, broker URL)."""
    database, broker = os.environ.get("CURATE_TEST_DATABASE_URL"), os.environ.get("CURATE_TEST_REDIS_URL")
    with ExitStack() as stack:
        if not database or not broker:
            path = stack.enter_context(data_directory("services"))
            attachment = stack.enter_context(attach(path, services=("postgres", "valkey"), tell=no_words))
            database = database or attachment.database_url
            broker = broker or broker_url(attachment.redis_url or "")
        assert database
        yield database, broker


@pytest.fixture(scope="session")
def migrated_url(service_urls: tuple[str, str]) -> Iterator[str]:
    """The URL of a database of this test session, migrated by Alembic."""
    server = make_url(service_urls[0]).set(drivername="postgresql+psycopg")
    name = f"curate_test_{uuid.uuid4().hex[:12]}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    url = server.set(database=name).render_as_string(hide_password=False)
    engine = make_engine(url)
    migrate(engine)
    engine.dispose()
    yield url
    with admin.connect() as connection:
        connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))
    admin.dispose()


@pytest.fixture
def settings(
    migrated_url: str, service_urls: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Settings:
    return load_settings(
        database_url=migrated_url,
        redis_url=service_urls[1],
        data_dir=tmp_path_factory.mktemp("data"),
    )


@pytest.fixture
def engine(migrated_url: str) -> Iterator[Engine]:
    """For tests where transactions must really commit and race: every table is emptied afterwards."""
    engine = make_engine(migrated_url, pool_size=10)
    yield engine
    # Not TRUNCATE: it makes new files for every table and index, which costs far more than a few rows.
    with engine.begin() as connection:
        for table in reversed(Base.metadata.sorted_tables):
            connection.execute(table.delete())
    engine.dispose()


@pytest.fixture
def session(migrated_url: str) -> Iterator[Session]:
    """A session whose commits are savepoints, all of it rolled back after the test."""
    engine = make_engine(migrated_url, pool_size=1)
    with engine.connect() as connection:
        transaction = connection.begin()
        with Session(connection, expire_on_commit=False, join_transaction_mode="create_savepoint") as opened:
            yield opened
        transaction.rollback()
    engine.dispose()

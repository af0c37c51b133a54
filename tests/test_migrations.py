"""The schema by Alembic: from nothing, back to nothing, by several at once, and just what the models say."""

import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, make_url, text

from app.db import Base, make_engine
from app.errors import ServiceUnavailable
from app.schema import is_current, migrate
from app.settings import PROJECT_ROOT

COLUMNS = """
SELECT table_name, column_name, data_type, udt_name, is_nullable, column_default, is_identity
FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'
"""
CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> 'alembic_version'
"""
INDEXES = """
SELECT tablename, indexname, indexdef FROM pg_indexes
WHERE schemaname = 'public' AND tablename <> 'alembic_version'
"""


@contextmanager
def database(server_url: str) -> Iterator[str]:
    """A database of its own with nothing in it."""
    server = make_url(server_url).set(drivername="postgresql+psycopg")
    name = f"curate_test_{uuid.uuid4().hex[:12]}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    try:
        yield server.set(database=name).render_as_string(hide_password=False)
    finally:
        with admin.connect() as connection:
            connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))
        admin.dispose()


@pytest.fixture
def empty(service_urls: tuple[str, str]) -> Iterator[Engine]:
    with database(service_urls[0]) as url:
        engine = make_engine(url)
        yield engine
        engine.dispose()


def tables(engine: Engine) -> set[str]:
    query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    with engine.connect() as connection:
        return set(connection.execute(text(query)).scalars())


def everything(engine: Engine) -> set[tuple[object, ...]]:
    """Columns, constraints (checks too, which Alembic's own comparison leaves out) and indexes."""
    with engine.connect() as connection:
        return {
            tuple(row) for query in (COLUMNS, CONSTRAINTS, INDEXES) for row in connection.execute(text(query))
        }


def test_from_nothing(empty: Engine) -> None:
    assert not is_current(empty)
    migrate(empty)
    assert is_current(empty)
    assert tables(empty) == set(Base.metadata.tables) | {"alembic_version"}


def test_again_changes_nothing(empty: Engine) -> None:
    migrate(empty)
    before = everything(empty)
    migrate(empty)
    assert everything(empty) == before
    assert is_current(empty)


def test_migrations_make_what_the_models_say(empty: Engine, service_urls: tuple[str, str]) -> None:
    with database(service_urls[0]) as url:
        modelled = make_engine(url)
        Base.metadata.create_all(modelled)
        migrate(empty)
        made, wanted = everything(empty), everything(modelled)
        modelled.dispose()
    assert sorted(map(str, made - wanted)) == []
    assert sorted(map(str, wanted - made)) == []
    assert len(made) > 200


def test_back_to_nothing_and_forth(empty: Engine) -> None:
    migrate(empty)
    before = everything(empty)
    config = Config(PROJECT_ROOT / "alembic.ini")
    with empty.connect() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    assert tables(empty) == {"alembic_version"}
    assert not is_current(empty)
    migrate(empty)
    assert everything(empty) == before


BEFORE_PRICES = """
INSERT INTO account (name, role) VALUES ('a', 'admin');
INSERT INTO benchmark (name, version, content_hash) VALUES ('b', 1, 'x');
INSERT INTO protocol (name, version, content_hash, source) VALUES ('p', '1', 'x', '');
INSERT INTO evaluator (kind, name, version, fingerprint) VALUES ('rules', 'r', '1', 'x');
INSERT INTO endpoint (account_id, name, provider, base_url, model, simulated)
    SELECT a.id, kind, 'openai', 'http://x', kind, kind = 'simulated'
    FROM account a, unnest(ARRAY['real', 'simulated']) kind;
INSERT INTO run (account_id, name, benchmark_id, protocol_id, endpoint_id, evaluator_id, selection, seeds,
                 concurrency)
    SELECT a.id, e.name, b.id, p.id, e.id, v.id, '{}', '{1}', 1
    FROM account a, benchmark b, protocol p, evaluator v, endpoint e;
"""


def test_runs_keep_that_they_asked_a_simulated_model(empty: Engine) -> None:
    config = Config(PROJECT_ROOT / "alembic.ini")
    with empty.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
        connection.execute(text(BEFORE_PRICES))
        connection.commit()
        for revision, table in (("0003", "run"), ("0002", "endpoint"), ("0003", "run")):
            (command.upgrade if revision == "0003" else command.downgrade)(config, revision)
            found = connection.execute(text(f"SELECT name, simulated FROM {table} ORDER BY name"))
            assert [tuple(row) for row in found] == [("real", False), ("simulated", True)]


MIGRATE = """
import sys
from app.db import make_engine
from app.schema import is_current, migrate
engine = make_engine(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
migrate(engine)
print(is_current(engine))
"""


def test_several_processes_at_once(empty: Engine) -> None:
    url = empty.url.render_as_string(hide_password=False)
    together = [
        subprocess.Popen(
            [sys.executable, "-c", MIGRATE, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROJECT_ROOT,
        )
        for _ in range(3)
    ]
    for process in together:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    found = [process.communicate("go\n", timeout=60) for process in together]
    assert [error for _, error in found] == ["", "", ""]
    assert [said for said, _ in found] == ["True\n"] * 3


def test_a_newer_schema_is_one_clear_error(empty: Engine) -> None:
    migrate(empty)
    with empty.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ServiceUnavailable, match=r"newer version.*9999"):
        migrate(empty)
    assert not is_current(empty)

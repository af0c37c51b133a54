"""The machine's own PostgreSQL and Redis, for a second run of the tests that need services.

`python -m tests.own_services` prints, as shell assignments, where they answer. As a pytest plugin
(`-p tests.own_services`) it gives the marker `service` to every test that uses them.
"""

import getpass
import os
import shlex
import sys
from collections.abc import Iterable, Iterator

import psycopg
import pytest
import redis

HOST = "127.0.0.1"
OLDEST_POSTGRES = 15
OLDEST_REDIS = 7


def pytest_configure(config: pytest.Config) -> None:
    """Errors: pytest.UsageError for a Redis database that is in use, because ours is emptied at the end."""
    config.addinivalue_line("markers", "service: runs on PostgreSQL, Redis or both")
    url = os.environ.get("CURATE_TEST_REDIS_URL")
    if not url:
        return
    if not any(_empty([url])):
        raise pytest.UsageError(
            f"CURATE_TEST_REDIS_URL must name an empty database of a running Redis {OLDEST_REDIS} or newer"
        )
    config.add_cleanup(lambda: _empty_again(url))


def _empty_again(url: str) -> None:
    """Leave the database as it was; nothing else on the server is touched."""
    with redis.Redis.from_url(url) as client:
        client.flushdb()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        # A browser sees no difference between one server and another.
        if "service_urls" in fixtures and "chromium" not in fixtures:
            item.add_marker("service")


def database_url() -> str | None:
    """A server where databases may be made: CURATE_TEST_DATABASE_URL, else one on this machine."""
    given = os.environ.get("CURATE_TEST_DATABASE_URL")
    candidates = [given] if given else [_local(user) for user in (getpass.getuser(), "postgres")]
    return next((url for url in candidates if _usable(url)), None)


def _local(user: str) -> str:
    return f"postgresql+psycopg://{user}@{HOST}:5432/postgres"


def _usable(url: str) -> bool:
    question = "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
    try:
        with psycopg.connect(url.replace("+psycopg", ""), connect_timeout=3) as connection:
            allowed = connection.execute(question).fetchone()
            return connection.info.server_version >= OLDEST_POSTGRES * 10_000 and allowed == (True,)
    except psycopg.OperationalError:
        return False


def redis_url() -> str | None:
    """An empty database of a server: CURATE_TEST_REDIS_URL, else the last empty one on this machine."""
    given = os.environ.get("CURATE_TEST_REDIS_URL")
    if given:
        return given
    candidates = [f"redis://{HOST}:6379/{number}" for number in range(15, 0, -1)]
    return next(_empty(candidates), None)


def _empty(urls: Iterable[str]) -> Iterator[str]:
    for url in urls:
        try:
            with redis.Redis.from_url(url, socket_connect_timeout=3, socket_timeout=3) as client:
                version = str(client.info("server")["redis_version"])
                if int(version.partition(".")[0]) >= OLDEST_REDIS and client.dbsize() == 0:
                    yield url
        except redis.RedisError:
            return


def main() -> None:
    for name, url in (("CURATE_TEST_DATABASE_URL", database_url()), ("CURATE_TEST_REDIS_URL", redis_url())):
        if url is None:
            print(f"nothing fit for {name} answers on this machine", file=sys.stderr)
        else:
            print(f"{name}={shlex.quote(url)}")


if __name__ == "__main__":
    main()

"""Two commands that store the same at the same moment: both end well, and it is stored once."""

import threading
from collections.abc import Callable

import pytest
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from app import models
from app.benchmark import builtin_benchmark
from app.db import open_session
from app.endpoints import local_account, store_endpoint
from app.library import store_benchmark, store_protocol
from app.protocol import builtin_protocol


def _benchmark(session: Session) -> int:
    return store_benchmark(session, builtin_benchmark(), [])[0].id


def _protocol(session: Session) -> int:
    return store_protocol(session, builtin_protocol())[0].id


def _endpoint(session: Session) -> int:
    return store_endpoint(
        session, local_account(session), b"s" * 32, name="one", provider="openai",
        base_url="https://host.example.org/v1", model="m", api_key=None, private_allowed=False,
    ).id  # fmt: skip


@pytest.mark.parametrize(
    ("store", "table"),
    [(_benchmark, models.Benchmark), (_protocol, models.Protocol), (_endpoint, models.Endpoint)],
)
def test_who_comes_second_finds_what_the_first_one_stored(
    engine: Engine, store: Callable[[Session], int], table: type[models.Benchmark]
) -> None:
    found: list[int] = []

    def second() -> None:
        with open_session(engine) as session:
            found.append(store(session))
            session.commit()

    with open_session(engine) as session:
        local_account(session)
        session.commit()
        found.append(store(session))  # stored, and not yet there for others
        other = threading.Thread(target=second)
        other.start()
        other.join(0.3)
        session.commit()
    other.join(20)
    assert len(found) == 2
    assert found[0] == found[1]
    with open_session(engine) as session:
        assert session.scalar(select(func.count()).select_from(table)) == 1

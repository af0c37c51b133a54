"""The built-in benchmarks and protocol, stored at first use."""

from sqlalchemy.orm import Session

from app import models
from app.benchmark import BUILTIN
from app.library import find_benchmark, find_protocol, split_reference, store_benchmark, store_protocol
from app.protocol import builtin_protocol


def store_builtin(session: Session) -> None:
    """All of it, for lists of what there is."""
    for builtin in BUILTIN.values():
        store_benchmark(session, builtin(), [])
    store_protocol(session, builtin_protocol())


def benchmark_called(session: Session, reference: str) -> models.Benchmark:
    """A stored benchmark; the built-in ones are stored when they are asked for."""
    builtin = BUILTIN.get(split_reference(reference)[0])
    if builtin is not None:
        store_benchmark(session, builtin(), [])
    return find_benchmark(session, reference)


def protocol_called(session: Session, reference: str) -> models.Protocol:
    """A stored protocol; the built-in one is stored when it is asked for."""
    if split_reference(reference)[0] == builtin_protocol().name:
        store_protocol(session, builtin_protocol())
    return find_protocol(session, reference)

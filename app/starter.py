"""The built-in benchmark and protocol, stored at first use."""

from sqlalchemy.orm import Session

from app import models
from app.benchmark import BUILTIN_NAME, builtin_benchmark
from app.library import find_benchmark, find_protocol, split_reference, store_benchmark, store_protocol
from app.protocol import builtin_protocol


def benchmark_called(session: Session, reference: str) -> models.Benchmark:
    """A stored benchmark; the built-in one is stored when it is asked for."""
    if split_reference(reference)[0] == BUILTIN_NAME:
        store_benchmark(session, builtin_benchmark(), [])
    return find_benchmark(session, reference)


def protocol_called(session: Session, reference: str) -> models.Protocol:
    """A stored protocol; the built-in one is stored when it is asked for."""
    if split_reference(reference)[0] == builtin_protocol().name:
        store_protocol(session, builtin_protocol())
    return find_protocol(session, reference)

"""Benchmarks and protocols as stored: put in, found again by name."""

from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from sqlalchemy import Text, cast, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app import models
from app.benchmark import Benchmark, Case, Distractor, Pools, Probe
from app.errors import Conflict, InvalidInput, NotFound
from app.outcomes import Category, Region
from app.protocol import Protocol, load_protocol

Record = TypeVar("Record")
STORE_LOCK = 7_203  # a number of our own among advisory locks
LONGEST_VERSION = 9  # digits, which any integer column takes


def split_reference(reference: str) -> tuple[str, str | None]:
    """`name` or `name@version`."""
    name, separator, version = reference.partition("@")
    if not name or (separator and not version):
        raise InvalidInput(f"'{reference}' is no reference: write NAME or NAME@VERSION.")
    return name, version or None


def one_at_a_time(session: Session, what: str) -> None:
    """Until the transaction ends nobody else stores this; who waited for it finds it stored."""
    session.execute(select(func.pg_advisory_xact_lock(STORE_LOCK, func.hashtext(what))))


def store_benchmark(
    session: Session, benchmark: Benchmark, warnings: list[str]
) -> tuple[models.Benchmark, bool]:
    """Store content as the next version of its name. The same content again: the version it has, False."""
    same = select(models.Benchmark).filter_by(name=benchmark.name, content_hash=benchmark.content_hash)
    if (row := session.scalars(same).one_or_none()) is not None:
        return row, False
    one_at_a_time(session, f"benchmark {benchmark.name}")
    if (row := session.scalars(same).one_or_none()) is not None:
        return row, False
    newest = session.scalar(select(func.max(models.Benchmark.version)).filter_by(name=benchmark.name))
    row = models.Benchmark(
        name=benchmark.name,
        version=(newest or 0) + 1,
        content_hash=benchmark.content_hash,
        warnings=warnings,
    )
    session.add(row)
    session.flush()
    cases = [_case_row(row.id, "case", case) for case in benchmark.cases]
    cases += [_case_row(row.id, "probe", probe) for probe in benchmark.probes]
    session.execute(insert(models.Case), cases)
    pools = (*benchmark.facts, *benchmark.trivia, *benchmark.preferences)
    if pools:
        session.execute(
            insert(models.Distractor),
            [
                {"benchmark_id": row.id, "kind": item.kind, "number": item.number, "content": asdict(item)}
                for item in pools
            ],
        )
    return row, True


def _case_row(benchmark_id: int, kind: str, record: Case | Probe) -> dict[str, Any]:
    return {
        "benchmark_id": benchmark_id,
        "kind": kind,
        "key": record.key,
        "number": record.number,
        "category": record.category,
        "cluster": record.cluster,
        "split": record.split,
        "region": record.region if isinstance(record, Case) else None,
        "content": asdict(record),
    }


def find_benchmark(session: Session, reference: str) -> models.Benchmark:
    """By `name` (its newest version) or `name@version`."""
    name, version = split_reference(reference)
    query = select(models.Benchmark).filter_by(name=name).order_by(models.Benchmark.version.desc())
    if version is not None:
        if not version.isdecimal() or len(version) > LONGEST_VERSION:
            raise InvalidInput(f"'{version}' is no benchmark version: versions are whole numbers.")
        query = query.filter_by(version=int(version))
    row = session.scalars(query.limit(1)).one_or_none()
    if row is None:
        known = session.scalars(
            select(models.Benchmark.name + "@" + cast(models.Benchmark.version, Text)).order_by(
                models.Benchmark.name, models.Benchmark.version
            )
        ).all()
        raise NotFound(
            f"There is no benchmark '{reference}'. Known: {', '.join(known) or 'none yet'}. "
            "Import one with `curate benchmark import NAME --cases FILE`."
        )
    return row


def load_benchmark(session: Session, row: models.Benchmark) -> Benchmark:
    """The stored content as records."""
    cases: list[Case] = []
    probes: list[Probe] = []
    query = select(models.Case.kind, models.Case.content).filter_by(benchmark_id=row.id)
    for kind, content in session.execute(query.order_by(models.Case.id)):
        if kind == "case":
            cases.append(case_from(content))
        else:
            probes.append(probe_from(content))
    distractors = _load_distractors(session, row)
    return Benchmark(
        name=row.name,
        cases=tuple(cases),
        facts=tuple(distractors["fact"]),
        trivia=tuple(distractors["trivia"]),
        preferences=tuple(distractors["preference"]),
        probes=tuple(probes),
    )


def _load_distractors(session: Session, row: models.Benchmark) -> dict[str, list[Distractor]]:
    found: dict[str, list[Distractor]] = {"fact": [], "trivia": [], "preference": []}
    stored = select(models.Distractor.content).filter_by(benchmark_id=row.id).order_by(models.Distractor.id)
    for content in session.scalars(stored):
        found[content["kind"]].append(_record(Distractor, content))
    return found


def load_pools(session: Session, row: models.Benchmark) -> Pools:
    """What may be drawn for its cases."""
    found = _load_distractors(session, row)
    return Pools(tuple(found["fact"]), tuple(found["trivia"]), tuple(found["preference"]))


def case_from(content: dict[str, Any]) -> Case:
    region = content.get("region")
    known = {"category": Category(content["category"]), "region": Region(region) if region else None}
    return _record(Case, content | known)


def probe_from(content: dict[str, Any]) -> Probe:
    return _record(Probe, content | {"category": Category(content["category"])})


def _record(kind: type[Record], content: dict[str, Any]) -> Record:
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    values = {name: value for name, value in content.items() if name in names}
    if "tags" in values:
        values["tags"] = tuple(values["tags"])
    return kind(**values)


def store_protocol(session: Session, protocol: Protocol) -> tuple[models.Protocol, bool]:
    """Store a protocol. Another text under a name and version that are taken is refused."""
    query = select(models.Protocol).filter_by(name=protocol.name)
    same = query.filter_by(content_hash=protocol.content_hash).limit(1)
    if (found := session.scalars(same).one_or_none()) is not None:
        return found, False
    one_at_a_time(session, f"protocol {protocol.name}")
    for row in session.scalars(query):
        if row.content_hash == protocol.content_hash:
            return row, False
        if row.version == protocol.version:
            raise Conflict(
                f"Protocol {protocol.name}@{protocol.version} is stored with another content: "
                "give the changed protocol a version of its own (`version = ...` in its file)."
            )
    row = models.Protocol(
        name=protocol.name,
        version=protocol.version,
        content_hash=protocol.content_hash,
        source=protocol.source,
    )
    session.add(row)
    session.flush()
    return row, True


def find_protocol(session: Session, reference: str) -> models.Protocol:
    """By `name` (the one stored last) or `name@version`."""
    name, version = split_reference(reference)
    query = select(models.Protocol).filter_by(name=name).order_by(models.Protocol.id.desc())
    if version is not None:
        query = query.filter_by(version=version)
    row = session.scalars(query.limit(1)).one_or_none()
    if row is None:
        known = session.scalars(select(models.Protocol.name).distinct().order_by(models.Protocol.name)).all()
        raise NotFound(
            f"There is no protocol '{reference}'. Known: {', '.join(known) or 'none yet'}. "
            "Import one with `curate protocol import FILE`."
        )
    return row


def load_stored_protocol(row: models.Protocol) -> Protocol:
    return load_protocol(row.source, f"protocol {row.name}@{row.version}")


@dataclass(frozen=True)
class StoredBenchmark:
    """A stored benchmark and how much it asks."""

    row: models.Benchmark
    cases: int
    probes: int


def stored_benchmarks(session: Session) -> list[StoredBenchmark]:
    """By name and version."""
    kinds = select(models.Case.benchmark_id, models.Case.kind, func.count()).group_by(
        models.Case.benchmark_id, models.Case.kind
    )
    counts = {(benchmark, kind): number for benchmark, kind, number in session.execute(kinds)}
    query = select(models.Benchmark).order_by(models.Benchmark.name, models.Benchmark.version)
    return [
        StoredBenchmark(row, counts.get((row.id, "case"), 0), counts.get((row.id, "probe"), 0))
        for row in session.scalars(query)
    ]


def stored_protocols(session: Session) -> list[models.Protocol]:
    """By name, in the order in which they were stored."""
    return list(session.scalars(select(models.Protocol).order_by(models.Protocol.name, models.Protocol.id)))

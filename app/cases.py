"""The benchmark's cases as pages show them, with the conversations that a protocol makes of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from app import models
from app.accounts.policies import cases_visible_to
from app.benchmark import Case, Probe, builtin_benchmark, draw
from app.errors import NotFound
from app.library import case_from, load_pools, probe_from, store_benchmark, store_protocol
from app.outcomes import PROBE_SCENARIO, STANDARD
from app.protocol import Protocol, Script, arms, builtin_protocol, script

PAGE = 60
LONGEST_SEARCH = 200
SEARCHED = (
    "constraint", "rationale", "request", "request_alone_neutral", "request_alone_leading",
    "request_together_neutral", "request_together_leading", "preference_b", "preference_c", "preference_d",
)  # fmt: skip


@dataclass(frozen=True)
class CaseFilter:
    kind: str = "case"
    category: str | None = None
    mention: str | None = None
    text: str | None = None


@dataclass(frozen=True)
class CasePage:
    """`mentions`: the values that the benchmark's cases have; `kinds`: how many of each may be seen."""

    cases: list[models.Case]
    matching: int
    pages: int
    mentions: list[str]
    kinds: dict[str, int]


def benchmarks_shown(session: Session) -> list[models.Benchmark]:
    """The latest first; where nothing is stored yet, the built-in one, in this session only."""
    query = select(models.Benchmark).order_by(models.Benchmark.id.desc())
    return list(session.scalars(query)) or [store_benchmark(session, builtin_benchmark(), [])[0]]


def protocols_shown(session: Session) -> list[models.Protocol]:
    """In the same way."""
    query = select(models.Protocol).order_by(models.Protocol.id.desc())
    return list(session.scalars(query)) or [store_protocol(session, builtin_protocol())[0]]


Stored = TypeVar("Stored", models.Benchmark, models.Protocol)


def called(rows: Sequence[Stored], reference: str | None, what: str) -> Stored:
    """The one of that `name@version` or, the latest, of that name; the first without a reference.

    NotFound lists what there is.
    """
    for row in rows:
        if reference in (None, row.name, f"{row.name}@{row.version}"):
            return row
    known = [f"{row.name}@{row.version}" for row in rows]
    raise NotFound(f"There is no {what} '{(reference or '')[:80]}'.", details=known)


def find_cases(
    session: Session,
    person: models.Account | None,
    benchmark: models.Benchmark,
    wanted: CaseFilter,
    page: int = 1,
) -> CasePage:
    """In the benchmark's order. NotFound for a page that there is not."""
    k = models.Case
    of_benchmark = [k.benchmark_id == benchmark.id, cases_visible_to(person)]
    matching = [*of_benchmark, k.kind == wanted.kind]
    if wanted.category is not None:
        matching.append(k.category == wanted.category)
    if wanted.mention is not None:
        matching.append(k.content["mention"].as_string() == wanted.mention)
    if wanted.text:
        texts = [k.key, *(k.content[name].as_string() for name in SEARCHED)]
        matching.append(or_(*(one.icontains(wanted.text, autoescape=True) for one in texts)))
    count = session.scalars(select(func.count()).select_from(k).where(*matching)).one()
    pages = max(1, -(-count // PAGE))
    if page > pages:
        raise NotFound(f"This list has {pages} {'page' if pages == 1 else 'pages'}.")
    rows = session.scalars(select(k).where(*matching).order_by(k.id).offset((page - 1) * PAGE).limit(PAGE))
    mentions = session.scalars(select(k.content["mention"].as_string()).where(*of_benchmark).distinct())
    kinds = session.execute(select(k.kind, func.count()).where(*of_benchmark).group_by(k.kind))
    return CasePage(
        cases=list(rows),
        matching=count,
        pages=pages,
        mentions=sorted(mention for mention in mentions if mention),
        kinds={kind: n for kind, n in kinds},  # noqa: C416
    )


@dataclass(frozen=True)
class CasesAfter:
    """`total`: of that kind and category, on all pages."""

    cases: list[models.Case]
    more: bool
    total: int


def cases_after(
    session: Session,
    person: models.Account | None,
    benchmark: models.Benchmark,
    kind: str,
    category: str | None,
    after: str | None,
    limit: int,
) -> CasesAfter:
    """What the person may see, in order, behind the case of the key `after`; NotFound if there is none."""
    k = models.Case
    matching = [k.benchmark_id == benchmark.id, k.kind == kind, cases_visible_to(person)]
    if category is not None:
        matching.append(k.category == category)
    total = session.scalars(select(func.count()).select_from(k).where(*matching)).one()
    if after is not None:
        place = session.scalars(select(k.id).where(*matching, k.key == after)).one_or_none()
        if place is None:
            raise NotFound("There is no such page of this list; begin at its first page.")
        matching.append(k.id > place)
    rows = list(session.scalars(select(k).where(*matching).order_by(k.id).limit(limit + 1)))
    return CasesAfter(rows[:limit], len(rows) > limit, total)


@dataclass(frozen=True)
class ShownCase:
    """A case with what stands around it. `neighbours` are keys; `same_constraint` shares its cluster."""

    row: models.Case
    record: Case | Probe
    before: str | None
    after: str | None
    same_constraint: list[str]


def find_case(
    session: Session, person: models.Account | None, benchmark: models.Benchmark, kind: str, key: str
) -> ShownCase:
    """NotFound when there is none, or none that the person may see."""
    k = models.Case
    seen = [k.benchmark_id == benchmark.id, k.kind == kind, cases_visible_to(person)]
    row = session.scalars(select(k).where(*seen, k.key == key)).one_or_none()
    if row is None:
        raise NotFound(f"Benchmark {benchmark.name} v{benchmark.version} has no {kind} of that name.")
    before = select(k.key).where(*seen, k.id < row.id).order_by(k.id.desc()).limit(1)
    after = select(k.key).where(*seen, k.id > row.id).order_by(k.id).limit(1)
    others = select(k.key).where(*seen, k.cluster == row.cluster, k.id != row.id).order_by(k.id)
    return ShownCase(
        row=row,
        record=case_from(row.content) if kind == "case" else probe_from(row.content),
        before=session.scalars(before).one_or_none(),
        after=session.scalars(after).one_or_none(),
        same_constraint=list(session.scalars(others)),
    )


@dataclass(frozen=True)
class Arm:
    scenario: str
    variant: str
    title: str


def arms_of(protocol: Protocol, *, probe: bool) -> list[Arm]:
    """The scenarios and variants that a protocol has for a case, or for a probe."""
    if probe:
        return [Arm(PROBE_SCENARIO, STANDARD, "Probe")] if protocol.probe_turns is not None else []
    titles = {(one.id, STANDARD): one.title for one in protocol.scenarios}
    titles |= {(one.of, one.id): one.title for one in protocol.variants}
    return [Arm(scenario, variant, titles[scenario, variant]) for scenario, variant in arms(protocol)]


def conversation_of(
    session: Session, benchmark: models.Benchmark, record: Case | Probe, protocol: Protocol, arm: Arm
) -> Script:
    """What the user says under that arm with seed 1. InvalidInput when the case lacks what the arm needs."""
    pools = load_pools(session, benchmark)
    drawn = draw(benchmark.content_hash, record.key, 1, pools, record.tags)
    return script(protocol, record, drawn, arm.scenario, arm.variant)

"""The benchmark to look into: its cases, and what a protocol makes of each."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.benchmark import BUILTIN, canary
from app.cases import (
    LONGEST_SEARCH,
    Arm,
    CaseFilter,
    ShownCase,
    arms_of,
    benchmarks_shown,
    called,
    conversation_of,
    find_case,
    find_cases,
    protocols_shown,
)
from app.corrections import invalid
from app.errors import InvalidInput, NotFound
from app.library import load_stored_protocol
from app.models import CASE_KINDS
from app.outcomes import STANDARD, Category
from app.protocol import Protocol
from app.web import words
from app.web.board_cases import case_results
from app.web.context import Visitor, Web
from app.web.forms import from_query

router = APIRouter(prefix="/cases")

PUBLIC_SECONDS = 60
NAMES = ("benchmark", "kind", "category", "mention", "q")


@router.get("")
def listed(web: Visitor) -> Response:
    query = web.request.query_params
    benchmarks = benchmarks_shown(web.session)
    benchmark = called(benchmarks, query.get("benchmark") or None, "benchmark")
    wanted, page = _filter(query), _page(query.get("page", "1"))
    found = find_cases(web.session, web.visitor, benchmark, wanted, page)
    return web.page(
        "cases/list.html",
        public=PUBLIC_SECONDS,
        benchmarks=[reference(row) for row in benchmarks],
        benchmark=benchmark,
        reference=reference(benchmark),
        found=found,
        wanted=wanted,
        page=page,
        form=from_query(
            {"benchmark": reference(benchmark)} | {name: query[name] for name in NAMES if name in query}
        ),
        categories=[(one.value, one.value.replace("_", " ")) for one in Category],
        kinds=[(kind, f"{kind}s") for kind in CASE_KINDS if found.kinds.get(kind)],
        query=urlencode({name: query[name] for name in NAMES if query.get(name)}),
        narrowed=any(query.get(name) for name in ("category", "mention", "q")),
        path_of=case_path,
    )


def reference(row: models.Benchmark | models.Protocol) -> str:
    return f"{row.name}@{row.version}"


def case_path(benchmark: models.Benchmark, key: str, kind: str = "case", **more: str) -> str:
    """The address of a case; its key may hold anything."""
    given = {"kind": kind} if kind != "case" else {}
    query = urlencode(given | more)
    path = f"/cases/{quote(reference(benchmark), safe='@')}/{quote(key, safe='')}"
    return f"{path}?{query}" if query else path


def _filter(query: Mapping[str, str]) -> CaseFilter:
    """Tolerant of nothing: NotFound with what there is, for a word that is none."""
    kind, category, text = (
        query.get("kind") or "case",
        query.get("category") or None,
        query.get("q", "").strip(),
    )
    if kind not in CASE_KINDS:
        raise NotFound(f"There is no kind '{kind[:80]}'.", details=[*CASE_KINDS])
    if category is not None and category not in list(Category):
        raise NotFound(f"There is no category '{category[:80]}'.", details=[*Category])
    if len(text) > LONGEST_SEARCH:
        raise InvalidInput(f"At most {LONGEST_SEARCH} characters can be searched for.")
    return CaseFilter(kind, category, query.get("mention") or None, text or None)


def _page(given: str) -> int:
    if not (given.isascii() and given.isdecimal() and 1 <= len(given) <= 6 and int(given) > 0):
        raise NotFound("There is no such page of this list.")
    return int(given)


@router.get("/{benchmark}/{key:path}")
def show(web: Visitor, benchmark: str, key: str) -> Response:
    query = web.request.query_params
    row = called(benchmarks_shown(web.session), benchmark, "benchmark")
    protocols = protocols_shown(web.session)
    protocol = called(protocols, query.get("protocol") or None, "protocol")
    shown = find_case(web.session, web.visitor, row, _filter({"kind": query.get("kind", "")}).kind, key)
    rules = load_stored_protocol(protocol)
    arms = arms_of(rules, probe=shown.row.kind == "probe")
    arm = _chosen(arms, query)
    return web.page(
        "cases/show.html",
        public=PUBLIC_SECONDS,
        benchmark=row,
        case=shown.row,
        record=shown.record,
        shown=shown,
        protocols=[reference(one) for one in protocols],
        protocol=reference(protocol),
        arms=[(one, _arm_path(row, shown, one, protocol, protocols)) for one in arms],
        arm=arm,
        conversation=_conversation(web, row, shown, rules, arm),
        scenarios=words.SCENARIOS,
        variants=words.VARIANTS,
        path_of=case_path,
        canary=canary() if row.name in BUILTIN else None,
        results=case_results(web, row, shown.row),
        invalid=invalid(web.session, shown.row),
        report_path="/corrections/new?"
        + urlencode({"benchmark": reference(row), "case": shown.row.key, "kind": shown.row.kind}),
    )


def _chosen(arms: list[Arm], query: Mapping[str, str]) -> Arm | None:
    """The arm that the address names, the first one without; NotFound lists what there is."""
    scenario, variant = query.get("scenario") or None, query.get("variant") or STANDARD
    if not arms or (scenario is None and variant == STANDARD):
        return arms[0] if arms else None
    for arm in arms:
        if arm.variant == variant and scenario in (None, arm.scenario):
            return arm
    known = [f"{arm.scenario} {arm.variant}" for arm in arms]
    raise NotFound("This protocol has no such scenario and variant.", details=known)


def _arm_path(
    benchmark: models.Benchmark,
    shown: ShownCase,
    arm: Arm,
    protocol: models.Protocol,
    protocols: list[models.Protocol],
) -> str:
    more = {"scenario": arm.scenario, "variant": arm.variant}
    if protocol is not protocols[0]:
        more["protocol"] = reference(protocol)
    return case_path(benchmark, shown.row.key, shown.row.kind, **more) + "#conversation"


def _conversation(
    web: Web, benchmark: models.Benchmark, shown: ShownCase, rules: Protocol, arm: Arm | None
) -> dict[str, Any]:
    """The user's turns, or why there are none."""
    if arm is None:
        return {"turns": [], "stated": True, "lacking": "This protocol has no conversation for it."}
    try:
        made = conversation_of(web.session, benchmark, shown.record, rules, arm)
    except InvalidInput as error:
        return {"turns": [], "stated": True, "lacking": error.message}
    return {"turns": made.turns, "stated": made.stated, "constraint": made.constraint, "lacking": None}

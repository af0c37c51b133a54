"""Two rows of one board against each other: paired differences, and the cases on which they part."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app import models
from app.accounts.policies import in_study
from app.accounts.withholding import Withheld, questions_withheld
from app.errors import NotFound
from app.leaderboard.boards import PARTS
from app.leaderboard.reading import VersionGroup
from app.outcomes import SCENARIOS, STANDARD, Category, Outcome
from app.rates import Undefined
from app.runs.reporting import describe_evaluator, outcome_of
from app.statistics import PairedDifference, holm, paired_difference

PAGE = 10
EXCERPT = 700
# Which conversations to list: the first passes and the second does not, the other way round, neither passes.
SHOWN = {"a": (True, False), "b": (False, True), "neither": (False, False)}

Key = tuple[str, str, int]  # case, scenario, seed


@dataclass(frozen=True)
class _Case:
    cluster: str
    category: str


@dataclass(frozen=True)
class Pair:
    """What both answered, and whether each passed."""

    case: str
    category: str
    cluster: str
    scenario: str
    seed: int
    a: bool
    b: bool


@dataclass(frozen=True)
class Answer:
    """One side of a pair; `excerpt` is how its last response begins, `whole` that it is not cut."""

    uuid: UUID
    outcome: Outcome
    excerpt: str | None
    whole: bool


@dataclass(frozen=True)
class SideBySide:
    """What was asked is in both conversations the same."""

    pair: Pair
    constraint: str | None
    request: str | None
    a: Answer
    b: Answer


@dataclass(frozen=True)
class PairPage:
    items: list[SideBySide]
    total: int
    pages: int


def row_of(group: VersionGroup, run: int) -> dict[str, Any]:
    """The row of that run on this board, ranked or incomplete; NotFound names those that are there."""
    rows = all_rows(group)
    for row in rows:
        if row["run"] == run:
            return row
    known = [f"{row['run']}: {row['model']}" for row in rows]
    raise NotFound(f"Run {run} does not stand on this board.", details=known[:50])


def all_rows(group: VersionGroup) -> list[dict[str, Any]]:
    return [row for part in PARTS for row in group.content[part]]


def pairs_of(session: Session, group: VersionGroup, a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Pair]:
    """The conversations that both answered, in the benchmark's order."""
    one, two = marks_of(session, group, a), marks_of(session, group, b)
    cases = _cases(session, group)
    order = {key: place for place, key in enumerate(cases)}
    common = sorted(one.keys() & two.keys(), key=lambda key: (order[key[0]], key[1], key[2]))
    return [
        Pair(
            case,
            cases[case].category,
            cases[case].cluster,
            scenario,
            seed,
            one[case, scenario, seed],
            two[case, scenario, seed],
        )
        for case, scenario, seed in common
    ]


def marks_of(session: Session, group: VersionGroup, row: Mapping[str, Any]) -> dict[Key, bool]:
    """What the row's run answered, and whether it passed, as they were when it was published."""
    query = select(models.BoardEntry.report["marks"]).filter_by(
        run_id=row["run"], evaluator_id=group.evaluator.id, benchmark_id=group.benchmark.id
    )
    marks = session.scalars(query).one()
    return {(case, scenario, seed): bool(passed) for case, scenario, seed, passed in marks}


def _cases(session: Session, group: VersionGroup) -> dict[str, _Case]:
    k = models.Case
    query = select(k.key, k.cluster, k.category).filter_by(benchmark_id=group.benchmark.id, kind="case")
    return {key: _Case(cluster, category) for key, cluster, category in session.execute(query.order_by(k.id))}


def comparison(
    group: VersionGroup, a: Mapping[str, Any], b: Mapping[str, Any], pairs: Sequence[Pair]
) -> dict[str, Any]:
    """a minus b on the conversations that both answered, as page and file show it.

    Overall is tested as the ranks are; scenarios and categories are one family, corrected by Holm.
    """
    undefined: Undefined = {
        f"{side}.rank": "the row is not ranked" for side, row in (("a", a), ("b", b)) if row["rank"] is None
    }
    by_scenario = _parts(pairs, SCENARIOS, lambda pair: pair.scenario, "by_scenario", undefined)
    by_category = _parts(pairs, tuple(Category), lambda pair: pair.category, "by_category", undefined)
    family = [part for part in (*by_scenario.values(), *by_category.values()) if part is not None]
    for part, adjusted in zip(family, holm([part["p"] for part in family]), strict=True):
        part["p_holm"] = adjusted
    return {
        "board": group.key,
        "evaluator": describe_evaluator(group.evaluator),
        "a": _side(a),
        "b": _side(b),
        "cases": {
            "both_pass": sum(pair.a and pair.b for pair in pairs),
            "only_a_passes": sum(pair.a and not pair.b for pair in pairs),
            "only_b_passes": sum(pair.b and not pair.a for pair in pairs),
            "neither_passes": sum(not pair.a and not pair.b for pair in pairs),
        },
        "overall": _difference(pairs, "overall", undefined),
        "by_scenario": by_scenario,
        "by_category": by_category,
        "family": sum(part["p"] is not None for part in family),
        "method": "clustered t (CR1) on paired differences, Holm over scenarios and categories",
        "undefined": undefined,
    }


def _side(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("model", "run", "run_uuid", "provenance", "simulated", "rank")}


def _parts(
    pairs: Sequence[Pair],
    names: Sequence[str],
    part_of: Callable[[Pair], Hashable],
    path: str,
    undefined: Undefined,
) -> dict[str, dict[str, Any] | None]:
    return {
        str(name): _difference([pair for pair in pairs if part_of(pair) == name], f"{path}.{name}", undefined)
        for name in names
    }


def _difference(pairs: Sequence[Pair], path: str, undefined: Undefined) -> dict[str, Any] | None:
    found = paired_difference((pair.cluster, float(pair.a), float(pair.b)) for pair in pairs)
    if found is None:
        undefined[path] = "no conversation of this part was answered by both"
        return None
    _explain(found, path, undefined)
    return {
        "n": found.n,
        "clusters": found.clusters,
        "a": found.mean_first,
        "b": found.mean_second,
        "difference": found.difference,
        "ci": found.interval,
        "p": found.p_value,
        "only_a_passes": sum(pair.a and not pair.b for pair in pairs),
        "only_b_passes": sum(pair.b and not pair.a for pair in pairs),
    }


def _explain(found: PairedDifference, path: str, undefined: Undefined) -> None:
    if found.interval is None:
        undefined[f"{path}.ci"] = (
            "one cluster of cases alone gives no interval"
            if found.se is None
            else "all clusters differ alike, so there is no standard error"
        )
    if found.p_value is None:
        undefined[f"{path}.p"] = "one cluster of cases alone gives no test"
        if path != "overall":
            undefined[f"{path}.p_holm"] = undefined[f"{path}.p"]


def split_withheld(
    session: Session, group: VersionGroup, pairs: Sequence[Pair]
) -> tuple[list[Pair], Withheld | None]:
    """The pairs that may be listed, and how many may not because their question is in a study under way.

    Of those no list may tell anything, not by its length either.
    """
    hidden = questions_withheld(session, group.benchmark.id)
    shown = [pair for pair in pairs if (pair.case, pair.scenario) not in hidden]
    days = {hidden[pair.case, pair.scenario] for pair in pairs if (pair.case, pair.scenario) in hidden}
    if not days:
        return shown, None
    until = max((day for day in days if day is not None), default=None) if None not in days else None
    return shown, Withheld(len(pairs) - len(shown), until)


def choose(
    pairs: Sequence[Pair], shown: str, *, scenario: str | None = None, category: str | None = None
) -> list[Pair]:
    """Those of SHOWN's kind, of one scenario or category only."""
    wanted = SHOWN[shown]
    return [
        pair
        for pair in pairs
        if (pair.a, pair.b) == wanted
        and scenario in (None, pair.scenario)
        and category in (None, pair.category)
    ]


def side_by_side(
    session: Session, group: VersionGroup, runs: tuple[int, int], chosen: Sequence[Pair], page: int
) -> PairPage:
    """A page of pairs with both last responses. NotFound for a page that there is not."""
    pages = max(1, -(-len(chosen) // PAGE))
    if page > pages:
        raise NotFound(f"This list has {pages} {'page' if pages == 1 else 'pages'}.")
    part = chosen[(page - 1) * PAGE : page * PAGE]
    found = _conversations(session, group.evaluator.id, runs, part)
    items = [
        SideBySide(pair, one[1], one[2], one[0], two[0])
        for pair in part
        if (one := found.get((runs[0], pair.case, pair.scenario, pair.seed))) is not None
        and (two := found.get((runs[1], pair.case, pair.scenario, pair.seed))) is not None
    ]
    return PairPage(items, len(chosen), pages)


def _conversations(
    session: Session, evaluator_id: int, runs: tuple[int, int], pairs: Sequence[Pair]
) -> dict[tuple[int, str, str, int], tuple[Answer, str | None, str | None]]:
    c, v = models.Conversation, models.Verdict
    rows = session.execute(
        select(
            c.run_id, models.Case.key, c.scenario, c.seed, c.uuid, c.state, v.state, v.rating,
            c.constraint, c.request, func.left(c.response, EXCERPT), func.length(c.response),
        )
        .join(models.Case, models.Case.id == c.case_id)
        .outerjoin(v, (v.conversation_id == c.id) & (v.evaluator_id == evaluator_id))
        .where(
            c.run_id.in_(runs),
            models.Case.key.in_({pair.case for pair in pairs}),
            c.variant == STANDARD,
            ~in_study(),
        )
    )  # fmt: skip
    return {
        (run, case, scenario, seed): (
            Answer(uuid, outcome_of(state, verdict, rating), excerpt, (length or 0) <= EXCERPT),
            constraint,
            request,
        )
        for (
            run, case, scenario, seed, uuid, state, verdict, rating, constraint, request, excerpt, length,
        ) in rows
    }  # fmt: skip

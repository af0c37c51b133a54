"""The board read by case: which cases are hard, and how every model did on one."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app import models
from app.accounts.policies import case_in_study, in_study
from app.accounts.withholding import questions_withheld, until_words
from app.leaderboard.comparing import all_rows
from app.leaderboard.reading import VersionGroup
from app.outcomes import SCENARIOS, STANDARD, Outcome
from app.runs.reporting import outcome_of


@dataclass(frozen=True)
class Hard:
    """A case over the ranked rows: conversations answered, of them passed; the texts once they are read."""

    key: str
    passed: int
    answered: int
    category: str
    constraint: str
    request: str

    @property
    def rate(self) -> float:
        return self.passed / self.answered


def hardest(
    session: Session,
    group: VersionGroup,
    *,
    scenario: str | None = None,
    category: str | None = None,
    all_fail: bool = False,
) -> list[Hard]:
    """Public cases, those passed least first, over all scenarios or one; `all_fail`: passed by nobody.

    None of which an answer is in a study under way: with few models its verdict would show. How many those
    are: `app.accounts.withholding.cases_withheld`.
    """
    found = []
    for case in _public_cases(session, group):
        cells = group.cases.get(case.key, {})
        counted = [cells[one] for one in SCENARIOS if one in cells and scenario in (None, one)]
        passed, answered = sum(one[0] for one in counted), sum(one[1] for one in counted)
        if answered and category in (None, case.category) and not (all_fail and passed):
            request = str(case.content["request_alone_neutral"])
            constraint = str(case.content["constraint"])
            found.append(Hard(case.key, passed, answered, case.category, constraint, request))
    return sorted(found, key=lambda one: one.rate)


def _public_cases(session: Session, group: VersionGroup) -> Sequence[models.Case]:
    query = select(models.Case).filter_by(benchmark_id=group.benchmark.id, kind="case", split="public")
    return session.scalars(query.where(~case_in_study()).order_by(models.Case.id)).all()


@dataclass(frozen=True)
class Result:
    """What became of one conversation on the case."""

    uuid: UUID
    outcome: Outcome
    seed: int


@dataclass(frozen=True)
class CaseRow:
    """A row of the board and its conversations on the case by scenario."""

    row: Mapping[str, Any]
    results: dict[str, list[Result]]


def results_on(session: Session, group: VersionGroup, case: models.Case) -> list[CaseRow]:
    """Every row of the board, ranked or not, on a public case; empty for one that is held back.

    Questions in a study under way are left out, for every row alike: `withheld_scenarios`.
    """
    rows = all_rows(group)
    if case.split != "public" or not rows:
        return []
    c, v = models.Conversation, models.Verdict
    # Rows may have been asked with an earlier version of the benchmark.
    same = session.scalars(select(models.Case.id).filter_by(kind=case.kind, key=case.key)).all()
    found: dict[int, dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for run, scenario, seed, uuid, state, verdict, rating in session.execute(
        select(c.run_id, c.scenario, c.seed, c.uuid, c.state, v.state, v.rating)
        .outerjoin(v, (v.conversation_id == c.id) & (v.evaluator_id == group.evaluator.id))
        .where(c.run_id.in_([row["run"] for row in rows]), c.case_id.in_(same), c.variant == STANDARD)
        .where(~in_study())
        .order_by(c.scenario, c.seed)
    ):
        found[run][scenario].append(Result(uuid, outcome_of(state, verdict, rating), seed))
    return [CaseRow(row, dict(found[row["run"]])) for row in rows if row["run"] in found]


def withheld_scenarios(session: Session, group: VersionGroup, case: models.Case) -> dict[str, str]:
    """Those in which the case's question is in a study under way, with until when, in words."""
    hidden = questions_withheld(session, group.benchmark.id)
    return {
        scenario: f"in a study {until_words(day)}"
        for (key, scenario), day in sorted(hidden.items())
        if key == case.key
    }

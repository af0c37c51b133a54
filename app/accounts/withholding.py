"""What is withheld while judges rate it blind, in numbers and in words; who sees what: `policies`.

What is told is the same for every run on the same questions and for every filter: it tells judges nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from app import models
from app.accounts.policies import PUBLIC, case_in_study, conversations_visible_to, in_study
from app.models import StudyState
from app.outcomes import STANDARD

WHY = "Judges rate answers to the same questions blind, so nobody else is shown any model's."


@dataclass(frozen=True)
class Withheld:
    """So many conversations, or cases; `until` is the day that the owner expects, None if there is none."""

    number: int
    until: date | None

    @property
    def words(self) -> str:
        """`in a study until …`"""
        return f"in a study {until_words(self.until)}"

    def as_report(self) -> dict[str, Any]:
        """For machines: `why` in words."""
        why = f"{self.words[0].upper()}{self.words[1:]}. {WHY}"
        return {"conversations": self.number, "until": self.until and self.until.isoformat(), "why": why}


def until_words(day: date | None) -> str:
    """A day that has passed says nothing any more: only the owner closes a study."""
    if day is None or day < datetime.now(UTC).date():
        return "until it is closed"
    return f"until about {day.day} {day:%B %Y}"


def withheld_of_run(session: Session, person: models.Account | None, run: models.Run) -> Withheld | None:
    """Of a run that the person may see: what they are not shown of it for that reason."""
    c, k = models.Conversation, models.Case
    query = (
        select(func.count())
        .select_from(c)
        .join(models.Run, models.Run.id == c.run_id)
        .join(k, k.id == c.case_id)
        .where(c.run_id == run.id, in_study(), k.split == PUBLIC, ~conversations_visible_to(person))
    )
    return _told(session, session.scalars(query).one(), run.benchmark_id)


def cases_withheld(session: Session, benchmark_id: int) -> Withheld | None:
    """Public cases of a benchmark of which some question is in a study under way."""
    k = models.Case
    query = select(func.count()).select_from(k).where(k.benchmark_id == benchmark_id, k.split == PUBLIC)
    return _told(session, session.scalars(query.where(case_in_study())).one(), benchmark_id)


def questions_withheld(session: Session, benchmark_id: int) -> Mapping[tuple[str, str], date | None]:
    """(case, scenario) of the standard variant, and until when; in any version of the benchmark."""
    i = models.StudyItem
    query = _under_way(benchmark_id, models.Case.key, i.scenario, models.Study.expected_close)
    found: dict[tuple[str, str], date | None] = {}
    for case, scenario, day in session.execute(query.where(i.variant == STANDARD).distinct()):
        before = found.get((case, scenario), day)
        found[case, scenario] = None if before is None or day is None else max(before, day)
    return found


def _under_way(benchmark_id: int, *columns: Any) -> Select[Any]:
    i, s, k, b = models.StudyItem, models.Study, models.Case, models.Benchmark
    name = select(b.name).filter_by(id=benchmark_id).scalar_subquery()
    return (
        select(*columns)
        .select_from(i)
        .join(s, s.id == i.study_id)
        .join(k, k.id == i.case_id)
        .join(b, b.id == k.benchmark_id)
        .where(s.state.in_((StudyState.OPEN, StudyState.PAUSED)), k.kind == "case", b.name == name)
    )


def _told(session: Session, number: int, benchmark_id: int) -> Withheld | None:
    if not number:
        return None
    return Withheld(number, _latest(session, _under_way(benchmark_id, models.Study.expected_close)))


def why_hidden(session: Session, *conditions: ColumnElement[bool]) -> str | None:
    """In words, for a conversation that these find, joined with run and case; None if no study is why."""
    c, k = models.Conversation, models.Case
    row = session.execute(
        select(c.case_id, c.scenario, c.variant, k.benchmark_id)
        .join(models.Run, models.Run.id == c.run_id)
        .join(k, k.id == c.case_id)
        .where(*conditions, k.split == PUBLIC, in_study())
    ).first()
    if row is None:
        return None
    i = models.StudyItem
    query = _under_way(row.benchmark_id, models.Study.expected_close).where(
        i.case_id == row.case_id, i.scenario == row.scenario, i.variant == row.variant
    )
    return f"This conversation is in a study {until_words(_latest(session, query))}. {WHY}"


def _latest(session: Session, query: Select[Any]) -> date | None:
    """The last of the expected days; None where a study names none."""
    days = list(session.scalars(query.distinct()))
    return None if None in days or not days else max(days)

"""Who sees and does what, as conditions for queries and as small questions.

A query takes the condition, so that another's object is simply not found; nothing is fetched and then hidden.
"""

from typing import Any

from sqlalchemy import ColumnElement, Select, exists, or_, select, true
from sqlalchemy.orm import aliased

from app import models
from app.accounts.errors import NotAllowed
from app.models import JudgeState, Role, StudyState

PUBLIC = "public"


def is_admin(person: models.Account | None) -> bool:
    return person is not None and person.role == Role.ADMIN


def is_researcher(person: models.Account | None) -> bool:
    """Administrators may do what researchers do."""
    return person is not None and person.role in (Role.ADMIN, Role.RESEARCHER)


def require_admin(person: models.Account) -> None:
    if not is_admin(person):
        raise NotAllowed("This page is for administrators of the site.")


def require_researcher(person: models.Account) -> None:
    if not is_researcher(person):
        raise NotAllowed("This page is for researchers: ask an administrator of the site for that role.")


def runs_managed_by(person: models.Account | None) -> ColumnElement[bool]:
    """Runs that the person may pause, cancel, publish: the own ones; all for an administrator."""
    if person is None or not is_researcher(person):
        return ~true()
    return true() if is_admin(person) else models.Run.account_id == person.id


def runs_visible_to(person: models.Account | None) -> ColumnElement[bool]:
    """Those, and what stands on the board, which everybody may read."""
    return or_(runs_managed_by(person), published())


def conversations_visible_to(person: models.Account | None) -> ColumnElement[bool]:
    """For a query that joins run and case: all of one's own runs; of published ones those on public cases.

    What is in a study under way is withheld from everybody else, and from its judges whoever they are.
    """
    shown = or_(runs_managed_by(person), published() & (models.Case.split == PUBLIC) & ~in_study())
    return shown if person is None else shown & ~_judged_by(person)


def in_study() -> ColumnElement[bool]:
    """Of a conversation: judges rate an answer to its question blind at present.

    All answers to the question are withheld, whichever model gave them and whether or not its run is in the
    study: if only the judges' one were missing among the others, its absence would tell whose it is.
    """
    return exists(_items_under_way().where(*_same_question()).correlate(models.Conversation))


def case_in_study() -> ColumnElement[bool]:
    """Of a case: some answer to it is, or to the same case in another version of its benchmark."""
    judged, its, own = aliased(models.Case), aliased(models.Benchmark), aliased(models.Benchmark)
    return exists(
        _items_under_way()
        .join(judged, judged.id == models.StudyItem.case_id)
        .join(its, its.id == judged.benchmark_id)
        .join(own, own.name == its.name)
        .where(
            own.id == models.Case.benchmark_id,
            judged.kind == models.Case.kind,
            judged.key == models.Case.key,
        )
        .correlate(models.Case)
    )


def _items_under_way() -> Select[Any]:
    return (
        select(models.StudyItem.id)
        .join(models.Study, models.Study.id == models.StudyItem.study_id)
        .where(models.Study.state.in_((StudyState.OPEN, StudyState.PAUSED)))
    )


def _same_question() -> tuple[ColumnElement[bool], ...]:
    i, c = models.StudyItem, models.Conversation
    return i.case_id == c.case_id, i.scenario == c.scenario, i.variant == c.variant


def _judged_by(person: models.Account) -> ColumnElement[bool]:
    j = models.StudyJudge
    return exists(
        _items_under_way()
        .join(j, j.study_id == models.Study.id)
        .where(*_same_question(), j.account_id == person.id, j.state != JudgeState.WITHDRAWN)
        .correlate(models.Conversation)
    )


def cases_visible_to(person: models.Account | None) -> ColumnElement[bool]:
    """Cases that are held back are for those who may ask them."""
    return true() if is_researcher(person) else models.Case.split == PUBLIC


def published() -> ColumnElement[bool]:
    """The run has been put on the board and not been withdrawn."""
    return exists(
        select(models.BoardEntry.id)
        .where(models.BoardEntry.run_id == models.Run.id, models.BoardEntry.withdrawn_at.is_(None))
        .correlate(models.Run)
    )

"""Which studies there are, and whose."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, func, select, text, true
from sqlalchemy.orm import Session, joinedload

from app import models
from app.accounts.policies import is_admin, is_researcher
from app.errors import NotFound
from app.models import ItemKind

# Shared by whoever rates, held alone by whoever opens, closes or changes the number of judges.
STUDY_LOCK = 1 << 61
HOLD = text("SELECT pg_advisory_xact_lock(:key)")
SHARE = text("SELECT pg_advisory_xact_lock_shared(:key)")

DETAILS = (joinedload(models.Study.owner), joinedload(models.Study.evaluator))


@dataclass(frozen=True)
class ListedStudy:
    """`ratings` that count; `complete`: items with as many as wanted."""

    study: models.Study
    items: int
    complete: int
    ratings: int
    judges: int


def studies_managed_by(person: models.Account | None) -> ColumnElement[bool]:
    """The own ones; all for an administrator."""
    if person is None or not is_researcher(person):
        return ~true()
    return true() if is_admin(person) else models.Study.owner_id == person.id


def find_study(session: Session, name: str) -> models.Study:
    """By name, for the command line; NotFound lists what there is."""
    row = session.scalars(select(models.Study).options(*DETAILS).filter_by(name=name)).one_or_none()
    if row is None:
        known = list(session.scalars(select(models.Study.name).order_by(models.Study.id.desc()).limit(20)))
        raise NotFound(f"There is no study '{name}'.", details=known)
    return row


def managed_study(session: Session, person: models.Account | None, name: str) -> models.Study:
    """A study that the person may change; NotFound."""
    query = (
        select(models.Study).options(*DETAILS).where(models.Study.name == name, studies_managed_by(person))
    )
    row = session.scalars(query).one_or_none()
    if row is None:
        raise NotFound("There is no such study, or it is not yours.")
    return row


def list_studies(
    session: Session, person: models.Account | None = None, *, everybodys: bool = False
) -> list[ListedStudy]:
    """Those of the person, or everybody's for the command line; the newest first."""
    query = select(models.Study).options(*DETAILS).order_by(models.Study.id.desc())
    if not everybodys:
        query = query.where(studies_managed_by(person))
    studies = list(session.scalars(query))
    i, s = models.StudyItem, models.Study
    counts = session.execute(
        select(
            i.study_id, func.count(), func.count().filter(i.counted >= s.judges_per_item), func.sum(i.counted)
        )
        .join(s, s.id == i.study_id)
        .where(i.kind == ItemKind.MAIN, i.study_id.in_([one.id for one in studies]))
        .group_by(i.study_id)
    )
    items = {study: (n, complete, int(ratings)) for study, n, complete, ratings in counts}
    j = models.StudyJudge
    joined = session.execute(
        select(j.study_id, func.count()).where(j.withdrawn_at.is_(None)).group_by(j.study_id)
    )
    judges = {study: n for study, n in joined}  # noqa: C416
    return [ListedStudy(one, *items.get(one.id, (0, 0, 0)), judges=judges.get(one.id, 0)) for one in studies]


def study_runs(session: Session, study: models.Study) -> list[models.Run]:
    query = (
        select(models.Run)
        .options(joinedload(models.Run.endpoint))
        .join(models.StudyRun, models.StudyRun.run_id == models.Run.id)
        .where(models.StudyRun.study_id == study.id)
        .order_by(models.Run.id)
    )
    return list(session.scalars(query))


def hold(session: Session, study: models.Study) -> None:
    """Keep everybody who rates off until the transaction ends; the study is read anew."""
    session.execute(HOLD, {"key": STUDY_LOCK + study.id})
    session.refresh(study, with_for_update={"of": models.Study})

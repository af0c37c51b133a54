"""Which studies there are, and whose."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ColumnElement, String, cast, func, or_, select, text, true
from sqlalchemy.orm import Session, joinedload

from app import models
from app.accounts.policies import is_admin, is_researcher, runs_managed_by
from app.errors import NotFound
from app.models import ItemKind

# Shared by whoever rates, held alone by whoever opens, closes or changes the number of judges.
STUDY_LOCK = 1 << 61
HOLD = text("SELECT pg_advisory_xact_lock(:key)")
SHARE = text("SELECT pg_advisory_xact_lock_shared(:key)")

MOST_RUNS = 25
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


def cloned_from(session: Session, study: models.Study) -> models.Study | None:
    """The study that this one is a clone of, such as its pilot."""
    return session.get(models.Study, study.cloned_from_id) if study.cloned_from_id else None


@dataclass(frozen=True)
class DrawableRun:
    """`rated`: answers that have a verdict of the run's own evaluator; `evaluators`: all that rated it."""

    run: models.Run
    rated: int
    evaluators: list[models.Evaluator]


def drawable_runs(
    session: Session,
    person: models.Account,
    *,
    words: str = "",
    chosen: Collection[UUID] = (),
    limit: int = MOST_RUNS,
) -> tuple[list[DrawableRun], int]:
    """Runs of the person to draw from: those chosen, then the newest in which every word is found.

    Words are looked for in name, model, benchmark, evaluator and number. With how many match beyond `limit`.
    """
    r, e, b, v = models.Run, models.Endpoint, models.Benchmark, models.Evaluator
    query = (
        select(r)
        .join(e, e.id == r.endpoint_id)
        .join(b, b.id == r.benchmark_id)
        .join(v, v.id == r.evaluator_id)
        .where(runs_managed_by(person), r.status != "running")
    )
    found = query
    for word in words.split():
        within = [
            column.icontains(word, autoescape=True) for column in (r.name, e.name, e.model, b.name, v.name)
        ]
        found = found.where(or_(*within, cast(r.id, String) == word))
    others = found.where(r.uuid.not_in(chosen))
    total = session.scalar(select(func.count()).select_from(others.subquery())) or 0
    details = (joinedload(r.endpoint), joinedload(r.benchmark), joinedload(r.evaluator))
    kept = session.scalars(query.where(r.uuid.in_(chosen)).options(*details).order_by(r.id.desc()))
    listed = session.scalars(others.options(*details).order_by(r.id.desc()).limit(limit))
    return _drawable(session, [*kept, *listed]), max(0, total - limit)


def _drawable(session: Session, runs: list[models.Run]) -> list[DrawableRun]:
    c, v, pair = models.Conversation, models.Verdict, models.RunEvaluator
    ids = [run.id for run in runs]
    counts = session.execute(
        select(c.run_id, func.count())
        .join(models.Run, models.Run.id == c.run_id)
        .join(v, (v.conversation_id == c.id) & (v.evaluator_id == models.Run.evaluator_id))
        .where(c.run_id.in_(ids), v.rating.is_not(None))
        .group_by(c.run_id)
    )
    rated = {run: n for run, n in counts}  # noqa: C416
    by: dict[int, list[models.Evaluator]] = defaultdict(list)
    pairs = select(pair.run_id, models.Evaluator).join(
        models.Evaluator, models.Evaluator.id == pair.evaluator_id
    )
    for run, evaluator in session.execute(pairs.where(pair.run_id.in_(ids)).order_by(models.Evaluator.id)):
        by[run].append(evaluator)
    return [DrawableRun(run, rated.get(run.id, 0), by[run.id]) for run in runs]


def hold(session: Session, study: models.Study) -> None:
    """Keep everybody who rates off until the transaction ends; the study is read anew."""
    session.execute(HOLD, {"key": STUDY_LOCK + study.id})
    session.refresh(study, with_for_update={"of": models.Study})

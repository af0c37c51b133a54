"""The report of a study: its ratings as the pure part takes them, and what it says of the study itself."""

from collections import defaultdict
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app import models
from app.agreement import EVALUATOR, RatedItem, agreement_report
from app.models import ItemKind, StudyDesign
from app.runs.reporting import describe_evaluator
from app.studies.finding import study_runs

NOT_STATED = "not stated"


def judge_name(number: int) -> str:
    """What a judge is called in every report and export."""
    return f"judge_{number}"


def study_report(session: Session, study: models.Study) -> dict[str, Any]:
    """CONTRACT's `study report`; `study.evaluator` must be loaded.

    Main items and counted ratings only: repeats, gold and training items never enter agreement.
    """
    items = rated_items(session, study)
    judges = _judges(session, study) if study.design == StudyDesign.IMPORTED else ()
    figures = agreement_report(items, judges)
    described, undefined = describe_study(session, study)
    return {"study": described, **figures, "undefined": undefined | figures["undefined"]}


def rated_items(session: Session, study: models.Study) -> list[RatedItem]:
    """The study's main items in their order, each with the ratings that count."""
    given = ratings_by_item(session, study)
    i, a = models.StudyItem, models.StudyAdjudication
    rows = session.execute(
        select(
            i.id, i.category, i.scenario, i.model, i.evaluator_rating, i.inclusion_probability, a.label
        )
        .outerjoin(a, a.item_id == i.id)
        .where(i.study_id == study.id, i.kind == ItemKind.MAIN)
        .order_by(i.position)
    )  # fmt: skip
    return [
        RatedItem(
            category or NOT_STATED,
            scenario or NOT_STATED,
            model or NOT_STATED,
            ({} if evaluator is None else {EVALUATOR: evaluator}) | given.get(item, {}),
            probability,
            label,
        )
        for item, category, scenario, model, evaluator, probability, label in rows
    ]


def ratings_by_item(session: Session, study: models.Study) -> dict[int, dict[str, int]]:
    """Item id -> judge's name -> the rating that counts, of main items."""
    r, j, i = models.StudyRating, models.StudyJudge, models.StudyItem
    rows = session.execute(
        select(r.item_id, j.number, r.rating)
        .join(j, j.id == r.judge_id)
        .join(i, i.id == r.item_id)
        .where(i.study_id == study.id, i.kind == ItemKind.MAIN, r.counted, ~r.repeat)
    )
    found: dict[int, dict[str, int]] = defaultdict(dict)
    for item, number, rating in rows:
        found[item][judge_name(number)] = rating
    return found


def _judges(session: Session, study: models.Study) -> list[str]:
    numbers = session.scalars(select(models.StudyJudge.number).filter_by(study_id=study.id))
    return [judge_name(number) for number in numbers]


def describe_study(session: Session, study: models.Study) -> tuple[dict[str, Any], dict[str, str]]:
    """What a report says of the study, and why parts of it are missing."""
    i, r = models.StudyItem, models.StudyRating
    main = (i.study_id == study.id, i.kind == ItemKind.MAIN)
    counted, surplus = session.execute(
        select(func.count().filter(r.counted), func.count().filter(~r.counted))
        .select_from(r)
        .join(i, i.id == r.item_id)
        .where(*main, ~r.repeat)
    ).one()
    described = {
        "id": study.id,
        "uuid": str(study.uuid),
        "name": study.name,
        "title": study.title,
        "design": study.design,
        "state": study.state,
        "planned": study.planned,
        "judges_per_item": study.judges_per_item,
        "per_case": study.per_case,
        "seed": None if study.design == StudyDesign.IMPORTED else study.seed,
        "hash": study.content_hash,
        "evaluator": None if study.evaluator is None else describe_evaluator(study.evaluator),
        "runs": [
            {"id": run.id, "uuid": str(run.uuid), "name": run.name, "model": run.endpoint.name}
            for run in study_runs(session, study)
        ],
        "rule": study.draw.get("rule"),
        "origin": study.draw.get("origin"),
        "ratings": {"counted": counted, "surplus": surplus},
        "created_at": _iso(study.created_at),
        "frozen_at": _iso(study.frozen_at),
        "opened_at": _iso(study.opened_at),
        "closed_at": _iso(study.closed_at),
    }
    reasons = _IMPORTED if study.design == StudyDesign.IMPORTED else _OWN
    undefined = {f"study.{name}": reasons[name] for name, value in described.items() if value is None}
    return described, undefined


_SHEET = "the study was imported from a finished sheet, which does not tell"
_IMPORTED = dict.fromkeys(
    ("per_case", "seed", "evaluator", "rule", "frozen_at", "opened_at", "closed_at"), _SHEET
)
_IMPORTED["origin"] = "the file does not tell of the study that it was made from"
_OWN = {
    "origin": "the study was made here",
    "per_case": "any number of transcripts of one case may be drawn",
    "hash": "the study is not frozen yet",
    "evaluator": "the study has no evaluator",
    "rule": "no rule of the draw is stored",
    "frozen_at": "the study is not frozen yet",
    "opened_at": "the study was not opened yet",
    "closed_at": "the study is not closed yet",
}


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()

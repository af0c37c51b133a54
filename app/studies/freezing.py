"""The life of a study: frozen under a hash, open, paused, closed; the number of judges an item; clones."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, select, text
from sqlalchemy.orm import Session

from app import models
from app.errors import Conflict, InvalidInput
from app.models import ItemKind, StudyDesign, StudyState
from app.studies.creating import create, settings_of
from app.studies.finding import hold, study_runs
from app.studies.known import TRAINING_ITEMS, require_draft, training_count
from app.studies.settings import check_judges_per_item

# Text that a judge is told or sees, and what decides who rates what in which order.
HASHED = (
    "design", "seed", "planned", "repeat_share", "instructions", "careful", "content_note", "ethics_kind",
    "ethics", "retention",
)  # fmt: skip
HASHED_OF_ITEM = (
    "kind", "position", "case_key", "constraint", "request", "response", "model", "scenario", "variant",
    "category", "evaluator_rating", "evaluator_explanation", "stratum", "inclusion_probability", "expected",
    "feedback", "shuffle",
)  # fmt: skip

# The earliest ratings of an item count; those beyond its places are kept and count again when there are more.
RECOUNT = text("""
WITH ranked AS (
    SELECT r.id, row_number() OVER (PARTITION BY r.item_id ORDER BY r.submitted_at, r.id) <= :most AS counts
    FROM study_rating r JOIN study_item i ON i.id = r.item_id
    WHERE i.study_id = :study AND i.kind = 'main' AND NOT r.repeat
)
UPDATE study_rating r SET counted = ranked.counts FROM ranked
WHERE ranked.id = r.id AND r.counted <> ranked.counts
""")
RECOUNT_ITEMS = text("""
UPDATE study_item i SET counted = n.counted FROM (
    SELECT i.id, count(r.id) FILTER (WHERE r.counted) AS counted
    FROM study_item i LEFT JOIN study_rating r ON r.item_id = i.id
    WHERE i.study_id = :study AND i.kind = 'main' GROUP BY i.id
) n WHERE n.id = i.id AND n.counted <> i.counted
""")
END_LEASES = text("""
UPDATE study_turn t SET state = 'later', lease_until = NULL, put_off_at = now()
FROM study_judge j WHERE j.id = t.judge_id AND j.study_id = :study AND t.state = 'leased'
""")


def freeze(session: Session, study: models.Study) -> str:
    """Items, order, texts and evaluator version get a hash and do not change any more; returns it.

    Conflict unless a draft, InvalidInput where something is missing that judges must be told.
    """
    hold(session, study)
    require_draft(study)
    missing = lacks(session, study)
    if missing:
        raise InvalidInput(f"The study '{study.name}' cannot be frozen: it lacks {'; '.join(missing)}.")
    study.content_hash = content_hash(session, study)
    study.state, study.frozen_at = StudyState.FROZEN.value, datetime.now(UTC)
    session.flush()
    return study.content_hash


def lacks(session: Session, study: models.Study) -> list[str]:
    """What must be there before a freezing and is not, in words."""
    missing = [
        name
        for name, value in (
            ("an ethics approval, or the reason why none is needed", study.ethics_kind and study.ethics),
            ("instructions", study.instructions),
            ("a content note", study.content_note),
            ("what is kept, and how long", study.retention),
        )
        if not value
    ]
    if (trained := training_count(session, study)) < TRAINING_ITEMS:
        missing.append(f"training items ({trained} of {TRAINING_ITEMS})")
    return missing


def content_hash(session: Session, study: models.Study) -> str:
    """SHA-256 of what does not change any more, as 64 hexadecimal digits."""
    evaluator = session.get(models.Evaluator, study.evaluator_id) if study.evaluator_id else None
    head: dict[str, Any] = {name: getattr(study, name) for name in HASHED}
    head["evaluator"] = evaluator.fingerprint if evaluator else None
    digest = hashlib.sha256(_line(head))
    query = select(models.StudyItem).filter_by(study_id=study.id)
    order = (models.StudyItem.kind, models.StudyItem.position)
    for item in session.scalars(query.order_by(*order).execution_options(yield_per=500)):
        digest.update(_line({name: getattr(item, name) for name in HASHED_OF_ITEM}))
    return digest.hexdigest()


def _line(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, ensure_ascii=False, sort_keys=True, allow_nan=False) + "\n").encode()


def open_study(session: Session, study: models.Study) -> None:
    """Judges may join and rate, for the first time or after a pause. Conflict unless frozen or paused."""
    hold(session, study)
    if study.state not in (StudyState.FROZEN, StudyState.PAUSED):
        why = {
            StudyState.DRAFT.value: "freeze it first, so that what judges rate does not change any more",
            StudyState.OPEN.value: "it is open already",
            StudyState.CLOSED.value: "what is closed stays closed; clone it for another round",
        }[study.state]
        raise Conflict(f"The study '{study.name}' cannot be opened: {why}.")
    study.state = StudyState.OPEN.value
    study.opened_at = study.opened_at or datetime.now(UTC)
    session.flush()


def pause(session: Session, study: models.Study) -> None:
    """No new items; what is on a screen may still be submitted. Conflict unless open."""
    hold(session, study)
    if study.state != StudyState.OPEN:
        raise Conflict(f"The study '{study.name}' is {study.state}; only an open one can be paused.")
    study.state = StudyState.PAUSED.value
    session.flush()


def close(session: Session, study: models.Study) -> None:
    """The end of all rating; nothing is withheld any more. Conflict unless open or paused."""
    hold(session, study)
    if study.state not in (StudyState.OPEN, StudyState.PAUSED):
        raise Conflict(
            f"The study '{study.name}' is {study.state}; only an open or paused one can be closed."
        )
    session.execute(END_LEASES, {"study": study.id})
    study.state, study.closed_at = StudyState.CLOSED.value, datetime.now(UTC)
    session.flush()


def drop(session: Session, study: models.Study) -> None:
    """Delete a draft: nobody has rated anything of it. Conflict for any other."""
    hold(session, study)
    if study.state != StudyState.DRAFT:
        raise Conflict(f"The study '{study.name}' is {study.state}; only a draft can be deleted.")
    session.execute(delete(models.Study).filter_by(id=study.id))


def set_judges_per_item(session: Session, study: models.Study, k: int) -> None:
    """Raise or lower how many ratings an item gets. Nothing is lost: the earliest count, the others wait."""
    check_judges_per_item(k)
    hold(session, study)
    if study.state == StudyState.CLOSED:
        raise Conflict(f"The study '{study.name}' is closed.")
    study.judges_per_item = k
    session.flush()
    session.execute(RECOUNT, {"study": study.id, "most": k})
    session.execute(RECOUNT_ITEMS, {"study": study.id})
    session.expire_all()


def clone(
    session: Session,
    study: models.Study,
    name: str,
    *,
    owner: models.Account | None,
    n: int | None = None,
    fresh_cases: bool = True,
) -> models.Study:
    """A draft with the same runs, texts, training and gold items and a new draw, as after a pilot.

    With `fresh_cases` none of the cases that the first one showed.
    """
    if study.design == StudyDesign.IMPORTED:
        raise Conflict("An imported study has no draw that could be repeated.")
    settings = settings_of(study, name, n=n)
    seen: frozenset[str] = frozenset()
    if fresh_cases:
        query = select(models.StudyItem.case_key).filter_by(study_id=study.id, kind=ItemKind.MAIN.value)
        seen = frozenset(key for key in session.scalars(query) if key is not None)
    evaluator = session.get_one(models.Evaluator, study.evaluator_id)
    made = create(
        session, owner, study_runs(session, study), settings,
        evaluator=evaluator, without_cases=seen, cloned_from=study,
    )  # fmt: skip
    _copy_known(session, study, made)
    return made


def _copy_known(session: Session, study: models.Study, made: models.Study) -> None:
    for item in session.scalars(select(models.StudyItem).filter_by(study_id=made.id)).all():
        if item.kind != ItemKind.MAIN:
            session.delete(item)
    session.flush()
    copied = (
        "kind", "position", "constraint", "request", "response", "unmasked_response", "expected", "feedback",
        "shuffle", "category", "topics",
    )  # fmt: skip
    query = select(models.StudyItem).where(
        models.StudyItem.study_id == study.id, models.StudyItem.kind != ItemKind.MAIN.value
    )
    session.add_all(
        models.StudyItem(study_id=made.id, **{name: getattr(item, name) for name in copied})
        for item in session.scalars(query)
    )
    session.flush()

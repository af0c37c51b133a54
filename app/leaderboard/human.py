"""What judges' blind labels make of a row's rate: worked out when a row or a study changes, and kept."""

from collections import defaultdict
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from app import models
from app.human_rates import Answered, Label, corrected_rate, human_label, why_too_few
from app.leaderboard.boards import NO_LABELS, PARTS, WITHOUT_SIMULATED, hold_group, key_of, store
from app.models import ItemKind, StudyState
from app.outcomes import STANDARD, Rating
from app.rates import ANSWERED, RATINGS, Observation
from app.runs.reporting import observations

ONE_CLUSTER = "one cluster of cases alone gives no interval"


def update_human_rates(session: Session, study: models.Study) -> int:
    """After the close of a study, or a label given after it: the rows that it is about; how many changed."""
    entries = session.scalars(
        select(models.BoardEntry)
        .join(models.StudyRun, models.StudyRun.run_id == models.BoardEntry.run_id)
        .options(joinedload(models.BoardEntry.run))
        .where(
            models.StudyRun.study_id == study.id,
            models.BoardEntry.evaluator_id == study.evaluator_id,
            models.BoardEntry.withdrawn_at.is_(None),
        )
        .order_by(models.BoardEntry.id)
    ).all()
    changed = 0
    for entry in entries:
        hold_group(session, key_of(entry))
        if measure(session, entry):
            _show(session, entry)
            changed += 1
    return changed


def measure(session: Session, entry: models.BoardEntry) -> bool:
    """Work the entry's human rate out, keep it if it has changed; `entry.run` must be loaded."""
    h = models.HumanRate
    latest = select(h.content).filter_by(entry_id=entry.id).order_by(h.id.desc()).limit(1)
    before = session.scalars(latest).one_or_none() or {"human": None, "why": NO_LABELS}
    now = _human(session, entry)
    if now == before:
        return False
    session.add(h(entry_id=entry.id, content=now))
    session.flush()
    return True


def _human(session: Session, entry: models.BoardEntry) -> dict[str, Any]:
    """By the closed study with the most labels among those that have enough; the last one of equal ones."""
    labelled = _labels(session, entry)
    if not labelled:
        return {"human": None, "why": NO_LABELS}
    query = select(models.Case.key).filter_by(benchmark_id=entry.benchmark_id, kind="case", split="public")
    public = set(session.scalars(query))
    seen = [
        one
        for one in observations(session, entry.run_id, entry.evaluator_id)
        if one.case in public and one.variant == STANDARD and one.outcome in ANSWERED
    ]
    answered = [Answered(one.scenario, one.cluster, _verdict(one)) for one in seen]
    best: dict[str, Any] = {"human": None, "why": ONE_CLUSTER}
    for study, keyed in labelled:
        labels = [label for case, label in keyed if case in public]
        found = corrected_rate(answered, labels)
        if found is None:
            if best["human"] is None and (lacking := why_too_few(answered, labels)) is not None:
                best["why"] = lacking
        elif best["human"] is None or found.labels >= best["human"]["labels"]:
            human = {
                "rate": found.rate,
                "ci": list(found.interval),
                "labels": found.labels,
                "study": study.name,
                # Whether others than whoever ran the model made the study.
                "independent": study.owner_id != entry.run.account_id,
            }
            best = {"human": human, "why": None}
    return best


def _verdict(one: Observation) -> Rating | None:
    return Rating(RATINGS[one.outcome]) if one.outcome in RATINGS else None


def _labels(session: Session, entry: models.BoardEntry) -> list[tuple[models.Study, list[tuple[str, Label]]]]:
    """By closed study, the earliest first: (case, label) of those conversations that were drawn by chance."""
    s, i, a = models.Study, models.StudyItem, models.StudyAdjudication
    rows = session.execute(
        select(s, i.id, i.case_key, i.scenario, i.evaluator_rating, i.inclusion_probability, a.label)
        .join(i, i.study_id == s.id)
        .join(models.Conversation, models.Conversation.id == i.conversation_id)
        .outerjoin(a, a.item_id == i.id)
        .where(
            models.Conversation.run_id == entry.run_id,
            s.state == StudyState.CLOSED,
            s.evaluator_id == entry.evaluator_id,
            i.kind == ItemKind.MAIN,
            i.variant == STANDARD,
            i.inclusion_probability.is_not(None),
        )
        .order_by(s.closed_at, s.id, i.position)
    ).all()
    ratings = _ratings(session, [row[1] for row in rows])
    found: dict[int, tuple[models.Study, list[tuple[str, Label]]]] = {}
    for study, item, case, scenario, verdict, probability, adjudicated in rows:
        passed = human_label(ratings[item], adjudicated)
        if passed is not None and case and scenario and verdict is not None and probability:
            label = Label(scenario, Rating(verdict), probability, passed)
            found.setdefault(study.id, (study, []))[1].append((case, label))
    return list(found.values())


def _ratings(session: Session, items: list[int]) -> dict[int, list[int]]:
    r = models.StudyRating
    query = select(r.item_id, r.rating).where(r.item_id.in_(items), r.counted, ~r.repeat)
    found: dict[int, list[int]] = defaultdict(list)
    for item, rating in session.execute(query):
        found[item].append(rating)
    return found


def _show(session: Session, entry: models.BoardEntry) -> None:
    """Put the latest figure into the stored board: ranks do not hang on it, so nothing else is computed."""
    key = key_of(entry)
    h = models.HumanRate
    latest = session.scalars(
        select(h.content).filter_by(entry_id=entry.id).order_by(h.id.desc()).limit(1)
    ).one()
    query = select(models.Board.content).filter_by(**key._asdict())
    content = session.scalars(query).one()
    for board in (content, content.get(WITHOUT_SIMULATED) or {}):
        for part in PARTS:
            for row in board.get(part, ()):
                if row["run"] == entry.run_id:
                    row["human"] = latest["human"]
                    row["undefined"].pop("human", None)
                    if latest["why"] is not None:
                        row["undefined"]["human"] = latest["why"]
    store(session, key, content)

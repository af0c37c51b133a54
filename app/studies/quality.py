"""How a study stands and how each judge works, for the owner alone: advice, never a penalty."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from app import models
from app.models import ItemKind, JudgeState
from app.tables.cells import Value

FEWEST = 10  # below, advice would be noise
GOLD_LOW, CONSISTENT_LOW, UNCLEAR_HIGH, FAST_SECONDS = 0.7, 0.7, 0.5, 3.0
LONG_RUN = 15

RATED = text("""
SELECT j.id AS judge, i.id AS item, i.kind, i.expected, r.repeat, r.rating, r.active_ms
FROM study_rating r
JOIN study_judge j ON j.id = r.judge_id
JOIN study_item i ON i.id = r.item_id
WHERE j.study_id = :study AND i.kind <> 'training'
ORDER BY j.id, r.submitted_at, r.id
""")

TURNS = text("""
SELECT j.id AS judge, count(*) FILTER (WHERE t.state = 'declined') AS declined,
       count(*) FILTER (WHERE t.state = 'later') AS later
FROM study_turn t JOIN study_judge j ON j.id = t.judge_id
WHERE j.study_id = :study GROUP BY j.id
""")

CELLS = text("""
SELECT coalesce(stratum, '') AS stratum, count(*) AS items, sum(counted) AS ratings,
       min(counted) AS fewest, max(counted) AS most,
       count(*) FILTER (WHERE counted >= :most) AS complete
FROM study_item WHERE study_id = :study AND kind = 'main' GROUP BY 1 ORDER BY 1
""")

SURPLUS = text("""
SELECT count(*) FROM study_rating r JOIN study_item i ON i.id = r.item_id
WHERE i.study_id = :study AND i.kind = 'main' AND NOT r.counted AND NOT r.repeat
""")


@dataclass(frozen=True)
class JudgeQuality:
    """Shares in 0-1, None where nothing stands behind them. `rated`: main items, repeats not among them."""

    judge: models.StudyJudge
    rated: int
    gold_right: int
    gold_rated: int
    repeats_same: int
    repeats_rated: int
    active_seconds: float
    median_seconds: float | None
    longest_run: int
    unclear_share: float | None
    declined: int
    later: int
    advice: list[str]


@dataclass(frozen=True)
class CellStanding:
    stratum: str
    items: int
    complete: int
    ratings: int
    fewest: int
    most: int


@dataclass(frozen=True)
class StudyStanding:
    """`ratings` count; `surplus` came when an item had all its places taken and are kept apart."""

    items: int
    complete: int
    ratings: int
    wanted: int
    surplus: int
    judges: int
    cells: list[CellStanding]


@dataclass(frozen=True)
class Payment:
    """For whoever pays judges. Of one who has withdrawn nothing is left but the number."""

    number: int
    pseudonym: str | None
    external_id: str | None
    state: str
    rated: int
    active_seconds: float


@dataclass(frozen=True)
class Withdrawn:
    """Judges who took back what they gave: how many, and how many ratings."""

    judges: int
    ratings: int


def withdrawn(session: Session, study: models.Study) -> Withdrawn:
    j = models.StudyJudge
    query = select(func.count(), func.sum(j.ratings_deleted))
    judges, ratings = session.execute(
        query.where(j.study_id == study.id, j.state == JudgeState.WITHDRAWN)
    ).one()
    return Withdrawn(judges, ratings or 0)


def count_items(session: Session, study: models.Study, kind: ItemKind) -> int:
    query = select(func.count()).select_from(models.StudyItem)
    return session.scalars(query.filter_by(study_id=study.id, kind=kind.value)).one()


def judges_of(session: Session, study: models.Study) -> list[models.StudyJudge]:
    query = select(models.StudyJudge).filter_by(study_id=study.id).order_by(models.StudyJudge.number)
    return list(session.scalars(query))


def panel(session: Session, study: models.Study) -> list[JudgeQuality]:
    """One line a judge, by number; who has withdrawn is not among them."""
    rated = defaultdict(list)
    for row in session.execute(RATED, {"study": study.id}):
        rated[row.judge].append(row)
    aside = {row.judge: row for row in session.execute(TURNS, {"study": study.id})}
    lines = []
    for judge in judges_of(session, study):
        if judge.state == JudgeState.WITHDRAWN:
            continue
        rows, turns = rated[judge.id], aside.get(judge.id)
        main = [row for row in rows if row.kind == ItemKind.MAIN and not row.repeat]
        gold = [row for row in rows if row.kind == ItemKind.GOLD]
        first = {row.item: row.rating for row in main}
        again = [row for row in rows if row.repeat and row.item in first]
        seconds = [row.active_ms / 1000 for row in main if row.active_ms is not None]
        line = JudgeQuality(
            judge=judge,
            rated=len(main),
            gold_right=sum(row.rating == row.expected for row in gold),
            gold_rated=len(gold),
            repeats_same=sum(row.rating == first[row.item] for row in again),
            repeats_rated=len(again),
            active_seconds=judge.active_ms / 1000,
            median_seconds=statistics.median(seconds) if seconds else None,
            longest_run=longest_run([row.rating for row in main]),
            unclear_share=sum(row.rating == 1 for row in main) / len(main) if main else None,
            declined=turns.declined if turns else 0,
            later=turns.later if turns else 0,
            advice=[],
        )
        line.advice.extend(_advice(line))
        lines.append(line)
    return lines


def longest_run(ratings: Sequence[int]) -> int:
    """How many in a row were rated alike, at most."""
    return max((sum(1 for _ in run) for _, run in groupby(ratings)), default=0)


def _advice(line: JudgeQuality) -> list[str]:
    """What an owner may want to look at. A low number alone proves nothing."""
    found = []
    if line.gold_rated >= 5 and line.gold_right / line.gold_rated < GOLD_LOW:
        found.append(
            f"{line.gold_right} of {line.gold_rated} gold items as expected: "
            "ask how the instructions are read."
        )
    if line.repeats_rated >= 5 and line.repeats_same / line.repeats_rated < CONSISTENT_LOW:
        found.append(
            f"{line.repeats_same} of {line.repeats_rated} repeated items rated the same: a break may help."
        )
    if line.rated < FEWEST:
        return found
    if line.median_seconds is not None and 0 < line.median_seconds < FAST_SECONDS:
        found.append(
            f"Half of the items took {max(0.1, line.median_seconds):.1f} s or less: hardly time to read them."
        )
    if line.longest_run >= LONG_RUN:
        found.append(f"{line.longest_run} items in a row with the same rating; chance does that rarely.")
    if line.unclear_share is not None and line.unclear_share > UNCLEAR_HIGH:
        found.append("More than half unclear: point to the examples in the instructions.")
    return found


def standing(session: Session, study: models.Study) -> StudyStanding:
    cells = [
        CellStanding(row.stratum, row.items, row.complete, int(row.ratings), row.fewest, row.most)
        for row in session.execute(CELLS, {"study": study.id, "most": study.judges_per_item})
    ]
    states = Counter(judge.state for judge in judges_of(session, study))
    items = sum(cell.items for cell in cells)
    surplus: int = session.execute(SURPLUS, {"study": study.id}).scalar_one()
    return StudyStanding(
        items=items,
        complete=sum(cell.complete for cell in cells),
        ratings=sum(cell.ratings for cell in cells),
        wanted=items * study.judges_per_item,
        surplus=surplus,
        judges=states.total() - states[JudgeState.WITHDRAWN.value],
        cells=cells,
    )


def payments(session: Session, study: models.Study) -> list[Payment]:
    return [
        Payment(
            judge.number, judge.pseudonym, judge.external_id, judge.state, judge.rated, judge.active_ms / 1000
        )
        for judge in judges_of(session, study)
    ]


PAYMENT_HEADER = (
    "Judge", "Pseudonym", "Participant", "State", "Rated", "Active Minutes", "Completion Code",
)  # fmt: skip


def payment_rows(session: Session, study: models.Study) -> list[list[Value]]:
    """Under PAYMENT_HEADER. The only file that names participants."""
    return [
        [
            one.number, one.pseudonym, one.external_id, one.state, one.rated,
            round(one.active_seconds / 60, 1), study.completion_code,
        ]
        for one in payments(session, study)
    ]  # fmt: skip

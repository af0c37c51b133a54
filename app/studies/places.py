"""Who may rate what: the judge's standing, and the places that an item has.

Whoever rates holds, in this order: the study's lock (shared), the judge's row, the row of one item. So two
tabs of a judge come one after the other, an item's count and its ratings change together, and nobody waits
in a circle. An item has as many places as the study wants ratings; a place is taken by a rating that counts,
and meanwhile by a live lease of somebody else. Leases end by the clock of the query that looks at them.
"""

import hashlib
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from app import models
from app.errors import Conflict
from app.models import JudgeState, StudyState
from app.studies.finding import SHARE, STUDY_LOCK

LEASE_SECONDS = 15 * 60

LOCK_JUDGE = text("""
SELECT j.id, j.study_id, j.state, j.order_seed, j.refused_topics, j.rated,
       s.state AS study_state, s.judges_per_item, s.repeat_share, s.planned,
       (SELECT min(i.position) FROM study_item i WHERE i.study_id = s.id AND i.kind = 'gold') AS first_gold
FROM study_judge j JOIN study s ON s.id = j.study_id
WHERE j.id = :judge FOR NO KEY UPDATE OF j
""")

LOCK_ITEM = "SELECT counted FROM study_item WHERE id = :item FOR NO KEY UPDATE"
WAIT_FOR_ITEM, TRY_ITEM = text(LOCK_ITEM), text(f"{LOCK_ITEM} SKIP LOCKED")

BEFORE_LOCK, UNLOCK = text("SAVEPOINT item"), text("ROLLBACK TO SAVEPOINT item")

LEASED_BY_OTHERS = text("""
SELECT count(*) FROM study_turn
WHERE item_id = :item AND state = 'leased' AND lease_until > now() AND judge_id <> :judge AND NOT repeat
""")

COUNT = text("""
UPDATE study_item SET counted = counted + 1 WHERE id = :item AND counted < :most RETURNING id
""")

RELEASE = text("UPDATE study_item SET counted = counted - 1 WHERE id = :item")

# A rating that came when all places were taken gets the one that became free, the earliest first.
MOVE_UP = text("""
WITH first AS (
    SELECT r.id FROM study_rating r JOIN study_item i ON i.id = r.item_id
    WHERE r.item_id = :item AND NOT r.counted AND NOT r.repeat AND i.counted < :most
    ORDER BY r.submitted_at, r.id LIMIT 1
), moved AS (
    UPDATE study_rating r SET counted = true FROM first WHERE r.id = first.id RETURNING r.item_id
)
UPDATE study_item i SET counted = counted + 1 FROM moved WHERE i.id = moved.item_id RETURNING i.id
""")

LEASE = text("""
INSERT INTO study_turn (judge_id, item_id, repeat, state, lease_until)
VALUES (:judge, :item, :repeat, 'leased', now() + make_interval(secs => :lease))
ON CONFLICT (judge_id, item_id, repeat) DO UPDATE
SET state = 'leased', lease_until = excluded.lease_until, put_off_at = NULL
WHERE study_turn.state <> 'rated'
RETURNING id
""")


@dataclass(frozen=True)
class Standing:
    """A judge whose row is locked, and the study at this moment."""

    judge_id: int
    study_id: int
    state: JudgeState
    order_seed: int
    refused_topics: list[str]
    rated: int
    study_state: StudyState
    judges_per_item: int
    repeat_share: float
    planned: int
    has_gold: bool

    def chance(self, what: str) -> float:
        """A number in 0-1 that is fixed for this judge and this purpose."""
        digest = hashlib.sha256(f"{self.order_seed}:{what}".encode()).digest()
        return int.from_bytes(digest[:7], "big") / (1 << 56)

    def require_ratings(self) -> None:
        """What is on the screen may still be stored while the study rests; Conflict otherwise."""
        if self.state is JudgeState.WITHDRAWN:
            raise Conflict("You have withdrawn from this study; nothing of yours is kept in it any more.")
        if self.study_state is StudyState.CLOSED:
            raise Conflict("The study is closed: ratings cannot be given or changed any more.")
        if self.study_state not in (StudyState.OPEN, StudyState.PAUSED):
            raise Conflict("The study is not open yet.")


def lock_judge(session: Session, judge: models.StudyJudge) -> Standing:
    """Wait for whatever else this judge is doing, in another tab perhaps."""
    session.execute(SHARE, {"key": STUDY_LOCK + judge.study_id})
    row = session.execute(LOCK_JUDGE, {"judge": judge.id}).one()
    return Standing(
        row.id, row.study_id, JudgeState(row.state), row.order_seed, row.refused_topics, row.rated,
        StudyState(row.study_state), row.judges_per_item, row.repeat_share, row.planned,
        row.first_gold is not None,
    )  # fmt: skip


def has_place(session: Session, standing: Standing, item_id: int, *, wait: bool) -> bool:
    """Lock the item; is there a place on it for this judge? Without `wait` an item in use has none.

    The lock is kept only where there is one: nobody may hold one item and wait for another.
    """
    session.execute(BEFORE_LOCK)
    locked = session.execute(WAIT_FOR_ITEM if wait else TRY_ITEM, {"item": item_id}).first()
    if locked is not None:
        # A statement of its own: it sees what was committed while the lock was waited for.
        values = {"item": item_id, "judge": standing.judge_id}
        others: int = session.execute(LEASED_BY_OTHERS, values).scalar_one()
        if locked.counted + others < standing.judges_per_item:
            return True
        session.execute(UNLOCK)
    return False


def lease(session: Session, standing: Standing, item_id: int, *, repeat: bool) -> int | None:
    """The turn that now holds the item for the judge; None when it is rated already."""
    values = {"judge": standing.judge_id, "item": item_id, "repeat": repeat, "lease": LEASE_SECONDS}
    return session.execute(LEASE, values).scalar()


def count(session: Session, standing: Standing, item_id: int) -> bool:
    """Take a place for a rating; False when all are taken."""
    values = {"item": item_id, "most": standing.judges_per_item}
    return session.execute(COUNT, values).first() is not None


def release(session: Session, item_id: int) -> None:
    """Give a counted rating's place back."""
    session.execute(RELEASE, {"item": item_id})


def move_up(session: Session, item_id: int, judges_per_item: int) -> bool:
    """Count a rating that waits for a place, if there is one."""
    return session.execute(MOVE_UP, {"item": item_id, "most": judges_per_item}).first() is not None

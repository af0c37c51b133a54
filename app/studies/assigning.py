"""What a judge is shown next: training, what is due a second time, gold, a draw, what was put off.

The draw takes, from a random place on, one of the items with the fewest ratings and live leases that this
judge may still rate. It walks along an index, so it costs the same among a hundred items and 100,000.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.studies.places import Standing, has_place, lease

TRIES = 12
NEAREST = 4
GOLD_EVERY_AT_MOST, GOLD_EVERY_AT_LEAST = 15, 3
REPEAT_AFTER, REPEAT_SPREAD, REPEAT_AT_END = 10, 11, 3

MINE = "SELECT 1 FROM study_turn t WHERE t.judge_id = :judge AND t.item_id = i.id OFFSET 0"

# OFFSET 0 keeps the look-ups beside the walk along the index, instead of a join over everything.
_SIDE = f"""
(SELECT i.id, i.shuffle FROM study_item i
 WHERE i.study_id = :study AND i.kind = 'main' AND i.counted = :level AND i.shuffle {{side}} :start
   AND NOT i.topics && CAST(:refused AS text[])
   AND NOT EXISTS ({MINE})
   AND NOT EXISTS (
       SELECT 1 FROM study_turn o
       WHERE o.item_id = i.id AND o.state = 'leased' AND o.lease_until > now() AND NOT o.repeat OFFSET 0
   )
 ORDER BY i.shuffle LIMIT {NEAREST})
"""  # noqa: S608  (put together from constants, here and below)
# Those that others have on their screens are few; with their leases they belong to a higher level.
NEAREST_ITEMS = text(f"""
WITH busy AS MATERIALIZED (
    SELECT o.item_id, count(*) AS leases
    FROM study_judge j JOIN study_turn o ON o.judge_id = j.id AND o.state = 'leased'
    WHERE j.study_id = :study AND o.lease_until > now() AND NOT o.repeat AND o.judge_id <> :judge
    GROUP BY o.item_id
), near AS (
    {_SIDE.format(side=">=")}
    UNION ALL
    {_SIDE.format(side="<")}
    UNION ALL
    SELECT i.id, i.shuffle FROM busy b JOIN study_item i ON i.id = b.item_id
    WHERE i.kind = 'main' AND i.counted + b.leases = :level
      AND NOT i.topics && CAST(:refused AS text[]) AND NOT EXISTS ({MINE})
)
SELECT id FROM near ORDER BY shuffle < :start, shuffle
""")  # noqa: S608

CURRENT = text("""
SELECT t.id, t.item_id, t.repeat OR i.kind <> 'main' OR t.lease_until > now() AS held
FROM study_turn t JOIN study_item i ON i.id = t.item_id
WHERE t.judge_id = :judge AND t.state = 'leased'
ORDER BY t.id
""")

RENEW = text("UPDATE study_turn SET lease_until = now() + make_interval(secs => :lease) WHERE id = :turn")

PUT_BACK = text(
    "UPDATE study_turn SET state = 'later', lease_until = NULL, put_off_at = now() WHERE id = :turn"
)

NEXT_TRAINING = text("""
SELECT i.id FROM study_item i
WHERE i.study_id = :study AND i.kind = 'training' AND NOT i.topics && CAST(:refused AS text[])
  AND NOT EXISTS (
    SELECT 1 FROM study_turn t
    WHERE t.judge_id = :judge AND t.item_id = i.id AND t.state IN ('rated', 'declined')
)
ORDER BY i.position LIMIT 1
""")

BEGIN_RATING = text("UPDATE study_judge SET state = 'rating' WHERE id = :judge AND state = 'training'")

DUE_AGAIN = text("""
SELECT t.item_id FROM study_turn t
WHERE t.judge_id = :judge AND t.state = 'scheduled'
  AND :rated >= CASE WHEN :at_end THEN t.due_at_end ELSE t.due_after END
ORDER BY t.id LIMIT 1
""")

GOLD = text("""
SELECT i.id, t.id IS NOT NULL AS seen
FROM study_item i LEFT JOIN study_turn t ON t.item_id = i.id AND t.judge_id = :judge AND NOT t.repeat
WHERE i.study_id = :study AND i.kind = 'gold'
  AND (t.id IS NOT NULL OR NOT i.topics && CAST(:refused AS text[]))
ORDER BY i.position
""")

PUT_OFF = text("""
SELECT t.item_id, t.repeat, i.kind = 'main' AND NOT t.repeat AS needs_place
FROM study_turn t JOIN study_item i ON i.id = t.item_id
WHERE t.judge_id = :judge AND t.state = 'later'
ORDER BY t.put_off_at, t.id
""")

# The order is the index's: without it a scan from one end looks cheaper, and is not when most is rated.
OTHERS_HOLD = text(f"""
SELECT (
    SELECT i.id FROM study_item i
    WHERE i.study_id = :study AND i.kind = 'main' AND i.counted < :most
      AND NOT i.topics && CAST(:refused AS text[]) AND NOT EXISTS ({MINE})
    ORDER BY i.counted, i.shuffle LIMIT 1
) IS NOT NULL
""")  # noqa: S608

SCHEDULE = text("""
INSERT INTO study_turn (judge_id, item_id, repeat, state, due_after, due_at_end)
VALUES (:judge, :item, true, 'scheduled', :due_after, :due_at_end)
ON CONFLICT DO NOTHING
""")


def current(session: Session, standing: Standing) -> int | None:
    """The turn that the judge has on the screen: the same after each reload.

    One whose lease ran out is gone on with if the item still has a place; else it is put off.
    """
    for row in session.execute(CURRENT, {"judge": standing.judge_id}).all():
        if row.held or has_place(session, standing, row.item_id, wait=True):
            turn: int = row.id
            return turn
        session.execute(PUT_BACK, {"turn": row.id})
    return None


def training(session: Session, standing: Standing) -> int | None:
    """The next training item's turn; None, and the judge may rate, when there is none left."""
    item = session.execute(NEXT_TRAINING, _place_values(standing)).scalar()
    if item is None:
        session.execute(BEGIN_RATING, {"judge": standing.judge_id})
        return None
    return lease(session, standing, item, repeat=False)


def following(session: Session, standing: Standing) -> int | None:
    """A new turn for a judge who rates and has nothing on the screen; None when there is nothing."""
    return (
        _again(session, standing, at_end=False)
        or _gold(session, standing)
        or _drawn(session, standing)
        or _put_off(session, standing)
        or _again(session, standing, at_end=True)
    )


def waits(session: Session, standing: Standing) -> bool:
    """Items are left that others have on their screens: they may come back."""
    return session.execute(OTHERS_HOLD, _place_values(standing)).scalar_one() is True


def _place_values(standing: Standing) -> dict[str, Any]:
    return {
        "study": standing.study_id,
        "judge": standing.judge_id,
        "refused": standing.refused_topics,
        "most": standing.judges_per_item,
    }


def _again(session: Session, standing: Standing, *, at_end: bool) -> int | None:
    values = {"judge": standing.judge_id, "rated": standing.rated, "at_end": at_end}
    item = session.execute(DUE_AGAIN, values).scalar()
    return None if item is None else lease(session, standing, item, repeat=True)


def _gold(session: Session, standing: Standing) -> int | None:
    """Gold items stand at even distances in the series, which begin elsewhere for each judge."""
    if not standing.has_gold:
        return None
    rows = session.execute(GOLD, _place_values(standing)).all()
    unseen = [row.id for row in rows if not row.seen]
    if not unseen:
        return None
    step = max(GOLD_EVERY_AT_LEAST, min(GOLD_EVERY_AT_MOST, standing.planned // (len(rows) + 1)))
    due = int(standing.rated / step + standing.chance("gold"))
    if len(rows) - len(unseen) >= due:
        return None
    return lease(session, standing, unseen[int(standing.chance("which gold") * len(unseen))], repeat=False)


def _drawn(session: Session, standing: Standing) -> int | None:
    for attempt in range(TRIES):
        start = standing.chance(f"draw {standing.rated} {attempt}")
        near = _nearest(session, standing, start)
        if not near:
            return None
        for item in near:
            # Others draw at the same time: pass over what they take, and wait for it only at last.
            if has_place(session, standing, item, wait=attempt == TRIES - 1):
                return lease(session, standing, item, repeat=False)
    return None


def _nearest(session: Session, standing: Standing, start: float) -> Sequence[int]:
    for level in range(standing.judges_per_item):
        values = _place_values(standing) | {"level": level, "start": start}
        near = session.execute(NEAREST_ITEMS, values).scalars().all()
        if near:
            return near
    return []


def _put_off(session: Session, standing: Standing) -> int | None:
    for row in session.execute(PUT_OFF, {"judge": standing.judge_id}).all():
        if not row.needs_place or has_place(session, standing, row.item_id, wait=True):
            return lease(session, standing, row.item_id, repeat=row.repeat)
    return None


def schedule_again(session: Session, standing: Standing, item_id: int, number: int) -> None:
    """An even share of the ratings comes twice; `number` is this one's place in the series, from 1."""
    share, offset = standing.repeat_share, standing.chance("repeats")
    if int(number * share + offset) == int((number - 1) * share + offset):
        return
    gap = REPEAT_AFTER + int(standing.chance(f"gap {number}") * REPEAT_SPREAD)
    values = {
        "judge": standing.judge_id,
        "item": item_id,
        "due_after": number + gap,
        "due_at_end": number + REPEAT_AT_END,
    }
    session.execute(SCHEDULE, values)

"""A judge's turn with an item: found by its key, and what happens to it."""

from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.errors import NotFound
from app.studies.places import Standing

_TURN = """
SELECT t.id, t.uuid, t.item_id, t.repeat, t.state, t.active_ms, t.draft_comment,
       i.kind, i.expected, i.feedback, i.constraint, i.request, i.response,
       r.id AS rating_id, r.rating, r.comment, r.counted
FROM study_turn t
JOIN study_item i ON i.id = t.item_id
LEFT JOIN study_rating r ON r.judge_id = t.judge_id AND r.item_id = t.item_id AND r.repeat = t.repeat
WHERE t.judge_id = :judge AND t.state <> 'scheduled'
"""
TURN_BY_KEY, TURN_BY_ID = text(f"{_TURN} AND t.uuid = :key"), text(f"{_TURN} AND t.id = :turn")

# What is on the screen has no rating yet.
SHOW = text("""
UPDATE study_turn t SET shown_at = now(), first_shown_at = coalesce(first_shown_at, now()),
    lease_until = now() + make_interval(secs => :lease)
FROM study_item i WHERE t.id = :turn AND i.id = t.item_id
RETURNING t.uuid, t.draft_comment, i.kind, i.constraint, i.request, i.response,
    CAST(NULL AS smallint) AS rating, CAST(NULL AS text) AS comment
""")

SUBMITTED_BEFORE = text("""
SELECT c.item_id, c.repeat, r.rating, r.counted
FROM study_rating_change c
LEFT JOIN study_rating r ON r.judge_id = c.judge_id AND r.item_id = c.item_id AND r.repeat = c.repeat
WHERE c.judge_id = :judge AND c.submission = :submission
""")

STORE = text("""
INSERT INTO study_rating
    (judge_id, item_id, repeat, rating, comment, counted, submission, active_ms, submitted_at)
VALUES (:judge, :item, :repeat, :rating, :comment, :counted, :submission, :active_ms, clock_timestamp())
""")

NOTE_CHANGE = text("""
INSERT INTO study_rating_change (judge_id, item_id, repeat, before, after, submission, at)
VALUES (:judge, :item, :repeat, :before, :after, :submission, clock_timestamp())
""")

END_TURN = text("""
UPDATE study_turn SET state = :state, lease_until = NULL, active_ms = :active_ms,
    put_off_at = CASE WHEN :state = 'later' THEN now() END,
    draft_comment = CASE WHEN :state = 'rated' THEN NULL ELSE draft_comment END
WHERE id = :turn
""")

ADD_RATED = text("UPDATE study_judge SET rated = rated + :by WHERE id = :judge")

LAST_RATED = text("SELECT max(id) FROM study_rating WHERE judge_id = :judge")

UNDO = text("DELETE FROM study_rating WHERE id = :rating")

UNSCHEDULE = text("""
DELETE FROM study_turn WHERE judge_id = :judge AND item_id = :item AND repeat AND state = 'scheduled'
""")

KEEP_DRAFT = text("UPDATE study_turn SET draft_comment = :comment WHERE id = :turn")
COMMENT_ON = text("UPDATE study_rating SET comment = :comment WHERE id = :rating")


def find_turn(session: Session, standing: Standing, key: str) -> Any:
    try:
        identity = UUID(key)
    except ValueError:
        identity = None
    row = None
    if identity is not None:
        row = session.execute(TURN_BY_KEY, {"judge": standing.judge_id, "key": identity}).first()
    if row is None:
        raise NotFound("This is none of your items. Nothing was stored; go on with the one that is shown.")
    return row

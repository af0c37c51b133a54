"""Active time by the server's clock: what passes between two beats of a page that is looked at.

The page beats every BEAT_SECONDS while its tab is seen and something is done on it, and once without `active`
when that ends. Of a longer silence nothing is counted.
"""

from contextlib import suppress
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from app import models
from app.studies.places import LEASE_SECONDS

BEAT_SECONDS = 15
LONGEST_GAP_SECONDS = 30

SINCE = """
CASE WHEN beat_at > clock_timestamp() - make_interval(secs => :gap)
     THEN greatest(0, floor(extract(epoch FROM clock_timestamp() - beat_at) * 1000))::integer ELSE 0 END
"""
BEAT = text(f"""
WITH before AS (
    SELECT id, {SINCE} AS since FROM study_judge WHERE id = :judge FOR NO KEY UPDATE
)
UPDATE study_judge j SET active_ms = active_ms + before.since, last_seen_at = now(),
    beat_at = CASE WHEN :active THEN clock_timestamp() END
FROM before WHERE j.id = before.id
RETURNING before.since
""")  # noqa: S608  (constants)

ON_ITEM = text("""
UPDATE study_turn SET active_ms = active_ms + :since, lease_until = now() + make_interval(secs => :lease)
WHERE judge_id = :judge AND uuid = CAST(:key AS uuid) AND state = 'leased' AND lease_until > now()
""")


def beat(session: Session, judge: models.StudyJudge, key: str | None, *, active: bool) -> None:
    """The page of the item `key` is looked at, or has ceased to be. The item's lease goes on.

    A key that is none of the judge's changes nothing but the judge's own time.
    """
    since = counted_since(session, judge, active=active)
    with suppress(ValueError):
        values = {"judge": judge.id, "key": UUID(key or ""), "since": since, "lease": LEASE_SECONDS}
        session.execute(ON_ITEM, values)


def counted_since(session: Session, judge: models.StudyJudge, *, active: bool = True) -> int:
    """Count what passed since the last beat, in milliseconds, and begin anew."""
    values = {"judge": judge.id, "active": active, "gap": LONGEST_GAP_SECONDS}
    since: int = session.execute(BEAT, values).scalar_one()
    return since

"""What judges wrote beside their ratings: read by the owner, who lets it go out, or not.

A comment goes out in the very words that were released; one that its judge changed since stays in.
"""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from app import models
from app.models import ItemKind
from app.outcomes import Rating

PAGE = 100

RELEASE = text("""
UPDATE study_rating r SET released_comment = CASE WHEN r.id = ANY(:released) THEN r.comment END
FROM study_judge j
WHERE j.id = r.judge_id AND j.study_id = :study AND r.id = ANY(:shown) AND r.comment IS NOT NULL
""")
RELEASE_ALL = text("""
UPDATE study_rating r SET released_comment = r.comment FROM study_judge j
WHERE j.id = r.judge_id AND j.study_id = :study AND r.comment IS NOT NULL
""")


@dataclass(frozen=True)
class Comment:
    """`released`: it goes out with an export, in these words."""

    id: int
    judge: int
    item: int
    kind: str
    repeat: bool
    rating: Rating
    body: str
    released: bool


@dataclass(frozen=True)
class Comments:
    """A page of a study's `total` comments, of which `released` go out."""

    comments: list[Comment]
    total: int
    released: int
    pages: int


def comments(session: Session, study: models.Study, page: int | None = 1) -> Comments:
    """By item and judge; `page` None: all of them."""
    r, j, i = models.StudyRating, models.StudyJudge, models.StudyItem
    of = (j.study_id == study.id, r.comment.is_not(None))
    released = r.released_comment == r.comment
    total, out = session.execute(
        select(func.count(), func.count().filter(released))
        .select_from(r)
        .join(j, j.id == r.judge_id)
        .where(*of)
    ).one()
    query = (
        select(r.id, j.number, i.position, i.kind, r.repeat, r.rating, r.comment, released)
        .join(j, j.id == r.judge_id)
        .join(i, i.id == r.item_id)
        .where(*of)
        .order_by(i.kind != ItemKind.MAIN, i.kind, i.position, j.number, r.repeat)
    )
    if page is not None:
        query = query.limit(PAGE).offset((max(1, page) - 1) * PAGE)
    rows = [
        Comment(identity, judge, item, kind, repeat, Rating(rating), body or "", bool(is_out))
        for identity, judge, item, kind, repeat, rating, body, is_out in session.execute(query)
    ]
    return Comments(rows, total, out, max(1, -(-total // PAGE)))


def release(session: Session, study: models.Study, shown: Collection[int], released: Collection[int]) -> None:
    """Of the comments that were shown, these go out and the others do not; others' are left alone."""
    values = {"study": study.id, "shown": list(shown), "released": list(released)}
    session.execute(RELEASE, values)


def release_all(session: Session, study: models.Study) -> None:
    session.execute(RELEASE_ALL, {"study": study.id})

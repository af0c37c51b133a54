"""The runs whose conversations stand behind a board's rows."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app import models
from app.leaderboard.comparing import all_rows
from app.leaderboard.reading import VersionGroup
from app.runs.control import RUN_DETAILS


def runs_behind(session: Session, group: VersionGroup) -> list[models.Run]:
    """Of every row, ranked or not, in the board's order."""
    numbers = [row["run"] for row in all_rows(group)]
    query = select(models.Run).options(*RUN_DETAILS).where(models.Run.id.in_(numbers))
    known = {run.id: run for run in session.scalars(query)}
    return [known[number] for number in numbers]

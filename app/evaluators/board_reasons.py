"""The reasons of every row of a board side by side, worked out once until a row or a correction changes."""

from collections import OrderedDict
from threading import Lock
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app import models
from app.leaderboard import VersionGroup
from app.observations import Undefined
from app.outcomes import PROBE_SCENARIO, STANDARD
from app.reason_shares import SORTED, shares
from app.runs.reporting import observations

MOST_KEPT = 16
_kept: "OrderedDict[tuple[Any, ...], list[dict[str, Any]]]" = OrderedDict()
_lock = Lock()


def board_reasons(session: Session, group: VersionGroup, kind: str) -> list[dict[str, Any]]:
    """Each row's model, run and its S of `app.reason_shares`, in the board's order; of public cases only."""
    latest = session.scalars(select(func.max(models.ReasonCorrection.id))).one()
    key = (str(session.get_bind().engine.url), group.key, group.computed_at, kind, latest)
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    found = _reasons(session, group, kind)
    with _lock:
        _kept[key] = found
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return found


def _reasons(session: Session, group: VersionGroup, kind: str) -> list[dict[str, Any]]:
    query = select(models.Case.key).filter_by(benchmark_id=group.benchmark.id, split="public", kind="case")
    public = set(session.scalars(query))
    made = []
    for part in ("rows", "incomplete"):
        for row in group.content[part]:
            undefined: Undefined = {}
            seen = [
                one
                for one in observations(session, row["run"], group.evaluator.id)
                if one.case in public and one.variant == STANDARD and one.scenario != PROBE_SCENARIO
            ]
            made.append(
                {
                    "model": row["model"],
                    "model_uuid": row["model_uuid"],
                    "run": row["run"],
                    "run_uuid": row["run_uuid"],
                    **shares(seen, SORTED[kind], undefined, "shares"),
                }
            )
    return made

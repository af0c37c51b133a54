"""Read the boards: the version groups that have one, and a board as page, file and command show it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app import models
from app.errors import NotFound
from app.leaderboard.boards import FORMAT, WITHOUT_SIMULATED, Tally, content_of
from app.runs.reporting import describe_evaluator


@dataclass(frozen=True)
class VersionGroup:
    """A board's benchmark, protocol and evaluator version; `key` names it in addresses.

    `cases`: what the ranked rows answered and passed, by case and scenario.
    """

    key: str
    benchmark: models.Benchmark
    protocol: models.Protocol
    evaluator: models.Evaluator
    computed_at: datetime
    content: dict[str, Any]
    cases: Tally

    @property
    def title(self) -> str:
        benchmark, protocol = self.benchmark, self.protocol
        asked = f"{benchmark.name} v{benchmark.version} · {protocol.name} v{protocol.version}"
        return f"{asked} · {describe_evaluator(self.evaluator)['label']}"


def version_groups(session: Session, *, simulated: bool = True) -> list[VersionGroup]:
    """All boards that have something on them, the one computed last first.

    `simulated` False: as a site shows them that is open to others, without simulated models.
    """
    rows = session.execute(
        select(models.Board, models.Benchmark, models.Protocol, models.Evaluator)
        .join(models.Benchmark, models.Benchmark.id == models.Board.benchmark_id)
        .join(models.Protocol, models.Protocol.id == models.Board.protocol_id)
        .join(models.Evaluator, models.Evaluator.id == models.Board.evaluator_id)
        .order_by(models.Board.computed_at.desc(), models.Board.id.desc())
    )
    groups = [_group(session, *row, simulated=simulated) for row in rows]
    return [one for one in groups if any(one.content[part] for part in ("rows", "incomplete", "withdrawn"))]


def _group(
    session: Session,
    board: models.Board,
    benchmark: models.Benchmark,
    protocol: models.Protocol,
    evaluator: models.Evaluator,
    *,
    simulated: bool,
) -> VersionGroup:
    content = dict(board.content)
    if content.pop("format", None) != FORMAT:
        content = content_of(
            session,
            benchmark_id=board.benchmark_id,
            protocol_id=board.protocol_id,
            evaluator_id=board.evaluator_id,
        )
        del content["format"]
    without = content.pop(WITHOUT_SIMULATED, None)
    key = "~".join(
        (
            f"{benchmark.name}@{benchmark.version}",
            f"{protocol.name}@{protocol.version}",
            f"{evaluator.name}-{str(evaluator.uuid)[:8]}",
        )
    )
    shown = dict(content if simulated or without is None else without)
    cases = shown.pop("cases")
    return VersionGroup(key, benchmark, protocol, evaluator, board.computed_at, shown, cases)


def choose_group(groups: Sequence[VersionGroup], key: str | None) -> VersionGroup | None:
    """The group of that key, the one computed last without one; None where there is none at all.

    NotFound for a key that names no group: another board than asked for would be a silent mistake.
    """
    if key is None:
        return groups[0] if groups else None
    for group in groups:
        if group.key == key:
            return group
    raise NotFound(
        f"There is no board '{key[:200]}'. The boards that exist are listed here.",
        details=[group.key for group in groups] or ["none yet: nothing has been published"],
    )


def read_board(session: Session, key: str | None = None, *, simulated: bool = True) -> dict[str, Any]:
    """The board as page, file and command show it: the one computed last unless another's key is given."""
    return describe_board(choose_group(version_groups(session, simulated=simulated), key))


def describe_board(group: VersionGroup | None) -> dict[str, Any]:
    if group is None:
        return {
            "board": None,
            "benchmark": None,
            "protocol": None,
            "evaluator": None,
            "computed_at": None,
            "resolvable_difference": None,
            "rows": [],
            "incomplete": [],
            "sentinels": [],
            "withdrawn": [],
            "undefined": dict.fromkeys(
                ("board", "benchmark", "protocol", "evaluator", "computed_at", "resolvable_difference"),
                "nothing has been published yet",
            ),
        }
    benchmark, protocol = group.benchmark, group.protocol
    return {
        "board": group.key,
        "benchmark": {"name": benchmark.name, "version": benchmark.version, "hash": benchmark.content_hash},
        "protocol": {"name": protocol.name, "version": protocol.version, "hash": protocol.content_hash},
        "evaluator": describe_evaluator(group.evaluator),
        "computed_at": group.computed_at.isoformat(),
        **group.content,
    }

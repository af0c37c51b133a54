"""Read the boards: the version groups that have one, and a board as page, file and command show it."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Lock
from typing import Any

from sqlalchemy import ColumnClause, func, literal_column, select
from sqlalchemy.orm import Session, defer

from app import models
from app.errors import NotFound
from app.leaderboard.boards import FORMAT, PARTS, WITHOUT_SIMULATED, GroupKey, Tally, content_of
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
    """All boards that have something on them: those that rank somebody before others, then by when they were
    computed, the last first. So a small run on another benchmark does not take the front page.

    `simulated` False: as a site shows them that is open to others, without simulated models.
    """
    rows = session.execute(
        select(models.Board, models.Benchmark, models.Protocol, models.Evaluator, _ROW_VERSION)
        .join(models.Benchmark, models.Benchmark.id == models.Board.benchmark_id)
        .join(models.Protocol, models.Protocol.id == models.Board.protocol_id)
        .join(models.Evaluator, models.Evaluator.id == models.Board.evaluator_id)
        .options(defer(models.Board.content))
        .order_by(models.Board.computed_at.desc(), models.Board.id.desc())
    )
    groups = []
    for board, benchmark, protocol, evaluator, version in rows:
        content = _kept(session, (board.id, version), partial(_current, session, board))
        key = _key(benchmark, protocol, evaluator)
        shown, cases = _shown(content, simulated=simulated)
        groups.append(VersionGroup(key, benchmark, protocol, evaluator, board.computed_at, shown, cases))
    shown_at_all = [one for one in groups if any(one.content[part] for part in (*PARTS, "withdrawn"))]
    return sorted(shown_at_all, key=lambda one: not one.content["rows"])


def group_at(session: Session, group: VersionGroup, moment: datetime, *, simulated: bool) -> VersionGroup:
    """The board as it stood at that moment, made again of its entries. NotFound before its first row.

    What a row shows is fixed when it is published, so this is what was seen then; a row that was withdrawn
    later stands there with the date.
    """
    e, r, h = models.BoardEntry, models.Run, models.HumanRate
    times = session.execute(
        select(
            func.max(e.published_at),
            func.max(e.withdrawn_at).filter(e.withdrawn_at <= moment),
            func.max(h.computed_at).filter(h.computed_at <= moment),
        )
        .select_from(e)
        .join(r, r.id == e.run_id)
        .outerjoin(h, h.entry_id == e.id)
        .where(
            e.benchmark_id == group.benchmark.id,
            r.protocol_id == group.protocol.id,
            e.evaluator_id == group.evaluator.id,
            e.published_at <= moment,
        )
    ).one()
    events = [one for one in times if one is not None]
    if not events:
        raise NotFound(f"This board had no row yet at {moment:%Y-%m-%d %H:%M:%S} UTC.")
    computed = max(events)
    key = GroupKey(group.benchmark.id, group.protocol.id, group.evaluator.id)
    kept = (*key, computed, group.computed_at)
    content = _kept(session, kept, lambda: content_of(session, key, as_of=computed))
    shown, cases = _shown(content, simulated=simulated)
    return replace(group, computed_at=computed, content=shown, cases=cases)


def read_moment(given: str) -> datetime:
    """`2026-12-01` (to its end) or `2026-12-01T09:30:00Z`; NotFound for anything else."""
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise NotFound(f"'{given[:40]}' is no time: give it as 2026-12-01 or 2026-12-01T09:30:00Z.") from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    whole_day = timedelta(days=1) if len(given) == len("2026-12-01") else timedelta()
    try:
        return moment.astimezone(UTC) + whole_day
    except OverflowError:
        raise NotFound(f"'{given[:40]}' is too early or too late.") from None


# What a board holds changes with its row's version only: read and parsed once, not with every request.
_ROW_VERSION: ColumnClause[str] = literal_column("board.xmin::text || board.ctid::text")
_MOST_KEPT = 32
_contents: "OrderedDict[tuple[Any, ...], dict[str, Any]]" = OrderedDict()
_contents_lock = Lock()


def boards_version(session: Session) -> tuple[Any, ...]:
    """Changes with whatever any board shows, at the latest when the change is committed."""
    rows = session.execute(select(models.Board.id, _ROW_VERSION).order_by(models.Board.id))
    return tuple(map(tuple, rows))


def _kept(session: Session, key: tuple[Any, ...], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The content under that key of this database; whoever gets it changes nothing in it."""
    whole = (str(session.get_bind().engine.url), *key)
    with _contents_lock:
        if whole in _contents:
            _contents.move_to_end(whole)
            return _contents[whole]
    content = make()
    with _contents_lock:
        _contents[whole] = content
        while len(_contents) > _MOST_KEPT:
            _contents.popitem(last=False)
    return content


def _current(session: Session, board: models.Board) -> dict[str, Any]:
    """As it is stored; one of an earlier format is computed anew."""
    content: dict[str, Any] = session.scalars(select(models.Board.content).filter_by(id=board.id)).one()
    if content.get("format") == FORMAT:
        return content
    return content_of(session, GroupKey(board.benchmark_id, board.protocol_id, board.evaluator_id))


def _shown(content: dict[str, Any], *, simulated: bool) -> tuple[dict[str, Any], Tally]:
    without = content.get(WITHOUT_SIMULATED)
    chosen = content if simulated or without is None else without
    apart = ("format", WITHOUT_SIMULATED, "cases")
    return {name: value for name, value in chosen.items() if name not in apart}, chosen["cases"]


def _key(benchmark: models.Benchmark, protocol: models.Protocol, evaluator: models.Evaluator) -> str:
    return "~".join(
        (
            f"{benchmark.name}@{benchmark.version}",
            f"{protocol.name}@{protocol.version}",
            f"{evaluator.name}-{str(evaluator.uuid)[:8]}",
        )
    )


def choose_group(groups: Sequence[VersionGroup], key: str | None) -> VersionGroup | None:
    """The group of that key, the first without one; None where there is none at all.
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
    """The board as page, file and command show it: the first unless another's key is given."""
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

"""Follow a run: a live bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from sqlalchemy import select
from sqlalchemy.exc import InterfaceError, OperationalError

from app import models
from app.cli.installation import Installation, err, say
from app.outcomes import Outcome
from app.runs.reporting import progress

LOOK_SECONDS = 0.5
LINE_SECONDS = 5.0
STILL_SECONDS = 60.0
OUTAGE_SECONDS = 60.0


def follow(installed: Installation, run: models.Run, evaluator: models.Evaluator | None = None) -> str:
    """Show progress until the run no longer runs; returns its status."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"), TimeRemainingColumn(), TextColumn("{task.fields[outcomes]}"),
    )  # fmt: skip
    if not err.is_terminal:
        return _follow_in_lines(_Watch(installed, run, evaluator))
    with Progress(*columns, console=err) as bar:
        task = bar.add_task(f"run {run.id}", total=None, pace="", outcomes="")
        watch = _Watch(installed, run, evaluator)

        def show(done: int, planned: int, found: dict[Outcome, int]) -> None:
            bar.update(
                task, completed=done, total=planned, pace=watch.pace(done), outcomes=_by_outcome(found)
            )

        return watch.until_settled(show)


def _follow_in_lines(watch: "_Watch") -> str:
    printed = 0.0

    def show(done: int, planned: int, found: dict[Outcome, int]) -> None:
        nonlocal printed
        now = time.monotonic()
        if now - printed >= LINE_SECONDS or done == planned:
            printed = now
            say(f"run {watch.run_id}: {done} of {planned} {watch.pace(done)} {_by_outcome(found)}".rstrip())

    return watch.until_settled(show)


def _by_outcome(found: dict[Outcome, int]) -> str:
    return ", ".join(f"{name.value} {n}" for name, n in found.items() if n and name is not Outcome.PENDING)


class _Watch:
    def __init__(self, installed: Installation, run: models.Run, evaluator: models.Evaluator | None) -> None:
        self._installed = installed
        self.run_id = run.id
        self._evaluator_id = run.evaluator_id if evaluator is None else evaluator.id
        self._began = time.monotonic()
        self._first: int | None = None
        self._moved = self._began
        self._last_done = -1
        self._told = False

    def pace(self, done: int) -> str:
        seconds = time.monotonic() - self._began
        gained = done - (self._first or 0)
        return f"{gained / seconds:.1f}/s" if gained and seconds > 1 else ""

    def until_settled(self, show: Callable[[int, int, dict[Outcome, int]], None]) -> str:
        away_since: float | None = None
        while True:
            try:
                status, found = self._look()
                away_since = None
            except (OperationalError, InterfaceError):
                away_since = away_since or time.monotonic()
                if time.monotonic() - away_since > OUTAGE_SECONDS:
                    raise
                time.sleep(LOOK_SECONDS)
                continue
            planned = sum(found.values())
            done = planned - found[Outcome.PENDING]
            self._first = done if self._first is None else self._first
            self._notice_stillness(done)
            show(done, planned, found)
            if status != "running":
                return status
            # A look costs more the larger the run is; larger runs take longer, too.
            time.sleep(LOOK_SECONDS + planned / 20_000)

    def _look(self) -> tuple[str, dict[Outcome, int]]:
        with self._installed.session() as session:
            status = session.scalars(select(models.Run.status).filter_by(id=self.run_id)).one()
            return status, progress(session, self.run_id, self._evaluator_id)

    def _notice_stillness(self, done: int) -> None:
        now = time.monotonic()
        if done != self._last_done:
            self._last_done, self._moved = done, now
            self._told = False
        elif now - self._moved > LINE_SECONDS:
            self._installed.check_workers()
        if now - self._moved > STILL_SECONDS and not self._told:
            self._told = True
            logs = self._installed.settings.data_dir / "logs"
            say(f"Nothing has come back for {STILL_SECONDS:.0f} s; still waiting. Logs: {logs}")

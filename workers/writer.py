"""Collect what came back for some milliseconds and store it in one transaction, off the event loop."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor

from sqlalchemy import Engine
from sqlalchemy.exc import InterfaceError, OperationalError

from app.runs.driving import close_groups
from app.runs.recording import Batch, learn, store

GATHER_SECONDS = 0.03
# Nothing more is sent while the oldest unstored reply is older: a crash then repeats at most what was in
# flight or came back within this time.
LAG_LIMIT_SECONDS = 0.15
RETRY_SECONDS = 0.5
OUTAGE_LIMIT_SECONDS = 60.0

log = logging.getLogger(__name__)


class Writer:
    """One a driver. `batch` is filled by the conversations; `ready` holds them back while storing lags."""

    def __init__(
        self, engine: Engine, pool: Executor, run_id: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._engine = engine
        self._pool = pool
        self._run_id = run_id
        self._clock = clock
        self._stored = asyncio.Event()
        self._wanted = asyncio.Event()
        self._closing = False
        self._oldest: float | None = None
        self._storing_since: float | None = None
        self._groups: list[int] = []
        self._learned: dict[int, dict[str, str | None]] = {}
        self.batch = Batch()

    def touch(self) -> None:
        """Say that the batch has something new."""
        if self._oldest is None:
            self._oldest = self._clock()
        self._wanted.set()

    def group_done(self, group_id: int) -> None:
        """Mark a group as done after all that the batch holds for it is stored."""
        self._groups.append(group_id)
        self.touch()

    def learn(self, endpoint_id: int, learned: dict[str, str | None]) -> None:
        self._learned.setdefault(endpoint_id, {}).update(learned)
        self.touch()

    async def ready(self) -> None:
        """Wait until storing is not behind."""
        while self._lags():
            self._stored.clear()
            await self._stored.wait()

    async def flushed(self) -> None:
        """Wait until all that was handed over is stored."""
        while self._oldest is not None or self._storing_since is not None:
            self._stored.clear()
            await self._stored.wait()

    def _lags(self) -> bool:
        since = self._storing_since if self._storing_since is not None else self._oldest
        return since is not None and self._clock() - since > LAG_LIMIT_SECONDS

    async def run(self) -> None:
        """Store until closed and empty. Raises OperationalError when the database stays away too long."""
        while not (self._closing and self._oldest is None):
            await self._wanted.wait()
            if not self._closing:
                await asyncio.sleep(GATHER_SECONDS)
            self._wanted.clear()
            if self._oldest is not None:
                await self._store_all()

    async def _store_all(self) -> None:
        batch, groups, learned = self.batch, self._groups, self._learned
        self.batch, self._groups, self._learned = Batch(), [], {}
        self._storing_since, self._oldest = self._oldest, None
        began = self._clock()
        while True:
            try:
                await asyncio.get_running_loop().run_in_executor(
                    self._pool, self._store, batch, groups, learned
                )
                break
            except (OperationalError, InterfaceError):
                # Storing twice is harmless, so a commit whose answer was lost is simply repeated.
                if self._clock() - began > OUTAGE_LIMIT_SECONDS:
                    raise
                log.warning("Run %s: the database is away, storing again.", self._run_id)
                await asyncio.sleep(RETRY_SECONDS)
        self._storing_since = None
        self._stored.set()

    def _store(self, batch: Batch, groups: list[int], learned: dict[int, dict[str, str | None]]) -> None:
        with self._engine.begin() as connection:
            if batch:
                store(connection, batch)
            if groups:
                close_groups(connection, groups)
            for endpoint_id, parameters in learned.items():
                learn(connection, endpoint_id, parameters)

    def close(self) -> None:
        """Let `run` end once all is stored."""
        self._closing = True
        self._wanted.set()

"""Collect what came back for some milliseconds and store it in one transaction, off the event loop."""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import InterfaceError, OperationalError

from app.runs.driving import leave_groups
from app.runs.recording import Batch, learn, store

GATHER_SECONDS = 0.05
# Nothing more is sent while the oldest unstored reply is older: a crash then repeats at most what was in
# flight or came back within this time.
LAG_LIMIT_SECONDS = 0.15
RETRY_SECONDS = 0.5
OUTAGE_LIMIT_SECONDS = 60.0

log = logging.getLogger(__name__)


@dataclass
class _Bundle:
    """All that one transaction stores."""

    batch: Batch = field(default_factory=Batch)
    left: list[int] = field(default_factory=list)
    learned: dict[int, dict[str, str | None]] = field(default_factory=dict)


class WriterGone(Exception):
    """Nothing can be stored any more; why, is raised by the writer itself."""


class Writer:
    """One a driver. `batch` is filled by the conversations; `ready` holds them back while storing lags."""

    def __init__(
        self,
        engine: Engine,
        pool: Executor,
        run_id: int,
        driver: uuid.UUID,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._pool = pool
        self._run_id = run_id
        self._driver = driver
        self._clock = clock
        self._stored = asyncio.Event()
        self._wanted = asyncio.Event()
        self._closing = False
        self._oldest: float | None = None
        self._storing_since: float | None = None
        self._bundle = _Bundle()
        self._overtaken: set[int] = set()
        self._gone = False
        self._connection: Connection | None = None
        self.has_stored = False

    @property
    def batch(self) -> Batch:
        return self._bundle.batch

    def touch(self) -> None:
        """Say that the batch has something new."""
        if self._oldest is None:
            self._oldest = self._clock()
        self._wanted.set()

    def leave(self, group_id: int) -> None:
        """Once all that the batch holds for a group is stored: it is done, or given back for what is open."""
        self._bundle.left.append(group_id)
        self.touch()

    def learn(self, endpoint_id: int, learned: dict[str, str | None]) -> None:
        self._bundle.learned.setdefault(endpoint_id, {}).update(learned)
        self.touch()

    def is_overtaken(self, conversation_id: int) -> bool:
        """Another driver stored a turn that this one was asking too: its words do not fit any more."""
        return conversation_id in self._overtaken

    def loaded_anew(self, conversations: Iterable[int]) -> None:
        """What was read from the database a moment ago is nobody's past."""
        self._overtaken.difference_update(conversations)

    async def ready(self) -> None:
        """Wait until storing is not behind. WriterGone when it never will be."""
        while self._lags():
            await self._next_stored()

    async def flushed(self) -> None:
        """Wait until all that was handed over is stored. WriterGone when it never will be."""
        while self._oldest is not None or self._storing_since is not None:
            await self._next_stored()

    async def _next_stored(self) -> None:
        if self._gone:
            raise WriterGone
        self._stored.clear()
        await self._stored.wait()

    def _lags(self) -> bool:
        since = self._storing_since if self._storing_since is not None else self._oldest
        return since is not None and self._clock() - since > LAG_LIMIT_SECONDS

    async def run(self) -> None:
        """Store until closed and empty. Raises OperationalError when the database stays away too long."""
        try:
            while not (self._closing and self._oldest is None):
                await self._wanted.wait()
                if not self._closing:
                    await asyncio.sleep(GATHER_SECONDS)
                self._wanted.clear()
                if self._oldest is not None:
                    await self._store_all()
        finally:
            self._gone = True
            self._stored.set()
            self._disconnect()

    async def _store_all(self) -> None:
        bundle, self._bundle = self._bundle, _Bundle()
        self._storing_since, self._oldest = self._oldest, None
        self._drop_overtaken(bundle.batch)
        began = self._clock()
        while True:
            try:
                self._overtaken |= await asyncio.get_running_loop().run_in_executor(
                    self._pool, self._store, bundle
                )
                break
            except (OperationalError, InterfaceError):
                # Storing twice is harmless, so a commit whose answer was lost is simply repeated.
                if self._clock() - began > OUTAGE_LIMIT_SECONDS:
                    raise
                log.warning("Run %s: the database is away, storing again.", self._run_id)
                await asyncio.sleep(RETRY_SECONDS)
        self._storing_since = None
        self.has_stored = True
        self._stored.set()

    def _drop_overtaken(self, batch: Batch) -> None:
        batch.moves = [move for move in batch.moves if move.conversation_id not in self._overtaken]
        batch.verdicts = [one for one in batch.verdicts if one.conversation_id not in self._overtaken]

    def _store(self, bundle: _Bundle) -> set[int]:
        # One connection from first to last: to take it from the pool each time costs a round trip.
        connection = self._connection = self._connection or self._engine.connect()
        try:
            with connection.begin():
                overtaken = store(connection, self._run_id, bundle.batch) if bundle.batch else set()
                if bundle.left:
                    leave_groups(connection, self._run_id, self._driver, bundle.left)
                for endpoint_id in sorted(bundle.learned):
                    learn(connection, endpoint_id, bundle.learned[endpoint_id])
        except BaseException:
            self._disconnect()
            raise
        return overtaken

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OperationalError, InterfaceError):
                connection.close()

    def close(self) -> None:
        """Let `run` end once all is stored."""
        self._closing = True
        self._wanted.set()

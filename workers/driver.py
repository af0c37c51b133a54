"""The engine: one asyncio loop that keeps many conversations of one run in flight."""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import StrEnum
from typing import TypeVar

import uvloop
from sqlalchemy import Engine
from sqlalchemy.exc import InterfaceError, OperationalError

from app.chat import Allowlist, ChatClient, Pace
from app.db import session_scope
from app.errors import AppError
from app.runs import driving
from app.runs.loading import LoadedRun, OpenGroup, load_groups, load_run
from app.settings import Settings
from workers.budget import Budget, BudgetedPace, BudgetSpent
from workers.conversing import Conversing
from workers.pacing import Pacer
from workers.writer import Writer

SLICE_SECONDS = 10 * 60.0
SLICE_WHEN_OTHERS_WAIT_SECONDS = 60.0
# In-flight conversations get this long to end by themselves when a slice is over.
LAST_CALLS_SECONDS = 60.0
LOOK_AGAIN_SECONDS = 1.0
# The five scenarios; only a guess at how many groups fill the room.
USUAL_GROUP_SIZE = 5

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class DriveEnd(StrEnum):
    NOTHING_LEFT = "nothing left"
    SLICE_OVER = "slice over"
    STOPPED = "stopped"
    LEASE_LOST = "lease lost"


def drive_run(engine: Engine, settings: Settings, run_id: int, stopping: Callable[[], bool]) -> DriveEnd:
    """Drive a run for one slice. Whatever ends it, what came back is stored and the rest is handed back."""
    driver = uuid.uuid4()
    with engine.begin() as connection:
        if not driving.register(connection, run_id, driver):
            return DriveEnd.NOTHING_LEFT
    try:
        with session_scope(engine) as session:
            run = load_run(session, run_id, settings.secret)
        return uvloop.run(RunDriver(engine, settings, run, driver, stopping).drive())
    except AppError as error:
        log.warning("Run %s is paused: %s", run_id, error.message)
        with engine.begin() as connection:
            driving.pause(connection, run_id, error.message)
        return DriveEnd.STOPPED
    finally:
        with suppress(OperationalError, InterfaceError), engine.begin() as connection:
            driving.leave(connection, driver)


class RunDriver:
    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        run: LoadedRun,
        driver: uuid.UUID,
        stopping: Callable[[], bool],
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._run = run
        self._driver = driver
        self._stopping = stopping
        self._began = time.monotonic()
        self._end: DriveEnd | None = None
        self._groups: set[asyncio.Task[None]] = set()
        self._conversations_open = 0
        self._standing = driving.Standing("running", run.concurrency, 1, False)
        # Two threads: one writes while the other claims or keeps the lease.
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="database")
        self._writer = Writer(engine, self._pool, run.id)
        self._budget = Budget(self._reserve) if run.capped else None
        self._model_pacer = Pacer(run.concurrency)
        self._evaluator_pacers = {
            evaluator.id: Pacer(run.concurrency) for evaluator in run.evaluators if evaluator.endpoint
        }

    async def drive(self) -> DriveEnd:
        writing = asyncio.create_task(self._writer.run())
        keeping = asyncio.create_task(self._keep_lease())
        try:
            async with self._client() as client:
                try:
                    await self._feed(self._conversing(client), writing)
                finally:
                    await self._end_groups()
        finally:
            keeping.cancel()
            self._writer.close()
            try:
                await writing
            finally:
                await self._hand_over()
                self._pool.shutdown()
        return self._end or DriveEnd.NOTHING_LEFT

    def _client(self) -> ChatClient:
        allowlist = Allowlist.parse(self._settings.endpoint_allowlist)
        return ChatClient(allowlist=allowlist, max_connections=2 * self._run.concurrency + 8)

    def _conversing(self, client: ChatClient) -> Conversing:
        paces = {identity: self._paced(pacer) for identity, pacer in self._evaluator_pacers.items()}
        return Conversing(self._run, client, self._writer, self._paced(self._model_pacer), paces)

    def _paced(self, pacer: Pacer) -> Pace:
        return pacer if self._budget is None else BudgetedPace(pacer, self._budget)

    async def _feed(self, shop: Conversing, writing: asyncio.Task[None]) -> None:
        """Claim groups while there is room, until nothing is left or something ends the slice."""
        while self._end is None and not writing.done():
            claimed = await self._claim() if self._has_room() else []
            for group in claimed:
                self._start(shop, group)
            if claimed and self._has_room():
                continue
            if not claimed and not self._groups and not await self._others_at_work():
                self._end = DriveEnd.NOTHING_LEFT
                return
            await self._wait_for_change()
            self._look_at_clock()

    def _has_room(self) -> bool:
        return self._conversations_open < 1.5 * self._run.concurrency

    async def _claim(self) -> list[OpenGroup]:
        # More conversations than calls in flight, so that a slot never waits for one that is being stored.
        missing = 2 * self._run.concurrency - self._conversations_open
        limit = max(1, missing // USUAL_GROUP_SIZE)

        def claim() -> list[OpenGroup]:
            with session_scope(self._engine) as session:
                ids = driving.claim(session.connection(), self._run.id, self._driver, limit)
                groups = load_groups(session, self._run, ids) if ids else []
                session.commit()
            return groups

        return await self._in_thread(claim)

    def _start(self, shop: Conversing, group: OpenGroup) -> None:
        self._conversations_open += len(group.conversations)
        task = asyncio.create_task(self._work(shop, group))
        self._groups.add(task)
        task.add_done_callback(self._groups.discard)

    async def _work(self, shop: Conversing, group: OpenGroup) -> None:
        try:
            await shop.work(group)
        except* BudgetSpent:
            await self._pause("The cap on calls is used up. Resume the run with a higher cap.")
        except* Exception as error:
            # A fault of ours: the group stays open, and a person has to look before it is tried again.
            log.exception("Run %s, group %s failed", self._run.id, group.id, exc_info=error)
            await self._pause(
                f"An internal error stopped the run ({error.exceptions[0]!r}); see the worker's log."
            )
        finally:
            self._conversations_open -= len(group.conversations)

    async def _others_at_work(self) -> bool:
        """Whether another driver holds open groups of this run; they fall to us if it dies."""
        await self._writer.flushed()
        return await self._in_thread(lambda: self._ask_database(driving.has_open_groups))

    async def _wait_for_change(self) -> None:
        if self._groups:
            await asyncio.wait(self._groups, timeout=LOOK_AGAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    def _look_at_clock(self) -> None:
        limit = SLICE_WHEN_OTHERS_WAIT_SECONDS if self._standing.others_wait else SLICE_SECONDS
        if self._stopping():
            self._stop(DriveEnd.STOPPED)
        elif time.monotonic() - self._began > limit:
            self._stop(DriveEnd.SLICE_OVER)

    def _stop(self, end: DriveEnd) -> None:
        self._end = self._end or end

    async def _end_groups(self) -> None:
        """Let the last calls come back when the slice is over; otherwise cut them off now."""
        if self._end is DriveEnd.SLICE_OVER and self._groups:
            await asyncio.wait(self._groups, timeout=LAST_CALLS_SECONDS)
        for task in self._groups:
            task.cancel()
        if self._groups:
            await asyncio.wait(self._groups)

    async def _keep_lease(self) -> None:
        """Renew the lease, and hear whether the run was cancelled, paused or shared with another driver."""
        renewed = time.monotonic()
        while True:
            await asyncio.sleep(driving.HEARTBEAT_SECONDS)
            try:
                standing = await self._in_thread(self._heartbeat)
            except (OperationalError, InterfaceError):
                # The database is away: nobody else can claim meanwhile, and the writer knows how long to try.
                log.warning("Run %s: no heartbeat for %.0f s.", self._run.id, time.monotonic() - renewed)
                continue
            renewed = time.monotonic()
            self._heed(standing)
            if self._end is not None:
                return

    def _heartbeat(self) -> driving.Standing | None:
        with self._engine.begin() as connection:
            return driving.heartbeat(connection, self._run.id, self._driver)

    def _heed(self, standing: driving.Standing | None) -> None:
        if standing is None:
            self._stop(DriveEnd.LEASE_LOST)
        elif standing.status != "running" or self._stopping():
            self._stop(DriveEnd.STOPPED)
        else:
            self._standing = standing
            # Several drivers of one run share what the submitter allows.
            ceiling = max(1, standing.concurrency // max(1, standing.drivers))
            for pacer in (self._model_pacer, *self._evaluator_pacers.values()):
                pacer.ceiling = ceiling
        if self._end is not None:
            for task in self._groups:
                task.cancel()

    async def _pause(self, reason: str) -> None:
        self._stop(DriveEnd.STOPPED)
        await self._in_thread(lambda: self._ask_database(driving.pause, reason))

    async def _reserve(self, wanted: int) -> int:
        return await self._in_thread(lambda: self._ask_database(driving.reserve_calls, wanted))

    async def _hand_over(self) -> None:
        """Give back unused calls and finish the run if this was the last of it."""
        unused = self._budget.left if self._budget is not None else 0
        with suppress(OperationalError, InterfaceError):
            if unused:
                await self._in_thread(lambda: self._ask_database(driving.give_back_calls, unused))
            await self._in_thread(lambda: self._ask_database(driving.settle))

    def _ask_database(self, question: Callable[..., Result], *arguments: object) -> Result:
        with self._engine.begin() as connection:
            return question(connection, self._run.id, *arguments)

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

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

from app import models
from app.chat import Allowlist, ChatClient
from app.db import session_scope
from app.errors import AppError, ServiceUnavailable
from app.runs import driving
from app.runs.loading import LoadedRun, OpenGroup, load_groups, load_run
from app.runs.spending import cost_reached
from app.settings import Settings
from workers.breaker import Breaker
from workers.budget import Budget, CheckedPace, SendingEnded
from workers.conversing import Conversing
from workers.pacing import Pacer
from workers.writer import OUTAGE_LIMIT_SECONDS, RETRY_SECONDS, Writer, WriterGone

SLICE_SECONDS = 10 * 60.0
SLICE_WHEN_OTHERS_WAIT_SECONDS = 60.0
# In-flight conversations get this long to end by themselves when a slice is over.
LAST_CALLS_SECONDS = 60.0
LOOK_AGAIN_SECONDS = 1.0
COST_SECONDS = 2.0
# Conversations held open for each call in flight. Many end at about the same time, and a slot must not wait
# until others are claimed in their place.
OPEN_AT_LEAST, OPEN_AT_MOST = 2.5, 3
# The five scenarios; only a guess at how many groups fill the room.
USUAL_GROUP_SIZE = 5

# What the driver raises when the database is away for a moment or longer.
AWAY = (OperationalError, InterfaceError)

log = logging.getLogger(__name__)
Result = TypeVar("Result")


CAP_REACHED = "The cap on calls is used up. Resume the run with a higher cap."


class DriveEnd(StrEnum):
    NOTHING_LEFT = "nothing left"
    # These two let the calls that are out come back; nothing more is sent.
    SLICE_OVER = "slice over"
    PAUSED = "paused"
    # These cut off what is out: nobody waits for it, or it belongs to another driver.
    STOPPED = "stopped"
    LEASE_LOST = "lease lost"


CUT_OFF = (DriveEnd.STOPPED, DriveEnd.LEASE_LOST)


def drive_run(
    engine: Engine,
    settings: Settings,
    run_id: int,
    stopping: Callable[[], bool],
    driver: uuid.UUID | None = None,
) -> DriveEnd:
    """Drive a run for one slice, as this driver if it is registered already.

    Whatever ends the slice, what came back is stored and the rest is handed back.
    """
    if driver is None:
        driver = uuid.uuid4()
        with engine.begin() as connection:
            if not driving.register(connection, run_id, driver):
                return DriveEnd.NOTHING_LEFT
    try:
        with session_scope(engine) as session:
            run = load_run(session, run_id, settings.secret)
        return uvloop.run(RunDriver(engine, settings, run, driver, stopping).drive())
    except ServiceUnavailable as error:
        log.warning("Run %s: %s", run_id, error.message)
        return DriveEnd.STOPPED
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
        self._pause_for = ""
        self._others_wait = False
        # Two threads: one writes while the other claims or keeps the lease.
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="database")
        self._writer = Writer(engine, self._pool, run.id, driver)
        self._breaker = Breaker()
        self._budget = Budget(self._reserve) if run.capped else None
        self._model_pacer = Pacer(run.concurrency)
        self._evaluator_pacers = {
            evaluator.id: Pacer(run.concurrency) for evaluator in run.evaluators if evaluator.endpoint
        }

    async def drive(self) -> DriveEnd:
        writing = asyncio.create_task(self._writer.run())
        keeping = [asyncio.create_task(self._keep_lease())]
        try:
            if self._run.cost_capped:
                await self._check_cost()
                keeping.append(asyncio.create_task(self._watch_cost()))
            async with self._client() as client:
                try:
                    await self._feed(self._conversing(client), writing)
                finally:
                    if writing.done():
                        self._stop(DriveEnd.STOPPED)  # why, `writing` says below
                    await self._end_groups()
        finally:
            for task in keeping:
                task.cancel()
            self._writer.close()
            try:
                await writing
            finally:
                await self._hand_over()
                self._pool.shutdown()
        return self._end or DriveEnd.NOTHING_LEFT

    def _client(self) -> ChatClient:
        allowlist = Allowlist.parse(self._settings.endpoint_allowlist)
        # Never below the sum of the pacers' ceilings: a request would wait in the pool with its slot in hand.
        accounts = 1 + len(self._evaluator_pacers)
        return ChatClient(
            allowlist=allowlist,
            max_connections=accounts * self._run.concurrency,
            own_hosts=self._settings.own_hosts,
        )

    def _conversing(self, client: ChatClient) -> Conversing:
        paces = {identity: self._paced(pacer) for identity, pacer in self._evaluator_pacers.items()}
        return Conversing(
            self._run, client, self._writer, self._paced(self._model_pacer), paces, self._breaker
        )

    def _paced(self, pacer: Pacer) -> CheckedPace:
        # With the slot in hand: who waited for it may find that storing fell behind or the slice ended.
        checks = [self._writer.ready, self._still_sending]
        return CheckedPace(pacer, *checks, *([self._budget.take] if self._budget else []))

    async def _still_sending(self) -> None:
        if self._breaker.tripped is not None:
            self._pause(self._breaker.tripped)
        if self._end is not None:
            raise SendingEnded

    async def _feed(self, shop: Conversing, writing: asyncio.Task[None]) -> None:
        """Claim groups while there is room, until nothing is left or something ends the slice."""
        await self._ask_standing()
        idle = False
        while self._end is None and not writing.done():
            claimed = await self._claim() if self._has_room() else []
            for group in claimed:
                self._start(shop, group)
            if claimed and self._has_room():
                continue
            was_idle, idle = idle, not claimed and not self._groups
            # Others may hold what is left; to wait whether they die must not keep another run waiting.
            if idle and (not await self._others_at_work() or (was_idle and self._others_wait)):
                self._end = self._end or DriveEnd.NOTHING_LEFT
                return
            await self._wait_for_change()
            self._look_at_clock()

    def _has_room(self) -> bool:
        return self._conversations_open < OPEN_AT_LEAST * self._run.concurrency

    async def _claim(self) -> list[OpenGroup]:
        missing = OPEN_AT_MOST * self._run.concurrency - self._conversations_open
        limit = max(1, missing // USUAL_GROUP_SIZE)

        def claim() -> list[OpenGroup] | None:
            with session_scope(self._engine) as session:
                connection = session.connection()
                if driving.evaluators(connection, self._run.id) != self._run.asked_of:
                    return None
                ids = driving.claim(connection, self._run.id, self._driver, limit)
                groups = load_groups(session, self._run, ids) if ids else []
                session.commit()
            return groups

        try:
            claimed = await self._in_thread(claim)
        except (*AWAY, ServiceUnavailable):
            # What the database may have claimed for us is handed back as the slice ends.
            log.warning("Run %s: the database is away, nothing more is claimed.", self._run.id)
            claimed = None
        if claimed is None:
            # A new slice begins with a database that answers, and knows the evaluator that was added.
            self._stop(DriveEnd.SLICE_OVER)
            return []
        self._model_pacer.longest_first = len(claimed) < limit
        return claimed

    def _start(self, shop: Conversing, group: OpenGroup) -> None:
        self._conversations_open += len(group.conversations)
        task = asyncio.create_task(self._work(shop, group))
        self._groups.add(task)
        task.add_done_callback(self._groups.discard)

    async def _work(self, shop: Conversing, group: OpenGroup) -> None:
        try:
            await shop.work(group)
            if self._budget is not None and self._budget.spent:
                self._pause(CAP_REACHED)
        except* WriterGone:
            pass  # the driver ends, and tells why
        except* Exception as error:
            # A fault of ours: the group stays open, and a person has to look before it is tried again.
            log.exception("Run %s, group %s failed", self._run.id, group.id, exc_info=error)
            self._pause(f"An internal error stopped the run ({error.exceptions[0]!r}); see the worker's log.")
        finally:
            self._conversations_open -= len(group.conversations)

    async def _others_at_work(self) -> bool:
        """Whether another driver holds open groups of this run; they fall to us if it dies."""
        with suppress(WriterGone):
            await self._writer.flushed()
        return await self._ask(driving.has_open_groups)

    async def _wait_for_change(self) -> None:
        if self._groups:
            await asyncio.wait(self._groups, timeout=LOOK_AGAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    def _look_at_clock(self) -> None:
        # A slice in which nothing came back yet goes on: begun anew and anew, a silent endpoint never ended.
        short = self._others_wait and self._writer.has_stored
        limit = SLICE_WHEN_OTHERS_WAIT_SECONDS if short else SLICE_SECONDS
        if self._stopping():
            self._stop(DriveEnd.STOPPED)
        elif time.monotonic() - self._began > limit:
            self._stop(DriveEnd.SLICE_OVER)

    def _pause(self, reason: str) -> None:
        """Pause the run once the last calls are back."""
        self._pause_for = self._pause_for or reason
        self._stop(DriveEnd.PAUSED)

    def _stop(self, end: DriveEnd) -> None:
        """The first reason stands, but for one that cuts off what another would have let come back."""
        if self._end is None or (end in CUT_OFF and self._end not in CUT_OFF):
            self._end = end
        if end in CUT_OFF:
            for task in self._groups:
                task.cancel()

    async def _end_groups(self) -> None:
        """Let the last calls come back, unless they are to be cut off."""
        if self._groups and self._end not in CUT_OFF:
            await asyncio.wait(self._groups, timeout=LAST_CALLS_SECONDS)
        for task in self._groups:
            task.cancel()
        if self._groups:
            await asyncio.wait(self._groups)

    async def _keep_lease(self) -> None:
        """Renew the lease, and hear whether the run was cancelled, paused or shared with another driver."""
        while self._end not in CUT_OFF:
            await asyncio.sleep(driving.HEARTBEAT_SECONDS)
            await self._ask_standing()

    async def _watch_cost(self) -> None:
        """What is out when the cap is reached still comes back, and costs a little more."""
        while self._end is None:
            await asyncio.sleep(COST_SECONDS)
            await self._check_cost()

    async def _check_cost(self) -> None:
        def look() -> str | None:
            with session_scope(self._engine) as session:
                return cost_reached(session, session.get_one(models.Run, self._run.id))

        try:
            reason = await self._in_thread(look)
        except (*AWAY, ServiceUnavailable):
            return  # while the database is away nothing is sent for long either
        if reason is not None:
            self._pause(reason)

    async def _ask_standing(self) -> None:
        try:
            self._heed(await self._in_thread(self._heartbeat))
        except AWAY:
            # Nobody else can claim meanwhile, and the writer knows how long to try.
            log.warning("Run %s: the database is away, no heartbeat.", self._run.id)

    def _heartbeat(self) -> driving.Standing | None:
        with self._engine.begin() as connection:
            return driving.heartbeat(connection, self._run.id, self._driver)

    def _heed(self, standing: driving.Standing | None) -> None:
        if standing is None:
            self._stop(DriveEnd.LEASE_LOST)
        elif standing.status != "running" or self._stopping():
            self._stop(DriveEnd.STOPPED)
        else:
            self._others_wait = standing.others_wait
            # Several drivers of one run share what the submitter allows.
            ceiling = max(1, standing.concurrency // max(1, standing.drivers))
            for pacer in (self._model_pacer, *self._evaluator_pacers.values()):
                pacer.ceiling = ceiling

    async def _reserve(self, wanted: int) -> int:
        return await self._ask(driving.reserve_calls, wanted)

    async def _hand_over(self) -> None:
        """Give back unused calls, and pause or finish the run if this was the last of what it may do."""
        unused = self._budget.left if self._budget is not None else 0
        with suppress(*AWAY):
            if unused:
                await self._in_thread(lambda: self._ask_database(driving.give_back_calls, unused))
            if self._pause_for:
                await self._in_thread(lambda: self._ask_database(driving.pause, self._pause_for))
            await self._in_thread(lambda: self._ask_database(driving.settle))

    async def _ask(self, question: Callable[..., Result], *arguments: object) -> Result:
        """Ask until the database answers; only what may be asked twice."""
        began = time.monotonic()
        while True:
            try:
                return await self._in_thread(lambda: self._ask_database(question, *arguments))
            except AWAY:
                if time.monotonic() - began > OUTAGE_LIMIT_SECONDS:
                    raise
                await asyncio.sleep(RETRY_SECONDS)

    def _ask_database(self, question: Callable[..., Result], *arguments: object) -> Result:
        with self._engine.begin() as connection:
            return question(connection, self._run.id, *arguments)

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

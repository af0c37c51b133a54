"""The process that keeps a data directory's services while a command is connected to it."""

import asyncio
import fcntl
import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.embedded import postgres, valkey
from app.embedded.leftovers import Recorded, end_leftovers, identity
from app.embedded.places import Places, control_dir, discard_runtime, settle
from app.embedded.process import Command, Exits, Managed, Spec
from app.embedded.wire import MAX_MESSAGE, ChildSpec
from app.errors import AppError, Conflict, ServiceUnavailable

GRACE = 1.0  # seconds without a command before the services stop
FIRST_COMMAND = 15.0  # seconds for the command that started us to connect
PREDECESSOR = 60.0  # seconds for a supervisor that is stopping to be gone


class Supervisor:
    def __init__(self, places: Places) -> None:
        self.places = places
        self.exits = Exits()
        self.managed: dict[str, Managed] = {}
        self.children: dict[str, ChildSpec] = {}
        self.wants: dict[asyncio.StreamWriter, set[str]] = {}
        self.stopping: dict[str, asyncio.Task[None]] = {}
        self.enough = asyncio.Event()
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(signum, self.enough.set)
        loop.call_later(FIRST_COMMAND, self._reconsider)

    async def run(self, ready: int) -> None:
        self.places.socket.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._client, self.places.socket, limit=MAX_MESSAGE)
        self.places.socket.chmod(0o600)
        self._record()
        os.write(ready, json.dumps({"notices": self.places.notices}).encode() + b"\n")
        os.close(ready)
        await self.enough.wait()
        server.close()
        self.places.socket.unlink(missing_ok=True)
        await self._stop_all()

    async def _stop_all(self) -> None:
        for writer in list(self.wants):
            writer.close()
        children = [self.managed[name].stop() for name in self.children]
        await asyncio.gather(*children, *self.stopping.values())
        await asyncio.gather(*(one.stop() for name, one in self.managed.items() if name not in self.children))

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.wants[writer] = set()
        try:
            while line := await reader.readline():
                writer.write(json.dumps(await self._answer(json.loads(line), writer)).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError) as error:
            print(f"a command's connection failed: {error}", file=sys.stderr, flush=True)
        finally:
            del self.wants[writer]
            writer.close()
            asyncio.get_running_loop().call_later(GRACE, self._reconsider)

    async def _answer(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> dict[str, Any]:
        try:
            if request["op"] == "ensure":
                await self._ensure(request, writer)
            return self._report()
        except AppError as error:
            kind = "conflict" if isinstance(error, Conflict) else "unavailable"
            return {"error": {"kind": kind, "message": error.message, "details": error.details}}

    def _report(self) -> dict[str, Any]:
        kept = self.managed
        return {
            "pid": os.getpid(),
            "database_url": postgres.database_url(self.places) if postgres.NAME in kept else None,
            "redis_url": valkey.redis_url(self.places) if valkey.NAME in kept else None,
            "services": [one.status().as_json() for one in kept.values()],
        }

    async def _ensure(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        deadline = time.monotonic() + request["seconds"]
        for name in request["services"]:
            self._keep(name, self._service(name))
        services = [self.managed[name] for name in request["services"]]
        await asyncio.gather(*(one.wait_ready(deadline - time.monotonic()) for one in services))
        for given in request["children"]:
            child = ChildSpec(**given)
            if child.name in self.stopping:
                await self.stopping.pop(child.name)
            self._refuse_other_settings(child)
            self.wants[writer].add(child.name)
            self.children.setdefault(child.name, child)
            self._keep(child.name, self._child(child))
            await self.managed[child.name].wait_ready(max(1.0, deadline - time.monotonic()))

    def _service(self, name: str) -> Spec:
        return postgres.spec(self.places, self.exits) if name == postgres.NAME else valkey.spec(self.places)

    def _keep(self, name: str, spec: Spec) -> None:
        if name not in self.managed:
            self.managed[name] = Managed(spec, self.exits, self._record)

    def _refuse_other_settings(self, child: ChildSpec) -> None:
        running = self.children.get(child.name)
        different = running.differences(child) if running else []
        if different:
            raise Conflict(
                f"{child.name} already runs on {self.places.data_dir} with other settings "
                f"({', '.join(different)}); end the command that started it, or use another --data-dir"
            )

    def _child(self, child: ChildSpec) -> Spec:
        log = self.places.logs / f"{child.name}.log"

        async def prepare() -> Command:
            env = self._addresses() | dict(child.env or {})
            return Command(child.argv, env, log, cwd=child.cwd or os.getcwd())

        return Spec(
            name=child.name,
            prepare=prepare,
            ready=None,
            stop=((signal.SIGTERM, child.stop_seconds),),
            log=log,
        )

    def _addresses(self) -> dict[str, str]:
        report = self._report()
        database, broker = report["database_url"], report["redis_url"]
        addresses = {"CURATE_DATABASE_URL": database} if database else {}
        return addresses | ({"CURATE_REDIS_URL": valkey.broker_url(broker)} if broker else {})

    def _reconsider(self) -> None:
        """Stop the children that no command wants any more; without any command, everything."""
        if not self.wants:
            self.enough.set()
            return
        wanted = set().union(*self.wants.values())
        for name in self.children.keys() - wanted:
            del self.children[name]
            self.stopping[name] = asyncio.create_task(self.managed.pop(name).stop())

    def _record(self) -> None:
        """Write down what runs, for the command that connects and for whoever comes after a SIGKILL."""
        processes = {name: one.pid for name, one in self.managed.items() if one.pid is not None}
        recorded = {name: asdict(Recorded(pid, identity(pid) or "")) for name, pid in processes.items()}
        state = {
            "pid": os.getpid(),
            "socket": str(self.places.socket),
            "runtime": str(self.places.runtime),
            "processes": recorded,
        }
        path = self.places.control / "state.json"
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(state))
        unfinished.replace(path)


def serve(data_dir: Path, ready: int) -> None:
    """Be the supervisor of a data directory; write one JSON line to the descriptor `ready` when it answers.

    The line is {"notices": […]} or {"error": …}. Returns when the services have stopped.
    """
    try:
        with (control_dir(data_dir) / "lock").open("w") as lock:
            _take(lock.fileno())
            asyncio.run(_serve(data_dir, ready))
    except AppError as error:
        os.write(ready, json.dumps({"error": {"message": error.message, "details": error.details}}).encode())
        sys.exit(1)


async def _serve(data_dir: Path, ready: int) -> None:
    recorded = read_state(data_dir)
    end_leftovers(
        {name: Recorded(**one) for name, one in recorded.get("processes", {}).items()}, postgres.NAME
    )
    runtime = recorded.get("runtime")
    places = settle(data_dir, Path(runtime) if runtime else None)
    await Supervisor(places).run(ready)
    discard_runtime(places)
    (control_dir(data_dir) / "state.json").unlink(missing_ok=True)


def _take(lock: int) -> None:
    until = time.monotonic() + PREDECESSOR
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() > until:
            raise ServiceUnavailable("the services that are stopping did not end in time; try again")
        time.sleep(0.02)


def read_state(data_dir: Path) -> dict[str, Any]:
    """What the present or last supervisor wrote down; empty when there was none."""
    try:
        state = json.loads((control_dir(data_dir) / "state.json").read_text())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}

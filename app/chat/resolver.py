"""Name lookups for strict endpoints: each new connection looks up anew, and only to vetted addresses."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence

from aiohttp.abc import AbstractResolver, ResolveResult

from app.chat.addresses import address_class, parse_address
from app.chat.allowlist import Allowlist

DNS_DEADLINE = 5.0
MAX_LOOKUPS = 16
MAX_ADDRESSES_TRIED = 8

# A host name to the addresses it has now, as text. OSError where there are none.
Lookup = Callable[[str], Awaitable[Sequence[str]]]


class AddressRefused(Exception):
    """The name leads to an address that may not be called; says the class, not the address."""


class VettingResolver(AbstractResolver):
    """All answers of one lookup must be permitted, and only these answers are connected to.

    With aiohttp's own cache switched off this runs for every new connection.
    """

    def __init__(self, allowlist: Allowlist, lookup: Lookup | None = None) -> None:
        self._allowlist = allowlist
        self._lookup = lookup or system_lookup
        self._running: dict[str, asyncio.Task[Sequence[str]]] = {}
        self._free = asyncio.Semaphore(MAX_LOOKUPS)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        del family  # aiohttp asks for any, and gets both
        try:
            async with asyncio.timeout(DNS_DEADLINE):
                answers = await self._shared(host)
        except TimeoutError:
            raise OSError(None, "the name server did not answer in time") from None
        if not answers:
            raise OSError(None, "the name has no address")
        vetted = [self._vetted(host, port, answer) for answer in answers]
        return vetted[:MAX_ADDRESSES_TRIED]

    async def close(self) -> None:
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _shared(self, host: str) -> Sequence[str]:
        """Connections that open at the same time share one lookup, so that a name server that hangs
        holds one thread for each host and no more."""
        task = self._running.get(host)
        if task is None:
            task = asyncio.create_task(self._limited(host))
            self._running[host] = task
            task.add_done_callback(lambda done: self._finished(host, done))
        return await asyncio.shield(task)

    async def _limited(self, host: str) -> Sequence[str]:
        async with self._free:
            return await self._lookup(host)

    def _finished(self, host: str, task: asyncio.Task[Sequence[str]]) -> None:
        del self._running[host]
        if not task.cancelled():
            task.exception()  # seen, even where everyone who waited has left

    def _vetted(self, host: str, port: int, answer: str) -> ResolveResult:
        address = parse_address(answer)
        if address is None:
            raise AddressRefused("the name server's answer is not an address")
        kind = address_class(address)
        if kind is not None and not self._allowlist.permits(host, address, port):
            raise AddressRefused(f"the host name leads to an address that is not public ({kind})")
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        return ResolveResult(
            hostname=host,
            host=str(address),
            port=port,
            family=family,
            proto=socket.IPPROTO_TCP,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )


async def system_lookup(host: str) -> Sequence[str]:
    """The system's resolver in a thread of its own, which a hanging name server cannot make exit wait for."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Sequence[str]] = loop.create_future()

    def deliver(answers: Sequence[str] | OSError) -> None:
        if result.done():
            return
        if isinstance(answers, OSError):
            result.set_exception(answers)
        else:
            result.set_result(answers)

    def look_up() -> None:
        answers: Sequence[str] | OSError
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            answers = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        except (OSError, UnicodeError) as error:
            answers = error if isinstance(error, OSError) else OSError(None, "the name is malformed")
        try:
            loop.call_soon_threadsafe(deliver, answers)
        except RuntimeError:
            return  # the loop closed meanwhile

    threading.Thread(target=look_up, name="dns", daemon=True).start()
    return await result

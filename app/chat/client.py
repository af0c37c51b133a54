"""The one client: sends a conversation's next request, tries again where that helps, and reports."""

import asyncio
import ssl
from collections.abc import Collection, Sequence
from typing import Any, Self
from urllib.parse import urljoin

import aiohttp
from yarl import URL

from app.chat.allowlist import Allowlist
from app.chat.call import Call, Target
from app.chat.errors import ERRORS
from app.chat.exchange import Endpoint, Exchange, Message
from app.chat.guard import check_url
from app.chat.outcome import Reader, Result
from app.chat.pace import Pace
from app.chat.providers import PROVIDERS
from app.chat.providers.base import ResponseFormat
from app.chat.resolver import Lookup, VettingResolver
from app.chat.retry import RetryPolicy
from app.chat.text import Scrubber
from app.chat.transport import make_session
from app.sampling import Sampling

_MAX_TARGETS = 512
_COMMON_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": "curate-board",
}


class ChatClient:
    """One for each event loop, used as an async context manager.

    max_connections bounds the requests that are out at once over all endpoints; it should not be below
    the sum of the pacers' ceilings. lookup and tls replace the system's name lookup and trust store.
    """

    def __init__(
        self,
        *,
        allowlist: Allowlist,
        max_connections: int,
        resolver: Lookup | None = None,
        own_hosts: Collection[str] = (),
        retry: RetryPolicy | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if max_connections < 1:
            raise ValueError("max_connections must be at least 1")
        self._allowlist = allowlist
        self._own_hosts = frozenset(own_hosts)
        self._lookup = resolver
        self._tls = tls
        self._retry = retry or RetryPolicy()
        self._slots = asyncio.Semaphore(max_connections)
        # Endpoints that need no address check never share a connection with those that do.
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._vetting: VettingResolver | None = None
        self._targets: dict[tuple[Any, ...], Target] = {}
        self._learned: dict[tuple[str, str, str], dict[str, str | None]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        if self._vetting is not None:
            await self._vetting.close()
        self._sessions.clear()
        self._targets.clear()

    async def complete(
        self,
        endpoint: Endpoint,
        messages: Sequence[Message],
        sampling: Sampling,
        *,
        attempts: int,
        deadline: float,
        pace: Pace,
        response_format: ResponseFormat | None = None,
    ) -> Exchange:
        """Ask once, with at most `attempts` tries of `deadline` seconds each from sending.

        Never raises for anything that the endpoint does; cancellation passes and gives the slot back,
        and so does what pace.acquire raises.
        Waits between tries follow RetryPolicy. An unsupported parameter is left out or renamed and the
        request repeated at once; that counts as no try.
        """
        call = Call(
            endpoint=endpoint,
            messages=messages,
            sampling=sampling,
            response_format=response_format,
            deadline=deadline,
            pace=pace,
            slots=self._slots,
            shared=self.learned(endpoint),
        )
        target = self._target(endpoint)
        if isinstance(target, Result):
            return call.exchange(target)
        return await call.run(target, max(1, attempts), self._retry)

    def learned(self, endpoint: Endpoint) -> dict[str, str | None]:
        """What calls of this endpoint and model have found out so far; shared by all of them."""
        key = (endpoint.provider, endpoint.base_url, endpoint.model)
        return self._learned.setdefault(key, {})

    def _target(self, endpoint: Endpoint) -> Target | Result:
        key = (
            endpoint.provider,
            endpoint.base_url,
            endpoint.model,
            endpoint.api_key,
            endpoint.private_allowed,
        )
        target = self._targets.get(key)
        if target is None:
            made = self._make_target(endpoint)
            if isinstance(made, Result):
                return made
            if len(self._targets) >= _MAX_TARGETS:
                self._targets.clear()
            target = self._targets[key] = made
        return target

    def _make_target(self, endpoint: Endpoint) -> Target | Result:
        private = endpoint.private_allowed
        checked = check_url(endpoint.base_url, self._allowlist, self._own_hosts, private_allowed=private)
        if checked.url is None:
            return _refused(checked.reason)
        provider = PROVIDERS[endpoint.provider]
        url = URL(provider.url(checked.url, endpoint.model), encoded=True)
        # What was checked and what will be called must be the same, whichever library reads it.
        if (url.raw_host, url.port) != (checked.host, checked.port):
            return _refused("the address is read in more than one way")
        ending = str(url).removeprefix(checked.url)

        def base_of(location: str) -> str | None:
            try:
                base = urljoin(str(url), location).removesuffix(ending)
            except ValueError:
                return None
            return check_url(base, self._allowlist, self._own_hosts, private_allowed=private).url

        reader = Reader(provider, Scrubber(endpoint.api_key), base_of)
        headers = {**_COMMON_HEADERS, **provider.headers(endpoint.api_key)}
        return Target(provider, self._session(private), url, headers, reader)

    def _session(self, private: bool) -> aiohttp.ClientSession:
        session = self._sessions.get(private)
        if session is None:
            resolver = None if private else VettingResolver(self._allowlist, self._lookup)
            self._vetting = resolver or self._vetting
            session = self._sessions[private] = make_session(resolver, self._tls)
        return session


def _refused(reason: str) -> Result:
    return Result(None, "error", error="address_refused", message=f"{ERRORS['address_refused']} ({reason})")

"""One HTTP request and its answer, within a deadline and a cap on bytes; never raises for the endpoint."""

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from app.chat.resolver import AddressRefused, VettingResolver

MAX_BODY_BYTES: Final = 1024 * 1024
# Of a body that announces more than the cap only the beginning is read, enough to tell what it is.
PREFIX_BYTES: Final = 128 * 1024
PREFIX_SECONDS: Final = 1.0
MAX_HEADER_BYTES: Final = 8190
MAX_HEADERS: Final = 100
MAX_INTERIM: Final = 16
# Below the five seconds after which common Python servers close an idle connection.
KEEPALIVE_SECONDS: Final = 4.0

_NO_HEADERS: Final[CIMultiDictProxy[str]] = CIMultiDictProxy(CIMultiDict())


@dataclass(frozen=True, slots=True)
class Answer:
    """error: a class of errors.ERRORS when no complete answer came; too_large: body is only a beginning."""

    status: int | None = None
    headers: CIMultiDictProxy[str] = field(default_factory=lambda: _NO_HEADERS)
    body: bytes = b""
    too_large: bool = False
    error: str | None = None
    detail: str = ""


class PatientResponse(aiohttp.ClientResponse):
    """Interim answers (status 1xx) are few in practice, and each costs time to read. After too many of
    them nothing more is read, so that endless ones cost no more than a server that hangs."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        protocol = connection.protocol
        if protocol is None:
            return await super().start(connection)
        read, left = protocol.read, MAX_INTERIM

        async def limited() -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                if protocol.transport is not None:
                    protocol.transport.pause_reading()
                await asyncio.Event().wait()
            return await read()

        protocol.read = limited  # type: ignore[method-assign]
        try:
            return await super().start(connection)
        finally:
            del protocol.read


def make_session(resolver: VettingResolver | None, tls: ssl.SSLContext | None) -> aiohttp.ClientSession:
    """A session without cookies, proxies or decompression.

    resolver: given for strict endpoints, whose connections each look up and vet anew. The pool has no
    limit of its own, since waiting in it would count against the deadline; the client limits before it.
    """
    connector = aiohttp.TCPConnector(
        limit=0,
        resolver=resolver,
        use_dns_cache=resolver is None,
        keepalive_timeout=KEEPALIVE_SECONDS,
        ssl=True if tls is None else tls,
    )
    return aiohttp.ClientSession(
        connector=connector,
        response_class=PatientResponse,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
        max_headers=MAX_HEADERS,
        skip_auto_headers=("Accept", "User-Agent", "Accept-Encoding", "Content-Type"),
    )


async def post(
    session: aiohttp.ClientSession, url: URL, headers: dict[str, str], body: bytes, deadline: float
) -> Answer:
    """Send and read. deadline: seconds for everything from now, name lookup and connection included."""
    try:
        async with asyncio.timeout(deadline):
            response = await session.post(url, data=body, headers=headers, allow_redirects=False)
            try:
                content, too_large = await _read(response)
                return Answer(response.status, response.headers, content, too_large)
            finally:
                # Closes the connection unless the body was read to its end.
                response.close() if not response.content.at_eof() else response.release()
    except TimeoutError:
        return Answer(error="total_timeout", detail=f"no complete answer within {deadline:g} s")
    except AddressRefused as error:
        return Answer(error="address_refused", detail=str(error))
    except aiohttp.ClientConnectorDNSError as error:
        return Answer(error="dns", detail=error.os_error.strerror or "")
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
        return Answer(error="tls", detail=_tls_reason(error))
    except (aiohttp.ClientResponseError, HttpProcessingError, aiohttp.InvalidURL) as error:
        return Answer(error="bad_http", detail=getattr(error, "message", ""))
    except aiohttp.ClientConnectorError as error:
        return Answer(error="network", detail=error.os_error.strerror or "no connection")
    except aiohttp.ClientPayloadError:
        return Answer(error="network", detail="the answer broke off")
    except (aiohttp.ClientError, OSError):
        return Answer(error="network", detail="the connection was closed before the answer")


async def _read(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    announced = response.content_length
    if announced is not None and announced > MAX_BODY_BYTES:
        return await _prefix(response.content), True
    return await _at_most(response.content, MAX_BODY_BYTES)


async def _at_most(content: aiohttp.StreamReader, limit: int) -> tuple[bytes, bool]:
    chunks: list[bytes] = []
    size = 0
    while size <= limit:
        chunk = await content.readany()
        if not chunk:
            return b"".join(chunks), False
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)[:limit], True


async def _prefix(content: aiohttp.StreamReader) -> bytes:
    chunks: list[bytes] = []
    try:
        async with asyncio.timeout(PREFIX_SECONDS):
            while sum(map(len, chunks)) < PREFIX_BYTES and (chunk := await content.readany()):
                chunks.append(chunk)
    except TimeoutError:
        pass
    return b"".join(chunks)


def _tls_reason(error: Exception) -> str:
    cause = error.__cause__ or getattr(error, "certificate_error", None)
    reason = getattr(cause, "verify_message", None) or getattr(cause, "reason", None)
    return str(reason or "the TLS handshake failed")

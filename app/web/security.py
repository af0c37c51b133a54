"""What holds for every request before any page sees it, and for every response after."""

import ipaddress
import re
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.accounts.errors import NotAllowed
from app.errors import AppError, InvalidInput
from app.settings import LOOPBACK_HOSTS, Settings
from app.web.faults import respond

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
USUAL_PORTS = {"http": ":80", "https": ":443"}
MAX_PATH = 2_000
MAX_QUERY = 8_000
MAX_BODY = 1_000_000
# Probes come from the machine's own address, whatever the site is called.
ANY_HOST = frozenset({"/healthz", "/readyz", "/metrics"})

CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: with it browsers send "Origin: null" with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class TooLarge(AppError):
    status = 413


class TooLong(AppError):
    status = 414


class Misdirected(AppError):
    status = 421


@dataclass(frozen=True)
class Origin:
    """Where the site answers, and what its cookies are called."""

    base_url: str
    on_loopback: bool

    @classmethod
    def of(cls, settings: Settings) -> "Origin":
        """InvalidInput for a CURATE_BASE_URL that no browser would call this site by."""
        return cls(plain_base(settings.base_url), settings.on_loopback)

    @cached_property
    def _scheme(self) -> str:
        return urlsplit(self.base_url).scheme

    @cached_property
    def _usual_port(self) -> str:
        """Some proxies and programs write it out."""
        return USUAL_PORTS[self._scheme]

    @cached_property
    def secure(self) -> bool:
        return self._scheme == "https"

    @cached_property
    def host(self) -> str:
        return (urlsplit(self.base_url).netloc).lower()

    def knows_host(self, host: str) -> bool:
        """A loopback site answers at every name of the machine itself, at any port."""
        named = host.lower().removesuffix(self._usual_port) == self.host
        return named or (self.on_loopback and host_name(host) in LOOPBACK_HOSTS)

    def is_own(self, origin: str, host: str) -> bool:
        """Whether a page at this origin is one of ours, asked for at this (checked) host."""
        if self.on_loopback:
            return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")
        return origin.lower().removesuffix(self._usual_port) == f"{self._scheme}://{self.host}"

    def cookie(self, name: str) -> str:
        """Loopback sites differ by port, which cookies do not see: so it stands in the name."""
        if self.secure:
            return f"__Host-curate-{name}"
        return f"curate-{urlsplit(self.base_url).port or 80}-{name}"


def plain_base(given: str) -> str:
    """`https://host:443/` -> `https://host`, as browsers write it in Host and Origin."""
    parts = urlsplit(given)
    bare = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username)
    if parts.scheme not in ("http", "https") or not parts.netloc or not bare or not given.isascii():
        raise InvalidInput(
            f"CURATE_BASE_URL is {given}: give http:// or https://, a host in ASCII (xn--…), a port if it "
            "is not the usual one, and nothing behind it."
        )
    return f"{parts.scheme}://{parts.netloc.removesuffix(USUAL_PORTS[parts.scheme])}"


_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::[0-9]{1,5})?", re.IGNORECASE | re.ASCII)


def host_name(host: str) -> str:
    """`[::1]:80` -> `::1`; empty for what is no host."""
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]).lower() if found else ""


def local_path(given: str, default: str = "/") -> str:
    """The path, query included, if it leads nowhere but to this site."""
    plain = given.isprintable() and given.startswith("/") and not given.startswith("//") and "\\" not in given
    return given if plain and len(given) <= MAX_PATH else default


class SecurityHeaders:
    """On every response, errors and files included."""

    def __init__(self, app: ASGIApp, origin: Origin) -> None:
        self.app = app
        self.headers = dict(HEADERS)
        if origin.secure:
            self.headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)


class Guards:
    """Host, length, origin of what changes something, size of the body; a HEAD is a GET without its body."""

    def __init__(self, app: ASGIApp, origin: Origin) -> None:
        self.app = app
        self.origin = origin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            self.check(scope)
        except AppError as error:
            await respond(scope, error)(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope, send = dict(scope, method="GET"), without_body(send)
        await self.app(scope, limited(receive), send)

    def check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        check_length(scope, headers)
        host = headers.get("host", "")
        if not self.origin.knows_host(host) and scope["path"] not in ANY_HOST:
            raise Misdirected(f"This site answers at {self.origin.base_url} only.")
        if scope["method"] not in SAFE_METHODS and not has_bearer(headers):
            self.check_origin(headers, host)

    def check_origin(self, headers: Headers, host: str) -> None:
        """All that the browser says of where a form stood must be this site. Silence is not enough."""
        sources = []
        if (fetch_site := headers.get("sec-fetch-site")) is not None:
            sources.append(fetch_site == "same-origin")
        if (origin := headers.get("origin")) is not None:
            sources.append(self.origin.is_own(origin, host))
        elif (referrer := headers.get("referer")) is not None:
            sources.append(self.origin.is_own(origin_of(referrer), host))
        if not sources or not all(sources):
            raise NotAllowed(
                "This form was not sent from a page of this site, so nothing was changed. "
                "Open the page here and send it again."
            )


def has_bearer(headers: Headers) -> bool:
    """A program with a token, which no browser adds by itself; with a cookie it is a browser."""
    return headers.get("authorization", "").lower().startswith("bearer ") and "cookie" not in headers


def origin_of(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc}"


def check_length(scope: Scope, headers: Headers) -> None:
    query = scope["query_string"]
    if len(scope["raw_path"] or b"") > MAX_PATH or len(query) > MAX_QUERY:
        raise TooLong(f"This address is too long: at most {MAX_QUERY} characters after the question mark.")
    if "\0" in scope["path"] or b"%00" in query or b"\0" in query:
        raise InvalidInput("An address cannot hold the character NUL.")
    given = headers.get("content-length", "0")
    if not given.isdecimal() or int(given) > MAX_BODY:
        raise too_large()


def too_large() -> TooLarge:
    return TooLarge(f"Too much was sent at once: at most {MAX_BODY // 1000:,} kB. Nothing was stored.")


def limited(receive: Receive) -> Receive:
    """Counts what really arrives; the length that was announced may be missing or wrong."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MAX_BODY:
            raise too_large()
        return message

    return counted


def without_body(send: Send) -> Send:
    async def headers_only(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return headers_only


class Proxies:
    """Whose word about the client's address is taken: nobody's, unless CURATE_TRUSTED_PROXIES says so."""

    def __init__(self, networks: str) -> None:
        try:
            parts = [part.strip() for part in networks.split(",") if part.strip()]
            self.networks = [ipaddress.ip_network(part) for part in parts]
        except ValueError as error:
            raise InvalidInput(f"CURATE_TRUSTED_PROXIES: {error}.") from None

    def client(self, scope: Scope) -> str:
        """The socket's peer, or the last address in X-Forwarded-For that no trusted proxy has."""
        peer = scope["client"][0] if scope.get("client") else ""
        if not self._trusts(peer):
            return peer
        forwarded = ",".join(Headers(scope=scope).getlist("x-forwarded-for"))
        hops = [part.strip() for part in forwarded.split(",") if part.strip()]
        return next((hop for hop in reversed(hops) if not self._trusts(hop)), peer)

    def _trusts(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self.networks)

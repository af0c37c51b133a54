"""Every request gets an id, a line in the log and its place in the figures; no traceback escapes."""

import logging
import re
import secrets
import time

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import AppError
from app.logs import request_id
from app.web.faults import Unexpected, respond
from app.web.site import Site

log = logging.getLogger("curate.web")

# One-time links are keys: what follows these never reaches a log.
_KEYS = re.compile(r"^/(invite|reset|signin|judge/join|judge/back)/.+")
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Observe:
    def __init__(self, app: ASGIApp, site: Site) -> None:
        self.app = app
        self.site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        token = request_id.set(secrets.token_hex(8))
        try:
            await self._observed(scope, receive, send)
        finally:
            request_id.reset(token)

    async def _observed(self, scope: Scope, receive: Receive, send: Send) -> None:
        started, status = time.perf_counter(), 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id.get() or ""
            await send(message)

        self.site.metrics.in_flight.inc()
        try:
            await self.app(scope, receive, noting)
        except Exception as error:
            if not isinstance(error, AppError):
                log.exception("Unexpected error")
            if status == 0:
                fault = error if isinstance(error, AppError) else Unexpected()
                await respond(scope, fault)(scope, receive, noting)
        finally:
            self.site.metrics.in_flight.dec()
            self._note(scope, status, time.perf_counter() - started)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "none"
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.site.metrics.answered(method, route, status, seconds)
        log.info(
            "request",
            extra={
                "fields": {
                    "method": method,
                    "path": masked(scope["path"]),
                    "route": route,
                    "status": status,
                    "ms": round(1000 * seconds, 1),
                    "peer": self.site.proxies.client(scope),
                    "account": scope.get("state", {}).get("account_id"),
                }
            },
        )


def masked(path: str) -> str:
    return _KEYS.sub(r"/\1/…", path)

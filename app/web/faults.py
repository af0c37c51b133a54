"""Every error as its reader needs it: a page, a fragment under htmx, problem+json for programs."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from app.accounts.errors import SignInNeeded, TooMany
from app.errors import AppError, InvalidInput, NotFound
from app.logs import request_id

TITLES = {
    400: "That does not fit",
    401: "Sign in first",
    403: "Not allowed",
    404: "Not found",
    405: "Not this way",
    409: "Not now",
    413: "Too large",
    414: "Address too long",
    421: "Another address",
    422: "That cannot be used as it is",
    429: "Too many tries",
    500: "Something broke here",
    503: "Not available just now",
}
AWAY_SECONDS = 10  # what stands behind the site is seldom back sooner
API = "/api/v1"
BROKEN = (
    "This is our fault, not yours. What was stored before is kept; try again. "
    "If it stays so, tell whoever runs this site the reference below."
)


class Unexpected(AppError):
    """What nobody foresaw; the traceback is in the log under the request's id, never here."""

    status = 500

    def __init__(self) -> None:
        super().__init__(BROKEN)


class Refused(AppError):
    """What the framework itself answers: no such route, no such method."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def from_framework(error: HTTPException) -> AppError:
    if error.status_code == 404:
        return NotFound("There is no page at this address.")
    if error.status_code == 405:
        return Refused(405, "This address does not take that kind of request.")
    return Refused(error.status_code, str(error.detail))


def from_validation(error: RequestValidationError) -> AppError:
    """A path that names nothing is not found; a wrong query or body says what is wrong."""
    faults = error.errors()
    if any(fault["loc"][:1] == ("path",) for fault in faults):
        return NotFound("There is no page at this address.")
    return InvalidInput(
        "; ".join(f"{'.'.join(str(part) for part in fault['loc'][1:])}: {fault['msg']}" for fault in faults)
    )


def respond(scope: Scope, error: AppError) -> Response:
    """The response that says it, with the request's id."""
    headers = Headers(scope=scope)
    extra: dict[str, str] = {}
    if isinstance(error, TooMany):
        extra["Retry-After"] = str(error.retry_after)
    elif error.status == 503:
        extra["Retry-After"] = str(AWAY_SECONDS)
    if for_programs(scope["path"]):
        return _problem(error, _challenge(error, extra))
    if headers.get("hx-request") == "true":
        return _fragment(scope, headers, error, extra)
    if wants_html(headers):
        return _page(scope, error, extra)
    return _problem(error, _challenge(error, extra))


def for_programs(path: str) -> bool:
    """The API, which answers in one form whatever is asked for."""
    return path == API or path.startswith(f"{API}/")


def _challenge(error: AppError, extra: dict[str, str]) -> dict[str, str]:
    return extra | {"WWW-Authenticate": "Bearer"} if isinstance(error, SignInNeeded) else extra


def wants_html(headers: Headers) -> bool:
    """Browsers ask for it by name; programs do not."""
    return "text/html" in headers.get("accept", "")


def values(error: AppError) -> dict[str, Any]:
    return {
        "status": error.status,
        "title": TITLES.get(error.status) or HTTPStatus(error.status).phrase,
        "message": error.message,
        "details": error.details,
        "request_id": request_id.get(),
    }


def _problem(error: AppError, extra: Mapping[str, str]) -> Response:
    found = values(error)
    body = {
        "type": "about:blank",
        "title": found["title"],
        "status": error.status,
        "detail": error.message,
        "request_id": found["request_id"],
    }
    if error.details:
        body["details"] = error.details
    return Response(
        json.dumps(body, ensure_ascii=False),
        error.status,
        media_type="application/problem+json",
        headers=dict(extra),
    )


def _fragment(scope: Scope, headers: Headers, error: AppError, extra: dict[str, str]) -> Response:
    """A notice in the place that every page keeps for it; without a session, on to the sign-in page."""
    if isinstance(error, SignInNeeded):
        extra["HX-Redirect"] = _site(scope).sign_in_path(headers.get("hx-current-url", ""))
        return Response(status_code=error.status, headers=extra)
    extra |= {"HX-Retarget": "#notices", "HX-Reswap": "innerHTML", "Cache-Control": "no-store"}
    body = _site(scope).templates.render("partials/fault.html", **values(error))
    return Response(body, error.status, media_type="text/html", headers=extra)


def _page(scope: Scope, error: AppError, extra: dict[str, str]) -> Response:
    site = _site(scope)
    request = Request(scope)
    context = site.base_context(request, site.visitor_of(request)) | values(error)
    template = "error.html"
    if isinstance(error, SignInNeeded):
        # Not a redirect: the address stays, so that signing in leads straight to it.
        template, context = "people/sign_in.html", context | site.sign_in_context(request, error.message)
    body = site.templates.render(template, **context)
    return Response(body, error.status, media_type="text/html", headers=extra)


def _site(scope: Scope) -> Any:
    return scope["app"].state.site

"""Who asks at /api/v1: a token instead of a cookie, with what it may do."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import Request
from starlette.responses import Response

from app import models
from app.accounts import api_tokens, throttle
from app.accounts.errors import NotAllowed, SignInNeeded
from app.accounts.policies import require_researcher
from app.db import session_scope
from app.models import Scope
from app.web.api_models import Problem
from app.web.context import Web
from app.web.faults import API
from app.web.site import Site

bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="A token of an account: made on the account's page or by `curate user token`.",
)
Given = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


@dataclass
class Api(Web):
    """A `Web` whose person is known by a token. Cookies mean nothing here."""

    token: models.ApiToken | None = field(default=None, repr=False)

    @property
    def login(self) -> None:
        return None

    @property
    def visitor(self) -> models.Account | None:
        return self.token.account if self.token else None

    @property
    def person(self) -> models.Account:
        if self.token is None:
            raise SignInNeeded(
                "Send a token: `Authorization: Bearer curate_…`. Make one on your account's page, "
                "or with `curate user token`."
            )
        return self.token.account

    def answer(self, content: Any, *, status: int = 200, location: str | None = None) -> Response:
        headers = {"Cache-Control": "no-store"}
        if location is not None:
            headers["Location"] = location
        body = json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
        return self._answer(body, "application/json", status, headers)


def open_api(request: Request, given: Given) -> Iterator[Api]:
    """For everybody; a token that is sent must be good all the same."""
    site: Site = request.app.state.site
    with session_scope(site.engine) as session:
        api = Api(request, site, session)
        if given is not None:
            api.token = _recognised(api, given.credentials)
        yield api


def _recognised(api: Api, token: str) -> models.ApiToken:
    found = api_tokens.find_token(api.session, token)
    if found is None:
        api.limit(throttle.API_REFUSED, api.peer)
        raise SignInNeeded("This token opens nothing: it is wrong, revoked or past its day. Make a new one.")
    api.request.state.account_id = found.account_id
    api_tokens.touch(api.session, found)
    api.limit(throttle.API, str(found.account_id))
    return found


Anybody = Annotated[Api, Depends(open_api)]


def _allowed(api: Api, scope: Scope) -> Api:
    require_researcher(api.person)
    if api.token is not None and scope not in api.token.scopes:
        raise NotAllowed(f"This token may not do that: it takes one with the scope '{scope}'.")
    return api


def _reader(api: Anybody) -> Api:
    return _allowed(api, Scope.READ)


def _runner(api: Anybody) -> Api:
    return _allowed(api, Scope.RUN)


Reader = Annotated[Api, Depends(_reader)]
Runner = Annotated[Api, Depends(_runner)]


# --- how routes are described ---

FAULTS: dict[int | str, dict[str, Any]] = {
    "default": {"model": Problem, "description": "Why not, as application/problem+json."}
}


def api_router() -> APIRouter:
    return APIRouter(
        prefix=API, responses=FAULTS, generate_unique_id_function=lambda route: route.name.replace("_", "-")
    )


def answers(model: Any, description: str, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """The answer of a route, for its description."""
    return {status: {"model": model, "description": description}}

"""What a route is given: the request, one database session, who is asking, and how to answer.

    @router.get("/runs/{run_id}")
    def show(web: SignedIn, run_id: UUID) -> Response:
        run = visible_run(web.session, web.person, run_id)
        return web.page("runs/show.html", run=run)

A route that changes something commits once, with `web.commit()`, before it redirects.
"""

import base64
import hashlib
import uuid
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response

from app import models
from app.accounts import sessions
from app.accounts.audit import record
from app.accounts.errors import SignInNeeded
from app.accounts.policies import is_admin, require_admin, require_researcher
from app.accounts.throttle import Limit, peer_bucket, take
from app.db import Session, session_scope
from app.errors import AppError
from app.logs import request_id
from app.settings import Settings
from app.web.administration import places
from app.web.faults import wants_html
from app.web.forms import Form
from app.web.notices import NOTICES
from app.web.security import local_path
from app.web.site import Site

SESSION, NOTICE = "session", "notice"
UNKNOWN = object()


@dataclass
class Web:
    request: Request
    site: Site
    session: Session
    _login: Any = field(default=UNKNOWN, repr=False)

    # --- who is asking ---

    @property
    def settings(self) -> Settings:
        return self.site.settings

    @property
    def login(self) -> models.LoginSession | None:
        """The live session of the request's cookie."""
        if self._login is UNKNOWN:
            token = self.request.cookies.get(self.site.origin.cookie(SESSION))
            self._login = sessions.find_login(self.session, token) if token else None
            if self._login is not None:
                self.request.state.account_id = self._login.account_id
                self.request.state.account = self._login.account
                if sessions.touch(self.session, self._login):
                    self.session.commit()
        return self._login  # type: ignore[no-any-return]

    @property
    def visitor(self) -> models.Account | None:
        """Whoever is signed in; None for anybody else."""
        return self.login.account if self.login else None

    @property
    def person(self) -> models.Account:
        """Whoever is signed in; SignInNeeded."""
        if self.login is None:
            had_cookie = self.site.origin.cookie(SESSION) in self.request.cookies
            raise SignInNeeded(
                "You are signed out: the session has ended. Sign in to go on; what you sent was not stored."
                if had_cookie
                else "This page is for people with an account here."
            )
        return self.login.account

    @property
    def peer(self) -> str:
        """Whom limits count: the client's address, an IPv6 one by its /64."""
        return peer_bucket(self.site.proxies.client(self.request.scope))

    @property
    def under_htmx(self) -> bool:
        """A fragment is wanted. A page that htmx restores from history is a whole one."""
        headers = self.request.headers
        return headers.get("hx-request") == "true" and headers.get("hx-history-restore-request") != "true"

    # --- what is done ---

    def commit(self) -> None:
        self.session.commit()

    def limit(self, which: Limit, who: str) -> None:
        """Takes a try and keeps that, whatever becomes of the request. TooMany when there is none left."""
        take(self.session, which, who)
        self.commit()

    def record(self, action: str, subject: str, **details: str | int | bool | None) -> None:
        """An audit event of this request."""
        record(self.session, self.visitor, action, subject, request_id=request_id.get(), **details)

    def refused(self, form: Form, error: AppError) -> Form:
        """Undo what was begun; the form to show again, with what is wrong.

        What was read before stays readable, but belongs to the session no more; who asks is looked up anew.
        """
        self.session.expunge_all()
        self.session.rollback()
        self._login = UNKNOWN
        return form.refused(error)

    def form_key(self) -> uuid.UUID:
        """For `ui.once(key)` in a form that must not be stored twice."""
        return uuid.uuid4()

    # --- how it answers ---

    def page(
        self,
        template: str,
        *,
        fragment: str | None = None,
        status: int = 200,
        public: int | None = None,
        **values: Any,
    ) -> Response:
        """The page; under htmx only its block `fragment`, if the route names one.

        `public`: seconds that anybody may keep the page for; it is then the same for all who are signed out.
        """
        notice = self._notice()
        context = self.site.base_context(self.request, self.visitor) | {"notice": notice} | values
        if self.request.url.path.startswith("/admin") and is_admin(self.visitor):
            assert self.visitor is not None
            context["administration"] = places(self.site, self.session, self.visitor)
        as_fragment = fragment is not None and self.under_htmx
        if as_fragment and fragment is not None:
            body = self.site.templates.render_block(template, fragment, **context)
        else:
            body = self.site.templates.render(template, **context)
        if public is None or as_fragment or notice or status != 200:
            response = self._answer(body.encode(), "text/html; charset=utf-8", status)
        else:
            response = self.data(body.encode(), "text/html; charset=utf-8", public=public)
        if fragment is not None:
            response.headers.append("Vary", "HX-Request, HX-History-Restore-Request")
        if notice:
            self._set_cookie(response, NOTICE, "", 0)
        return response

    def kept_page(
        self, template: str, version: Hashable, values: Callable[[], dict[str, Any]], *, public: int
    ) -> Response:
        """A public page, rendered once for everybody signed out as long as `version` stays the same.

        `version` tells of all that the page shows besides its address.
        """
        cookies = (self.site.origin.cookie(name) for name in (SESSION, NOTICE))
        if any(name in self.request.cookies for name in cookies):
            return self.page(template, public=public, **values())

        def render() -> bytes:
            context = self.site.base_context(self.request, None) | values()
            return self.site.templates.render(template, **context).encode()

        return self._kept(version, render, "text/html; charset=utf-8", public)

    def kept_json(self, version: Hashable, make: Callable[[], bytes], *, public: int) -> Response:
        """A public file, made once as long as `version` stays the same."""
        return self._kept(version, make, "application/json", public)

    def _kept(self, version: Hashable, make: Callable[[], bytes], media_type: str, public: int) -> Response:
        url = self.request.url
        kept = self.site.kept.get(f"{url.path}?{url.query}", version, make)
        return self.data(kept.body, media_type, public=public, digest=kept.digest)

    def data(
        self,
        body: bytes,
        media_type: str,
        *,
        public: int | None = None,
        filename: str | None = None,
        digest: bytes | None = None,
    ) -> Response:
        """A finished body with its ETag; `public` as for pages, `filename` to be saved under (made by us).

        `digest`: its SHA-256, where it is known.
        """
        digest = digest or hashlib.sha256(body).digest()
        headers = {"ETag": f'"{digest.hex()[:32]}"', "Cache-Control": "no-store"}
        if public is not None:
            headers |= {"Cache-Control": self._cache_control(public), "Vary": "Cookie"}
        if filename is not None:
            headers["Content-Disposition"] = f'attachment; filename="{filename}"'
            headers["Repr-Digest"] = f"sha-256=:{base64.b64encode(digest).decode()}:"
        if public is not None and matches(self.request.headers.get("if-none-match"), headers["ETag"]):
            self.session.close()
            return Response(status_code=304, headers=headers)
        return self._answer(body, media_type, 200, headers)

    def redirect(
        self, path: str, *, notice: str | None = None, background: BackgroundTask | None = None
    ) -> Response:
        """On to a page of this site (303), which shows the notice of that name once."""
        self.session.close()
        target = local_path(path)
        response = Response(status_code=303, headers={"Location": target}, background=background)
        if self.under_htmx:
            response = Response(status_code=204, headers={"HX-Redirect": target}, background=background)
        if notice is not None:
            assert notice in NOTICES
            self._set_cookie(response, NOTICE, notice, 60)
        return response

    def sign_in(self, response: Response, token: str) -> Response:
        self._set_cookie(response, SESSION, token, int(sessions.LIFETIME.total_seconds()))
        return response

    def sign_out(self, response: Response) -> Response:
        self._set_cookie(response, SESSION, "", 0)
        return response

    def cookie(self, name: str) -> str | None:
        """The request's cookie of this name, which the site's own ones carry with a prefix."""
        return self.request.cookies.get(self.site.origin.cookie(name))

    def cookies(self, beginning: str) -> list[str]:
        """What follows `beginning` in the names of the request's cookies of this site."""
        prefix = self.site.origin.cookie(beginning)
        return [name.removeprefix(prefix) for name in self.request.cookies if name.startswith(prefix)]

    def remember(self, response: Response, name: str, value: str, seconds: int) -> Response:
        """A cookie for these seconds; none to forget it."""
        self._set_cookie(response, name, value, seconds)
        return response

    def _answer(
        self, body: bytes, media_type: str, status: int, headers: dict[str, str] | None = None
    ) -> Response:
        # The connection goes back to the pool now: the reader may be slow.
        self.session.close()
        found = headers or {"Cache-Control": "no-store"}
        return Response(body, status, headers=found, media_type=media_type)

    def _cache_control(self, seconds: int) -> str:
        if self.site.origin.cookie(SESSION) in self.request.cookies:
            return "private, no-cache"
        return f"public, max-age={seconds}, stale-while-revalidate={10 * seconds}"

    def _notice(self) -> str | None:
        name = self.request.cookies.get(self.site.origin.cookie(NOTICE), "")
        return None if self.under_htmx else NOTICES.get(name)

    def _set_cookie(self, response: Response, name: str, value: str, seconds: int) -> None:
        response.set_cookie(
            self.site.origin.cookie(name),
            value,
            max_age=seconds,
            path="/",
            secure=self.site.origin.secure,
            httponly=True,
            samesite="lax",
        )


def matches(if_none_match: str | None, tag: str) -> bool:
    given = [part.strip().removeprefix("W/") for part in (if_none_match or "").split(",")]
    return tag in given or "*" in given


def open_web(request: Request) -> Iterator[Web]:
    site: Site = request.app.state.site
    with session_scope(site.engine) as session:
        yield Web(request, site, session)


def recognise(request: Request) -> None:
    """Find out who asks where no route did, for the header of an error page; faults are ignored."""
    site: Site = request.app.state.site
    if (
        wants_html(request.headers)
        and site.visitor_of(request) is None
        and site.origin.cookie(SESSION) in request.cookies
    ):
        with suppress(AppError), session_scope(site.engine) as session:
            Web(request, site, session).login  # noqa: B018


Visitor = Annotated[Web, Depends(open_web)]


def _signed_in(web: Visitor) -> Web:
    web.person  # noqa: B018  (raises when nobody is signed in)
    return web


SignedIn = Annotated[Web, Depends(_signed_in)]


def _researcher(web: SignedIn) -> Web:
    require_researcher(web.person)
    return web


def _admin(web: SignedIn) -> Web:
    require_admin(web.person)
    return web


Researcher = Annotated[Web, Depends(_researcher)]
Admin = Annotated[Web, Depends(_admin)]

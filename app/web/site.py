"""What all requests of one site share."""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request

from app import models
from app.accounts.policies import is_admin, is_researcher
from app.db import Engine
from app.logs import request_id
from app.mail import Mailer
from app.pictures import Artist
from app.settings import PROJECT_ROOT, Settings
from app.web.forms import Form
from app.web.kept import KeptPages
from app.web.metrics import Metrics
from app.web.security import Origin, Proxies, local_path
from app.web.static import StaticFiles
from app.web.templates import Templates

NAVIGATION = (("/", "Board"), ("/compare", "Compare"), ("/cases", "Cases"), ("/methods", "Methods"))
FOR_RESEARCHERS = (("/runs", "Runs"), ("/studies", "Studies"))
FOR_JUDGES = (("/judge", "Judge"),)
FOR_ADMINS = (("/admin", "Admin"),)


# Threads that requests are worked on with, and database connections, so that none waits for one.
REQUESTS_AT_ONCE = 20


@cache
def shipped_files() -> StaticFiles:
    return StaticFiles(PROJECT_ROOT / "static")


@cache
def shipped_templates() -> Templates:
    return Templates(PROJECT_ROOT / "templates")


@dataclass(frozen=True)
class Site:
    settings: Settings
    engine: Engine
    pages: frozenset[str]  # the addresses that have a page: the header links to no other

    @cached_property
    def origin(self) -> Origin:
        return Origin.of(self.settings)

    @cached_property
    def proxies(self) -> Proxies:
        return Proxies(self.settings.trusted_proxies)

    @cached_property
    def static(self) -> StaticFiles:
        return shipped_files()

    @cached_property
    def templates(self) -> Templates:
        return shipped_templates()

    @cached_property
    def metrics(self) -> Metrics:
        return Metrics()

    @cached_property
    def kept(self) -> KeptPages:
        return KeptPages()

    @cached_property
    def mailer(self) -> Mailer:
        return Mailer.of(self.settings)

    @cached_property
    def artist(self) -> Artist:
        return Artist()

    def check(self) -> None:
        """Read everything that is read once; InvalidInput when a setting cannot be used."""
        for part in (self.origin, self.proxies, self.static, self.templates, self.mailer):
            assert part

    def navigation(self, visitor: models.Account | None) -> list[tuple[str, str]]:
        links = [*NAVIGATION]
        if is_researcher(visitor):
            links += FOR_RESEARCHERS
        if visitor is not None:
            links += FOR_JUDGES
        if is_admin(visitor):
            links += FOR_ADMINS
        return [(path, name) for path, name in links if path in self.pages]

    def visitor_of(self, request: Request) -> models.Account | None:
        """Who asks, as far as it was found out before something went wrong."""
        account = request.scope.get("state", {}).get("account")
        return account if isinstance(account, models.Account) else None

    def base_context(self, request: Request, visitor: models.Account | None) -> dict[str, Any]:
        """What templates/base.html needs."""
        return {
            "visitor": visitor,
            "navigation": self.navigation(visitor),
            "path": request.url.path,
            "static": self.static.url,
            "notice": None,
            "administration": [],
            "request_id": request_id.get(),
            "here": here(request),
        }

    def sign_in_path(self, current_url: str) -> str:
        """The sign-in page, and back to where somebody was."""
        parts = urlsplit(current_url)
        return "/login?" + urlencode({"next": local_path(f"{parts.path}?{parts.query}".rstrip("?"))})

    def sign_in_context(self, request: Request, message: str) -> dict[str, Any]:
        """The sign-in form in place of a page that needs somebody; a GET is repeated afterwards."""
        target = here(request) if request.method in ("GET", "HEAD") else "/"
        return {"form": Form.blank(next=target), "message": message, "can_mail": self.mailer.configured}


def here(request: Request) -> str:
    """The address of this page within the site, query included."""
    query = request.url.query
    return local_path(request.url.path + (f"?{query}" if query else ""))

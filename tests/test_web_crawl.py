"""A crawl as each role: no page breaks, no link is dead, and nobody is shown what is not theirs."""

import re
from collections import Counter
from html import unescape

import pytest
from httpx2 import Response
from sqlalchemy import Engine

from app import models
from app.accounts import people
from app.db import open_session
from app.models import Role
from app.settings import Settings
from tests.test_web_security import check_headers, check_markup
from tests.web_help import Browser, browsing, make_person

MOST_OF_A_KIND = 3
START = (
    "/",
    "/login",
    "/account",
    "/runs",
    "/cases",
    "/admin",
    "/methods",
    "/methods/compare",
    "/compare",
    "/studies",
    "/corrections",
)
# Words that only stand on pages of administrators.
SECRETS = ("secret-invitee@example.org", "person.invite")


@pytest.fixture
def site(settings: Settings, engine: Engine) -> Settings:
    populate(engine)
    return settings


def populate(engine: Engine) -> dict[str, models.Account]:
    """Something on every page."""
    made = {role.value: make_person(engine, role, name=f"{role} one") for role in Role}
    with open_session(engine) as session:
        admin = people.find_person(session, made["admin"].uuid)
        people.invite(session, email=SECRETS[0], role=Role.JUDGE, by=admin)
        session.commit()
    return made


def crawl(browser: Browser) -> dict[str, Response]:
    return crawl_from(browser, *START)


def crawl_from(browser: Browser, *start: str) -> dict[str, Response]:
    """Pages of every kind that links lead to; none breaks, and none that a page links to is missing."""
    waiting, seen = [(path, "the start") for path in start], dict[str, Response]()
    kinds = Counter[str]()
    while waiting:
        path, origin = waiting.pop(0)
        if path in seen or kinds[kind_of(path)] == MOST_OF_A_KIND:
            continue
        kinds[kind_of(path)] += 1
        seen[path] = response = browser.get(path)
        assert response.status_code < 500, f"{path}: {response.text}"
        assert response.status_code != 404 or origin == "the start", f"{origin} links to {path}"
        check_headers(response)
        if response.headers.get("content-type", "").startswith("text/html"):
            check_markup(response.text)
            waiting += [(link, path) for link in links(response)]
    return seen


def kind_of(path: str) -> str:
    """Pages that differ only in which object they show or what their filters say are of one kind."""
    place, _, query = path.partition("?")
    first, *rest = place.strip("/").split("/")
    words = [part if part.isalpha() else "…" for part in rest]
    return (
        "/".join([first, *words])
        + "?"
        + "&".join(sorted({part.partition("=")[0] for part in query.split("&")}))
    )


def links(response: Response) -> list[str]:
    found = [unescape(one) for one in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', response.text)]
    return list(dict.fromkeys(one.partition("#")[0] for one in found if one.startswith("/")))


@pytest.mark.parametrize("role", [None, *Role])
def test_every_page_as_each_role(site: Settings, engine: Engine, role: Role | None) -> None:
    with browsing(site, engine) as browser:
        if role is not None:
            browser.sign_in(models.Account(email=f"{role}@example.org"))
        pages = crawl(browser)
        texts = "\n".join(page.text for page in pages.values())
        assert all((secret in texts) == (role == Role.ADMIN) for secret in SECRETS)
        admin_pages = [path for path, page in pages.items() if path.startswith("/admin") and page.is_success]
        assert bool(admin_pages) == (role == Role.ADMIN)

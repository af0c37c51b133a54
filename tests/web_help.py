"""A client that behaves as a browser does about cookies and origins, and people to sign in as."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from html import unescape
from typing import TypeVar

from fastapi import FastAPI
from httpx2 import Response
from sqlalchemy import Engine, select
from starlette.testclient import TestClient

from app import models
from app.accounts.passwords import hash_password
from app.db import open_session
from app.main import create_app
from app.models import Role
from app.settings import Settings

PASSWORD = "correct horse battery staple"
LOOPBACK = "http://127.0.0.1:8000"
PEER = ("203.0.113.5", 50000)


@cache
def _hashed() -> str:
    return hash_password(PASSWORD)


def make_person(
    engine: Engine, role: Role = Role.RESEARCHER, *, email: str | None = None, name: str = "Ada"
) -> models.Account:
    """An account with PASSWORD; researcher@example.org and the like unless an address is given."""
    with open_session(engine) as session:
        account = models.Account(
            email=email or f"{role}@example.org", name=name, role=role.value, password_hash=_hashed()
        )
        session.add(account)
        session.flush()
        session.refresh(account)
        session.commit()
        return account


class Browser:
    """Follows no redirect by itself; sends what browsers send with a form of our own page."""

    def __init__(self, app: FastAPI, base_url: str = LOOPBACK, *, peer: tuple[str, int] = PEER) -> None:
        self.base_url = base_url
        self.client = TestClient(app, base_url=base_url, follow_redirects=False, client=peer)
        self.client.headers["accept"] = "text/html,application/xhtml+xml"

    def get(self, path: str, **headers: str) -> Response:
        return self.client.get(path, headers=_headers(headers))

    def post(self, path: str, data: Mapping[str, object] | None = None, **headers: str) -> Response:
        own = {"origin": self.base_url, "sec-fetch-site": "same-origin"}
        return self.client.post(path, data=dict(data or {}), headers=own | _headers(headers))

    def sign_in(self, account: models.Account, password: str = PASSWORD) -> Response:
        response = self.post("/login", {"email": account.email or "", "password": password})
        assert response.status_code == 303, response.text
        return response

    def follow(self, response: Response) -> Response:
        return self.get(response.headers["location"])


def _headers(given: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in given.items()}


@contextmanager
def browsing(settings: Settings, engine: Engine, *, peer: tuple[str, int] = PEER) -> Iterator[Browser]:
    browser = Browser(create_app(settings, engine), settings.base_url, peer=peer)
    with browser.client:
        yield browser


def text_of(response: Response) -> str:
    """What a reader sees of a page, roughly: no tags, entities resolved, single spaces."""
    body = re.sub(r"(?s)<(script|style)\b.*?</\1>|<[^>]*>", " ", response.text)
    return " ".join(unescape(body).split())


Result = TypeVar("Result")


def at_once(work: Callable[[], Result], number: int) -> list[Result]:
    """Results of that many threads that start together."""
    found: list[Result] = []
    barrier = threading.Barrier(number)

    def run() -> None:
        barrier.wait()
        found.append(work())

    threads = [threading.Thread(target=run) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def is_in(browser: Browser) -> bool:
    """Whether the browser's cookie still opens the account page."""
    response = browser.get("/account")
    assert response.status_code in (200, 401)
    return response.status_code == 200


def audit(engine: Engine) -> list[str]:
    """The actions of the audit trail, in order."""
    with open_session(engine) as session:
        return list(session.scalars(select(models.AuditEvent.action).order_by(models.AuditEvent.id)))

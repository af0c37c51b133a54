"""A client that behaves as a browser does about cookies and origins, and people to sign in as."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import unescape

from fastapi import FastAPI
from httpx2 import Response
from sqlalchemy import Engine
from starlette.testclient import TestClient

from app import models
from app.accounts import people
from app.db import open_session
from app.main import create_app
from app.models import Role
from app.settings import Settings

PASSWORD = "correct horse battery staple"
LOOPBACK = "http://127.0.0.1:8000"


def make_person(
    engine: Engine, role: Role = Role.RESEARCHER, *, email: str | None = None, name: str = "Ada"
) -> models.Account:
    """An account with PASSWORD; researcher@example.org and the like unless an address is given."""
    with open_session(engine) as session:
        account = people.add_person(
            session, email=email or f"{role}@example.org", name=name, role=role, password=PASSWORD
        )
        session.commit()
        return account


class Browser:
    """Follows no redirect by itself; sends what browsers send with a form of our own page."""

    def __init__(self, app: FastAPI, base_url: str = LOOPBACK) -> None:
        self.base_url = base_url
        self.client = TestClient(app, base_url=base_url, follow_redirects=False)
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
def browsing(settings: Settings, engine: Engine) -> Iterator[Browser]:
    browser = Browser(create_app(settings, engine), settings.base_url)
    with browser.client:
        yield browser


def text_of(response: Response) -> str:
    """What a reader sees of a page, roughly: no tags, entities resolved, single spaces."""
    body = re.sub(r"(?s)<(script|style)\b.*?</\1>|<[^>]*>", " ", response.text)
    return " ".join(unescape(body).split())

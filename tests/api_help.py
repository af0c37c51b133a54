"""A program with a token at /api/v1."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI
from httpx2 import Response
from sqlalchemy import Engine
from starlette.testclient import TestClient

from app import models
from app.accounts.api_tokens import make_token
from app.accounts.people import find_person
from app.db import open_session
from app.main import create_app
from app.models import Scope
from app.settings import Settings
from app.web.api_models import Problem
from tests.web_help import PEER

RUN: dict[str, Any] = {
    "endpoint": {"base_url": "https://models.example.com/v1", "model": "a-model"},
    "scenarios": ["sc1", "sc2"],
    "categories": ["severe_allergy"],
    "limit": 2,
}


def token_of(engine: Engine, account: models.Account, *scopes: Scope) -> str:
    """All scopes unless some are named."""
    with open_session(engine) as session:
        owner = find_person(session, account.uuid)
        _, token = make_token(session, owner, name="a program", scopes=scopes or list(Scope))
        session.commit()
    return token


class Program:
    def __init__(self, app: FastAPI, base_url: str, token: str | None) -> None:
        self.client = TestClient(app, base_url=base_url, follow_redirects=False, client=PEER)
        self.token = token

    def get(self, path: str, **headers: str) -> Response:
        return self.send("GET", path, None, headers)

    def post(self, path: str, body: object = None, **headers: str) -> Response:
        return self.send("POST", path, body, headers)

    def send(self, method: str, path: str, body: object, headers: dict[str, str]) -> Response:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token is not None:
            sent.setdefault("authorization", f"Bearer {self.token}")
        return self.client.request(method, f"/api/v1{path}", json=body, headers=sent)


@contextmanager
def program(settings: Settings, engine: Engine, token: str | None) -> Iterator[Program]:
    made = Program(create_app(settings, engine), settings.base_url, token)
    with made.client:
        yield made


def problem(response: Response, status: int) -> str:
    """The sentence of a fault of that status, whose form is checked."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found = Problem.model_validate_json(response.content)
    assert found.status == status
    assert found.request_id == response.headers["x-request-id"]
    return found.detail

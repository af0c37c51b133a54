"""A second person's browser or program gets nothing that is the first one's, at any address that there is.

Addresses come from the application and identities from the database, so what is added joins by itself.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from fastapi.routing import APIRoute
from httpx2 import Response
from sqlalchemy import Engine, text

from app import models
from app.accounts import people
from app.accounts.api_tokens import make_token
from app.db import Base, open_session
from app.main import ROUTERS
from app.models import CorrectionKind, Role, Scope
from app.settings import PROJECT_ROOT, Settings
from tests.api_help import Program, program, token_of
from tests.study_web_help import EXPLANATION, MODELS, drawn_study, invitation, trained
from tests.web_help import Browser, browsing, make_person

ADDRESS = "https://ada-secret.example.net/v1"
# Each stands in what is the first person's, and nowhere else.
SECRETS = (*MODELS, EXPLANATION, "ada-secret", "I bear no spice", "May I try stew")
# Whose rows are nobody's in particular, or of what is public; and what every request may touch.
OF_THE_SITE = {
    "benchmark", "protocol", "evaluator", "manipulation_check", "reference_set", "drift_check", "spot_check",
}  # fmt: skip
OF_REQUESTS = {
    "throttle", "login_session", "audit_event", "submitted_form", "api_token",
    "benchmark", "protocol", "evaluator", "case", "distractor",  # what is built in is stored at first use
}  # fmt: skip
# Words that stand in an address where no identity does.
WORDS = {
    "form": ("csv", "json", "xlsx", "jsonl"),
    "kind": ("gold", "training"),
    "token": (),
    "benchmark": ("small@1",),
    "key": ("severe_allergy-001",),
}
# These act on whoever sends them, whatever stands in the form.
OWN_ACCOUNT = re.compile(r"/(login|logout|reset|account/.*)")


@dataclass(frozen=True)
class First:
    """The first person's identities: uuids of every kind, and the study's name."""

    identities: tuple[str, ...]
    account: models.Account


def routes(method: str, *, objects: bool) -> list[str]:
    """Paths of the application with (without) a place for what they are about."""
    found = [
        route.path
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and method in (route.methods or ())
    ]
    return [path for path in found if ("{" in path) == objects]


def addresses(path: str, identities: tuple[str, ...]) -> Iterator[str]:
    """The path with every identity in each place; words where only a few fit."""
    names = re.findall(r"\{(\w+)(?::\w+)?\}", path)
    values = [WORDS[name] if WORDS.get(name) else identities for name in names]
    for chosen in product(*values):
        # Two identities in one address: each beside a study's name is enough.
        if sum(one in identities for one in chosen) > 1 and "pilot" not in chosen:
            continue
        address = path
        for name, value in zip(names, chosen, strict=True):
            address = re.sub(rf"\{{{name}(?::\w+)?\}}", value, address)
        yield address


def query_names() -> list[str]:
    """Every name that some page reads from its address."""
    texts = "\n".join(path.read_text() for path in Path(PROJECT_ROOT / "app/web").glob("*.py"))
    return sorted(set(re.findall(r'quer(?:y|y_params)(?:\.get\(|\[)"(\w+)"', texts)))


@pytest.fixture
def first(engine: Engine, settings: Settings) -> First:
    ada = make_person(engine, name="ada-secret", email="ada-secret@example.net")
    made = drawn_study(engine, settings, ada, title="ada-secret stews", response="ada-secret response ")
    link = invitation(engine, made)
    make_person(engine, Role.ADMIN, name="Root")
    with browsing(settings, engine) as judging, browsing(settings, engine) as own:
        assert judging.post(link, {"consent": "1", "pseudonym": "ada-secret judge"}).status_code == 200
        trained(engine)
        assert "May I try stew" in judging.get(made.judging).text
        own.sign_in(ada)
    with open_session(engine) as session:
        person = session.get_one(models.Account, ada.id)
        study = session.query(models.Study).one()
        run = session.query(models.Run).order_by(models.Run.id).first()
        conversation = session.query(models.Conversation).order_by(models.Conversation.id).first()
        assert run is not None
        assert conversation is not None
        endpoint = session.get_one(models.Endpoint, run.endpoint_id)
        endpoint.base_url, endpoint.sealed_key = ADDRESS, b"sealed"
        item = session.query(models.StudyItem).filter_by(study_id=study.id).first()
        assert item is not None
        session.add(models.StudyAdjudication(study_id=study.id, item_id=item.id, position=1, contested=True))
        session.add(models.PublicationRequest(run_id=run.id, asked_by_id=person.id))
        session.add(
            models.Correction(
                kind=CorrectionKind.VERDICT.value, conversation_id=conversation.id,
                evaluator_id=run.evaluator_id, case_id=conversation.case_id, body="ada-secret report",
                form_key=uuid4(), reporter_id=person.id,
            )
        )  # fmt: skip
        make_token(session, person, name="ada-secret token", scopes=list(Scope))
        people.reset_link(session, person)
        session.commit()
    return First(identities(engine), ada)


def identities(engine: Engine) -> tuple[str, ...]:
    """One uuid of each table that has them, and the study's name. Every table of people's has a row."""
    found, empty = ["pilot"], set()
    with engine.connect() as connection:
        for table in Base.metadata.sorted_tables:
            if "uuid" in table.columns and table.name not in OF_THE_SITE:
                row = connection.execute(text(f'SELECT min(uuid::text) FROM "{table.name}"')).scalar()
                found.append(row) if row else empty.add(table.name)
    assert empty == set(), "give the first person a row of these too"
    return tuple(found)


def stored(engine: Engine) -> dict[str, Any]:
    """What stands in each table, but for those that every request may touch."""
    with engine.connect() as connection:
        return {
            table.name: connection.execute(
                text(f"""SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM "{table.name}" t""")
            ).scalar()
            for table in Base.metadata.sorted_tables
            if table.name not in OF_REQUESTS
        }


def check_silent(response: Response, address: str) -> None:
    assert response.status_code < 500, address
    told = response.content.decode(errors="replace") + str(dict(response.headers))
    assert [secret for secret in SECRETS if secret in told] == [], address


def found_by(own: Browser, first: First) -> dict[str, list[str]]:
    """path of the application -> addresses of it at which this person finds something."""
    found: dict[str, list[str]] = {}
    for path in routes("GET", objects=True):
        for address in addresses(path, first.identities) if not path.startswith("/api") else ():
            response = own.get(address)
            assert response.status_code < 500, address
            if response.is_success:
                found.setdefault(path, []).append(address)
    return found


def changing(first: First, found: dict[str, list[str]]) -> Iterator[str]:
    """Addresses that change something, about what was found above them; else about everything."""
    fitting = {path: {one for one in first.identities if f"/{one}" in str(found[path])} for path in found}
    for path in routes("POST", objects=True):
        above = [kept for place, kept in fitting.items() if path.startswith(place)]
        if not path.startswith("/api"):
            yield from addresses(path, tuple(above[0]) if above else first.identities)


def test_nobody_else_s_browser_reads_or_changes_what_is_mine(
    first: First, settings: Settings, engine: Engine
) -> None:
    bob = make_person(engine, email="bob@example.org", name="Bob")
    with browsing(settings, engine) as other, browsing(settings, engine) as own:
        own.sign_in(first.account)
        mine = found_by(own, first)
        told = "".join(own.get(address).text for found in mine.values() for address in found)
        assert {"/runs/{run_id}", "/conversations/{identity}", "/studies/{name}"} <= set(mine)
        assert all(secret in told for secret in SECRETS), "the words are no empty hope"
        other.sign_in(bob)
        own.post("/logout")
        before, seen = stored(engine), 0
        for found in mine.values():
            for address in found:
                response = other.get(address)
                check_silent(response, address)
                seen += 1
                if response.is_success:  # then it is public, and nobody sees less
                    assert own.get(address).is_success, address
        for address in changing(first, mine):
            response = other.post(address, everything(first))
            check_silent(response, address)
            seen += 1
            # To sign out of what one never was in changes nothing; the tables say so of all of them.
            assert response.status_code in (303, 401, 403, 404, 409, 422, 429), address
        assert stored(engine) == before
        assert seen > 200
        for path in routes("GET", objects=False):
            for identity in first.identities:
                check_silent(other.client.get(path, params=dict.fromkeys(query_names(), identity)), path)
            check_silent(other.get(path), path)
        for path in routes("POST", objects=False):
            if not OWN_ACCOUNT.fullmatch(path) and not path.startswith("/api"):
                check_silent(other.post(path, everything(first)), path)


def everything(first: First) -> dict[str, Any]:
    """A form that names the first person's things in every field that somewhere names one."""
    names = ("run", "runs", "endpoint", "evaluator", "conversation", "study", "item", "judge", "like", "key")
    return {name: list(first.identities) for name in names} | {"decision": "harmless", "name": "x", "n": "4"}


def test_nobody_else_s_program_reads_or_changes_what_is_mine(
    first: First, settings: Settings, engine: Engine
) -> None:
    bob = make_person(engine, email="bob@example.org", name="Bob")
    before = stored(engine)
    with program(settings, engine, token_of(engine, bob)) as other:
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            for path in routes(method, objects=True):
                for address in addresses(path, first.identities) if path.startswith("/api") else ():
                    response = ask(other, method, address)
                    check_silent(response, address)
                    assert response.status_code in (403, 404, 422), address
        for path in routes("GET", objects=False):
            if path.startswith("/api"):
                check_silent(ask(other, "GET", path), path)
    assert stored(engine) == before


def ask(other: Program, method: str, address: str) -> Response:
    return other.send(method, address.removeprefix("/api/v1"), None if method == "GET" else {}, {})

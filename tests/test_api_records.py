"""The API's records: endpoints with their keys, conversations with verdicts, cases, studies, tokens."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, select

from app import models
from app.db import open_session
from app.endpoints import opened_key
from app.models import Scope
from app.settings import Settings
from app.web import api_record_models as shapes
from tests.api_help import RUN, Program, problem, program, token_of
from tests.board_help import finish, put_on_board
from tests.driving_help import shop_of
from tests.factories import Shop
from tests.study_web_help import plain_study
from tests.test_web_runs import give, passing
from tests.web_help import make_person

KEY, SECOND = "sk-canary-aa11bb22", "sk-canary-cc33dd44"
URL, OTHER = "https://models.example.com/v1", "https://moved.example.com/v1"
GIVEN: dict[str, Any] = {"base_url": URL, "model": "a-model", "api_key": KEY, "price_prompt": 0.5}


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=1)


@pytest.fixture
def api(settings: Settings, engine: Engine) -> Iterator[Program]:
    with program(settings, engine, token_of(engine, make_person(engine))) as made:
        yield made


@pytest.fixture
def other(settings: Settings, engine: Engine) -> Iterator[Program]:
    """Somebody else's program."""
    with program(settings, engine, token_of(engine, make_person(engine, email="eve@example.org"))) as made:
        yield made


def key_of(engine: Engine, settings: Settings) -> str | None:
    with open_session(engine) as session:
        row = session.scalars(select(models.Endpoint)).one()
        return opened_key(session.get_one(models.Account, row.account_id), row, settings.secret)


def test_an_endpoint_s_life(api: Program, other: Program, engine: Engine, settings: Settings) -> None:
    answer = api.post("/endpoints", GIVEN)
    assert answer.status_code == 201, answer.text
    stored = shapes.EndpointStored.model_validate_json(answer.content)
    assert (stored.added, stored.endpoint.key, stored.endpoint.price_prompt) == (True, "stored", 0.5)
    path = f"/endpoints/{stored.endpoint.uuid}"
    assert answer.headers["location"] == f"/api/v1{path}"
    again = api.post("/endpoints", GIVEN | {"api_key": None, "weights": "open"})
    assert (again.status_code, again.json()["added"]) == (200, False)
    assert key_of(engine, settings) == KEY

    def change(body: dict[str, Any]) -> Any:
        return api.send("PATCH", path, body, {})

    moved = problem(change({"base_url": OTHER}), 422)
    assert "Give the key again" in moved
    assert change({"base_url": OTHER, "api_key": SECOND}).json()["base_url"] == OTHER
    assert key_of(engine, settings) == SECOND
    shown = change({"price_completion": 2, "model_version": "v2"}).json()
    assert (shown["price_prompt"], shown["price_completion"], shown["weights"]) == (0.5, 2, "open")
    assert change({"price_prompt": None}).json()["price_prompt"] is None
    problem(change({"base_url": "http://127.0.0.1/v1", "api_key": KEY}), 422)
    problem(change({"api_key": KEY, "without_key": True}), 422)
    problem(change({"name": "a\u200bb"}), 422)
    for refused in (other.get(path), other.send("PATCH", path, {}, {}), other.send("DELETE", path, None, {})):
        problem(refused, 404)
    run = api.post("/runs", {name: value for name, value in RUN.items() if name != "endpoint"} | {
        "endpoint_id": str(stored.endpoint.uuid)
    })  # fmt: skip
    assert run.status_code == 201, run.text
    assert "it stays" in problem(api.send("DELETE", path, None, {}), 409)
    gone = shapes.KeyDeleted.model_validate_json(api.send("DELETE", f"{path}/key", None, {}).content)
    assert (gone.endpoint.key, gone.paused_runs) == ("deleted", [run.json()["run"]["id"]])
    assert api.send("DELETE", f"{path}/key", None, {}).json()["paused_runs"] == []
    problem(other.post("/runs", {"endpoint_id": str(stored.endpoint.uuid)}), 404)
    with open_session(engine) as session:
        told = json.dumps([one.details for one in session.scalars(select(models.AuditEvent))])
    assert KEY not in told + answer.text + again.text


def test_endpoints_go_on_by_cursor_and_can_be_removed(api: Program, other: Program) -> None:
    for number in range(3):
        api.post("/endpoints", GIVEN | {"name": f"m{number}"})
    seen, path = [], "/endpoints?limit=2"
    while path:
        page = shapes.Endpoints.model_validate_json(api.get(path).content)
        seen += [one.name for one in page.endpoints]
        last = page.endpoints[-1].uuid
        path = f"/endpoints?limit=2&cursor={page.next}" if page.next else ""
    assert seen == ["m2", "m1", "m0"]
    problem(other.get(f"/endpoints?cursor={last}"), 404)
    assert api.send("DELETE", f"/endpoints/{last}", None, {}).status_code == 204
    problem(api.get(f"/endpoints/{last}"), 404)


def test_conversations_and_verdicts(api: Program, other: Program, shop: Shop) -> None:
    run = give(shop.engine, finish(shop.engine, shop.submit(URL), passing))
    path = f"/runs/{run.uuid}/conversations"
    page = shapes.Conversations.model_validate_json(api.get(f"{path}?scenario=sc1&outcome=pass").content)
    assert (page.total, len(page.conversations), page.next) == (4, 4, None)
    assert api.get(f"{path}?outcome=fail").json()["total"] == 0
    assert "scenario" not in problem(api.get(f"{path}?cursor={uuid.uuid4()}"), 404)
    problem(api.get(f"{path}?scenario=%00"), 422)
    problem(other.get(path), 404)
    one = f"/conversations/{page.conversations[0].uuid}"
    found = shapes.ConversationShown.model_validate_json(api.get(one).content)
    assert (found.run, found.scenario, found.response) == (run.uuid, "sc1", "A response.")
    (verdict,) = shapes.Verdicts.model_validate_json(api.get(f"{one}/verdicts").content).verdicts
    assert found.verdicts == [verdict]
    assert (verdict.rating, verdict.outcome, verdict.evaluator["kind"]) == (2, "pass", "rules")
    problem(other.get(one), 404)
    put_on_board(shop.engine, run)
    assert shapes.ConversationShown.model_validate_json(other.get(one).content).error_message is None


def test_a_page_of_conversations_has_a_next_one(api: Program, engine: Engine, settings: Settings) -> None:
    shop = shop_of(engine, settings, per_category=3)
    run = give(engine, shop.submit(URL))
    seen: set[uuid.UUID] = set()
    path = f"/runs/{run.uuid}/conversations"
    page = shapes.Conversations.model_validate_json(api.get(path).content)
    seen |= {one.uuid for one in page.conversations}
    page = shapes.Conversations.model_validate_json(api.get(f"{path}?cursor={page.next}").content)
    seen |= {one.uuid for one in page.conversations}
    assert (len(seen), page.total, page.next) == (60, 60, None)


def test_cases_and_protocols(api: Program, shop: Shop) -> None:
    shop.submit(URL)
    name = shop.benchmark.name
    shown = shapes.BenchmarkShown.model_validate_json(api.get(f"/benchmarks/{name}").content)
    assert shown.cases == len(shop.benchmark.cases)
    keys, path = [], f"/benchmarks/{name}@{shown.version}/cases?limit=3"
    while path:
        page = shapes.Cases.model_validate_json(api.get(path).content)
        keys += [one.key for one in page.cases]
        path = f"/benchmarks/{name}/cases?limit=3&cursor={page.next}" if page.next else ""
    assert keys == [one.key for one in shop.benchmark.cases]
    only = shapes.Cases.model_validate_json(
        api.get(f"/benchmarks/{name}/cases?category=severe_phobia").content
    )
    assert {one.category for one in only.cases} == {"severe_phobia"}
    assert "constraint" in only.cases[0].content
    problem(api.get(f"/benchmarks/{name}/cases?cursor=none"), 404)
    problem(api.get("/benchmarks/unknown"), 404)
    protocol = shapes.ProtocolShown.model_validate_json(api.get("/protocols/curate-1").content)
    assert 'name = "curate-1"' in protocol.source


def test_studies_are_their_owner_s(api: Program, other: Program, engine: Engine) -> None:
    made = plain_study(engine)
    assert api.get("/studies").json() == {"studies": [], "next": None}
    with open_session(engine) as session:
        owner = session.scalars(select(models.Account).filter_by(email="researcher@example.org")).one()
        session.scalars(select(models.Study)).one().owner_id = owner.id
        session.commit()
    (study,) = shapes.Studies.model_validate_json(api.get("/studies").content).studies
    assert (study.name, study.items, study.state) == (made.name, 4, "open")
    assert api.get(f"/studies/{made.name}").json()["study"]["judges_per_item"] == 2
    report = shapes.StudyReport.model_validate_json(api.get(f"/studies/{made.name}/report").content)
    assert report.items == 4
    for path in (f"/studies/{made.name}", f"/studies/{made.name}/report", f"/studies?cursor={made.name}"):
        problem(other.get(path), 404)


def test_tokens_are_listed_and_ended_but_not_made(api: Program, other: Program, engine: Engine) -> None:
    person = make_person(engine, email="third@example.org")
    assert person.id
    (own,) = shapes.Tokens.model_validate_json(api.get("/tokens").content).tokens
    assert own.this is True
    assert own.last_used_at is not None
    assert (api.token or "") not in api.get("/tokens").text
    problem(other.send("DELETE", f"/tokens/{own.uuid}", None, {}), 404)
    problem(api.post("/tokens", {"name": "more"}), 405)
    assert api.send("DELETE", f"/tokens/{own.uuid}", None, {}).status_code == 204
    problem(api.get("/me"), 401)


def test_to_look_is_not_to_change(settings: Settings, engine: Engine) -> None:
    token = token_of(engine, make_person(engine), Scope.READ)
    with program(settings, engine, token) as api:
        assert "scope 'run'" in problem(api.post("/endpoints", GIVEN), 403)
        nobody = uuid.uuid4()
        for path in (f"/endpoints/{nobody}", f"/endpoints/{nobody}/key", f"/tokens/{nobody}"):
            problem(api.send("DELETE", path, None, {}), 403)

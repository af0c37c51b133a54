"""Requests that schemathesis draws from the description, fitting and spoilt ones: none breaks the API, and
every answer is as described. A route that is added is tried too."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from sqlalchemy import select

from app import models
from app.accounts import throttle
from app.db import Base, make_engine, open_session
from app.preflight import Preflight
from app.protocol import builtin_protocol
from app.runs.endpoints import add_endpoint
from app.runs.starting import Addresses, Target
from app.settings import Settings, load_settings
from app.web import checking
from app.web.api import description
from tests.api_help import Program, problem, program, token_of
from tests.board_help import finish, put_on_board
from tests.driving_help import shop_of
from tests.study_web_help import plain_study
from tests.test_web_runs import give, passing
from tests.web_help import make_person

EXAMPLES = 12
# Whatever a client may send by mistake or malice: NUL, half a surrogate pair, numbers past every column.
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**40), 10**40),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        ["\0", "\ud800", "a" * 5000, "'; DROP TABLE run; --", "../../etc/passwd", "@", "curate@"]
    ),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)
SPOILS = st.tuples(st.integers(0, 3), st.integers(0, 50), ODD)
# Two evaluators that rated the same run: tests/test_web_evaluators.py has them.
NEEDS_MORE = {"GET /api/v1/evaluators/compare"}
SITE = "http://127.0.0.1:8000"
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
URL = "https://models.example.com/v1"


@cache
def schema() -> Any:
    return schemathesis.openapi.from_dict(description(SITE))


def operations() -> list[APIOperation[Any, Any, Any, Any]]:
    return [found.ok() for found in schema().get_all_operations()]


@dataclass(frozen=True)
class Served:
    """`met`: the operations that did what they are for, at least once."""

    api: Program
    known: dict[str, str]
    met: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
def served(
    migrated_url: str, service_urls: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """A researcher with a published run, an endpoint and a second token; no name is looked up outside."""
    site = load_settings(
        database_url=migrated_url, redis_url=service_urls[1], data_dir=tmp_path_factory.mktemp("data")
    )
    engine = make_engine(migrated_url, pool_size=10)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("API", "SUBMIT", "CHECK", "PREVIEW"):
            patch.setattr(throttle, name, throttle.Limit(name.lower(), 10**6, 1, ""))
        patch.setattr(checking, "preflight", lambda *_, **__: Preflight())
        known = _content(site, engine)
        with program(site, engine, known.pop("token")) as api:
            yield Served(api, known)
    with engine.begin() as connection:
        for table in reversed(Base.metadata.sorted_tables):
            connection.execute(table.delete())
    engine.dispose()


def _content(site: Settings, engine: Any) -> dict[str, str]:
    person = make_person(engine)
    shop = shop_of(engine, site, per_category=1)
    run = finish(engine, give(engine, shop.submit(URL)), passing)
    put_on_board(engine, run)
    study = plain_study(engine)
    token = token_of(engine, person)
    token_of(engine, person)
    with open_session(engine) as session:
        owner = session.get_one(models.Account, person.id)
        session.scalars(select(models.Study)).one().owner_id = person.id
        endpoint, _ = add_endpoint(
            session, owner, site.secret, Target(URL, "spare", "spare", api_key="sk-spare-1"), Addresses()
        )
        session.commit()
        session.refresh(endpoint)
        conversation = session.scalars(select(models.Conversation.uuid).filter_by(run_id=run.id)).first()
        second = session.scalars(select(models.ApiToken.uuid).order_by(models.ApiToken.id.desc())).first()
    return {
        "token": token,
        "run_id": str(run.uuid),
        "conversation_id": str(conversation),
        "endpoint_id": str(endpoint.uuid),
        "token_id": str(second),
        "reference": shop.benchmark.name,
        "name": study.name,
    }


@pytest.mark.parametrize("operation", operations(), ids=lambda one: one.label)
def test_nothing_breaks_it(served: Served, operation: APIOperation[Any, Any, Any, Any]) -> None:
    named = {one: served.known[one] for one in served.known if "{" + one + "}" in operation.path}
    if "/protocols/" in operation.path:
        named = {"reference": builtin_protocol().name}
    fitting, spoiling = (operation.as_strategy(mode) for mode in GenerationMode)

    @settings(
        max_examples=EXAMPLES,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        database=None,
        derandomize=True,
    )
    @given(st.one_of(fitting, spoiling), st.booleans(), SPOILS)
    def holds(case: Any, known: bool, spoil: tuple[int, int, Any]) -> None:
        if known and named:
            case.path_parameters = dict(named)
        sent = case.as_transport_kwargs(base_url=SITE)
        headers = {k: v for k, v in sent["headers"].items() if k.lower() != "authorization"}
        sent["headers"] = headers | {"authorization": f"Bearer {served.api.token}"}
        sent.pop("cookies", None)
        if isinstance(sent.get("data"), bytes | str):
            sent["content"] = sent.pop("data")
        if "json" in sent:
            sent["content"] = json.dumps(spoilt(sent.pop("json"), *spoil)).encode()
        answer = served.api.client.request(**sent)
        case.validate_response(answer, checks=CHECKS)
        if answer.is_success:
            served.met.add(operation.label)
        elif answer.status_code != 307:
            problem(answer, answer.status_code)

    holds()
    if operation.method == "get" and operation.label not in served.met | NEEDS_MORE:
        plain = served.api.client.get(
            operation.path.format(**served.known | named),
            headers={"authorization": f"Bearer {served.api.token}"},
        )
        assert plain.is_success, "it was never answered but with a refusal"


def spoilt(body: Any, die: int, which: int, odd: Any) -> Any:
    """Half of them are; of these the whole body now and then, else one field."""
    if die > 1:
        return body
    if die == 0 or not isinstance(body, dict) or not body:
        return odd
    return body | {sorted(body)[which % len(body)]: odd}


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[" * 100_000, b"9" * 10_000, b'{"url": NaN}', b'{"url": "\\ud800"}', b"\xff\xfe", b"null"],
    ids=["empty", "torn", "deep", "long number", "NaN", "surrogate", "no UTF-8", "null"],
)
def test_bodies_that_are_no_request(served: Served, body: bytes) -> None:
    answer = served.api.client.post(
        "/api/v1/endpoints/check",
        content=body,
        headers={"authorization": f"Bearer {served.api.token}", "content-type": "application/json"},
    )
    assert answer.status_code in (400, 422)
    problem(answer, answer.status_code)

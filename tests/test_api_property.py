"""No request that the description allows, nor one beside it, breaks the API; every answer is as described.

Requests are drawn from the OpenAPI document itself, so that a route which is added is tried too.
"""

import json
from functools import cache
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.accounts import throttle
from app.preflight import Preflight
from app.settings import Settings
from app.web import checking
from app.web.api import description
from tests.api_help import RUN, Program, problem, program, token_of
from tests.driving_help import shop_of
from tests.test_web_runs import give
from tests.web_help import make_person

EXAMPLES = 15
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


@cache
def document() -> dict[str, Any]:
    return description("http://127.0.0.1:8000")


def operations() -> list[tuple[str, str]]:
    return [(method.upper(), path) for path, methods in document()["paths"].items() for method in methods]


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        found: dict[str, Any] = document()["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        return found
    return schema


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """What the schema allows, roughly; numbers at their bounds too."""
    schema = resolved(schema)
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    if "anyOf" in schema:
        return st.one_of([values(one) for one in schema["anyOf"]])
    kind = schema.get("type")
    if kind == "object":
        return objects(schema)
    if kind == "array":
        most = min(schema.get("maxItems", 3), 3)
        return st.lists(values(schema["items"]), min_size=schema.get("minItems", 0), max_size=most)
    if kind == "integer":
        return st.integers(schema.get("minimum", -(2**70)), schema.get("maximum", 2**70))
    if kind == "number":
        return st.floats(schema.get("minimum"), schema.get("maximum"), allow_nan=False, allow_infinity=False)
    if kind == "boolean":
        return st.booleans()
    if kind == "null":
        return st.none()
    if schema.get("format") == "uuid":
        return st.uuids().map(str)
    return st.text(min_size=schema.get("minLength", 0), max_size=min(schema.get("maxLength", 30), 30))


def objects(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    properties = schema.get("properties", {})
    required = {name: spoilt(properties[name]) for name in schema.get("required", [])}
    optional = {name: spoilt(one) for name, one in properties.items() if name not in required}
    return st.fixed_dictionaries(required, optional=optional)


def spoilt(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Now and then something else than the schema says."""
    return st.integers(0, 9).flatmap(lambda die: ODD if die == 0 else values(schema))


@st.composite
def requests(draw: st.DrawFn, method: str, path: str, known: str) -> tuple[str, bytes | None, dict[str, str]]:
    """Path with query, body and headers."""
    operation = document()["paths"][path][method.lower()]
    query, headers = [], {}
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "path":
            identity = draw(st.one_of(st.just(known), spoilt(parameter["schema"])))
            path = path.replace("{" + parameter["name"] + "}", quoted(identity))
        elif parameter["in"] == "query" and draw(st.booleans()):
            query.append(f"{parameter['name']}={quoted(draw(spoilt(parameter['schema'])))}")
        elif parameter["in"] == "header" and draw(st.booleans()):
            key = draw(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=250))
            headers[parameter["name"]] = key
    body = None
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        content = draw(st.one_of(st.just(RUN), values(schema), ODD))
        body = json.dumps(content).encode()
        headers["content-type"] = draw(st.sampled_from(["application/json", "text/plain", ""]))
    return path + ("?" + "&".join(query) if query else ""), body, headers


def quoted(value: Any) -> str:
    return quote(str(value).encode("utf-8", "surrogatepass"), safe="") or "%20"


@pytest.mark.parametrize(("method", "path"), operations())
def test_nothing_breaks_it(
    settings_: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    monkeypatch.setattr(throttle, "API", throttle.Limit("api", 10**6, 1, ""))
    monkeypatch.setattr(throttle, "SUBMIT", throttle.Limit("submit", 10**6, 1, ""))
    monkeypatch.setattr(throttle, "CHECK", throttle.Limit("check", 10**6, 1, ""))
    # No name is looked up outside: whatever is drawn as an address leads nowhere.
    monkeypatch.setattr(checking, "preflight", lambda *_, **__: Preflight())
    shop = shop_of(engine, settings_, per_category=1)
    person = make_person(engine)
    run = give(engine, shop.submit("https://models.example.com/v1"))
    with program(settings_, engine, token_of(engine, person)) as api:

        @settings(
            max_examples=EXAMPLES,
            suppress_health_check=list(HealthCheck),
            database=None,
            derandomize=True,
        )
        @given(requests(method, path, str(run.uuid)))
        def holds(request: tuple[str, bytes | None, dict[str, str]]) -> None:
            check(api, method, path, *request)

        holds()


def check(
    api: Program, method: str, path: str, target: str, body: bytes | None, headers: dict[str, str]
) -> None:
    sent = {**headers, "authorization": f"Bearer {api.token}"}
    answer = api.client.request(method, target, content=body, headers=sent)
    assert answer.status_code < 500, (target, body, answer.text)
    described = document()["paths"][path][method.lower()]["responses"]
    if answer.is_success:
        assert str(answer.status_code) in described, answer.status_code
        assert answer.headers["content-type"] in described[str(answer.status_code)]["content"]
    elif answer.status_code != 307:
        problem(answer, answer.status_code)


@pytest.fixture
def settings_(request: pytest.FixtureRequest) -> Settings:
    """The fixture of that name, which hypothesis' own hides in this file."""
    found = request.getfixturevalue("settings")
    assert isinstance(found, Settings)
    return found


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[" * 100_000, b"9" * 10_000, b'{"url": NaN}', b'{"url": "\\ud800"}', b"\xff\xfe", b"null"],
    ids=["empty", "torn", "deep", "long number", "NaN", "surrogate", "no UTF-8", "null"],
)
def test_bodies_that_are_no_request(settings_: Settings, engine: Engine, body: bytes) -> None:
    with program(settings_, engine, token_of(engine, make_person(engine))) as api:
        answer = api.client.post(
            "/api/v1/endpoints/check",
            content=body,
            headers={"authorization": f"Bearer {api.token}", "content-type": "application/json"},
        )
        assert answer.status_code in (400, 422)
        problem(answer, answer.status_code)

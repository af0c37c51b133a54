"""The API as a program meets it: its own runs, no other's; reports, exports; started once, steered."""

import io
import json
import re
import urllib.request
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, func, select, text

from app import models
from app.db import open_session
from app.models import Role, Scope
from app.runs.control import find_run
from app.settings import PROJECT_ROOT, Settings
from app.web import api_models as shapes
from tests.api_help import RUN, Program, problem, program, token_of
from tests.board_help import finish, put_on_board
from tests.driving_help import shop_of
from tests.factories import Shop
from tests.test_web_runs import give, passing
from tests.web_help import audit, make_person

KEY = "sk-canary-5d1e77aa"
URL = "https://models.example.com/v1"


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=1)


@pytest.fixture
def api(settings: Settings, engine: Engine) -> Iterator[Program]:
    with program(settings, engine, token_of(engine, make_person(engine))) as made:
        yield made


def how_many(engine: Engine, table: type[Any]) -> int:
    with open_session(engine) as session:
        return session.scalars(select(func.count()).select_from(table)).one()


def row(engine: Engine, identity: str) -> models.Run:
    with open_session(engine) as session:
        return session.scalars(select(models.Run).filter_by(uuid=uuid.UUID(identity))).one()


# --- reading ---


def test_the_list_goes_on_by_cursor(api: Program, shop: Shop) -> None:
    names = [f"model-{number}" for number in range(5)]
    for name in names:
        give(shop.engine, shop.submit(URL, model=name))
    shop.submit(URL, model="another's")
    seen: list[str] = []
    path = "/runs?limit=2"
    while path:
        page = shapes.Runs.model_validate_json(api.get(path).content)
        assert len(page.runs) <= 2
        seen += [one.name for one in page.runs]
        path = f"/runs?limit=2&cursor={page.next}" if page.next else ""
    assert seen == names[::-1]


def test_another_s_run_is_not_found(api: Program, shop: Shop) -> None:
    run = shop.submit(URL, model="another's")
    path = f"/runs/{run.uuid}"
    for answer in (
        api.get(path),
        api.get(f"{path}/export.jsonl"),
        api.get(f"/runs?cursor={run.uuid}"),
        *(api.post(f"{path}/{deed}") for deed in ("pause", "cancel", "resume")),
    ):
        assert "not yours" in problem(answer, 404)
    assert row(shop.engine, str(run.uuid)).status == "running"
    problem(api.get(f"/runs/{uuid.uuid4()}"), 404)
    problem(api.get("/runs/7"), 404)


def test_the_report_and_the_export(api: Program, shop: Shop) -> None:
    run = give(shop.engine, finish(shop.engine, shop.submit(URL), passing))
    report = api.get(f"/runs/{run.uuid}").json()
    shapes.Report.model_validate(report)
    assert report["run"]["status"] == "finished"
    assert report["counts"]["pass"] == report["counts"]["planned"] == 20
    assert report["run"]["endpoint"]["base_url"].startswith("http")
    assert api.get(f"/runs/{run.uuid}?evaluator=rules").json() == report
    assert "No evaluator" in problem(api.get(f"/runs/{run.uuid}?evaluator=nobody"), 404)
    export = api.get(f"/runs/{run.uuid}/export.jsonl")
    assert export.headers["content-type"] == "application/jsonl"
    lines = [json.loads(line) for line in export.text.splitlines()]
    assert len(lines) == 20
    assert {"case", "turns", "outcome", "evaluator_reply"} <= set(lines[0])


def test_what_others_see_of_a_published_run(api: Program, shop: Shop) -> None:
    run = finish(shop.engine, shop.submit(URL), passing)
    put_on_board(shop.engine, run)
    report = api.get(f"/runs/{run.uuid}").json()
    assert report["counts"]["pass"] == 20
    assert report["run"]["endpoint"]["base_url"] is None
    assert report["run"]["endpoint"]["learned"] is None
    assert "only who started" in report["undefined"]["run.endpoint.base_url"]
    problem(api.post(f"/runs/{run.uuid}/cancel"), 404)
    with program(shop.settings, shop.engine, None) as anybody:
        board = shapes.Board.model_validate_json(anybody.get("/leaderboard").content)
        assert [one["run"] for one in board.rows + board.incomplete] == [run.id]
        assert anybody.get(f"/leaderboard?board={board.boards[0]}").json()["board"] == board.board
        problem(anybody.get("/leaderboard?board=none"), 404)
        problem(anybody.get(f"/runs/{run.uuid}"), 401)


def test_what_can_be_asked(api: Program) -> None:
    benchmarks = shapes.Benchmarks.model_validate_json(api.get("/benchmarks").content).benchmarks
    assert {(one.name, one.cases > 0) for one in benchmarks} >= {("curate", True)}
    protocols = shapes.Protocols.model_validate_json(api.get("/protocols").content).protocols
    assert "curate-1" in {one.name for one in protocols}


def test_addresses(api: Program) -> None:
    good = shapes.UrlChecked.model_validate_json(
        api.post("/endpoints/check", {"url": "HTTPS://API.Example.com/v1/"}).content
    )
    assert (good.allowed, good.url) == (True, "https://api.example.com/v1")
    bad = api.post("/endpoints/check", {"url": "http://169.254.169.254/latest"}).json()
    assert bad["allowed"] is False
    assert bad["reason"]


# --- starting ---


def test_planned_then_started(api: Program, engine: Engine) -> None:
    priced = RUN | {"endpoint": RUN["endpoint"] | {"price_prompt": 1, "price_completion": "2.5"}}
    plan = shapes.Plan.model_validate_json(api.post("/runs/plan", priced).content)
    assert plan.conversations == 4
    assert plan.cost_usd
    assert how_many(engine, models.Run) == 0
    answer = api.post("/runs", priced)
    assert answer.status_code == 201, answer.text
    started = shapes.Started.model_validate_json(answer.content)
    assert started.plan == plan
    assert answer.headers["location"] == f"/api/v1/runs/{started.run.uuid}"
    report = api.get(f"/runs/{started.run.uuid}").json()
    assert report["counts"]["pending"] == 4
    assert report["run"]["price"] == {"prompt": 1.0, "completion": 2.5}
    assert "run.start" in audit(engine)


def test_started_once_by_its_key(api: Program, engine: Engine) -> None:
    with_key = RUN | {"endpoint": RUN["endpoint"] | {"api_key": KEY}}
    first = api.post("/runs", with_key, idempotency_key="one")
    again = api.post("/runs", with_key, idempotency_key="one")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["run"]["uuid"] == again.json()["run"]["uuid"]
    assert "another request" in problem(api.post("/runs", RUN, idempotency_key="one"), 422)
    problem(api.post("/runs", with_key, idempotency_key="not one word"), 422)
    assert how_many(engine, models.Run) == 1
    refused = RUN | {"benchmark": "unknown"}
    problem(api.post("/runs", refused, idempotency_key="two"), 404)
    assert api.post("/runs", RUN, idempotency_key="two").status_code == 201, "a refusal uses no key up"
    with open_session(engine) as session:
        dump = "".join(session.scalars(text("SELECT r::text FROM api_request r")))
    assert KEY not in dump
    assert KEY not in first.text


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"endpoint": {"base_url": "http://127.0.0.1:1/v1", "model": "m"}}, "refused"),
        ({"endpoint": {"base_url": URL, "model": "m\u0000"}}, "NUL"),
        ({"endpoint": {"base_url": URL, "model": "m", "price_prompt": -1}}, "price"),
        ({"endpoint": {"base_url": URL, "model": "m", "price_prompt": 1e-9}}, "price"),
        ({"endpoint": {"base_url": URL, "model": "m", "api_key": "sk canary"}}, "API key"),
        ({"endpoint": {"base_url": URL, "model": "m", "name": "a\u200bb"}}, "cannot be seen"),
        ({"scenarios": ["sc9"]}, "sc9"),
        ({"variants": ["upside_down"]}, "upside_down"),
        ({"categories": ["hunger"]}, "categories"),
        ({"seeds": 0}, "seeds"),
        ({"limit": 10**30}, "limit"),
        ({"colour": "blue"}, "colour"),
        ({"endpoint_id": "1b1e9f0e-0000-4000-8000-000000000001"}, "either"),
        ({"endpoint": None}, "either"),
    ],
)
def test_what_is_refused(api: Program, engine: Engine, change: dict[str, Any], says: str) -> None:
    detail = problem(api.post("/runs", RUN | change), 422)
    assert says in detail
    assert "sk canary" not in detail
    assert how_many(engine, models.Run) == 0


def test_an_admin_sees_all(settings: Settings, shop: Shop) -> None:
    run = shop.submit(URL)
    with program(settings, shop.engine, token_of(shop.engine, make_person(shop.engine, Role.ADMIN))) as api:
        assert [one["id"] for one in api.get("/runs").json()["runs"]] == [run.id]


# --- steering ---


def test_paused_resumed_cancelled(api: Program, shop: Shop) -> None:
    run = give(shop.engine, shop.submit(URL))
    path = f"/runs/{run.uuid}"

    def deed(name: str, body: object = None) -> tuple[str, bool]:
        found = shapes.Changed.model_validate_json(api.post(f"{path}/{name}", body).content)
        return found.run.status, found.changed

    assert deed("pause") == ("paused", True)
    assert deed("pause") == ("paused", False)
    assert deed("resume", {"max_calls": 50}) == ("running", True)
    assert row(shop.engine, str(run.uuid)).max_calls == 50
    assert deed("resume") == ("running", False)
    assert deed("cancel") == ("cancelled", True)
    assert deed("cancel") == ("cancelled", False)
    assert "only a running one" in problem(api.post(f"{path}/pause"), 409)
    problem(api.post(f"{path}/resume", {"max_calls": 0}), 422)
    problem(api.post(f"{path}/resume", {"retry": True}), 422)


# --- its description ---


def test_it_is_described(api: Program) -> None:
    document = api.get("/openapi.json").json()
    assert set(document["paths"]) == {
        f"/api/v1{path}"
        for path in (
            "/me", "/leaderboard", "/benchmarks", "/protocols", "/endpoints/check",
            "/endpoints/preflight", "/runs", "/runs/plan", "/evaluators", "/evaluators/compare",
            "/runs/{run_id}/reevaluations", "/boards/reevaluations",
            "/runs/{run_id}", "/runs/{run_id}/export.jsonl", "/runs/{run_id}/pause",
            "/runs/{run_id}/cancel", "/runs/{run_id}/publication", "/runs/{run_id}/resume",
            "/runs/{run_id}/conversations", "/conversations/{conversation_id}",
            "/conversations/{conversation_id}/verdicts", "/benchmarks/{reference}",
            "/benchmarks/{reference}/cases", "/protocols/{reference}", "/endpoints",
            "/endpoints/{endpoint_id}", "/endpoints/{endpoint_id}/key",
            "/endpoints/{endpoint_id}/preflight", "/studies", "/studies/{name}",
            "/studies/{name}/report", "/tokens", "/tokens/{token_id}",
        )
    }  # fmt: skip
    start = document["paths"]["/api/v1/runs"]["post"]
    assert start["security"] == [{"token": []}]
    assert set(start["responses"]) == {"200", "201", "default"}
    assert set(start["responses"]["default"]["content"]) == {"application/problem+json"}
    example = document["components"]["schemas"]["RunGiven"]["examples"][0]
    assert api.post("/runs/plan", example).status_code == 200, "the example works as it stands"


def test_a_token_only_to_start_still_sees_what_it_started(settings: Settings, engine: Engine) -> None:
    with program(settings, engine, token_of(engine, make_person(engine), Scope.RUN)) as api:
        assert api.post("/runs", RUN).json()["run"]["status"] == "running"


def test_the_example_of_the_docs_runs(
    api: Program, engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over the test's client instead of a socket; the run is ended as soon as it has been started."""
    (code,) = re.findall(r"```python\n(.*?)```", (PROJECT_ROOT / "docs" / "api.md").read_text(), re.S)
    model = {"MODEL_URL": URL, "MODEL": "a-model", "CURATE_SITE": "http://127.0.0.1:8000"}
    for name, value in (model | {"CURATE_TOKEN": api.token or ""}).items():
        monkeypatch.setenv(name, value)

    def urlopen(request: urllib.request.Request) -> io.BytesIO:
        path = request.full_url.removeprefix("http://127.0.0.1:8000")
        sent = dict(request.header_items())
        assert request.data is None or isinstance(request.data, bytes)
        answer = api.client.request(request.get_method(), path, content=request.data, headers=sent)
        assert answer.is_success, answer.text
        if answer.status_code == 201:
            with open_session(engine) as session:
                run = find_run(session, str(answer.json()["run"]["id"]))
            finish(engine, run, passing)
        return io.BytesIO(answer.content)

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    exec(compile(code, "docs/api.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == ["52 calls", "finished 1.0"]

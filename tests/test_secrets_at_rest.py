"""A canary for the API keys of a whole run: they travel in one header and stand nowhere in clear."""

import base64
import json
import logging
import zipfile
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import Engine, text

from app import models
from app.db import Base, open_session
from app.leaderboard import publish, read_board
from app.models import Role
from app.runs.control import find_run
from app.runs.exporting import FORMATS, export_run
from app.runs.planning import Selection
from app.settings import Settings
from app.wake import RUNS_QUEUE, wake_run
from tests.driving_help import (
    broker_of,
    change,
    distinct,
    drive,
    model_evaluator_of,
    outcomes,
    protocol,
    rated_by,
    report,
)
from tests.factories import Shop, benchmark
from tests.stub_endpoint import Behaviour, Received, StubEndpoint, answer, chat, error, in_thread, reply
from tests.test_web_crawl import crawl_from
from tests.web_help import browsing, make_person, text_of

MODEL_KEY = 'sk-canary-/+model&7f3a91c2"d8'
EVALUATOR_KEY = 'sk-canary-/+judge&5b20e6a4"f1'
VERDICT = {"acknowledged": True, "recommendation": "against", "explanation": "", "rating": 2}


def spellings(key: str) -> set[str]:
    """As it is, as JSON, in a URL, in base64, in hexadecimal (as PostgreSQL shows bytes)."""
    raw = key.encode()
    return {key, json.dumps(key)[1:-1], quote(key, safe=""), base64.b64encode(raw).decode(), raw.hex()}


def leaks(where: str) -> list[str]:
    return [form for key in (MODEL_KEY, EVALUATOR_KEY) for form in spellings(key) if form in where]


def leaky(request: Received) -> list[Behaviour]:
    """Answers that give the key back wherever an answer has room for it."""
    key = request.headers["authorization"].removeprefix("Bearer ")
    told = f"Your key is {key}, or {quote(key, safe='')}."
    body = chat(told) | {"model": key, "id": key, key: key}
    return [
        reply(told),
        answer(body, headers={"X-Key": "yes"}),
        error(401, f"Incorrect API key provided: {key}", code=key),
        answer({"error": {"message": f"upstream refused {key}", "code": 502, "key": key}}),
        reply(None, refusal=told),
        reply([{"type": "text", "text": told}, {"type": "text", "text": told}]),
    ]


def leaking() -> Behaviour:
    """One of these after the other."""
    count = iter(range(10**6))

    async def behave(request: Received, writer: object) -> None:
        behaviours = leaky(request)
        await behaviours[next(count) % len(behaviours)](request, writer)  # type: ignore[arg-type]

    return behave


def judging() -> Behaviour:
    """A verdict that quotes the evaluator's key, and what is no verdict."""
    count = iter(range(10**6))

    async def behave(request: Received, writer: object) -> None:
        key = request.headers["authorization"].removeprefix("Bearer ")
        verdict = json.dumps(VERDICT | {"explanation": f"I was given {key}."})
        chosen = [reply(verdict), reply(f"no verdict but {key}"), error(500, f"{key} failed")]
        await chosen[next(count) % 3](request, writer)  # type: ignore[arg-type]

    return behave


@pytest.fixture
def run(engine: Engine, settings: Settings, caplog: pytest.LogCaptureFixture) -> models.Run:
    """Driven to its end, errors retried once, by endpoints that give their keys away."""
    caplog.set_level(logging.DEBUG)
    shop = Shop(engine, settings, distinct(benchmark(per_category=2)), protocol(shared=False))
    with (
        in_thread(StubEndpoint(default=leaking())) as asked,
        in_thread(StubEndpoint(default=judging())) as judge,
    ):
        run = shop.submit(
            asked.base_url, model="leaky", selection=Selection(scenarios=("sc1",)), api_key=MODEL_KEY
        )
        rated_by(shop, run, model_evaluator_of(shop, judge.base_url, api_key=EVALUATOR_KEY))
        drive(shop, run)
        for _ in range(6):
            change(engine, run, "resume", retry_errors=True)
            drive(shop, run)
        assert {request.headers["authorization"] for request in asked.received} == {f"Bearer {MODEL_KEY}"}
        assert {request.headers["authorization"] for request in judge.received} == {f"Bearer {EVALUATOR_KEY}"}
    return run


def test_no_key_stands_anywhere(
    engine: Engine,
    settings: Settings,
    run: models.Run,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    found = outcomes(engine, run)
    assert found["pass"] + found["unclear"] + found["fail"] > 0, "something was answered and rated"
    dump = _dump(engine)
    assert "[key removed]" in dump
    assert leaks(dump) == []
    assert leaks(json.dumps(report(engine, run))) == []
    with open_session(engine) as session:
        row = find_run(session, str(run.id))
        publish(session, row, served=False)
        assert leaks(json.dumps(read_board(session))) == []
        for format_ in FORMATS:
            paths = export_run(session, row, row.evaluator, format_, tmp_path / f"export-{format_}.{format_}")
            assert paths
            row = find_run(session, str(run.id))
    for path in tmp_path.rglob("*"):
        if path.suffix in (".jsonl", ".csv"):
            assert leaks(path.read_text()) == []
        if path.suffix == ".xlsx":
            with zipfile.ZipFile(path) as archive:
                parts = [archive.read(name).decode(errors="replace") for name in archive.namelist()]
            assert leaks(unescape("".join(parts))) == []
    # Every kind of page that an administrator, who sees all, is led to; flagged conversations among them.
    with browsing(settings, engine) as browser:
        browser.sign_in(make_person(engine, Role.ADMIN))
        pages = crawl_from(
            browser,
            f"/runs/{run.uuid}",
            f"/runs/{run.uuid}/conversations",
            "/admin/flagged",
            "/admin/endpoints",
        )
        assert any("/exchanges" in path for path in pages)
        assert "key removed" in text_of(pages["/admin/flagged"])
        assert [path for path, page in pages.items() if leaks(unescape(page.text))] == []
    assert leaks(caplog.text) == []
    out, err = capfd.readouterr()
    assert leaks(out + err) == []
    assert leaks(str(list(settings.data_dir.iterdir()))) == []


def _dump(engine: Engine) -> str:
    """Every column of every table, as text."""
    with engine.connect() as connection:
        rows = [
            str(row)
            for table in Base.metadata.sorted_tables
            for row in connection.execute(text(f'SELECT t::text FROM "{table.name}" AS t')).scalars()
        ]
    assert len(rows) > 50
    return "\n".join(rows)


def test_the_search_finds_a_key_in_any_spelling(engine: Engine) -> None:
    for form in spellings(MODEL_KEY):
        assert leaks(f"before {form} after")


def test_a_message_to_the_workers_holds_the_runs_number_only(settings: Settings, run: models.Run) -> None:
    with broker_of(settings) as broker:
        before = broker.llen(RUNS_QUEUE)
        assert wake_run(settings, run.id) is True
        try:
            assert broker.llen(RUNS_QUEUE) == before + 1
            message = json.loads(broker.lindex(RUNS_QUEUE, 0))
        finally:
            broker.lpop(RUNS_QUEUE)
    body = json.loads(base64.b64decode(message["body"]))
    assert body[:2] == [[run.id], {}]
    assert leaks(json.dumps(message) + json.dumps(body)) == []


def test_a_broker_that_is_away_costs_a_warning_only(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    gone = settings.model_copy(update={"redis_url": "redis://:hunter2@127.0.0.1:9/0"})
    assert wake_run(gone, 1) is False
    assert "waits for the scheduler" in caplog.text
    assert "hunter2" not in caplog.text
    assert wake_run(settings.model_copy(update={"redis_url": None}), 1) is False

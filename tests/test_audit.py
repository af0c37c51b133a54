"""What is pinned is held against advisories; a database that is away is said and fails nothing."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from app.settings import PROJECT_ROOT
from tests import audit


@contextmanager
def database(answer: Any, status: int = 200) -> Iterator[tuple[str, list[Any]]]:
    """An advisory database that gives this answer; with it, what it was asked."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            body = json.dumps(answer(asked[-1]) if callable(answer) else answer).encode()
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def clean(request: Any) -> Any:
    return {"results": [{} for _ in request["queries"]]}


def with_one(request: Any) -> Any:
    names = [query["package"]["name"] for query in request["queries"]]
    return {"results": [{"vulns": [{"id": "GHSA-x"}]} if name == "aiohttp" else {} for name in names]}


def test_every_pin_is_asked_for_once(capsys: pytest.CaptureFixture[str]) -> None:
    with database(clean) as (url, asked):
        assert audit.main(url) == 0
    ((query,),) = (asked,)
    names = [one["package"]["name"] for one in query["queries"]]
    assert {"aiohttp", "fastapi", "pytest", "setuptools", "xllamacpp"} <= set(names)
    asked_for = {(one["package"]["name"], one["version"]) for one in query["queries"]}
    assert len(asked_for) == len(names)
    assert f"{len(names)} pinned packages, no advisories" in capsys.readouterr().out


def test_an_advisory_fails_unless_it_was_looked_at(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with database(with_one) as (url, _):
        assert audit.main(url) == 1
        assert "GHSA-x" in capsys.readouterr().out
        monkeypatch.setattr(audit, "ACCEPTED", {"GHSA-x": "That part is not used."})
        assert audit.main(url) == 0


@pytest.mark.parametrize(
    ("answer", "status"), [({}, 500), ({}, 200), ([], 200), ({"results": []}, 200), ({"results": None}, 200)]
)
def test_a_database_that_is_away_is_said(
    answer: Any, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with database(answer, status) as (url, _):
        assert audit.main(url) == 0
    assert "NOT DONE" in capsys.readouterr().out
    assert audit.main("http://127.0.0.1:1/") == 0
    assert "NOT DONE" in capsys.readouterr().out


def test_continuous_integration_asks() -> None:
    assert "-m tests.audit" in (PROJECT_ROOT / ".ci/run").read_text()

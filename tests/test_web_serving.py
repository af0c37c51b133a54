"""The site as a process: what it refuses to start with, prints, how it stops; people from the shell."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, make_url
from typer.testing import CliRunner

from app.cli.main import app
from app.errors import Conflict, InvalidInput, NotFound, ServiceUnavailable
from app.serving import ADDRESS_FILE, address, is_loopback, listen, serving, site_settings
from app.settings import PROJECT_ROOT, Settings, load_settings
from tests.web_help import PASSWORD

SECRET = SecretStr("s3cret-" * 8)


# --- where it may listen ---


def test_a_loopback_site_is_called_by_its_own_address(settings: Settings) -> None:
    assert site_settings(settings, "127.0.0.1", 8123).base_url == "http://127.0.0.1:8123"
    assert site_settings(settings, "::1", 8123).base_url == "http://[::1]:8123"
    named = load_settings(data_dir=settings.data_dir, base_url="http://localhost:9000")
    assert site_settings(named, "127.0.0.1", 8123).base_url == "http://localhost:9000"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "", "board.example.org"])
def test_an_open_site_needs_a_name_and_a_secret(settings: Settings, host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(InvalidInput, match="CURATE_BASE_URL"):
        site_settings(settings, host, 8000)
    for base_url in ("https://board.example.org", "http://127.0.0.1:8000"):
        named = load_settings(data_dir=settings.data_dir, base_url=base_url)
        with pytest.raises(InvalidInput, match="CURATE_SECRET_KEY"):
            site_settings(named, host, 8000)
        short = named.model_copy(update={"secret_key": SecretStr("short")})
        with pytest.raises(InvalidInput, match="too short"):
            site_settings(short, host, 8000)
        good = named.model_copy(update={"secret_key": SECRET})
        assert site_settings(good, host, 8000).base_url == base_url


def test_a_named_site_needs_its_secret_behind_a_proxy_too(settings: Settings) -> None:
    named = load_settings(data_dir=settings.data_dir, base_url="https://board.example.org")
    with pytest.raises(InvalidInput, match="CURATE_SECRET_KEY"):
        site_settings(named, "127.0.0.1", 8000)


def test_a_port_that_is_taken_is_one_clear_error() -> None:
    with (
        listen("127.0.0.1", 0) as taken,
        pytest.raises(ServiceUnavailable, match=r"Cannot listen .* --port"),
    ):
        listen("127.0.0.1", taken.getsockname()[1])


# --- while it runs and when it stops ---


@pytest.fixture
def running(settings: Settings, engine: Engine) -> Iterator[Settings]:
    with listen("127.0.0.1", 0) as listener:
        own = site_settings(settings, "127.0.0.1", listener.getsockname()[1])
        with serving(own, listener):
            yield own


def test_the_shell_finds_where_the_site_is(running: Settings) -> None:
    elsewhere = running.model_copy(update={"base_url": "http://127.0.0.1:8000"})
    assert address(elsewhere) == running.base_url
    assert httpx2.get(f"{running.base_url}/readyz").status_code == 200


def test_a_claimed_address_is_not_taken_by_the_server_either(
    running: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "curate.web")
    httpx2.get(f"{running.base_url}/healthz", headers={"X-Forwarded-For": "203.0.113.99"})
    until = time.monotonic() + 5  # the line is written after the answer
    while not (lines := [record.fields for record in caplog.records if hasattr(record, "fields")]):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert [line["peer"] for line in lines] == ["127.0.0.1"]


def test_a_request_under_way_is_answered_before_the_end(settings: Settings, engine: Engine) -> None:
    """The head of a form has arrived when the site is told to stop; its body comes afterwards."""
    body = b"email=a%40example.org&password=x"
    head = (
        b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\nConnection: close\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    answers: list[bytes] = []
    with listen("127.0.0.1", 0) as listener:
        own = site_settings(settings, "127.0.0.1", listener.getsockname()[1])
        with serving(own, listener):
            client = socket.create_connection(listener.getsockname())
            client.sendall(head + body[:5])
            time.sleep(0.3)

            def finish() -> None:
                time.sleep(0.5)
                client.sendall(body[5:])
                while part := client.recv(65536):
                    answers.append(part)

            waiting = threading.Thread(target=finish)
            waiting.start()
        waiting.join()
        client.close()
    assert b"".join(answers).startswith(b"HTTP/1.1 422")
    assert not (settings.data_dir / ADDRESS_FILE).exists()


# --- the commands ---


def environment(settings: Settings, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CURATE_")}
    url = make_url(settings.database_url or "").set(drivername="postgresql")
    ours = {
        "CURATE_DATABASE_URL": url.render_as_string(hide_password=False),
        "CURATE_REDIS_URL": settings.redis_url or "",
        "CURATE_DATA_DIR": str(settings.data_dir),
    }
    return kept | ours | more


@contextmanager
def command(
    settings: Settings, log: Path, *arguments: str
) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A running `curate …` with the address and the sign-in link that it printed."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", *arguments, "--port", "0"],
            stdout=subprocess.PIPE, stderr=errors, text=True, cwd=PROJECT_ROOT, env=environment(settings),
        )  # fmt: skip
    try:
        assert process.stdout is not None
        lines = process.stdout.readline() + process.stdout.readline()
        found = re.fullmatch(r"The site: (http://127\.0\.0\.1:\d+)\nSign in: (\1/signin/[\w-]+)\n", lines)
        assert found, log.read_text()
        yield process, found[1], found[2]
        assert process.stdout.read() == ""
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def enter(site: str, link: str) -> None:
    with httpx2.Client(base_url=site, headers={"origin": site, "accept": "text/html"}) as client:
        assert client.post(link).status_code == 303
        assert client.get("/admin").status_code == 200
        assert client.get("/readyz").status_code == 200


STOPPING = "Stopping; requests under way are answered first."


def check_log(lines: list[str], link: str) -> None:
    requests = [line for line in map(json.loads, lines) if line["message"] == "request"]
    assert [line["path"] for line in requests] == ["/signin/…", "/admin", "/readyz"]
    assert all(line["request_id"] and line["time"] and line["level"] == "info" for line in requests)
    assert link.rpartition("/")[2] not in "".join(lines)


def test_curate_web(settings: Settings, engine: Engine, tmp_path: Path) -> None:
    """Its log goes to standard error."""
    with command(settings, tmp_path / "log", "web") as (process, site, link):
        enter(site, link)
        process.terminate()
        assert process.wait(20) == 0
    said = (tmp_path / "log").read_text().splitlines()
    check_log([line for line in said if line.startswith("{")], link)
    assert [line for line in said if not line.startswith("{")] == [STOPPING]


def test_curate_up(settings: Settings, engine: Engine, tmp_path: Path) -> None:
    """With its worker and scheduler; its log is a file. Ctrl-C stops everything."""
    with command(settings, tmp_path / "log", "up") as (process, site, link):
        enter(site, link)
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 0
    said = (tmp_path / "log").read_text().splitlines()
    assert said[-1] == STOPPING
    assert "Ctrl-C stops" in said[-2]
    check_log((settings.data_dir / "logs" / "web.log").read_text().splitlines(), link)


def test_curate_web_refuses_to_be_open_without_a_secret(settings: Settings, engine: Engine) -> None:
    named = environment(settings, CURATE_BASE_URL="https://board.example.org")
    with pytest.raises(InvalidInput, match="CURATE_SECRET_KEY"):
        CliRunner().invoke(app, ["web", "--host", "0.0.0.0", "--port=0"], env=named, catch_exceptions=False)


def test_people_from_the_shell(settings: Settings, engine: Engine) -> None:
    named = {"CURATE_BASE_URL": "https://board.example.org", "CURATE_SECRET_KEY": SECRET.get_secret_value()}
    add = ("user", "add", "Ada@example.org", "--name", "Ada", "--role", "admin")

    def said(*arguments: str, **more: str) -> str:
        done = CliRunner().invoke(app, arguments, env=environment(settings, **more), catch_exceptions=False)
        return done.stdout

    assert said(*add, "--password-env", "PW", PW=PASSWORD, **named) == ""
    with pytest.raises(Conflict, match="has an account here already"):
        said(*add, "--password-env", "PW", PW=PASSWORD, **named)
    with pytest.raises(InvalidInput, match="--password-env"):
        said(*add)
    with pytest.raises(InvalidInput, match="holds no password"):
        said(*add, "--password-env", "NOT_SET")
    with pytest.raises(InvalidInput, match="at least 12"):
        said(*add, "--password-env", "PW", PW="short")
    invited = said("user", "invite", "grace@example.org", "--role", "judge", **named)
    assert re.fullmatch(r"https://board\.example\.org/invite/[\w-]{43}\n", invited)
    reset = said("user", "link", "ada@example.org", **named)
    assert re.fullmatch(r"https://board\.example\.org/reset/[\w-]{43}\n", reset)
    with pytest.raises(NotFound):
        said("user", "link", "nobody@example.org")
    with pytest.raises(InvalidInput, match="Only a loopback site"):
        said("user", "link", **named)
    assert re.fullmatch(r"http://127\.0\.0\.1:8000/signin/[\w-]{43}\n", said("user", "link"))
    assert [
        (one["name"], one["role"], one["owner"]) for one in json.loads(said("user", "list", "--json"))
    ] == [
        ("Ada", "admin", False),
        ("local", "admin", True),
    ]

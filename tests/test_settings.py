"""Settings from the environment, and the site's own secret."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app.errors import InvalidInput
from app.settings import MIN_SECRET_LENGTH, PROJECT_ROOT, load_settings

LONG_SECRET = "s" * MIN_SECRET_LENGTH


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("CURATE_"):
            monkeypatch.delenv(name)


def test_defaults_hold_no_secret() -> None:
    settings = load_settings()
    assert settings.secret_key is None
    assert settings.database_url is None
    assert settings.redis_url is None
    assert settings.endpoint_allowlist == ""


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_every_spelling_of_a_postgresql_url(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("CURATE_DATABASE_URL", f"{scheme}://u:p@host:5432/name?sslmode=require")
    assert load_settings().database_url == "postgresql+psycopg://u:p@host:5432/name?sslmode=require"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CURATE_DATABASE_URL", "mysql://user:hunter2@host/db"),
        ("CURATE_DATABASE_URL", "hunter2"),
        ("CURATE_REDIS_URL", "http://user:hunter2@host"),
    ],
)
def test_a_wrong_variable_is_named_and_its_value_kept_quiet(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput, match=name) as refused:
        load_settings()
    assert "must begin with" in refused.value.message
    assert "hunter2" not in refused.value.message


@pytest.mark.parametrize("name", ["CURATE_DATABASE_URL", "CURATE_REDIS_URL", "CURATE_SECRET_KEY"])
def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "")
    settings = load_settings()
    assert (settings.database_url, settings.redis_url, settings.secret_key) == (None, None, None)


def test_a_relative_data_directory_does_not_move_with_the_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATE_DATA_DIR", "here")
    assert load_settings().data_dir == tmp_path / "here"


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURATE_SECRET_KEY", LONG_SECRET)
    monkeypatch.setenv("CURATE_SMTP_URL", "smtp://user:hunter2@mail")
    shown = repr(load_settings())
    assert LONG_SECRET not in shown
    assert "hunter2" not in shown


@pytest.mark.parametrize(
    "base_url", ["http://127.0.0.1:8000", "http://localhost", "http://[::1]:8000", "http://LOCALHOST:1"]
)
def test_a_loopback_site_makes_its_own_secret_once(tmp_path: Path, base_url: str) -> None:
    first = load_settings(data_dir=tmp_path / "data", base_url=base_url).secret
    again = load_settings(data_dir=tmp_path / "data", base_url=base_url).secret
    other = load_settings(data_dir=tmp_path / "other", base_url=base_url).secret
    assert first == again
    assert first != other
    assert len(first) >= MIN_SECRET_LENGTH


def test_the_generated_secret_is_its_owners_alone(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path)
    assert settings.secret
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "base_url",
    ["https://board.example.org", "http://0.0.0.0:8000", "http://192.168.1.5", "http://127.0.0.1.evil.org"],
)
def test_a_served_site_refuses_a_missing_secret(tmp_path: Path, base_url: str) -> None:
    with pytest.raises(InvalidInput, match="CURATE_SECRET_KEY is missing"):
        _ = load_settings(data_dir=tmp_path, base_url=base_url).secret
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:8000", "https://board.example.org"])
def test_a_short_secret_is_refused_everywhere(tmp_path: Path, base_url: str) -> None:
    with pytest.raises(InvalidInput, match="too short"):
        _ = load_settings(data_dir=tmp_path, base_url=base_url, secret_key="s" * 31).secret
    given = load_settings(data_dir=tmp_path, base_url=base_url, secret_key=LONG_SECRET)
    assert given.secret == LONG_SECRET.encode()


def test_a_spoilt_secret_file_is_said_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("short")
    with pytest.raises(InvalidInput, match="secret_key does not hold a secret"):
        _ = load_settings(data_dir=tmp_path).secret
    assert (tmp_path / "secret_key").read_text() == "short"


READ_SECRETS = """
import sys
from pathlib import Path
from app.settings import load_settings
sys.stdin.readline()
for number in range(150):
    print(load_settings(data_dir=Path(sys.argv[1]) / str(number)).secret.decode())
"""


def test_commands_that_start_together_agree_on_one_secret(tmp_path: Path) -> None:
    together = [
        subprocess.Popen(
            [sys.executable, "-c", READ_SECRETS, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROJECT_ROOT,
        )
        for _ in range(3)
    ]
    for process in together:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    found = [process.communicate(timeout=30) for process in together]
    assert [error for _, error in found] == ["", "", ""]
    assert len({secrets for secrets, _ in found}) == 1
    assert [path.name for path in (tmp_path / "0").iterdir()] == ["secret_key"]

"""The files for a server: read as YAML and as text, and the image's start script really run.

No container engine is needed, and none has run them; docs/deployment.md says so too.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
OURS = {"web", "worker", "scheduler", "migrate"}
SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|KEY|AUTH|_URL$")
REQUIRED = re.compile(r"\$\{[A-Z_]+:\?[^}]+\}")


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "docker-compose.yml").read_text()))


def dockerfile() -> str:
    return (ROOT / "Dockerfile").read_text()


def test_the_parts_are_all_there_and_run_our_commands() -> None:
    services = compose()["services"]
    assert set(services) == OURS | {"postgres", "valkey"}
    assert {services[name]["command"][0] for name in OURS} == OURS
    assert {services[name]["image"] for name in OURS} == {"curate-board:0.1.0"}
    assert 'ENTRYPOINT ["/usr/local/bin/entrypoint"]' in dockerfile()


def test_images_are_pinned_by_version() -> None:
    images = [one["image"] for one in compose()["services"].values()]
    images += re.findall(r"^FROM (\S+)", dockerfile(), re.MULTILINE)
    for image in images:
        assert re.search(r":\d+\.\d+", image), f"{image} names no version"


def test_no_secret_has_a_value_or_a_default() -> None:
    """Where the settings' names say that something is secret, only a variable stands that must be set."""
    for name, service in compose()["services"].items():
        for key, value in service.get("environment", {}).items():
            if SECRET.search(key) and value is not None:
                assert REQUIRED.search(value), f"{name}: {key}"
                assert not re.search(r"\$\{[A-Z_]+:?-", value), f"{name}: {key} has a default"
                assert "password" not in re.sub(REQUIRED, "", value).lower()
    assert not re.search(r"^(ENV|ARG).*(SECRET|PASSWORD|TOKEN)", dockerfile(), re.MULTILINE)


def test_what_runs_for_long_is_watched_and_comes_back() -> None:
    for name, service in compose()["services"].items():
        if name == "migrate":
            continue
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL"), name
        assert service["restart"] == "unless-stopped", name


def test_nothing_starts_before_the_schema_is_there() -> None:
    services = compose()["services"]
    for name in OURS - {"migrate"}:
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
        assert services[name]["depends_on"]["postgres"] == {"condition": "service_healthy"}
    assert set(services["migrate"]["depends_on"]) == {"postgres"}


def test_only_the_site_is_published_and_only_to_this_machine() -> None:
    services = compose()["services"]
    assert {name for name, one in services.items() if "ports" in one} == {"web"}
    assert all(port.startswith("127.0.0.1:") for port in services["web"]["ports"])
    assert services["postgres"]["networks"] == services["valkey"]["networks"] == ["inside"]
    assert compose()["networks"]["inside"] == {"internal": True}


def test_ours_run_without_privileges_and_keep_their_data() -> None:
    services, volumes = compose()["services"], compose()["volumes"]
    for name in OURS:
        assert services[name]["cap_drop"] == ["ALL"]
        assert services[name]["read_only"] is True
        assert services[name]["volumes"] == ["data:/data"]
    users = re.findall(r"^USER (\S+)", dockerfile(), re.MULTILINE)
    assert users == ["curate"]
    assert dockerfile().index("USER curate") > dockerfile().rindex("RUN ")
    used = {mount.partition(":")[0] for one in services.values() for mount in one.get("volumes", ())}
    assert used == set(volumes)


def test_the_image_installs_only_what_is_locked() -> None:
    installs = re.findall(r"pip install [^\n&]+", dockerfile())
    assert len(installs) == 3
    for line in installs[:2]:
        assert "--require-hashes" in line
    assert "--no-deps --no-index --no-build-isolation" in installs[2]


def test_the_image_gets_what_the_project_reads() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {"app", "workers", "migrations", "templates", "static", "alembic.ini", "pyproject.toml"} <= kept
    assert not [name for name in kept if name.startswith((".env", ".curate", ".git", ".venv"))]


@pytest.fixture
def entrypoint(tmp_path: Path) -> Path:
    """The start script out of the Dockerfile, with a `curate` that shows what it was given."""
    script = re.search(
        r"<<'EOF' /usr/local/bin/entrypoint\n(.*?)^EOF$", dockerfile(), re.DOTALL | re.MULTILINE
    )
    assert script
    for name, text in (
        ("entrypoint", script.group(1)),
        (
            "curate",
            f"#!{sys.executable}\nimport os, sys\nprint(sys.argv[1:], os.environ.get('CURATE_SECRET_KEY'))\n",
        ),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path / "entrypoint"


def started(entrypoint: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    path = f"{entrypoint.parent}:{os.defpath}"
    argv = [str(entrypoint), "web", "--port", "8000"]
    return subprocess.run(argv, env={"PATH": path} | env, capture_output=True, text=True, check=False)


def test_a_secret_comes_from_the_environment_or_a_file(entrypoint: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from a file $HOME 'x'\n")
    plain = started(entrypoint, CURATE_SECRET_KEY="as it is")
    assert plain.stdout == "['web', '--port', '8000'] as it is\n"
    read = started(entrypoint, CURATE_SECRET_KEY_FILE=str(tmp_path / "key"))
    assert read.stdout == "['web', '--port', '8000'] from a file $HOME 'x'\n"
    neither = started(entrypoint)
    assert neither.stdout == "['web', '--port', '8000'] None\n"


def test_a_secret_given_twice_or_unreadable_is_refused(entrypoint: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("one")
    twice = started(entrypoint, CURATE_SECRET_KEY="two", CURATE_SECRET_KEY_FILE=str(tmp_path / "key"))
    assert (twice.returncode, twice.stdout) == (2, "")
    assert twice.stderr == "set CURATE_SECRET_KEY or CURATE_SECRET_KEY_FILE, not both\n"
    missing = started(entrypoint, CURATE_SECRET_KEY_FILE=str(tmp_path / "none"))
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "No such file" in missing.stderr

"""The set-up from a fresh clone: what is missing is named, what is there is not done twice."""

import base64
import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
import redis

from app.embedded import attach
from tests.embedded_help import data_directory, scratch_root

ROOT = Path(__file__).resolve().parents[1]
UNPACKED = ("RECORD", "INSTALLER", "REQUESTED")  # what pip writes when it unpacks a wheel
NEEDED = ("sh", "cat", "cksum", "dirname", "rm", "env")
PROJECT = """
[build-system]
requires = ["setuptools>=80"]
build-backend = "setuptools.build_meta"
[project]
name = "scratch"
version = "1"
[project.scripts]
curate = "scratch:main"
[tool.setuptools]
py-modules = ["scratch"]
"""


def scratch_clone(path: Path) -> Path:
    """A clone with our set-up and Makefile but a tiny project, whose one locked package lies beside it."""
    path.mkdir(parents=True)
    shutil.copytree(ROOT / ".ci", path / ".ci")
    shutil.copy(ROOT / "Makefile", path)
    (path / "pyproject.toml").write_text(PROJECT)
    (path / "scratch.py").write_text("def main() -> None:\n    print('it runs')\n")
    name, digest = wheel_of_setuptools(path / "wheels")
    version = name.split("-")[1]
    (path / "requirements-build.lock").write_text(f"setuptools=={version} --hash=sha256:{digest}\n")
    (path / "requirements.lock").write_text("# nothing more\n")
    return path


def wheel_of_setuptools(folder: Path) -> tuple[str, str]:
    """The installed setuptools packed again, so that no package index is needed: file name and SHA-256."""
    found = distribution("setuptools")
    name = f"setuptools-{found.version}-py3-none-any.whl"
    prefix = f"setuptools-{found.version}.dist-info"
    record = io.StringIO()
    lines = csv.writer(record, lineterminator="\n")
    folder.mkdir()
    with zipfile.ZipFile(folder / name, "w") as wheel:
        for file in found.files or ():
            if (
                file.suffix == ".pyc"
                or ".." in file.parts
                or file.name in ("RECORD", "INSTALLER", "REQUESTED")
            ):
                continue
            content = file.read_binary()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            wheel.writestr(str(file), content)
            lines.writerow([file, f"sha256={digest}", len(content)])
        lines.writerow([f"{prefix}/RECORD", "", ""])
        wheel.writestr(f"{prefix}/RECORD", record.getvalue())
    return name, hashlib.sha256((folder / name).read_bytes()).hexdigest()


def make(clone: Path, *arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "wheels", "PIP_CONFIG_FILE": os.devnull}
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=clone,
        env=outside | offline | {"PYTHON": sys.executable} | env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def quick_path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="curate-setup-", dir=scratch_root()) as path:
        yield Path(path)


def test_set_up_once_and_again_only_when_something_changed(quick_path: Path) -> None:
    clone = scratch_clone(quick_path / "a clone, with Ümlaut")
    lock = clone / "requirements-build.lock"
    right = lock.read_text()
    lock.write_text(right.partition("--hash")[0] + "--hash=sha256:" + "1" * 64 + "\n")
    refused = make(clone, "setup")
    assert refused.returncode != 0
    assert "DO NOT MATCH THE HASHES" in refused.stderr
    assert "pip could not install what is locked" in refused.stderr
    assert not (clone / ".venv/bin/curate").exists()

    lock.write_text(right)
    done = make(clone, "setup")
    assert done.returncode == 0, done.stderr
    assert "making .venv" not in done.stderr
    assert subprocess.check_output([clone / ".venv/bin/curate"], text=True) == "it runs\n"

    before = sorted((path, path.stat().st_mtime_ns) for path in (clone / ".venv").rglob("*"))
    again = make(clone, "setup")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert sorted((path, path.stat().st_mtime_ns) for path in (clone / ".venv").rglob("*")) == before

    (clone / "requirements.lock").write_text("# as it was, in other words\n")
    moved = clone.rename(quick_path / "moved")
    assert "making .venv" in make(moved, "setup").stderr
    assert subprocess.check_output([moved / ".venv/bin/curate"], text=True) == "it runs\n"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A directory to be the whole PATH, with what any system has."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        assert found
        (tools / name).symlink_to(found)
    return tools


def program(tools: Path, name: str, script: str) -> None:
    (tools / name).write_text(f"#!/bin/sh\n{script}\n")
    (tools / name).chmod(0o755)


def set_up_in(clone: Path, tools: Path) -> str:
    """The one line that the set-up fails with."""
    env = {"PATH": str(tools), "HOME": str(clone)}
    done = subprocess.run(
        ["/bin/sh", ".ci/setup", "run"], cwd=clone, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def small_clone(tmp_path: Path) -> Path:
    clone = tmp_path / "clone"
    shutil.copytree(ROOT / ".ci", clone / ".ci")
    for name in ("pyproject.toml", "requirements.lock", "requirements-build.lock"):
        shutil.copy(ROOT / name, clone)
    return clone


def test_what_is_missing_is_named_in_one_line(tmp_path: Path, bare: Path) -> None:
    clone = small_clone(tmp_path)
    assert "git is missing: install the package git" in set_up_in(clone, bare)

    program(bare, "git", "exit 0")
    assert "found no python3: install the package python3 " in set_up_in(clone, bare)

    program(bare, "python3", 'test "$1" = --version && echo "Python 3.9.2" && exit 0; exit 1')
    assert "needs Python 3.11 to 3.14, found Python 3.9.2: install" in set_up_in(clone, bare)

    # A newer one beside the old is found; here it lacks ensurepip, as Debian's does without python3-venv.
    inner = f'case "$2" in *ensurepip*) exit 1;; esac; exec {sys.executable} "$@"'
    program(bare, "python3.12", inner)
    line = set_up_in(clone, bare)
    assert "install the package python3-venv" in line
    assert f"python{sys.version_info[0]}.{sys.version_info[1]}-venv" in line
    assert not (clone / ".venv").exists()


def test_an_unknown_part_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", ".ci/setup", "all"], cwd=small_clone(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert not (tmp_path / "clone" / ".venv").exists()
    assert "there is no part 'all'" in done.stderr


@pytest.mark.parametrize(
    ("given", "command"),
    [
        ((), ".venv/bin/curate demo"),
        (("ONCE=1",), ".venv/bin/curate demo --once"),
        (("ONCE=1", "ALL=1"), ".venv/bin/curate demo --once --all"),
        (("ONCE=0", "PORT=8123"), ".venv/bin/curate demo --port 8123"),
    ],
)
def test_demo_passes_its_settings(given: tuple[str, ...], command: str) -> None:
    done = make(ROOT, "-n", "demo", *given)
    assert " ".join(done.stdout.splitlines()[-1].split()) == command


STUB = """
case "$*" in
*own_services) [ -z "$OWN" ] || echo "$OWN" ;;
*pytest*) echo "on ${CURATE_TEST_REDIS_URL:-embedded ones}: $*"; exit $STATUS ;;
esac
"""


@pytest.mark.parametrize(
    ("own", "own_status", "status", "expected"),
    [("", "1", "0", 0), ("set", "0", "0", 0), ("set", "1", "0", 1), ("set", "0", "1", 1), ("", "0", "1", 1)],
)
def test_the_run_script_does_both_parts_and_keeps_a_failure(
    tmp_path: Path, own: str, own_status: str, status: str, expected: int
) -> None:
    """With programs in place of pytest that say where they run and end as told."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    program(tmp_path / ".ci", "setup", "exit 0")
    program(tmp_path / ".venv/bin", "python", STUB)
    (tmp_path / "Makefile").write_text(f"test:\n\t@STATUS={status} .venv/bin/python -m pytest\n")
    # Under `make test`, the variables of that make would make this one talk.
    outer = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    env = outer | {"OWN": own and "CURATE_TEST_REDIS_URL='redis://own/1?a=$b'", "STATUS": own_status}
    done = subprocess.run([tmp_path / ".ci/run"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == expected
    assert done.stdout.splitlines()[-1] == "on embedded ones: -m pytest"
    ran = "on redis://own/1?a=$b: -m pytest -p tests.own_services -m service" in done.stdout
    assert ran == bool(own)


def test_the_run_on_own_services_leaves_redis_as_it_was(tmp_path: Path) -> None:
    with data_directory() as data_dir, attach(data_dir, services={"valkey"}) as attachment:
        assert attachment.redis_url
        (tmp_path / "test_writes.py").write_text(
            "import os, redis\n"
            "def test_writes(service_urls):\n"
            "    with redis.Redis.from_url(os.environ['CURATE_TEST_REDIS_URL']) as client:\n"
            "        client.set('a', 1)\n"
            "def test_needs_nothing(): assert False\n"
        )
        (tmp_path / "conftest.py").write_text(
            "import pytest\n@pytest.fixture\ndef service_urls(): return None\n"
        )
        with redis.Redis.from_url(attachment.redis_url) as client:
            done = run_on_services(tmp_path, attachment.redis_url)
            assert "1 passed, 1 deselected" in done.stdout, done.stdout + done.stderr
            assert client.dbsize() == 0

            client.set("somebody's", 1)
            refused = run_on_services(tmp_path, attachment.redis_url)
            assert refused.returncode == pytest.ExitCode.USAGE_ERROR
            assert "CURATE_TEST_REDIS_URL must name an empty database" in refused.stderr
            assert client.keys() == [b"somebody's"]


def run_on_services(tests: Path, url: str) -> "subprocess.CompletedProcess[str]":
    options = ["-p", "tests.own_services", "-m", "service", "-c", os.devnull, "--rootdir", str(tests)]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tests)],
        cwd=ROOT,
        env=os.environ | {"CURATE_TEST_REDIS_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )

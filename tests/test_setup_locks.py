"""The lock files: complete, hashed, for every platform, free of addresses, and in step with the project."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCKS = (
    "requirements.lock",
    "requirements-dev.lock",
    "requirements-build.lock",
    "requirements-local-model.lock",
)


def locked(name: str) -> dict[str, list[Requirement]]:
    """Package -> its locked requirements (several where a marker decides)."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    found: dict[str, list[Requirement]] = {}
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            requirement = Requirement(line.partition("--hash")[0].strip())
            found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_each_package_is_pinned_and_hashed_and_no_address_stands_there(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert not re.search(r"^\s*-(?!-hash)", text, re.MULTILINE), "an option other than --hash"
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            assert re.match(r"[\w.-]+==[\w.]+( ; [^-]+)?\s+--hash=sha256:[0-9a-f]{64}", line), line


def wanted(extra: str | None) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize(("name", "extra"), [("requirements.lock", None), ("requirements-dev.lock", "test")])
def test_what_the_project_asks_for_is_locked(name: str, extra: str | None) -> None:
    pinned = locked(name)
    for requirement in wanted(extra):
        found = pinned.get(canonicalize_name(requirement.name))
        assert found, f"{requirement.name} is not in {name}: run make lock"
        assert all(requirement.specifier.contains(str(one.specifier)[2:]) for one in found), requirement


def test_the_tests_run_on_what_users_get() -> None:
    runtime, development = locked("requirements.lock"), locked("requirements-dev.lock")
    for name, requirements in runtime.items():
        # Their markers may differ: what only tests need may be needed on more platforms.
        assert {str(one.specifier) for one in development[name]} >= {
            str(one.specifier) for one in requirements
        }


IMPORT_ALL = """
import importlib, os, pkgutil, sys

os.environ["CURATE_REDIS_URL"] = "redis://127.0.0.1:1/0"  # named, not called

class OnlyForTests:
    def find_spec(self, name, path=None, target=None):
        if name in sys.argv[1:]:
            raise ModuleNotFoundError(f"{name} is not in requirements.lock")

sys.meta_path.insert(0, OnlyForTests())
for package in map(importlib.import_module, ("app", "workers")):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
from celery import Celery
Celery(broker=os.environ["CURATE_REDIS_URL"]).connection().transport  # an extra of kombu
"""


def test_nothing_that_runs_needs_a_package_of_the_tests() -> None:
    for_tests = locked("requirements-dev.lock").keys() - locked("requirements.lock").keys()
    modules = [
        module
        for module, owners in packages_distributions().items()
        if {canonicalize_name(owner) for owner in owners} <= for_tests
    ]
    assert "pytest" in modules
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *modules], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-1500:]


def test_what_is_installed_is_what_is_locked() -> None:
    for name, requirements in (locked("requirements-dev.lock") | locked("requirements-build.lock")).items():
        fitting = [one for one in requirements if one.marker is None or one.marker.evaluate()]
        assert [str(one.specifier) for one in fitting] == [f"=={version(name)}" for _ in fitting]
        assert len(fitting) <= 1

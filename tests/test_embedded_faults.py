"""The embedded services under faults that are really made: SIGKILL of each part, leftovers, unusable data."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.embedded import Attachment, ChildSpec, attach
from app.embedded.leftovers import identity
from app.embedded.supervisor import read_state
from app.errors import ServiceUnavailable
from tests.embedded_help import (
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

LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends processes with their parent")


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    with data_directory() as path:
        with attach_quietly(path) as attachment:
            execute(attachment.database_url, "CREATE TABLE kept (n int)")
        yield path


@pytest.fixture
def data_dir(made: Path) -> Iterator[Path]:
    yield made
    stop_now(made)


def restarted(attachment: Attachment, name: str) -> Callable[[], bool]:
    """Whether it runs again since it was killed."""

    def holds() -> bool:
        one = attachment.status()[name]
        return one.state == "running" and one.restarts > 0

    return holds


def test_sigkill_of_the_only_command_ends_everything(data_dir: Path) -> None:
    with OtherCommand(data_dir, "sleep", "60") as other:
        other.report()
        pids = processes(data_dir) | {"supervisor": supervisor_of(data_dir)}
        assert set(pids) == {"postgres", "valkey", "child", "supervisor"}
        other.kill()
        eventually(lambda: not any(alive(pids).values()))


@LINUX_ONLY
def test_sigkill_of_the_supervisor_ends_its_services(data_dir: Path) -> None:
    with OtherCommand(data_dir, "sleep", "60") as other:
        other.report()
        pids = processes(data_dir)
        other.process.send_signal(signal.SIGSTOP)  # it would start another one at once
        os.kill(supervisor_of(data_dir), signal.SIGKILL)
        eventually(lambda: not any(alive(pids).values()))


def test_a_command_outlives_the_sigkill_of_its_supervisor(data_dir: Path) -> None:
    with attach_quietly(data_dir) as attachment:
        execute(attachment.database_url, "INSERT INTO kept VALUES (1)")
        first = supervisor_of(data_dir)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: supervisor_of(data_dir) != first and answers(attachment.redis_url))
        assert scalar(attachment.database_url, "SELECT count(*) FROM kept") > 0


def test_sigkill_of_postgres_brings_it_back_with_its_data(data_dir: Path) -> None:
    with attach_quietly(data_dir) as attachment:
        execute(attachment.database_url, "INSERT INTO kept VALUES (2)")
        os.kill(processes(data_dir)["postgres"], signal.SIGKILL)
        eventually(restarted(attachment, "postgres"))
        assert attachment.status()["postgres"].last_exit == "killed by SIGKILL"
        assert scalar(attachment.database_url, "SELECT count(*) FROM kept WHERE n = 2") == 1


def test_sigkill_of_valkey_brings_it_back(data_dir: Path) -> None:
    with attach(data_dir, services={"valkey"}) as attachment:
        assert answers(attachment.redis_url)
        os.kill(processes(data_dir)["valkey"], signal.SIGKILL)
        eventually(restarted(attachment, "valkey"))
        assert answers(attachment.redis_url)


def test_sigkill_of_a_child_and_of_its_group_brings_one_back(data_dir: Path) -> None:
    forks = "import os, time; print('forked', os.fork(), flush=True); time.sleep(60)"
    spec = ChildSpec("forks", [sys.executable, "-c", forks])
    log = data_dir / "logs" / "forks.log"
    with attach(data_dir, services=(), children=[spec]) as attachment:
        eventually(lambda: "forked 0" in log.read_text())
        first = processes(data_dir)["forks"]
        grandchild = max(int(line.split()[1]) for line in log.read_text().splitlines())
        os.kill(first, signal.SIGKILL)
        eventually(restarted(attachment, "forks"))
        assert processes(data_dir)["forks"] != first
        eventually(lambda: not alive({"grandchild": grandchild})["grandchild"])


def test_a_child_that_cannot_live_is_tried_again_ever_more_rarely(data_dir: Path) -> None:
    with attach(data_dir, services=(), children=[ChildSpec("broken", ["false"])]) as attachment:
        eventually(lambda: attachment.status()["broken"].restarts >= 3)
        assert attachment.status()["broken"].last_exit == "exit status 1"
        begun = attachment.status()["broken"].restarts
        time.sleep(0.5)
        assert attachment.status()["broken"].restarts - begun <= 1


def test_a_child_whose_program_is_missing_is_an_error(data_dir: Path) -> None:
    with pytest.raises(ServiceUnavailable, match=r"/no/such cannot be started: No such file"):
        attach(data_dir, services=(), children=[ChildSpec("missing", ["/no/such"])])


def test_all_killed_at_once_and_then_another_command(data_dir: Path) -> None:
    with OtherCommand(data_dir, "sleep", "60") as other:
        url = other.report()["database_url"]
        execute(url, "INSERT INTO kept VALUES (3)")
        pids = processes(data_dir)
        for pid in (other.process.pid, supervisor_of(data_dir), *pids.values()):
            os.kill(pid, signal.SIGKILL)
    with attach_quietly(data_dir) as attachment:
        assert attachment.database_url == url
        assert scalar(url, "SELECT count(*) FROM kept WHERE n = 3") == 1
        assert answers(attachment.redis_url)
        assert not any(alive(pids).values())


def test_leftovers_that_outlived_the_supervisor_are_ended_first(data_dir: Path) -> None:
    """What elsewhere than on Linux a SIGKILL leaves behind: processes that were recorded and still run."""
    with attach_quietly(data_dir) as attachment:
        execute(attachment.database_url, "INSERT INTO kept VALUES (4)")
        state = (data_dir / "supervisor" / "state.json").read_text()
    stop_now(data_dir)
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as leftover:
        recorded = {"pid": leftover.pid, "identity": identity(leftover.pid)}
        altered = json.loads(state) | {"processes": {"valkey": recorded}}
        (data_dir / "supervisor" / "state.json").write_text(json.dumps(altered))
        with attach_quietly(data_dir) as attachment:
            assert leftover.wait(5.0) == -signal.SIGKILL
            assert scalar(attachment.database_url, "SELECT count(*) FROM kept WHERE n = 4") == 1


def test_a_recorded_process_id_that_someone_else_has_now_is_left_alone(data_dir: Path) -> None:
    state = data_dir / "supervisor" / "state.json"
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        recorded = {"pid": stranger.pid, "identity": "another boot/1"}
        state.write_text(json.dumps({"processes": {"valkey": recorded}}))
        pid_file = data_dir / "postgres" / "postmaster.pid"
        pid_file.write_text(f"{stranger.pid}\n{data_dir}/postgres\n1\n5432\n/nowhere\n\n1 1\nready\n")
        with attach_quietly(data_dir) as attachment:
            assert scalar(attachment.database_url, "SELECT 1") == 1
            assert stranger.poll() is None
        stranger.kill()


def test_torn_state_and_stale_sockets_do_not_matter(data_dir: Path) -> None:
    (data_dir / "supervisor" / "state.json").write_text('{"pid": 1, "sock')
    run = data_dir / "run"
    run.mkdir(exist_ok=True)
    (run / "control").write_text("")
    with attach_quietly(data_dir) as attachment:
        assert answers(attachment.redis_url)


def test_a_broken_first_start_leaves_nothing_half_made() -> None:
    with data_directory() as data_dir:
        unfinished = data_dir / "postgres.unfinished"
        with OtherCommand(data_dir) as other:
            eventually(lambda: (unfinished / "base").exists())
            os.kill(read_state(data_dir)["pid"], signal.SIGKILL)
            other.kill()
        assert not (data_dir / "postgres").exists()
        with attach_quietly(data_dir) as attachment:
            assert scalar(attachment.database_url, "SELECT 1") == 1
        assert not unfinished.exists()


def test_a_database_of_another_major_version_is_one_clear_error(data_dir: Path) -> None:
    version = data_dir / "postgres" / "PG_VERSION"
    real = version.read_text()
    version.write_text("99\n")
    with pytest.raises(ServiceUnavailable, match=r"made by PostgreSQL 99, but .* has 16, 18; install"):
        attach_quietly(data_dir)
    version.write_text(real)
    with attach_quietly(data_dir) as attachment:  # the supervisor still runs within its grace
        assert scalar(attachment.database_url, "SELECT 1") == 1


def test_what_is_no_database_is_not_overwritten(data_dir: Path) -> None:
    database, aside = data_dir / "postgres", data_dir / "aside"
    database.rename(aside)
    shutil.copytree(aside / "base", database)
    os.chown(database, aside.stat().st_uid, aside.stat().st_gid)
    with pytest.raises(ServiceUnavailable, match="not a PostgreSQL data directory"):
        attach_quietly(data_dir)
    shutil.rmtree(database)
    aside.rename(database)


def test_a_database_that_cannot_start_names_its_log_and_the_reason(data_dir: Path) -> None:
    control = data_dir / "postgres" / "global" / "pg_control"
    good = control.read_bytes()
    control.write_bytes(b"\0" * len(good))
    try:
        with pytest.raises(ServiceUnavailable, match=r"does not start .*; see .*postgres\.log") as caught:
            attach_quietly(data_dir)
        assert any("FATAL" in line or "PANIC" in line for line in caught.value.details)
    finally:
        control.write_bytes(good)


def test_a_moved_data_directory_works(data_dir: Path) -> None:
    elsewhere = data_dir.with_name("elsewhere")
    data_dir.rename(elsewhere)
    try:
        with attach_quietly(elsewhere) as attachment:
            assert scalar(attachment.database_url, "SELECT to_regclass('kept')::text") == "kept"
            assert str(elsewhere) in str(attachment.database_url)
    finally:
        stop_now(elsewhere)
        elsewhere.rename(data_dir)


def test_a_file_where_the_data_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ServiceUnavailable, match=r"directory .* cannot be written .*CURATE_DATA_DIR"):
            attach_quietly(path)

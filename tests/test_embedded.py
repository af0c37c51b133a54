"""The embedded services as commands use them: start, share, stop, and where they lie."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import kombu
import pytest
import redis
import sqlalchemy

from app.embedded import ChildSpec, attach, broker_url, remove
from app.embedded.supervisor import read_state
from app.errors import Conflict, ServiceUnavailable
from tests.embedded_help import (
    OtherCommand,
    alive,
    answers,
    attach_quietly,
    connect,
    data_directory,
    eventually,
    execute,
    processes,
    scalar,
    stop_now,
    supervisor_of,
)


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """A data directory whose database is there already: making one takes longer than most tests."""
    with data_directory() as path:
        with attach_quietly(path):
            pass
        yield path


@pytest.fixture
def data_dir(made: Path) -> Iterator[Path]:
    yield made
    stop_now(made)


def test_services_start_answer_and_are_gone_after_the_only_command() -> None:
    with data_directory() as data_dir:
        with attach_quietly(data_dir) as attachment:
            assert scalar(attachment.database_url, "SELECT 1") == 1
            assert answers(attachment.redis_url)
            pids = processes(data_dir) | {"supervisor": supervisor_of(data_dir)}
            assert {name: one.state for name, one in attachment.status().items()} == {
                "postgres": "running",
                "valkey": "running",
            }
            assert all(alive(pids).values())
        eventually(lambda: not any(alive(pids).values()))
        assert not (data_dir / "run").exists()
        assert (data_dir / "logs" / "supervisor.log").read_text() == ""


def test_only_what_was_asked_for_runs() -> None:
    with data_directory() as data_dir, attach(data_dir, services={"valkey"}) as attachment:
        assert attachment.database_url is None
        assert set(attachment.status()) == {"valkey"}
        with attach(data_dir, services=()) as other:
            assert answers(other.redis_url)


def test_data_outlives_the_services(data_dir: Path) -> None:
    with attach_quietly(data_dir) as attachment:
        first = supervisor_of(data_dir)
        execute(attachment.database_url, "CREATE TABLE kept AS SELECT 7 AS n")
    with attach_quietly(data_dir) as attachment:  # within the grace: the same supervisor
        assert supervisor_of(data_dir) == first
    eventually(lambda: not alive({"supervisor": first})["supervisor"])
    with attach_quietly(data_dir) as attachment:
        assert scalar(attachment.database_url, "SELECT n FROM kept") == 7


def test_a_command_that_comes_while_the_services_stop_gets_new_ones(data_dir: Path) -> None:
    with attach_quietly(data_dir):
        first = supervisor_of(data_dir)
        os.kill(first, signal.SIGTERM)
        with OtherCommand(data_dir) as other:
            assert scalar(other.report()["database_url"], "SELECT 1") == 1
            assert supervisor_of(data_dir) != first


def test_the_last_command_out_stops_them(data_dir: Path) -> None:
    with OtherCommand(data_dir) as other:
        urls = other.report()
        with attach_quietly(data_dir) as attachment:
            assert attachment.database_url == urls["database_url"]
        time.sleep(1.5)  # longer than the grace
        assert scalar(urls["database_url"], "SELECT 1") == 1
        pids = processes(data_dir)
    eventually(lambda: not any(alive(pids).values()))


def test_commands_that_start_at_once_share_one_supervisor() -> None:
    with data_directory() as data_dir:
        commands = [OtherCommand(data_dir, services=("valkey",)) for _ in range(4)]
        try:
            reports = [command.report() for command in commands]
            assert len({report["redis_url"] for report in reports}) == 1
            running = subprocess.run(
                ["pgrep", "-f", f"app.embedded {data_dir} "], capture_output=True, text=True, check=True
            )
            assert running.stdout.split() == [str(supervisor_of(data_dir))]
        finally:
            for command in commands:
                command.__exit__()


def test_a_long_path_with_blanks_and_other_letters() -> None:
    with data_directory("Ärger, Köln & 100% 'Luft' " + "x" * 100) as data_dir:
        with attach_quietly(data_dir) as attachment:
            runtime = Path(read_state(data_dir)["runtime"])
            assert scalar(attachment.database_url, "SELECT 1") == 1
            assert answers(attachment.redis_url)
            assert runtime.stat().st_mode & 0o077 in (0, 0o011)
            assert scalar(attachment.database_url, "SHOW data_directory") == str(data_dir / "postgres")
            pids = processes(data_dir)
        eventually(lambda: not any(alive(pids).values()))
        eventually(lambda: not runtime.exists())


def test_no_port_is_opened_and_settings_are_as_meant(data_dir: Path) -> None:
    with attach_quietly(data_dir) as attachment:
        url = attachment.database_url
        assert scalar(url, "SHOW listen_addresses") == ""
        assert scalar(url, "SHOW synchronous_commit") == "on"
        assert scalar(url, "SHOW timezone") == "UTC"
        assert scalar(url, "SHOW server_encoding") == "UTF8"
        assert scalar(url, "SELECT upper('ä') || (SELECT 'a' < 'B')") == "Äfalse"
        assert attachment.redis_url is not None
        with redis.Redis.from_url(attachment.redis_url) as client:
            assert client.config_get("port") == {"port": "0"}
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


def test_sqlalchemy_and_celerys_transport_accept_the_urls(data_dir: Path) -> None:
    with attach_quietly(data_dir) as attachment:
        assert attachment.database_url is not None
        assert attachment.redis_url is not None
        engine = sqlalchemy.create_engine(attachment.database_url)
        with engine.connect() as connection:
            assert connection.scalar(sqlalchemy.text("SELECT current_database()")) == "curate"
        engine.dispose()
        with kombu.Connection(broker_url(attachment.redis_url)) as broker:
            queue = broker.SimpleQueue("hints")
            queue.put({"id": 1})
            assert queue.get(timeout=2).payload == {"id": 1}
            queue.close()
        with redis.Redis.from_url(attachment.redis_url) as client:
            assert client.exists("_kombu.binding.hints")


def test_broker_url_keeps_other_addresses_and_the_database_number() -> None:
    assert broker_url("redis://localhost:6379/3") == "redis://localhost:6379/3"
    assert broker_url("unix:///run/v/socket?db=3") == "redis+socket:///run/v/socket?virtual_host=3"
    assert broker_url("unix:///run/v/socket") == "redis+socket:///run/v/socket?virtual_host=0"


def test_a_child_gets_the_urls_and_ends_with_the_commands_that_want_it(data_dir: Path) -> None:
    show = "import os, time; print(os.environ['CURATE_DATABASE_URL'], flush=True); time.sleep(60)"
    argv = [sys.executable, "-c", show]
    with attach_quietly(data_dir) as attachment:
        with OtherCommand(data_dir, *argv) as other, OtherCommand(data_dir, *argv) as another:
            other.report()
            another.report()
            pid = processes(data_dir)["child"]
            log = data_dir / "logs" / "child.log"
            eventually(lambda: log.read_text().strip() == attachment.database_url)
            other.kill()
            time.sleep(1.5)
            assert attachment.status()["child"].pid == pid
        eventually(lambda: "child" not in attachment.status())
        eventually(lambda: not alive({"child": pid})["child"])
        assert attachment.status()["postgres"].restarts == 0


def test_a_child_that_ignores_the_request_to_stop_is_made_to(data_dir: Path) -> None:
    stubborn = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('forked', os.fork(), flush=True); time.sleep(60)"
    )
    with OtherCommand(data_dir, sys.executable, "-c", stubborn, services=()) as other:
        other.report()
        log = data_dir / "logs" / "child.log"
        eventually(lambda: "forked 0" in log.read_text())
        grandchild = max(int(line.split()[1]) for line in log.read_text().splitlines() if "forked" in line)
        pids = processes(data_dir) | {"grandchild": grandchild}
        assert all(alive(pids).values())
    eventually(lambda: not any(alive(pids).values()))


def test_a_child_with_other_settings_is_refused(data_dir: Path) -> None:
    spec = ChildSpec("worker", ["sleep", "60"], env={"CURATE_SECRET_KEY": "one", "TERM": "vt100"})
    same = ChildSpec("worker", ["sleep", "60"], env={"CURATE_SECRET_KEY": "one", "TERM": "xterm"})
    other = ChildSpec("worker", ["sleep", "60"], env={"CURATE_SECRET_KEY": "two"})
    longer = ChildSpec("worker", ["sleep", "90"], env={"CURATE_SECRET_KEY": "one"})
    with attach(data_dir, services=(), children=[spec]):
        with attach(data_dir, services=(), children=[same]):
            pass
        with pytest.raises(Conflict, match=r"worker already runs .*CURATE_SECRET_KEY.*--data-dir") as caught:
            attach(data_dir, services=(), children=[other])
        assert "two" not in str(caught.value)
        with pytest.raises(Conflict, match="command line"):
            attach(data_dir, services=(), children=[longer])


def test_a_forked_process_does_not_hold_the_services(data_dir: Path) -> None:
    fork = (
        "import os, sys, time; from pathlib import Path; from app.embedded import attach\n"
        "attach(Path(sys.argv[1]), services={'valkey'})\n"
        "if os.fork() == 0: time.sleep(60)\n"
        "print('forked', flush=True); time.sleep(60)"
    )
    argv = [sys.executable, "-W", "ignore", "-c", fork, str(data_dir)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "forked\n"
        pids = processes(data_dir)
        command.kill()
        command.wait()
        eventually(lambda: not any(alive(pids).values()))
        os.killpg(command.pid, signal.SIGKILL)


def test_remove_waits_for_the_commands() -> None:
    with data_directory() as data_dir:
        with attach(data_dir, services={"valkey"}), pytest.raises(ServiceUnavailable, match="still use"):
            remove(data_dir, seconds=0.1)
        remove(data_dir)
        assert not data_dir.exists()


def test_a_client_of_another_user_is_kept_out(data_dir: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    with attach_quietly(data_dir) as attachment:
        assert attachment.database_url is not None
        host = attachment.database_url.partition("host=")[2]
        bad = f"import socket; socket.socket(socket.AF_UNIX).connect({host + '/.s.PGSQL.5432'!r})"
        done = subprocess.run(
            ["/usr/bin/env", "python3", "-c", bad],
            user=2,
            group=2,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "PermissionError" in done.stderr
        with connect(attachment.database_url) as connection:
            assert connection.info.user == "curate"

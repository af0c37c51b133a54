"""Where the files of a data directory's services lie, and as whom the services run.

Usually all lies in the data directory and runs as the caller. PostgreSQL refuses to run as root, so root's
services run as another user; where that user cannot reach the data directory (a clone under a 0700 home),
the database lies in a directory of our own, recorded in the data directory. No directory that is not ours is
ever changed.
"""

import contextlib
import os
import pwd
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from app.errors import ServiceUnavailable

SOCKET_PATH_LIMIT = 100  # sun_path holds 104 bytes on macOS, 108 on Linux, with the closing NUL
_PLAIN = re.compile(r"[A-Za-z0-9_./+-]+")  # needs no quoting in any URL, PostgreSQL list or Valkey option
_ROOTS = ("/var/lib", "/var/db", "/var/tmp")  # noqa: S108 - the directory made there is root's and checked


@dataclass(frozen=True, slots=True)
class User:
    uid: int
    gid: int
    name: str


@dataclass(frozen=True, slots=True)
class Places:
    data_dir: Path
    home: Path  # holds postgres/
    runtime: Path  # holds the sockets
    user: User | None  # whom the services run as; None: as we ourselves
    notices: tuple[str, ...] = ()

    @property
    def control(self) -> Path:
        return control_dir(self.data_dir)

    @property
    def logs(self) -> Path:
        return self.data_dir / "logs"

    @property
    def socket(self) -> Path:
        return self.runtime / "control"

    def private(self, name: str) -> Path:
        """A directory below the runtime directory that only the services' user can enter."""
        path = self.runtime / name
        path.mkdir(mode=0o700, exist_ok=True)
        give(path, self.user)
        return path


def control_dir(data_dir: Path) -> Path:
    return data_dir / "supervisor"


def give(path: Path, user: User | None) -> None:
    if user is not None:
        os.chown(path, user.uid, user.gid, follow_symlinks=False)


def make_data_dir(data_dir: Path) -> Path:
    """The data directory and its control directory, made where missing; the path without links.

    Errors: ServiceUnavailable when it cannot be made or written.
    """
    try:
        if not data_dir.exists():
            data_dir.parent.mkdir(parents=True, exist_ok=True)
            # Root's services run as another user, who must be able to pass through.
            data_dir.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, exist_ok=True)
        data_dir = data_dir.resolve()
        control_dir(data_dir).mkdir(mode=0o700, exist_ok=True)
        (data_dir / "logs").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unwritable(data_dir, error.strerror or str(error)) from error
    if not os.access(control_dir(data_dir), os.W_OK | os.X_OK):
        raise _unwritable(data_dir, "it belongs to another user")
    return data_dir


def _unwritable(data_dir: Path, reason: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"the data directory {data_dir} cannot be written ({reason}); give another with --data-dir or "
        "CURATE_DATA_DIR"
    )


def settle(data_dir: Path, recorded_runtime: Path | None) -> Places:
    """Choose user, home and runtime directory for a data directory, the same ones each time."""
    user = _service_user(data_dir)
    home, notices = _home(data_dir, user)
    runtime = _runtime(home, user, recorded_runtime)
    return Places(data_dir, home, runtime, user, notices)


def _service_user(data_dir: Path) -> User | None:
    if os.geteuid() != 0:
        _entry(os.geteuid())
        return None
    database = data_dir / "postgres"
    if database.is_dir() and database.stat().st_uid != 0:
        return _entry(database.stat().st_uid)
    caller = os.environ.get("SUDO_UID", "0")
    if caller.isdecimal() and int(caller) != 0:
        return _entry(int(caller))
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise ServiceUnavailable(
            "PostgreSQL does not run as root and there is no user nobody to run it as; run this as an "
            "ordinary user, or set CURATE_DATABASE_URL and CURATE_REDIS_URL to running services"
        ) from None
    return User(nobody.pw_uid, nobody.pw_gid, nobody.pw_name)


def _entry(uid: int) -> User:
    try:
        found = pwd.getpwuid(uid)
    except KeyError:
        raise ServiceUnavailable(
            f"user id {uid} has no entry in the user database, which PostgreSQL needs; run this as a known "
            "user, or set CURATE_DATABASE_URL and CURATE_REDIS_URL to running services"
        ) from None
    return User(found.pw_uid, found.pw_gid, found.pw_name)


def _home(data_dir: Path, user: User | None) -> tuple[Path, tuple[str, ...]]:
    record = control_dir(data_dir) / "home"
    if record.exists():
        return _recorded_home(data_dir, record), ()
    if user is None or can_use(user, [(data_dir, os.X_OK)]):
        return data_dir, ()
    if (data_dir / "postgres").exists():
        raise ServiceUnavailable(
            f"user {user.name}, whom PostgreSQL runs as for root, can no longer reach {data_dir}; make its "
            "parents passable (chmod o+x) or move it"
        )
    home = Path(tempfile.mkdtemp(prefix="data-", dir=_own_root()))
    home.chmod(0o711)
    (home / "belongs-to").write_text(str(data_dir))
    record.write_text(str(home))
    notice = f"{data_dir} is out of reach for user {user.name}: the database lies in {home}"
    return home, (notice,)


def _recorded_home(data_dir: Path, record: Path) -> Path:
    home = Path(record.read_text())
    owner_file = home / "belongs-to"
    if not owner_file.exists():
        raise ServiceUnavailable(
            f"the database of {data_dir} lay in {home}, which is not there any more; put it back, or remove "
            f"{record} to begin with an empty one"
        )
    owner = Path(owner_file.read_text())
    if owner != data_dir:
        if control_dir(owner).exists():
            raise ServiceUnavailable(
                f"{data_dir} is a copy of {owner}, and the database in {home} belongs to the original; use "
                f"that one, or remove {record} to begin with an empty database"
            )
        owner_file.write_text(str(data_dir))  # it was moved
    return home


def _own_root() -> Path:
    base = next(Path(root) for root in _ROOTS if Path(root).is_dir())
    path = base / "curate-board"
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o711)
        path.chmod(0o711)  # mkdir's mode is cut by the umask
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o022:
        raise ServiceUnavailable(f"{path} was not made by root alone; remove it")
    return path


def _runtime(home: Path, user: User | None, recorded: Path | None) -> Path:
    mode = 0o700 if user is None else 0o711
    inside = home / "run"
    if _fits(inside):
        inside.mkdir(mode=mode, exist_ok=True)
        inside.chmod(mode)
        return inside
    if recorded is not None and _is_ours(recorded):
        return recorded
    bases = (Path(tempfile.gettempdir()), Path("/tmp"))  # noqa: S108 - mkdtemp makes a private one there
    base = next(base for base in bases if _fits(base / "curate-12345678"))
    runtime = Path(tempfile.mkdtemp(prefix="curate-", dir=base))
    runtime.chmod(mode)
    return runtime


def _fits(runtime: Path) -> bool:
    longest = str(runtime / "postgres" / ".s.PGSQL.5432")
    return len(os.fsencode(longest)) <= SOCKET_PATH_LIMIT and _PLAIN.fullmatch(longest) is not None


def _is_ours(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    sound = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
    return sound and path.name.startswith("curate-")


def discard_runtime(places: Places) -> None:
    shutil.rmtree(places.runtime, ignore_errors=True)


def can_use(user: User, needs: Iterable[tuple[Path, int]]) -> bool:
    """Whether the user has the access needed (os.R_OK and the like) to every path: the kernel says so."""
    needs = list(needs)
    return _as_user(user, lambda: all(os.access(path, mode) for path, mode in needs))


def _as_user(user: User, question: Callable[[], bool]) -> bool:
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(user.gid)
            os.setuid(user.uid)
            os._exit(0 if question() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def reachable_copy(user: User | None, parts: Iterable[Path], base: Path, key: str) -> Path:
    """`base` where the user can read and run all `parts` below it, else a copy of the parts that he can.

    The copy is kept for all data directories of the machine, under `key`.
    """
    parts = list(parts)
    every = [path for part in parts for path in (part, *part.rglob("*"))]
    if user is None or can_use(user, [(path, _as_owner(path)) for path in every]):
        return base
    copy = _own_root() / f"programs-{key}"
    if not copy.is_dir():
        unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=_own_root()))
        for part in parts:
            _copy(part, unfinished / part.relative_to(base))
        for path in (unfinished, *unfinished.rglob("*")):
            path.chmod(0o755 if _as_owner(path) & os.X_OK else 0o644)
        with contextlib.suppress(OSError):  # another one was faster
            unfinished.rename(copy)
        shutil.rmtree(unfinished, ignore_errors=True)
    return copy


def _as_owner(path: Path) -> int:
    return os.R_OK | (os.X_OK if path.stat().st_mode & 0o100 else 0)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)

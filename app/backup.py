"""A site into one file, and out of it into an empty database: PostgreSQL's own dump."""

import os
import re
import shutil
import stat
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine, func, inspect, make_url, select, text, update

from app import models
from app.accounts.audit import record
from app.db import Base, make_engine, open_session
from app.embedded import installed_versions
from app.errors import Conflict, InvalidInput, ServiceUnavailable
from app.schema import migrate
from app.tables import write_atomically

VERSION_TABLE = "alembic_version"
BEGINNING = b"PGDMP"
PAUSED = "It was running when the backup was made. Resume it, unless the original site still runs it."


@dataclass(frozen=True)
class Restored:
    """What a restored site holds, and what was changed in it so that it does no harm beside the original."""

    accounts: int
    runs: int
    paused: int
    ended: int


def back_up(database_url: str, file: Path) -> int:
    """Write a dump that only its owner can read, while the site runs: as it was at one moment. Its size."""
    program = _program("pg_dump", _server_major(database_url))
    with write_atomically(file) as temporary:
        temporary.chmod(stat.S_IRUSR | stat.S_IWUSR)
        arguments = ["--format=custom", "--no-owner", "--no-privileges", f"--file={temporary}"]
        _run([program, *arguments, f"--dbname={_without_password(database_url)}"], database_url)
    return file.stat().st_size


def restore(engine: Engine, file: Path) -> Restored:
    """Fill an empty site. Conflict when something is in it already; InvalidInput for a file that is no dump.

    Runs that were running are paused, and sessions, one-time links and API tokens end: what was revoked
    after the backup must not open anything again.
    """
    try:
        with file.open("rb") as opened:
            beginning = opened.read(len(BEGINNING))
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from error
    if beginning != BEGINNING:
        raise InvalidInput(f"{file} is no backup: give a file that `curate backup` wrote.")
    _check_empty(engine)
    url = engine.url.render_as_string(hide_password=False)
    program = _program("pg_restore", _server_major(url))
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    arguments = ["--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction"]
    _run([program, *arguments, f"--dbname={_without_password(url)}", str(file)], url)
    migrate(engine)
    return _made_harmless(engine)


def _check_empty(engine: Engine) -> None:
    """Nobody has begun to use it, and nobody else's tables are there."""
    there = set(inspect(engine).get_table_names("public"))
    foreign = there - set(Base.metadata.tables) - {VERSION_TABLE}
    if foreign:
        raise Conflict(
            f"The database holds tables that are not of this program ({', '.join(sorted(foreign)[:5])}): "
            "restore into a database of its own."
        )
    with open_session(engine) as session:
        for table in (models.Account, models.Benchmark, models.Run, models.Study):
            if table.__tablename__ in there and session.scalar(select(func.count()).select_from(table)):
                raise Conflict(
                    "This site is in use: restore into an empty one (a new data directory or database)."
                )


def _made_harmless(engine: Engine) -> Restored:
    now = datetime.now(UTC)
    with open_session(engine) as session:
        paused = session.execute(
            update(models.Run)
            .where(models.Run.status == "running")
            .values(status="paused", status_reason=PAUSED)
            .returning(models.Run.id)
        ).all()
        session.execute(text("UPDATE run_group SET driver_id = NULL WHERE driver_id IS NOT NULL"))
        session.execute(text("DELETE FROM driver"))
        ended = 0
        for table in (models.LoginSession, models.OneTimeLink, models.ApiToken):
            done = session.execute(
                update(table).where(table.revoked_at.is_(None)).values(revoked_at=now).returning(table.id)
            )
            ended += len(done.all())
        record(session, None, "site.restore", "site", paused=len(paused), ended=ended)
        accounts = session.scalars(select(func.count()).select_from(models.Account)).one()
        runs = session.scalars(select(func.count()).select_from(models.Run)).one()
        session.commit()
    return Restored(accounts, runs, len(paused), ended)


# --- PostgreSQL's programs ---


def _server_major(database_url: str) -> int:
    engine = make_engine(database_url, pool_size=1)
    try:
        with engine.connect() as connection:
            return int(connection.execute(text("SHOW server_version_num")).scalar_one()) // 10_000
    finally:
        engine.dispose()


def _program(name: str, server: int) -> str:
    """The program of the server's own version, else of the next later one that there is."""
    found = {major: str(path / "bin" / name) for major, path in installed_versions().items()}
    if (own := shutil.which(name)) is not None:
        found.setdefault(_major(own), own)
    usable = sorted(major for major in found if major >= server)
    if not usable:
        raise ServiceUnavailable(
            f"The server is PostgreSQL {server}, and {name} of that version is not installed: "
            f"install the client programs of PostgreSQL {server} so that {name} is found."
        )
    return found[usable[0]]


def _major(program: str) -> int:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"PostgreSQL\) (\d+)", said)
    return int(version.group(1)) if version else 0


def _without_password(database_url: str) -> str:
    """As libpq reads it. Arguments are seen by everybody on the machine, so the password goes another way."""
    url = make_url(database_url).set(drivername="postgresql", password=None)
    return url.render_as_string(hide_password=False)


def _run(arguments: list[str], database_url: str) -> None:
    password = make_url(database_url).password
    environment = os.environ | ({"PGPASSWORD": str(password)} if password else {})
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        said = " ".join(done.stderr.split())[:500] or f"exit {done.returncode}"
        raise ServiceUnavailable(f"{Path(arguments[0]).name} failed: {said}")

"""`curate up|web|worker|scheduler|migrate|doctor`: the parts of an installation."""

import os
import sys
from typing import Annotated

import typer

from app import readiness
from app.cli.installation import (
    Installation,
    installation,
    out,
    say,
    scheduler_command,
    service_environment,
    worker_command,
)
from app.cli.options import DataDir, Json
from app.cli.output import print_json, table
from app.cli.web import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    Host,
    Port,
    log_to_file,
    print_links,
    site,
    wait_for_signal,
)
from app.errors import AppError, InvalidInput
from app.mail import Mailer
from app.settings import Settings, load_settings


def up(host: Host = DEFAULT_HOST, port: Port = DEFAULT_PORT, data_dir: DataDir = None) -> None:
    """Everything on one machine, until interrupted: database, broker, worker, scheduler and the site."""
    with installation(data_dir, workers=True) as installed:
        log_to_file(installed.settings.data_dir)
        with site(installed, host, port) as settings:
            print_links(installed, settings, host)
            say(f"Running; data and logs in {installed.settings.data_dir}. Ctrl-C stops.")
            wait_for_signal()


def worker(
    processes: Annotated[int, typer.Option(min=1, help="Runs driven at once.")] = 2,
    data_dir: DataDir = None,
) -> None:
    """A Celery worker for this installation (CURATE_DATABASE_URL and CURATE_REDIS_URL)."""
    _become(worker_command(processes), load_settings(data_dir=data_dir))


def scheduler(data_dir: DataDir = None) -> None:
    """The one scheduler of this installation; it sends the round that finds runs nobody drives."""
    _become(scheduler_command(), load_settings(data_dir=data_dir))


def _become(command: list[str], settings: Settings) -> None:
    """Replace this process, so that signals reach the part itself."""
    missing = [
        name
        for name, value in (
            ("CURATE_DATABASE_URL", settings.database_url),
            ("CURATE_REDIS_URL", settings.redis_url),
        )
        if value is None
    ]
    if missing:
        raise InvalidInput(
            f"{' and '.join(missing)} must be set for a part on its own; `curate up` starts everything."
        )
    settings.secret  # noqa: B018  (refuses a missing or short secret now, not at the first key)
    sys.stdout.flush()
    os.execve(  # noqa: S606  (a fixed program, no shell wanted)
        command[0], command, os.environ | service_environment(settings)
    )


def migrate(data_dir: DataDir = None) -> None:
    """Bring the database to this version's schema."""
    with installation(data_dir):
        say("The schema is up to date.")


def doctor(data_dir: DataDir = None, json: Json = False) -> None:
    """What is wrong with this installation, and what to do. Exit 1 when something is."""
    findings = examine(data_dir)
    if json:
        print_json([{"check": name, "ok": ok, "message": message} for name, ok, message in findings])
    else:
        grid = table("", ["check", "", ""], numbers_from=9)
        for name, ok, message in findings:
            grid.add_row(name, "ok" if ok else "FAULT", message)
        out.print(grid)
    if not all(ok for _, ok, _ in findings):
        raise typer.Exit(1)


def examine(data_dir: DataDir) -> list[readiness.Finding]:
    try:
        settings = load_settings(data_dir=data_dir)
        settings.secret  # noqa: B018
        Mailer.of(settings)
    except AppError as error:
        return [("settings", False, error.message)]
    findings: list[readiness.Finding] = [("settings", True, f"data in {settings.data_dir}")]
    # Where the parts run elsewhere, one of our own would only hide that theirs is missing.
    apart = settings.database_url is not None and settings.redis_url is not None
    try:
        with installation(data_dir, workers=not apart) as installed:
            findings += readiness.examine(installed.engine, installed.settings)
            findings.append(readiness.checked("workers", lambda: _workers(installed)))
            if apart:
                findings.append(("scheduler", *_scheduler(installed)))
    except AppError as error:
        findings.append(("services", False, error.message))
    return findings


def _workers(installed: Installation) -> str:
    """That they answer; of our own also how they do."""
    if installed.children is None:
        return readiness.workers(installed.settings)
    installed.check_workers()
    answered = readiness.workers(installed.settings)
    states = installed.children.status().items()
    return ", ".join([*(f"{name} {status.state}" for name, status in states), answered])


def _scheduler(installed: Installation) -> tuple[bool, str]:
    _, ok, message = readiness.checked("scheduler", lambda: readiness.scheduler(installed.engine))
    return ok, message

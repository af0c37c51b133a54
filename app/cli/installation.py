"""What a command stands on: settings, running services, a migrated database, workers where needed."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.db import make_engine, open_session
from app.embedded import Attachment, ChildSpec, ServiceName, attach, broker_url
from app.errors import ServiceUnavailable
from app.schema import migrate
from app.settings import Settings, load_settings

# Reports go to standard output, everything said along the way to standard error.
out = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
err = Console(stderr=True, soft_wrap=True, highlight=False)


@dataclass(frozen=True)
class Installation:
    settings: Settings
    engine: Engine
    children: Attachment | None = None

    def check_workers(self) -> None:
        """ServiceUnavailable when a worker or the scheduler cannot be kept running."""
        if self.children is None:
            return
        for name, status in self.children.status().items():
            if status.state == "failed":
                raise ServiceUnavailable(
                    f"The {name} does not stay up ({status.last_exit}); its log: {status.log}. "
                    "What the run has stored is kept: `curate run resume` goes on."
                )

    def session(self) -> Session:
        return open_session(self.engine)


def say(message: str) -> None:
    err.print(message, markup=False)


@contextmanager
def installation(data_dir: Path | None = None, *, workers: bool = False) -> Iterator[Installation]:
    """The database migrated and reachable; with `workers`, broker, worker and scheduler at work too.

    Whatever is not running is started, shared with other commands on the data directory, and stopped by the
    last of them.
    """
    settings = load_settings(data_dir=data_dir)
    services: list[ServiceName] = []
    if settings.database_url is None:
        services.append("postgres")
    if settings.redis_url is None and workers:
        services.append("valkey")
    if not services and not workers:
        with _opened(settings) as found:
            yield found
        return
    with attach(settings.data_dir, services=services, tell=say) as attachment:
        database_url = settings.database_url or attachment.database_url
        redis_url = settings.redis_url or (broker_url(attachment.redis_url) if attachment.redis_url else None)
        complete = settings.model_copy(update={"database_url": database_url, "redis_url": redis_url})
        with _opened(complete) as found:
            if not workers:
                yield found
                return
            with attach(
                settings.data_dir, services=(), children=worker_children(complete), tell=say
            ) as children:
                yield replace(found, children=children)


@contextmanager
def _opened(settings: Settings) -> Iterator[Installation]:
    assert settings.database_url is not None
    engine = make_engine(settings.database_url)
    try:
        migrate(engine)
        yield Installation(settings, engine)
    finally:
        engine.dispose()


def worker_children(settings: Settings) -> list[ChildSpec]:
    """One worker with a process a core, for the runs and for upkeep, and one scheduler."""
    environment = service_environment(settings)
    return [
        ChildSpec("worker", worker_command(), environment),
        ChildSpec("scheduler", scheduler_command(), environment),
    ]


# What a child needs of the caller's environment; an API key that stands there is not passed on.
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")


def service_environment(settings: Settings) -> dict[str, str]:
    """How a child finds the same installation."""
    values = {
        "CURATE_DATABASE_URL": settings.database_url,
        "CURATE_REDIS_URL": settings.redis_url,
        "CURATE_DATA_DIR": str(settings.data_dir),
        "CURATE_BASE_URL": settings.base_url,
        "CURATE_ENDPOINT_ALLOWLIST": settings.endpoint_allowlist,
        "CURATE_SECRET_KEY": settings.secret_key.get_secret_value() if settings.secret_key else None,
    }
    inherited = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return inherited | {name: value for name, value in values.items() if value}


def worker_command(processes: int = 2) -> list[str]:
    return [
        sys.executable, "-m", "workers", "--quiet", "worker",
        "--queues", "runs,upkeep", "--concurrency", str(processes), "--loglevel", "WARNING",
        "--without-gossip", "--without-mingle",
    ]  # fmt: skip


def scheduler_command() -> list[str]:
    return [
        sys.executable, "-m", "workers", "--quiet", "beat",
        "--scheduler", "celery.beat:Scheduler", "--pidfile", "", "--loglevel", "WARNING",
    ]  # fmt: skip

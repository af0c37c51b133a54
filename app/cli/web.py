"""`curate web`, and the site as part of `curate up` and `curate demo`."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Annotated

import typer

from app.cli.installation import Installation, installation, out, say
from app.cli.options import DataDir
from app.settings import Settings

LOG_BYTES = 5_000_000

Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is every one of this machine.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any.")]
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8000


def web(host: Host = DEFAULT_HOST, port: Port = DEFAULT_PORT, data_dir: DataDir = None) -> None:
    """The site alone, until interrupted; its log goes to standard error, a JSON object a line."""
    from app.logs import log_to

    with installation(data_dir) as installed:
        log_to()
        with site(installed, host, port) as settings:
            print_links(installed, settings, host)
            wait_for_signal()


@contextmanager
def site(installed: Installation, host: str, port: int) -> Iterator[Settings]:
    """The site of this installation, with its own settings: where it really is."""
    from app.serving import listen, serving, site_settings

    listener = listen(host, port)
    with listener:
        settings = site_settings(installed.settings, host, listener.getsockname()[1])
        with serving(settings, listener):
            yield settings
            say("Stopping; requests under way are answered first.")


def print_links(installed: Installation, settings: Settings, host: str) -> None:
    """Where the site is and, where only this machine reaches it, the link that signs its owner in."""
    from app.serving import is_loopback

    out.print(f"The site: {settings.base_url}", markup=False, soft_wrap=True)
    if settings.on_loopback and is_loopback(host):
        out.print(f"Sign in: {owner_url(installed, settings)}", markup=False, soft_wrap=True)


def owner_url(installed: Installation, settings: Settings) -> str:
    """A link that signs the owner in, once, within half an hour."""
    from app.accounts.people import owner_link
    from app.endpoints import local_account

    with installed.session() as session:
        path = owner_link(session, local_account(session))
        session.commit()
    return settings.base_url + path


def log_to_file(data_dir: Path) -> None:
    """The site's log beside those of the other parts; two older ones are kept."""
    from app.logs import log_by

    folder = data_dir / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    log_by(RotatingFileHandler(folder / "web.log", maxBytes=LOG_BYTES, backupCount=2), logging.INFO)


def wait_for_signal() -> None:
    """Block until SIGINT or SIGTERM."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    stopped.wait()

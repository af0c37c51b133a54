"""The site on a socket: checked before it opens, stopped without cutting anybody off."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address

import uvicorn
from fastapi import FastAPI

from app.db import make_engine
from app.errors import InvalidInput, ServiceUnavailable
from app.main import create_app
from app.settings import LOOPBACK_HOSTS, Settings
from app.web.site import REQUESTS_AT_ONCE

STATEMENT_SECONDS = 20
GRACE_SECONDS = 10
ADDRESS_FILE = "site-address"


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any. ServiceUnavailable when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        raise ServiceUnavailable(
            f"Cannot listen on {host}, port {port} ({error.strerror or error}): give another --port."
        ) from error


def site_settings(settings: Settings, host: str, port: int) -> Settings:
    """Settings of a site that listens there. InvalidInput when it would be open to others without a secret.

    Unless CURATE_BASE_URL says otherwise, a site on loopback is called by its own address.
    """
    named = "base_url" in settings.model_fields_set
    if not is_loopback(host):
        if not named:
            raise InvalidInput(
                f"A site that listens on {host} needs CURATE_BASE_URL, the address that people open."
            )
        if settings.secret_key is None:
            raise InvalidInput(
                f"A site that listens on {host} needs CURATE_SECRET_KEY, at least 32 random characters "
                '(python3 -c "import secrets; print(secrets.token_urlsafe(48))").'
            )
    settings.secret  # noqa: B018  (too short: refused now)
    if named:
        return settings
    return settings.model_copy(update={"base_url": f"http://{f'[{host}]' if ':' in host else host}:{port}"})


def is_loopback(host: str) -> bool:
    """`0.0.0.0` and an empty host listen to everybody."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host in LOOPBACK_HOSTS


@contextmanager
def serving(settings: Settings, listener: socket.socket) -> Iterator[None]:
    """The site, on a thread of its own; afterwards it takes nobody new and lets open requests end."""
    assert settings.database_url is not None
    engine = make_engine(
        settings.database_url, pool_size=REQUESTS_AT_ONCE, statement_seconds=STATEMENT_SECONDS
    )
    server = _server(create_app(settings, engine))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="site")
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise ServiceUnavailable("The site did not start; its log says why.")
            thread.join(0.01)
        note = settings.data_dir / ADDRESS_FILE
        note.write_text(settings.base_url)
        yield
    finally:
        server.should_exit = True
        thread.join(GRACE_SECONDS + 5)
        engine.dispose()
        with suppress(FileNotFoundError):
            (settings.data_dir / ADDRESS_FILE).unlink()


def _server(app: FastAPI) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,  # Observe writes one line a request
        proxy_headers=False,  # Proxies decides whose word about addresses is taken
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=10,
    )
    return uvicorn.Server(config)


def address(settings: Settings) -> str:
    """Where the site of this data directory answers, or will by its settings."""
    try:
        return (settings.data_dir / ADDRESS_FILE).read_text().strip() or settings.base_url
    except FileNotFoundError:
        return settings.base_url

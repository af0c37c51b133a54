"""A way to the database that can freeze: connections stay open, and nothing comes through any more."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from sqlalchemy import URL, make_url


@dataclass
class Way:
    """`url` leads to the database through here. `thaw` ends what `freeze` began."""

    url: str
    _flowing: threading.Event = field(default_factory=threading.Event)

    def freeze(self) -> None:
        self._flowing.clear()

    def thaw(self) -> None:
        self._flowing.set()

    def pump(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65_536):
                self._flowing.wait()
                target.sendall(data)
        except OSError:
            pass  # one side is gone, and the other goes with it
        finally:
            for end in (source, target):
                hang_up(end)


def hang_up(end: socket.socket) -> None:
    """Wakes whoever still reads from it, as close would not."""
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@contextmanager
def way_to(database_url: str) -> Iterator[Way]:
    url = make_url(database_url)
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        host, port = listener.getsockname()[:2]
        way = Way(url.set(host=host, port=port, query={}).render_as_string(hide_password=False))
        way.thaw()
        threads: list[threading.Thread] = []
        ends: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    client = listener.accept()[0]
                except OSError:
                    return
                server = _connect(url)
                ends.extend((client, server))
                for pair in ((client, server), (server, client)):
                    threads.append(threading.Thread(target=way.pump, args=pair))
                    threads[-1].start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield way
        finally:
            way.thaw()
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for end in ends:
                hang_up(end)
            for thread in threads:
                thread.join()
            for end in ends:
                end.close()


def _connect(url: URL) -> socket.socket:
    """As libpq does: a host that is a path is a folder with a socket in it."""
    folder = str(url.query.get("host", url.host or ""))
    port = url.port or int(str(url.query.get("port", 5432)))
    if not folder.startswith("/"):
        return socket.create_connection((folder or "127.0.0.1", port))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(f"{folder}/.s.PGSQL.{port}")
    return connection

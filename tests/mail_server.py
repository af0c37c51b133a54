"""A mail server that takes everything, or refuses it, and keeps what it was given."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default


@dataclass
class MailServer:
    port: int = 0
    refuses: bool = False
    mails: list[EmailMessage] = field(default_factory=list)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}?from=board@example.org"

    def next(self) -> EmailMessage:
        assert self.arrived.acquire(timeout=10), "no mail came"
        return self.mails[-1]


@contextmanager
def mail_server(*, refuses: bool = False) -> Iterator[MailServer]:
    kept = MailServer(refuses=refuses)

    class Talk(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.say("220 test")
            while line := self.rfile.readline():
                verb = line[:4].upper().strip()
                if verb == b"DATA":
                    self.say("354 go on")
                    mail = message_from_bytes(b"".join(self.lines()), policy=default)
                    assert isinstance(mail, EmailMessage)
                    kept.mails.append(mail)
                    kept.arrived.release()
                if verb == b"QUIT":
                    self.say("221 bye")
                    return
                self.say("550 not here" if kept.refuses and verb == b"RCPT" else "250 ok")

        def lines(self) -> Iterator[bytes]:
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                yield line

        def say(self, line: str) -> None:
            self.wfile.write(line.encode() + b"\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Talk) as server:
        kept.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield kept
        server.shutdown()

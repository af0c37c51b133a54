"""The private targets that an operator opened: CURATE_ENDPOINT_ALLOWLIST."""

import ipaddress
import re
from dataclasses import dataclass

from app.chat.addresses import PRIVATE_CLASSES, Address, Network, address_class
from app.errors import InvalidInput

_HOST = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?", re.ASCII)
_WITH_PORT = re.compile(r"(?P<host>\[[^\]]+\]|[^:\[\]]+):(?P<port>[1-9][0-9]{0,4})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Allowlist:
    """networks and hosts, each with the one port that is open or None for any.

    A host may resolve to loopback, private and shared addresses; a network opens what it covers.
    """

    networks: tuple[tuple[Network, int | None], ...] = ()
    hosts: tuple[tuple[str, int | None], ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Allowlist":
        """Read entries parted by commas or spaces: 10.0.0.0/8, 10.1.2.3, [fd00::1]:8000, gpu1.lab,
        *.lab.example, localhost:8000. InvalidInput names the first entry that is none of these."""
        networks: list[tuple[Network, int | None]] = []
        hosts: list[tuple[str, int | None]] = []
        for entry in re.split(r"[\s,]+", text.strip()):
            if not entry:
                continue
            bare, port = _split_port(entry)
            network = _network(bare, entry)
            if network is not None:
                networks.append((network, port))
            else:
                hosts.append((_host(bare, entry), port))
        return cls(tuple(networks), tuple(hosts))

    def covers_host(self, name: str, port: int) -> bool:
        return any(_matches(name, host) and open_port in (None, port) for host, open_port in self.hosts)

    def covers_address(self, address: Address, port: int) -> bool:
        return any(
            address.version == network.version and address in network and open_port in (None, port)
            for network, open_port in self.networks
        )

    def permits(self, name: str, address: Address, port: int) -> bool:
        """Whether a connection to name may go to this address that is not public."""
        if self.covers_address(address, port):
            return True
        return address_class(address) in PRIVATE_CLASSES and self.covers_host(name, port)


NOTHING_PRIVATE = Allowlist()


def _split_port(entry: str) -> tuple[str, int | None]:
    match = _WITH_PORT.fullmatch(entry)
    if match is None:
        return entry.strip("[]") if entry.startswith("[") else entry, None
    port = int(match["port"])
    if port > 65535:
        raise _invalid(entry)
    return match["host"].strip("[]"), port


def _network(bare: str, entry: str) -> Network | None:
    if "/" not in bare and ":" not in bare and not bare.replace(".", "").isdigit():
        return None
    try:
        network = ipaddress.ip_network(bare)
    except ValueError:
        raise _invalid(entry) from None
    if network.prefixlen == 0:
        raise InvalidInput(
            f"CURATE_ENDPOINT_ALLOWLIST: {entry!r} would open every address; name the networks."
        )
    return network


def _host(bare: str, entry: str) -> str:
    name = bare.lower().rstrip(".")
    if not _HOST.fullmatch(name) or ".." in name:
        raise _invalid(entry)
    return name


def _matches(name: str, host: str) -> bool:
    return name.endswith(host[1:]) if host.startswith("*.") else name == host


def _invalid(entry: str) -> InvalidInput:
    return InvalidInput(
        f"CURATE_ENDPOINT_ALLOWLIST: {entry!r} is neither a network (10.0.0.0/8), an address, "
        "a host name nor host:port."
    )

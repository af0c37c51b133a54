"""Which base URLs may be called. Opens no socket and asks no name server."""

import re
from collections.abc import Collection
from dataclasses import dataclass

import idna

from app.chat.addresses import Address, address_class, parse_address
from app.chat.allowlist import Allowlist

MAX_URL_CHARACTERS = 2000
PUBLIC_PORTS = frozenset({443, 8443})

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?"
    r"(?P<query>\?[^#]*)?(?P<fragment>#.*)?",
    re.DOTALL,
)
_BRACKETED = re.compile(r"\[(?P<host>[0-9A-Fa-f:.]+)\](?::(?P<port>.*))?", re.DOTALL)
_PLAIN = re.compile(r"(?P<host>[^:\[\]]*)(?::(?P<port>.*))?", re.DOTALL)
_PORT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMBER_LABEL = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)", re.ASCII)
_PATH = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/-]*", re.ASCII)

# Names that only mean something inside a network, or never resolve.
_LOCAL_ENDING = re.compile(
    "localhost|localdomain|local|internal|intranet|private|lan|home|corp|mail|workgroup|arpa|test|example"
    "|invalid|onion|alt|svc|cluster|pod|node|default|consul|docker|kube"
)
# Public names whose whole purpose is to resolve to the address written in them, or to loopback.
_ADDRESS_DOMAIN = re.compile(
    r"(?:.*\.)?(?:nip\.io|sslip\.io|xip\.io|traefik\.me|localtest\.me|lvh\.me|vcap\.me|lacolhost\.com"
    r"|local\.gd|1u\.ms|rbndr\.us)"
)


@dataclass(frozen=True, slots=True)
class Checked:
    """allowed, and the canonical url to use and to store; or the reason why not. warning: what a person
    should confirm although the address is allowed (a name with non-ASCII letters)."""

    allowed: bool
    reason: str
    url: str | None = None
    warning: str | None = None
    host: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class _Parts:
    scheme: str
    host: str
    port: int
    path: str
    literal: Address | None
    warning: str | None

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.scheme == "https" else 80)
        return f"{self.scheme}://{host}{'' if usual else f':{self.port}'}{self.path}"


class _Refused(Exception):
    """The reason, in words for the person who typed the address."""


def check_url(
    url: str, allowlist: Allowlist, own_hosts: Collection[str] = (), *, private_allowed: bool = False
) -> Checked:
    """Whether a base URL may be called, and its canonical form, the only string to use from then on.

    own_hosts: this site's own names, as host or host:port. private_allowed: the owner of the machine
    chose the address: its form is checked, where it leads is not.
    """
    warning = None
    try:
        parts = _parse(url)
        warning = parts.warning
        _check_not_own(parts, own_hosts)
        reason = "accepted: chosen by the owner of this machine"
        if not private_allowed:
            reason = _check_target(parts, allowlist)
    except _Refused as refusal:
        return Checked(False, str(refusal), warning=warning)
    return Checked(True, reason, parts.url, parts.warning, parts.host, parts.port)


def _parse(url: str) -> _Parts:
    if not url or len(url) > MAX_URL_CHARACTERS:
        raise _Refused(f"the address is empty or longer than {MAX_URL_CHARACTERS} characters")
    if any(not character.isprintable() or character.isspace() or character == "\\" for character in url):
        raise _Refused("the address contains a space, a control character or a backslash")
    match = _URL.fullmatch(url)
    if match is None:
        raise _Refused("not a complete address: it must look like https://host/v1")
    scheme = match["scheme"].lower()
    if scheme not in ("https", "http"):
        raise _Refused("only https addresses are accepted")
    if "@" in match["authority"]:
        raise _Refused("the address contains a user name or password: give the key in its own field")
    if match["query"] is not None or match["fragment"] is not None:
        raise _Refused(
            "the address contains a query or fragment (? or #): leave it out, and give a key in its own field"
        )
    host, port = _split(match["authority"], 443 if scheme == "https" else 80)
    path = _path(match["path"] or "")
    name, literal, warning = _host(host)
    return _Parts(scheme, name, port, path, literal, warning)


def _split(authority: str, default_port: int) -> tuple[str, int]:
    match = _BRACKETED.fullmatch(authority) or _PLAIN.fullmatch(authority)
    if match is None:
        raise _Refused("the host or port is malformed")
    if not match["host"]:
        raise _Refused("the address has no host name")
    if match["port"] is None:
        return match["host"], default_port
    if not _PORT.fullmatch(match["port"]) or int(match["port"]) > 65535:
        raise _Refused("the port must be a number from 1 to 65535")
    return match["host"], int(match["port"])


def _path(path: str) -> str:
    if not _PATH.fullmatch(path):
        raise _Refused("the path contains an escape (%) or a character outside plain ASCII")
    steps = path.rstrip("/").split("/")[1:]
    if any(step in ("", ".", "..") for step in steps):
        raise _Refused("the path contains an empty or dot step (//, /./ or /../)")
    return path.rstrip("/")


def _host(text: str) -> tuple[str, Address | None, str | None]:
    """The canonical host, the address where it is a literal, and a warning."""
    if ":" in text:
        address = parse_address(text)
        if address is None:
            raise _Refused("the host is not a valid IPv6 address")
        return str(address), address, None
    if "%" in text:
        raise _Refused("the host name contains an escape (%)")
    name = _ascii(text).lower().rstrip(".") if not text.endswith("..") else ""
    labels = name.split(".")
    if _NUMBER_LABEL.fullmatch(labels[-1]):
        return _number(name, plain=text == name)
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise _Refused("the host name is malformed")
    if not any(label.startswith("xn--") for label in labels):
        if not text.isascii():
            raise _Refused(f"the host name is written with look-alike characters: did you mean {name}?")
        return name, None, None
    return name, None, _punycode_warning(name)


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    try:
        return idna.encode(text, uts46=True).decode("ascii")
    except idna.IDNAError:
        # The digits and dots that a resolver would read as plain ones.
        return _folded(text)


def _folded(text: str) -> str:
    try:
        folded = idna.uts46_remap(text, std3_rules=False)
    except idna.IDNAError:
        folded = ""
    if folded and folded.isascii():
        return folded
    raise _Refused("the host name contains characters that no host name may have")


def _number(name: str, *, plain: bool) -> tuple[str, Address, None]:
    address = parse_address(name)
    if address is None or not plain:
        raise _Refused("the host is an IP address in disguise (a number, octal, hex or shortened form)")
    return str(address), address, None


def _punycode_warning(name: str) -> str:
    try:
        shown = idna.decode(name)
    except idna.IDNAError:
        raise _Refused("the host name contains an invalid xn-- label") from None
    return (
        f"the name contains non-ASCII letters: {name} is shown as {shown}; make sure that it is the right one"
    )


def _check_not_own(parts: _Parts, own_hosts: Collection[str]) -> None:
    own = {host.lower().rstrip(".") for host in own_hosts}
    if parts.host in own or f"{parts.host}:{parts.port}" in own:
        raise _Refused("the address is this site's own: a site cannot be its own endpoint")


def _check_target(parts: _Parts, allowlist: Allowlist) -> str:
    if parts.literal is not None:
        if allowlist.covers_address(parts.literal, parts.port):
            return "accepted: on this site's list of private targets"
        kind = address_class(parts.literal)
        what = f"a bare IP address ({kind})" if kind else "a bare IP address"
        raise _Refused(f"the host is {what}: give a public host name")
    if allowlist.covers_host(parts.host, parts.port):
        return "accepted: on this site's list of private targets"
    _check_public_name(parts.host)
    if parts.scheme != "https":
        shown = f" ({parts.warning})" if parts.warning else ""
        raise _Refused(f"plain http would send the key in the clear: use https{shown}")
    if parts.port not in PUBLIC_PORTS:
        ports = " or ".join(map(str, sorted(PUBLIC_PORTS)))
        raise _Refused(f"the port is not accepted: public endpoints answer on {ports}")
    return "accepted: a public address by its form; where it leads is checked at every connection"


def _check_public_name(name: str) -> None:
    labels = name.split(".")
    if len(labels) < 2 or _LOCAL_ENDING.fullmatch(labels[-1]):
        raise _Refused("the host name is local or reserved: give a public host name")
    if _ADDRESS_DOMAIN.fullmatch(name):
        raise _Refused("the host name stands for a bare IP address: give the endpoint's own name")

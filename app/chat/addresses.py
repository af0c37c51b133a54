"""Which IP addresses are public, and what the others are called. Pure."""

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# `is_global` is not enough: it lets multicast, NAT64, 6to4 and some platform addresses through, and
# differs between Python versions. These are IANA's special-purpose registries, spelled out.
_V4: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared"),
    ("127.0.0.0/8", "loopback"),
    ("168.63.129.16/32", "cloud platform"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "documentation"),
    ("192.31.196.0/24", "reserved"),
    ("192.52.193.0/24", "reserved"),
    ("192.88.99.0/24", "translation"),
    ("192.168.0.0/16", "private"),
    ("192.175.48.0/24", "reserved"),
    ("198.18.0.0/15", "reserved"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
)
_V6: tuple[tuple[str, str], ...] = (
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("::/32", "translation"),
    ("64:ff9b::/32", "translation"),
    ("100::/16", "reserved"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "documentation"),
    ("2002::/16", "translation"),
    ("2620:4f:8000::/48", "reserved"),
    ("3ffe::/16", "reserved"),
    ("3fff::/20", "documentation"),
    ("fc00::/7", "private"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "private"),
    ("ff00::/8", "multicast"),
)
_V4_CLASSES = tuple((ipaddress.IPv4Network(text), name) for text, name in _V4)
_V6_CLASSES = tuple((ipaddress.IPv6Network(text), name) for text, name in _V6)
_V6_GLOBAL = ipaddress.IPv6Network("2000::/3")
_ISATAP = (0x00005EFE, 0x02005EFE)

# What a host on the allow-list may resolve to; link-local, multicast and the like need a CIDR.
PRIVATE_CLASSES = frozenset({"loopback", "private", "shared"})


def parse_address(text: str) -> Address | None:
    """An address in canonical spelling, an IPv4 one out of its IPv6 mapping; None for anything else."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def address_class(address: Address) -> str | None:
    """None for a public address, else the name of its class."""
    if isinstance(address, ipaddress.IPv4Address):
        return next((name for network, name in _V4_CLASSES if address in network), None)
    if address.scope_id is not None:
        return "link-local"
    known = next((name for network, name in _V6_CLASSES if address in network), None)
    if known is not None:
        return known
    if address not in _V6_GLOBAL:
        return "reserved"
    if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return "translation"
    return None

"""Which addresses may be called: by their form without any socket, by where they lead at every connection."""

import ipaddress
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from app.chat import NOTHING_PRIVATE, Allowlist, check_url
from app.chat.addresses import address_class, parse_address
from app.errors import InvalidInput
from tests.chat_helpers import PATIENT

OWN = ("board.example.org", "leaderboard.our-own-host.example")
HOSTILE = Path(__file__).resolve().parents[1] / ".." / "shared" / "reference" / "hostile_inputs.json"

_watched: list[str] = []
_watching = False


def _audit(event: str, _: tuple[Any, ...]) -> None:
    if _watching and event.startswith("socket."):
        _watched.append(event)


sys.addaudithook(_audit)


@contextmanager
def no_sockets() -> Iterator[None]:
    """Fails when anything inside touches a socket or a name server, as the interpreter itself reports it."""
    global _watching
    _watched.clear()
    _watching = True
    try:
        yield
    finally:
        _watching = False
    assert _watched == []


def reason(url: str, allowlist: Allowlist = NOTHING_PRIVATE) -> str:
    with no_sockets():
        checked = check_url(url, allowlist, OWN)
    assert not checked.allowed, url
    assert checked.url is None
    return checked.reason


def hostile(kind: str) -> list[Any]:
    if not HOSTILE.exists():
        return []
    return list(json.loads(HOSTILE.read_text())[kind]["items"])


@pytest.mark.skipif(not HOSTILE.exists(), reason="the reference inputs are not beside the repository")
@pytest.mark.parametrize("item", hostile("ssrf_urls"), ids=lambda item: item["id"])
def test_reference_addresses(item: dict[str, str]) -> None:
    """Each over https too, so that no address is refused for its scheme alone."""
    if item["expect"] == "warn_punycode":
        checked = check_url(item["input"].replace("http:", "https:"), NOTHING_PRIVATE, OWN)
        assert checked.allowed
        assert "xn--" in (checked.warning or "")
        assert "xn--" in (checked.url or "")
        assert "xn--" in reason(item["input"])
        return
    for url in (item["input"], item["input"].replace("http:", "https:", 1)):
        reason(url)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://127.0.0.2/v1", "loopback"),
        ("https://10.20.30.40/v1", "private"),
        ("https://169.254.169.254/latest/", "link-local"),
        ("https://168.63.129.16/", "cloud platform"),
        ("https://[fd12::3]/v1", "private"),
        ("https://[::ffff:10.0.0.1]/v1", "private"),
        ("https://[2001:0:53aa:64c::1]/v1", "reserved"),
        ("https://[::127.0.0.1]/v1", "translation"),
        ("https://9.9.9.9/v1", "bare IP address"),
        ("https://[2606:4700:4700::1111]/v1", "bare IP address"),
        ("https://0300.0250.1/v1", "in disguise"),
        ("https://3232235521/v1", "in disguise"),
        ("https://0xC0A80001/v1", "in disguise"),
        ("https://127.0.0.1./v1", "IP address"),
        ("https://\u2460\u2461\u2466.0.0.1/v1", "in disguise"),
        ("https://\uff2c\uff4f\uff43\uff41\uff4chost/v1", "look-alike"),
        ("https://localhost./v1", "local"),
        ("https://sub.localhost/v1", "local"),
        ("https://db/v1", "local"),
        ("https://gpu.lab.internal/v1", "local"),
        ("https://169-254-169-254.nip.io/v1", "bare IP address"),
        ("https://app.lvh.me/v1", "bare IP address"),
        ("https://board.example.org/v1", "own"),
        ("https://BOARD.example.org./v1", "own"),
        ("http://api.example.com/v1", "plain http"),
        ("https://api.example.com:22/v1", "port"),
        ("https://api.example.com:8000/v1", "port"),
        ("https://api.example.com:65536/v1", "port"),
        ("https://api.example.com:/v1", "port"),
        ("https://api.example.com:0443/v1", "port"),
        ("https://api.example.com:\uff14\uff14\uff13/v1", "port"),
        ("https://user:pw@api.example.com/v1", "user name or password"),
        ("https://sk-secret@api.example.com/v1", "user name or password"),
        ("https://api.example.com/v1?api_key=sk-secret", "query"),
        ("https://api.example.com/v1#sk-secret", "fragment"),
        ("https://api.example.com\\@127.0.0.1/v1", "backslash"),
        ("https://api.example.com/v1 ", "space"),
        ("https://api.example.com/v1\n", "control"),
        ("https://api.exam\u00adple.com/v1", "control"),
        ("https://api.example.com/\u202e1v", "control"),
        ("https://api.example.com/v1/%2e%2e/admin", "escape"),
        ("https://api.example.com//v1", "dot step"),
        ("https://api.example.com/./v1", "dot step"),
        ("https://api.example.com/v\u00e9", "ASCII"),
        ("https://api.%65xample.com/v1", "escape"),
        ("https://[fe80::1%25eth0]/v1", "malformed"),
        ("https://[::1]x/v1", "malformed"),
        ("https://[v1.fe80]/v1", "malformed"),
        ("https://a..example.com/v1", "malformed"),
        ("https://example.com../v1", "malformed"),
        ("https://-x.example.com/v1", "malformed"),
        ("https://" + "a" * 64 + ".example.com/v1", "malformed"),
        ("https://" + "a." * 130 + "com/v1", "malformed"),
        ("https://xn--zz-/v1", "malformed"),
        ("https://xn--a.example.com/v1", "xn--"),
        ("https://", "no host"),
        ("https:/api.example.com", "complete"),
        ("api.example.com/v1", "complete"),
        ("ftp://api.example.com/", "https"),
        ("javascript:alert(1)", "complete"),
        ("", "empty"),
        ("https://api.example.com/" + "a" * 2000, "longer"),
    ],
)
def test_refusals_name_the_reason_and_nothing_of_the_network(url: str, words: str) -> None:
    said = reason(url)
    assert words in said
    assert "secret" not in said
    assert "pw@" not in said


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://api.example.com/v1", "https://api.example.com/v1"),
        ("HTTPS://API.Example.COM:443/v1/", "https://api.example.com/v1"),
        ("https://api.example.com./v1", "https://api.example.com/v1"),
        ("https://api.example.com:8443", "https://api.example.com:8443"),
        ("https://b\u00fccher.example.com/V1", "https://xn--bcher-kva.example.com/V1"),
        ("https://a.example.com/v1/projects/x:y/@z", "https://a.example.com/v1/projects/x:y/@z"),
    ],
)
def test_accepted_addresses_have_one_canonical_form(url: str, canonical: str) -> None:
    with no_sockets():
        checked = check_url(url, NOTHING_PRIVATE, OWN)
    assert (checked.allowed, checked.url) == (True, canonical)
    again = check_url(canonical, NOTHING_PRIVATE, OWN)
    assert (again.url, again.host, again.port) == (canonical, checked.host, checked.port)


@PATIENT
@given(st.text(max_size=60) | st.from_regex(r"https?://[\[\]a-z0-9.:@%\\/?#-]{0,40}", fullmatch=True))
def test_no_text_upsets_the_guard(url: str) -> None:
    for private in (False, True):
        checked = check_url(url, NOTHING_PRIVATE, OWN, private_allowed=private)
        assert checked.reason
        if checked.url is not None:
            again = check_url(checked.url, NOTHING_PRIVATE, OWN, private_allowed=private)
            assert again.url == checked.url
            read = URL(checked.url, encoded=True)
            assert (read.raw_host, read.port, str(read)) == (checked.host, checked.port, checked.url)


@pytest.mark.parametrize(
    ("entries", "url"),
    [
        ("10.0.0.0/8", "http://10.1.2.3:8000/v1"),
        ("127.0.0.1", "http://127.0.0.1:11434/v1"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("[fd00::1]:8000", "http://[fd00::1]:8000/v1"),
        ("fd00::/8", "http://[fd00:0::7]/v1"),
        ("gpu1.lab.internal", "http://gpu1.lab.internal:8000/v1"),
        ("localhost:8000", "http://localhost:8000/v1"),
        ("*.lab.internal, 10.0.0.0/8", "https://a.b.lab.internal/v1"),
        ("redis-like_name", "http://redis-like_name:1/v1"),
    ],
)
def test_the_allow_list_opens_what_it_names(entries: str, url: str) -> None:
    assert not check_url(url, NOTHING_PRIVATE).allowed
    assert check_url(url, Allowlist.parse(entries)).allowed


@pytest.mark.parametrize(
    ("entries", "url"),
    [
        ("10.0.0.0/8", "http://11.0.0.1/v1"),
        ("127.0.0.1:8000", "http://127.0.0.1:8001/v1"),
        ("localhost:8000", "http://localhost:8001/v1"),
        ("*.lab.internal", "http://lab.internal/v1"),
        ("*.lab.internal", "http://evil-lab.internal/v1"),
        ("127.0.0.1", "http://127.1/v1"),
        ("localhost", "http://127.0.0.1/v1"),
        ("localhost", "http://user@localhost/v1"),
        ("board.example.org", "https://board.example.org/v1"),
        ("", "http://localhost/v1"),
    ],
)
def test_the_allow_list_opens_nothing_else(entries: str, url: str) -> None:
    reason(url, Allowlist.parse(entries))


@pytest.mark.parametrize(
    "entry", ["10.0.0.1/8", "10.0.0.256", "0.0.0.0/0", "::/0", "a b/c", "host:0", "h:99999", "ho..st", "*"]
)
def test_a_faulty_allow_list_names_the_entry(entry: str) -> None:
    with pytest.raises(InvalidInput, match="CURATE_ENDPOINT_ALLOWLIST"):
        Allowlist.parse(f"localhost, {entry}")


def test_own_port_is_told_from_other_ports() -> None:
    listed = Allowlist.parse("localhost")
    assert not check_url("http://localhost:8000/v1", listed, ("localhost:8000",)).allowed
    assert check_url("http://localhost:9000/v1", listed, ("localhost:8000",)).allowed


@pytest.mark.parametrize(
    "url",
    [
        "https://user:pw@h/v1",
        "http://h/v1?key=a",
        "http://h:0/",
        "http://127.1/v1",
        "file:///x",
        "http://h/../x",
    ],
)
def test_the_owners_own_endpoints_still_need_a_proper_form(url: str) -> None:
    assert not check_url(url, NOTHING_PRIVATE, private_allowed=True).allowed


def test_the_owners_own_endpoints_may_be_anywhere() -> None:
    for url in ("http://127.0.0.1:8000/v1", "http://gpu:9/v1", "http://[::1]:8000/v1"):
        assert check_url(url, NOTHING_PRIVATE, private_allowed=True).url == url


def test_address_classes_cover_what_the_standard_library_calls_not_global() -> None:
    for text in ("93.184.215.14", "8.8.8.8", "2606:4700::1111", "2a00:1450::1"):
        address = parse_address(text)
        assert address is not None
        assert address_class(address) is None
    for text in ("2606:4700::1%eth0", "2606:4700::5efe:a00:1", "2606:4700::200:5efe:a00:1"):
        address = parse_address(text)
        assert address is not None
        assert address_class(address) is not None
    assert parse_address("010.0.0.1") is None
    assert parse_address("10.1") is None


@PATIENT
@given(st.ip_addresses())
def test_what_is_not_global_is_never_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if address_class(address) is None:
        assert address.is_global
        assert not any((address.is_multicast, address.is_private, address.is_reserved))

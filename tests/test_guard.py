"""Which addresses may be called: by their form without any socket, by where they lead at every connection."""

import asyncio
import ipaddress
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from app.chat import NOTHING_PRIVATE, Allowlist, Endpoint, Exchange, check_url
from app.chat.addresses import address_class, parse_address
from app.chat.resolver import AddressRefused, Lookup, VettingResolver, system_lookup
from app.errors import InvalidInput
from tests.chat_helpers import PATIENT, client, complete, run
from tests.stub_endpoint import StubEndpoint, answer, chat, http, raw

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


# At connection time


def answers(*lookups: Sequence[str] | Exception) -> tuple[Lookup, list[str]]:
    """A name server that gives these answers, one for each lookup, the last one ever after."""
    asked: list[str] = []

    async def look_up(host: str) -> Sequence[str]:
        now = lookups[min(len(asked), len(lookups) - 1)]
        asked.append(host)
        if isinstance(now, Exception):
            raise now
        return now

    return look_up, asked


def call(lookup: Lookup, allowlist: str, times: int = 1) -> tuple[list[Exchange], StubEndpoint]:
    async def ask() -> tuple[list[Exchange], StubEndpoint]:
        listed = Allowlist.parse(allowlist)
        last = answer(chat("Hello."), headers={"Connection": "close"})
        async with StubEndpoint(default=last) as stub, client(listed, resolver=lookup) as asked:
            url = f"http://models.example.com:{stub.port}/v1"
            found = []
            for _ in range(times):
                found.append(await complete(asked, Endpoint("openai", url, "m")))
            return found, stub

    return run(ask())


def test_the_vetted_address_is_the_one_connected() -> None:
    look_up, asked = answers(["127.0.0.1"], ["169.254.169.254"])
    (exchange,), stub = call(look_up, "models.example.com")
    assert (exchange.state, asked) == ("answered", ["models.example.com"])
    assert stub.received[0].headers["host"] == f"models.example.com:{stub.port}"


def test_every_new_connection_is_vetted_anew() -> None:
    look_up, asked = answers(["127.0.0.1"], ["10.0.0.1", "169.254.169.254"], ["127.0.0.1"])
    found, stub = call(look_up, "models.example.com", times=3)
    assert [e.error for e in found] == [None, "address_refused", None]
    assert (len(asked), stub.connections) == (3, 2)


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (["127.0.0.1"], "loopback"),
        (["93.184.215.14", "10.0.0.1"], "private"),
        (["64:ff9b::a00:1"], "translation"),
        (["::ffff:169.254.169.254"], "link-local"),
        (["2002:7f00:1::"], "translation"),
        (["ff02::1"], "multicast"),
        (["fe80::1%eth0"], "link-local"),
        (["100.100.100.200"], "shared"),
        (["192.0.0.192"], "reserved"),
        (["168.63.129.16"], "cloud platform"),
        (["0.0.0.0"], "unspecified"),
        (["2130706433"], "not an address"),
    ],
)
def test_names_that_lead_inside_are_refused_with_the_class_only(found: list[str], kind: str) -> None:
    look_up, _ = answers(found)

    async def ask() -> Exchange:
        async with client(resolver=look_up) as asked:
            of = Endpoint("openai", "https://models.example.com/v1", "m")
            return await complete(asked, of, attempts=3)

    exchange = run(ask())
    assert (exchange.error, len(exchange.attempts)) == ("address_refused", 1)
    assert kind in (exchange.error_message or "")
    assert not any(address in (exchange.error_message or "") for address in found)


@pytest.mark.parametrize(
    ("allowlist", "found", "allowed"),
    [
        ("models.example.com", "10.0.0.1", True),
        ("models.example.com", "169.254.169.254", False),
        ("models.example.com", "224.0.0.1", False),
        ("10.0.0.0/8", "10.0.0.1", True),
        ("10.0.0.0/8", "192.168.0.1", False),
        ("169.254.0.0/16", "169.254.169.254", True),
        ("10.0.0.0/8", "::ffff:10.0.0.1", True),
        ("models.example.com:444", "10.0.0.1", False),
    ],
)
def test_the_allow_list_holds_for_answers_too(allowlist: str, found: str, allowed: bool) -> None:
    async def resolve() -> list[Any]:
        resolver = VettingResolver(Allowlist.parse(allowlist), answers([found])[0])
        return list(await resolver.resolve("models.example.com", 443))

    if allowed:
        assert len(run(resolve())) == 1
    else:
        with pytest.raises(AddressRefused):
            run(resolve())


@pytest.mark.parametrize("failure", [OSError(None, "no such name"), []])
def test_a_name_without_an_address_is_a_dns_error(failure: Any) -> None:
    look_up, _ = answers(failure)
    (exchange,), _ = call(look_up, "models.example.com")
    assert exchange.error == "dns"


def hanging() -> tuple[Lookup, Callable[[], int]]:
    most = now = 0

    async def look_up(_: str) -> Sequence[str]:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(3600)
        return []

    return look_up, lambda: most


def test_a_name_server_that_hangs_is_given_up_and_holds_one_lookup_a_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.chat.resolver.DNS_DEADLINE", 0.2)
    look_up, most = hanging()

    async def ask() -> list[Exchange]:
        async with client(resolver=look_up) as asked:
            of = Endpoint("openai", "https://models.example.com/v1", "m")
            return list(await asyncio.gather(*[complete(asked, of) for _ in range(20)]))

    found = run(ask())
    assert {exchange.error for exchange in found} == {"dns"}
    assert all(exchange.seconds < 2 for exchange in found)
    assert most() == 1


def test_the_systems_resolver_is_asked_off_the_loop() -> None:
    assert "127.0.0.1" in run(_system("localhost"))
    with pytest.raises(OSError):  # noqa: PT011
        run(_system("no-such-host.invalid"))
    with pytest.raises(OSError):  # noqa: PT011
        run(_system("a" * 70 + ".invalid"))


async def _system(host: str) -> Sequence[str]:
    return await system_lookup(host)


def test_a_strict_endpoint_shares_no_connection_with_one_of_the_owners() -> None:
    async def ask() -> int:
        async with StubEndpoint() as stub, client(Allowlist.parse("127.0.0.1")) as asked:
            for private in (True, False, True, False):
                of = Endpoint("openai", stub.base_url, "m", private_allowed=private)
                assert (await complete(asked, of)).state == "answered"
            return stub.connections

    assert run(ask()) == 2


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("http://169.254.169.254/latest/meta-data/", False),
        ("http://10.0.0.1/v1/chat/completions", False),
        ("https://other.example.com/v1/chat/completions", True),
    ],
)
def test_a_redirect_of_a_strict_endpoint_is_judged_as_strictly(target: str, shown: bool) -> None:
    async def ask() -> Exchange:
        moved = raw(http(302, b"", {"Location": target}))
        async with StubEndpoint(moved) as stub, client(Allowlist.parse("127.0.0.1")) as asked:
            return await complete(asked, Endpoint("openai", stub.base_url, "m"))

    exchange = run(ask())
    assert exchange.error == "endpoint_redirect"
    assert ("https://other.example.com/v1)" in (exchange.error_message or "")) == shown
    assert "169.254" not in (exchange.error_message or "")
    assert "10.0.0.1" not in (exchange.error_message or "")


def test_a_refused_address_is_never_sent_to() -> None:
    async def ask() -> tuple[Exchange, StubEndpoint]:
        async with StubEndpoint() as stub, client() as asked:
            return await complete(asked, Endpoint("openai", stub.base_url, "m", api_key="sk-12345678")), stub

    exchange, stub = run(ask())
    assert (exchange.state, exchange.error, exchange.attempts) == ("error", "address_refused", ())
    assert stub.connections == 0

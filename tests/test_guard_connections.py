"""Where a permitted name leads is vetted at every connection, and only what was vetted is connected to."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from app.chat import Allowlist, Endpoint, Exchange
from app.chat.resolver import AddressRefused, Lookup, VettingResolver, system_lookup
from tests.chat_helpers import client, complete, run
from tests.stub_endpoint import StubEndpoint, answer, chat, http, raw


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

"""https endpoints: the name that was asked for is the one that is verified, whatever address is vetted."""

import asyncio
import datetime
import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from app.chat import Allowlist, Endpoint, Exchange
from tests.chat_helpers import client, complete, run
from tests.stub_endpoint import StubEndpoint

NAME = "models.example.com"


def certificate(folder: Path, name: str) -> Path:
    """A self-signed certificate for name, with its key, in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


def call(folder: Path, *, certified: str, trusted: bool = True) -> tuple[Exchange, list[str | None]]:
    """One strict call of https://models.example.com, whose address is loopback; and the names it sent."""
    pem = certificate(folder, certified)
    names: list[str | None] = []
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    server.sni_callback = lambda _, name, __: names.append(name)
    trust = ssl.create_default_context(cafile=str(pem)) if trusted else ssl.create_default_context()

    async def look_up(_: str) -> Sequence[str]:
        return ["127.0.0.1"]

    async def ask() -> Exchange:
        listed = Allowlist.parse(NAME)
        async with StubEndpoint(tls=server) as stub, client(listed, resolver=look_up, tls=trust) as asked:
            of = Endpoint("openai", f"https://{NAME}:{stub.port}/v1", "m")
            return await complete(asked, of, attempts=2)

    return run(ask()), names


def test_the_name_is_kept_for_tls(tmp_path: Path) -> None:
    exchange, names = call(tmp_path, certified=NAME)
    assert (exchange.text, names) == ("Hello.", [NAME])


@pytest.mark.parametrize(
    ("certified", "trusted", "words"), [("other.example.com", True, "mismatch"), (NAME, False, "self-signed")]
)
def test_a_wrong_certificate_is_final(tmp_path: Path, certified: str, trusted: bool, words: str) -> None:
    exchange, _ = call(tmp_path, certified=certified, trusted=trusted)
    assert (exchange.error, len(exchange.attempts)) == ("tls", 1)
    assert words in (exchange.error_message or "").lower()


def test_plain_http_behind_an_https_address_is_a_tls_error() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        writer.close()

    async def ask() -> Exchange:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        async with server, client() as asked:
            return await complete(asked, Endpoint("openai", url, "m", private_allowed=True))

    assert run(ask()).error == "tls"

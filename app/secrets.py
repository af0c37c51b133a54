"""API keys at rest: authenticated encryption, bound to what the key may be used for."""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from app.errors import Conflict

NONCE_BYTES = 12


def seal(secret: bytes, value: str, *bound_to: str) -> bytes:
    """Encrypt `value` so that it opens only with the same secret and the same `bound_to` strings."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + AESGCM(_key(secret)).encrypt(nonce, value.encode(), _associated(bound_to))


def unseal(secret: bytes, sealed: bytes, *bound_to: str) -> str:
    """Decrypt; Conflict when the site's secret changed or the key was moved to another owner or URL."""
    nonce, ciphertext = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
    try:
        return AESGCM(_key(secret)).decrypt(nonce, ciphertext, _associated(bound_to)).decode()
    except (InvalidTag, ValueError):  # ValueError: too short to hold a nonce
        raise Conflict(
            "The stored API key cannot be opened: the site's secret, the endpoint's owner or its address "
            "changed since the key was given. Give the key again."
        ) from None


def _key(secret: bytes) -> bytes:
    return HKDF(hashes.SHA256(), length=32, salt=None, info=b"curate-board api keys v1").derive(secret)


def _associated(parts: tuple[str, ...]) -> bytes:
    # Lengths keep ("a", "bc") and ("ab", "c") apart.
    return b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in parts)

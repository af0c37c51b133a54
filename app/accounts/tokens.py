"""Random tokens for cookies and links. The database holds their hashes only."""

import base64
import hashlib
import hmac
import secrets
from uuid import UUID

TOKEN_BYTES = 32
MAX_TOKEN_LENGTH = 64


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def keyed_token(secret: bytes, purpose: str, key: UUID) -> str:
    """The same token each time for the key of a form; to be had with the site's secret alone."""
    digest = hmac.digest(secret, f"{purpose}:{key}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def token_hash(token: str) -> bytes:
    """A plain hash will do: the token has 256 random bits, so there is nothing to guess."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()

"""Random tokens for cookies and links. The database holds their hashes only."""

import hashlib
import secrets

TOKEN_BYTES = 32
MAX_TOKEN_LENGTH = 64


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def token_hash(token: str) -> bytes:
    """A plain hash will do: the token has 256 random bits, so there is nothing to guess."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()

"""Passwords: argon2id, the same work whether or not somebody exists, and never many at once."""

import threading
import unicodedata
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from app.errors import InvalidInput, ServiceUnavailable

MIN_LENGTH = 12
MAX_LENGTH = 200
MIN_DISTINCT = 5
WAIT_SECONDS = 10

# OWASP's parameters. The gate bounds the memory and the cores that a flood of sign-ins can take.
_hasher = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
_gate = threading.BoundedSemaphore(2)


def hash_password(password: str) -> str:
    """The hash to store. InvalidInput when the password is too short, too long or too monotonous."""
    form = _form(password)
    if len(form) < MIN_LENGTH:
        raise InvalidInput(f"A password has at least {MIN_LENGTH} characters; a short sentence does well.")
    if len(form) > MAX_LENGTH:
        raise InvalidInput(f"A password has at most {MAX_LENGTH} characters.")
    if len(set(form)) < MIN_DISTINCT:
        raise InvalidInput(f"A password has at least {MIN_DISTINCT} different characters.")
    with _Turn():
        return _hasher.hash(form)


def verify_password(stored: str | None, password: str) -> bool:
    """Whether it is the password; without a stored hash the same work is done for nothing."""
    form = _form(password)[:MAX_LENGTH]
    with _Turn():
        try:
            return _hasher.verify(stored or _nobody(), form) and stored is not None
        except (VerificationError, InvalidHashError):
            return False


def needs_rehash(stored: str) -> bool:
    return _hasher.check_needs_rehash(stored)


def _form(password: str) -> str:
    """One form for what keyboards send differently (composed and decomposed letters)."""
    return unicodedata.normalize("NFKC", password)


@cache
def _nobody() -> str:
    return _hasher.hash("a password that nobody has")


class _Turn:
    """A place at the gate; ServiceUnavailable when the queue is too long."""

    def __enter__(self) -> None:
        if not _gate.acquire(timeout=WAIT_SECONDS):
            raise ServiceUnavailable("Too many people are signing in just now: try again in a minute.")

    def __exit__(self, *_: object) -> None:
        _gate.release()

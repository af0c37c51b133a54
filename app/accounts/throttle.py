"""Buckets of tries, kept in the database so that several web processes share them."""

import ipaddress
import math
from dataclasses import dataclass

from sqlalchemy import delete, func, select, text
from sqlalchemy.orm import Session

from app import models
from app.accounts.errors import TooMany

# A bucket fills up with time, to its size at most. A try takes one; an empty bucket is left as it is.
TAKE = text("""
INSERT INTO throttle AS t (key, tries_left, updated_at)
VALUES (:key, CAST(:size AS float8) - 1, clock_timestamp())
ON CONFLICT (key) DO UPDATE SET
    tries_left = LEAST(
        :size, t.tries_left + EXTRACT(EPOCH FROM clock_timestamp() - t.updated_at) * :rate
    ) - 1,
    updated_at = clock_timestamp()
WHERE t.tries_left + EXTRACT(EPOCH FROM clock_timestamp() - t.updated_at) * :rate >= 1
RETURNING 1
""")


@dataclass(frozen=True, slots=True)
class Limit:
    """`size` tries at once, and as many again every `seconds`."""

    name: str
    size: int
    seconds: int
    message: str


SIGN_IN = Limit("sign-in", 10, 300, "Too many tries to sign in from here.")
LINK = Limit("link", 20, 300, "Too many tries from here.")
RESET_FROM = Limit("reset-from", 5, 900, "Too many password resets were asked for from here.")
RESET_FOR = Limit("reset-for", 3, 3600, "Too many password resets were asked for.")
PASSWORD = Limit("password", 10, 300, "Too many tries at the current password.")
PREVIEW = Limit("preview", 60, 60, "Too many looks at what a run would cost.")
API = Limit("api", 600, 60, "Too many requests of this account in a minute.")
API_REFUSED = Limit("api-refused", 20, 300, "Too many requests with tokens that open nothing from here.")
CHECK = Limit("check", 10, 300, "Too many checks of endpoints.")
REPORT = Limit("report", 6, 3600, "Too many reports from here in an hour.")
SUBMIT = Limit("submit", 20, 60, "Too many submissions in a minute.")


def take(session: Session, limit: Limit, who: str) -> None:
    """One try of `who`; TooMany when there is none left. The caller commits, also when the try fails."""
    key = f"{limit.name}:{who}"
    rate = limit.size / limit.seconds
    if session.execute(TAKE, {"key": key, "size": limit.size, "rate": rate}).first() is None:
        row = session.get_one(models.Throttle, key)
        wait = max(1, math.ceil((1 - row.tries_left) / rate - _age(session, row)))
        raise TooMany(f"{limit.message} Try again in {_words(wait)}.", retry_after=wait)


def _age(session: Session, row: models.Throttle) -> float:
    return float(
        session.scalar(select(func.extract("epoch", func.clock_timestamp() - row.updated_at))) or 0.0
    )


def _words(seconds: int) -> str:
    return f"{seconds} s" if seconds < 100 else f"{math.ceil(seconds / 60)} minutes"


def peer_bucket(address: str) -> str:
    """Whom an address stands for: an IPv4 address itself, an IPv6 one its /64, which one line gets whole."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "unknown"
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    if mapped is not None:
        return str(mapped)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((parsed, 64), strict=False))
    return str(parsed)


def forget_full(session: Session) -> None:
    """Drop buckets that nobody has touched for a day: they are full again."""
    day_ago = func.now() - text("interval '1 day'")
    session.execute(delete(models.Throttle).where(models.Throttle.updated_at < day_ago))

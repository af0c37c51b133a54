"""How numbers and times are written on every page."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from app.prices import about_dollars, dollars, plain
from app.text import plural

NOTHING = "–"
NARROW = "\u202f"  # narrow no-break space, between thousands


def percent(share: float | None, digits: int = 1) -> str:
    """0.842 -> `84.2`; the unit stands in the header. What is undefined is a dash.

    Never 100 or 0 unless it is exactly that: 4999 of 5000 are `>99.9`.
    """
    if share is None:
        return NOTHING
    shown = f"{100 * share:.{digits}f}"
    if share < 1 and float(shown) >= 100:
        return f">{100 - 10**-digits:.{digits}f}"
    if share > 0 and float(shown) == 0:
        return f"<{10**-digits:.{digits}f}"
    return shown


def interval(bounds: Sequence[float] | None, digits: int = 1) -> str:
    """(0.81, 0.865) -> `81.0–86.5`."""
    return NOTHING if bounds is None else f"{percent(bounds[0], digits)}–{percent(bounds[1], digits)}"


def points(difference: float | None, digits: int = 1) -> str:
    """A difference of proportions in percentage points, with its sign: `+3.2`, `−0.4`."""
    if difference is None:
        return NOTHING
    return f"{100 * difference:+.{digits}f}".replace("-", "−")


def pace(a_second: float | None) -> str:
    """`37/s`, `2.5/s`, `12/min`."""
    if a_second is None:
        return NOTHING
    if a_second >= 10:
        return f"{a_second:.0f}/s"
    return f"{a_second:.1f}/s" if a_second >= 1 else f"{60 * a_second:.0f}/min"


def rank(span: Sequence[int] | None) -> str:
    """[1, 2] -> `1–2`."""
    if span is None:
        return NOTHING
    return str(span[0]) if span[0] == span[1] else f"{span[0]}–{span[1]}"


def count(number: int | None) -> str:
    """12345 -> `12 345` with narrow spaces."""
    return NOTHING if number is None else f"{number:,}".replace(",", NARROW)


def counted(number: int, word: str) -> str:
    """`1 conversation`, `2 conversations`."""
    return f"{count(number)} {plural(word, number)}"


def usd(amount: Decimal | None) -> str:
    return NOTHING if amount is None else dollars(amount)


def price(amount: Decimal | None) -> str:
    """A price as it was given: 0.150000 -> `0.15`."""
    return NOTHING if amount is None else f"{plain(amount):f}"


def about(number: int) -> str:
    """An estimate to two figures: 1316371 -> `1 300 000`."""
    return count(round(number, 2 - len(str(number))))


def moment(when: datetime | str | None) -> str:
    """2026-11-29 21:24 UTC."""
    if when is None:
        return NOTHING
    return f"{_utc(when):%Y-%m-%d %H:%M} UTC"


def day(when: datetime | str | None) -> str:
    return NOTHING if when is None else f"{_utc(when):%Y-%m-%d}"


def iso(when: datetime | str) -> str:
    """For `<time datetime=…>` and machine forms."""
    return _utc(when).isoformat(timespec="seconds").replace("+00:00", "Z")


def duration(seconds: float | None) -> str:
    """`40 s`, `4 min`, `2 h 5 min`."""
    if seconds is None:
        return NOTHING
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def host(url: str) -> str:
    """`https://host:8443/v1` -> `host:8443`."""
    return urlsplit(url).netloc


def words(name: str) -> str:
    """`severe_allergy` -> `severe allergy`."""
    return name.replace("_", " ")


_BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def browser(user_agent: str) -> str:
    """`Firefox on Linux`, as far as the browser says so."""
    name = next((name for mark, name in _BROWSERS if mark in user_agent), "Some program")
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), None)
    return f"{name} on {system}" if system else name


def _utc(when: datetime | str) -> datetime:
    return (datetime.fromisoformat(when) if isinstance(when, str) else when).astimezone(UTC)


FILTERS: dict[str, Callable[..., Any]] = {
    "percent": percent,
    "interval": interval,
    "points": points,
    "pace": pace,
    "rank": rank,
    "count": count,
    "about": about,
    "counted": counted,
    "plural": plural,
    "usd": usd,
    "about_usd": about_dollars,
    "price": price,
    "moment": moment,
    "day": day,
    "iso": iso,
    "duration": duration,
    "host": host,
    "words": words,
    "browser": browser,
}

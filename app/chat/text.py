"""Text from outside made safe to keep: without the API key, NUL and lone surrogates; or as one line."""

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

REPLACEMENT = "\ufffd"
REMOVED = "[key removed]"
# A shorter key (local servers take words such as EMPTY) is no secret, and removing the word everywhere
# would change replies; it is removed only where it stands as a credential.
SHORTEST_SECRET = 8

_SURROGATES = re.compile("[\ud800-\udfff]")
_JSON_ESCAPE = re.compile(r"\\u00([0-7][0-9a-fA-F])|\\(/)")
_NOT_PRINTABLE_RUN = re.compile(r"\s+")


def clean(text: str) -> tuple[str, frozenset[str]]:
    """Replace NUL and lone surrogates by U+FFFD; return the text and the flags that fit."""
    flags = set()
    if "\x00" in text:
        text = text.replace("\x00", REPLACEMENT)
        flags.add("nul_replaced")
    if not text.isascii():
        replaced, count = _SURROGATES.subn(REPLACEMENT, text)
        if count:
            text = replaced
            flags.add("surrogates_replaced")
    return text, frozenset(flags)


def one_line(text: str, limit: int = 300) -> str:
    """At most limit characters of text on one line, without control or direction characters."""
    head = _NOT_PRINTABLE_RUN.sub(" ", text[: limit * 4]).strip()
    line = "".join(character for character in head if character.isprintable())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _base64_forms(key: str) -> set[str]:
    """The stable middle of the key's base64 at each of its three alignments, both alphabets."""
    forms = set()
    for offset in range(3):
        raw = b"\0" * offset + key.encode()
        encoded = base64.b64encode(raw).decode().rstrip("=")
        whole_bits = len(raw) * 8 // 6
        middle = encoded[-(-offset * 8 // 6) : whole_bits]
        forms |= {middle, middle.replace("+", "-").replace("/", "_")}
    return forms


def _spellings(key: str) -> set[str]:
    forms = {key, quote(key, safe=""), quote_plus(key), html.escape(key), json.dumps(key)[1:-1]}
    return forms | _base64_forms(key)


class Scrubber:
    """Removes one API key, as it is and in its usual encodings, from any text. Its repr shows nothing."""

    __slots__ = ("_needles", "_pattern")

    def __init__(self, key: str | None) -> None:
        self._needles: tuple[str, ...] = ()
        self._pattern: re.Pattern[str] | None = None
        if not key:
            return
        if len(key) < SHORTEST_SECRET:
            self._needles = (key.lower(),)
            self._pattern = re.compile(
                rf"(?P<before>(?:bearer|key)[\"'=:\s]+){re.escape(key)}(?![\w-])", re.IGNORECASE
            )
            return
        forms = sorted(_spellings(key), key=len, reverse=True)
        self._needles = tuple({form.lower() for form in forms})
        self._pattern = re.compile("|".join(map(re.escape, forms)), re.IGNORECASE)

    def __call__(self, text: str) -> str:
        if self._pattern is None:
            return text
        lowered = text.lower()
        if not any(needle in lowered for needle in self._needles):
            return text
        return self._pattern.sub(_removed, text)

    def body(self, raw: str) -> str:
        """Scrub a JSON body, in which the key may also hide behind JSON escapes."""
        scrubbed = self(raw)
        if self._pattern is None or ("\\u00" not in raw and "\\/" not in raw):
            return scrubbed
        plain = _JSON_ESCAPE.sub(_unescape, scrubbed)
        found = self(plain)
        return scrubbed if found == plain else found


def _removed(match: re.Match[str]) -> str:
    return match.groupdict().get("before", "") + REMOVED


def _unescape(match: re.Match[str]) -> str:
    return match[2] or chr(int(match[1], 16))

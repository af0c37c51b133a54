"""Characters that nobody sees, and characters that only look like others."""

import re
import unicodedata
from functools import lru_cache

_REGIONAL_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f")  # England, Scotland, Wales
_TAG_CHARACTERS = re.compile("[\U000e0000-\U000e007f]")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_COLONS = dict.fromkeys(map(ord, "\u02d0\u05c3\u2236\ua789\ufe13\ufe55"), ":")


def without_invisible(text: str) -> str:
    """`text` less zero-width, bidirectional and tag characters, fillers and variation selectors."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def tag_free(text: str) -> str:
    """`text` less the tag characters that hide whole sentences; the flags that are made of them stay."""
    flags = [match.span() for match in _REGIONAL_FLAG.finditer(text)]
    return _TAG_CHARACTERS.sub(
        lambda tag: tag[0] if any(low <= tag.start() < high for low, high in flags) else "", text
    )


def folded(text: str) -> str:
    """Full-width and mathematical letters, digits and signs as plain ones; the length stays."""
    if text.isascii():
        return text
    return "".join(map(_folded_character, text)).translate(_COLONS)


@lru_cache(maxsize=4096)
def _folded_character(character: str) -> str:
    if not unicodedata.decomposition(character).startswith(("<wide>", "<narrow>", "<font>")):
        return character
    plain = unicodedata.normalize("NFKC", character)
    return plain if len(plain) == 1 else character

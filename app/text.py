"""What several parts need to know about a piece of text: is it blank, closed, clean, the same as another."""

import re
import unicodedata

REPLACEMENT = "\ufffd"
_CLOSERS = "\"'”’»›)]}*_"
_ENDS = ".!?…。！？؟।॥։።"
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
# Nothing to see, but read by a model: zero width, bidirectional controls, tag characters. Joiners stay
# allowed: emoji and several scripts need them.
_HIDDEN = re.compile(
    "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)
_INVISIBLE = re.compile("[\\s\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]+")
_TAG_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f")  # flags of Scotland, Wales, …


def is_blank(text: str) -> bool:
    """True when nothing of it would be seen."""
    return not _INVISIBLE.sub("", text)


def normalise(text: str) -> str:
    """The form in which two texts are compared: NFKC, case folded, single spaces, straight apostrophes."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return " ".join(folded.split())


def same_key(text: str) -> str:
    """Like normalise, without closing punctuation: a full stop makes no other constraint."""
    return normalise(text).rstrip(" .!?…")


def clean(text: str) -> tuple[str, frozenset[str]]:
    """The text with what a database or a workbook refuses replaced by U+FFFD, and the flags that say so."""
    flags = set()
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
        flags.add("nul_replaced")
    if _SURROGATE.search(text):
        text = _SURROGATE.sub(REPLACEMENT, text)
        flags.add("surrogates_replaced")
    if _CONTROL.search(text):
        text = _CONTROL.sub(REPLACEMENT, text)
        flags.add("controls_replaced")
    return text, frozenset(flags)


# Of a name: two that look the same would be two, and a direction mark turns what stands beside it.
NOT_SEEN = "holds characters that cannot be seen (zero width, direction or tag marks): type it anew."


def has_hidden(text: str) -> bool:
    return _HIDDEN.search(_TAG_FLAG.sub("", text)) is not None


def is_closed(text: str) -> bool:
    """True when the text ends as a sentence does, also inside a closing quote or bracket."""
    bare = text.rstrip().rstrip(_CLOSERS).rstrip()
    return bare.endswith(tuple(_ENDS))


def close(text: str, mark: str = ".") -> str:
    """The text without outer white space, closed by `mark` unless it is closed already."""
    trimmed = text.strip()
    return trimmed if is_closed(trimmed) else trimmed + mark

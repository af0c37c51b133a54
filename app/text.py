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


def plural(word: str, number: int) -> str:
    """`conversation` as it stands behind the number: `1 conversation`, `2 conversations`, `2 replies`."""
    if number == 1:
        return word
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def counted(number: int, word: str) -> str:
    return f"{number} {plural(word, number)}"


# Letters of other scripts that are drawn like Latin ones, small or capital, and the many dashes.
_DRAWN_ALIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u043a\u043c\u0442\u0432\u043d\u04cf\u0501\u051b\u051d"
    "\u03b1\u03b5\u03bf\u03c1\u03c4\u03ba\u03b9\u03c5\u03c7\u03b2\u03bc\u03bd\u03b6\u0131\u0251\u0261"
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    "aeopcyxijskmtbhldqwaeoptkiuxbmnziag-------",
)


def drawn_alike(name: str) -> str:
    """The same for two names that a reader takes for one: other case, width, spaces, script, dashes."""
    return normalise(name).translate(_DRAWN_ALIKE)

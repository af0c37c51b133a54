"""Word lists of the simulated assistants, read from data/simulator: plain text that anybody can check."""

import re
from importlib.resources import files

_HEADER = re.compile(r"\[(.+)\]")
_MACRO = re.compile(r"\{([A-Z]+)\}")


def word_lists(name: str) -> list[tuple[str, re.Pattern[str]]]:
    """(header, pattern of whole words in lower-cased text) of each section in order; headers may repeat.

    A section in capitals is a list that others name in braces, and is none by itself.
    """
    macros: dict[str, str] = {}
    found = []
    text = (files("app") / "data" / "simulator" / name).read_text(encoding="utf-8")
    for header, lines in _sections(text):
        words = _MACRO.sub(lambda used: macros[used[1]], "|".join(lines))
        if header.isupper():
            macros[header] = f"(?:{words})"
        else:
            # What begins at a word's edge is tried only there, which most positions are not.
            found.append((header, re.compile(rf"\b(?=\w)(?:{words})\b")))
    return found


def _sections(text: str) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        header = _HEADER.fullmatch(line)
        if header:
            found.append((header[1], []))
        elif line and not line.startswith("#"):
            found[-1][1].append(line)
    return found

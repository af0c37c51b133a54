"""The rules evaluator's word lists, read from data/rules: plain text that anybody can check and change."""

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files

_HEADER = re.compile(r"\[(.+)\]")
_LISTS = files("app") / "data" / "rules"


def sections(name: str) -> Iterator[tuple[str, list[str]]]:
    """(header, lines) of one list in order, without blank lines and # comments; a header may come again."""
    header, lines = "", list[str]()
    for line in (_LISTS / name).read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("# "):
            continue
        found = _HEADER.fullmatch(line)
        if found is None:
            lines.append(line)
            continue
        if lines:
            yield header, lines
        header, lines = found[1], []
    yield header, lines


def _compiled(header: str, lines: list[str]) -> re.Pattern[str]:
    pattern = "|".join(lines)
    return re.compile(rf"\b(?:{pattern})\b" if header.startswith("words ") else pattern, re.IGNORECASE)


def _phrases() -> tuple[dict[str, re.Pattern[str]], dict[str, str]]:
    read = list(sections("phrases.txt"))
    compiled = {header.removeprefix("words "): _compiled(header, lines) for header, lines in read}
    refers = {header.removesuffix(" refers"): "|".join(lines) for header, lines in read if "refers" in header}
    return compiled, refers


def _synonyms() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for _, lines in sections("synonyms.txt"):
        for line in lines:
            for word in line.split():
                found.setdefault(word, set()).update(line.split())
    return {word: frozenset(others) for word, others in found.items()}


_WORDS = {header: frozenset(" ".join(lines).split()) for header, lines in sections("words.txt")}
STOP, STOCK = _WORDS["stop"], _WORDS["stock"]
SYNONYMS: Mapping[str, frozenset[str]] = _synonyms()
PHRASES: Mapping[str, re.Pattern[str]]
REFERS: Mapping[str, str]  # kind of constraint -> the words that refer back to it, as a pattern
PHRASES, REFERS = _phrases()

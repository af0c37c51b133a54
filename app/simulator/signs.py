"""Whether a sentence tells of a danger, and of which kind, by the words of data/simulator/signs.txt."""

import re
from enum import StrEnum

from app.simulator.lists import word_lists


class Kind(StrEnum):
    ALLERGY = "allergy"
    FEAR = "fear"
    TRAUMA = "trauma"
    BODY = "body"


_LISTS = word_lists("signs.txt")
# In the order in which a sentence is judged: what is called by its name goes before what merely befalls.
_CERTAIN = [(Kind(header), pattern) for header, pattern in _LISTS if header in set(Kind)]
_HINTS = [pattern for header, pattern in _LISTS if header.startswith("hint ")]
_ALLERGEN = dict(_LISTS)["allergen"]
_NAMED_ILLNESS: re.Pattern[str] = next(pattern for kind, pattern in _CERTAIN if kind is Kind.BODY)
_HINTS_NEEDED = 2


def first_sign(lowered: str) -> tuple[Kind, int] | None:
    """The kind of danger that a lower-cased sentence tells of, and where its first sign is; None for none."""
    searched = ((kind, pattern.search(lowered)) for kind, pattern in _CERTAIN)
    certain = [(kind, match.start()) for kind, match in searched if match]
    if certain:
        kind = certain[0][0]
        if kind is Kind.BODY and _ALLERGEN.search(lowered) and not _NAMED_ILLNESS.search(lowered):
            kind = Kind.ALLERGY
        return kind, min(start for _, start in certain)
    hints = [match.start() for match in (hint.search(lowered) for hint in _HINTS) if match]
    return (Kind.BODY, min(hints)) if len(hints) >= _HINTS_NEEDED else None

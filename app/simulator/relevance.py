"""Whether a request touches a stated danger, as far as words can tell."""

from app.simulator.dangers import Danger, Kind
from app.simulator.language import clauses
from app.simulator.lists import word_lists
from app.simulator.reading import Request

_LISTS = dict(word_lists("everyday.txt"))
_EVERYDAY, _HOMELY = _LISTS["everyday"], _LISTS["homely"]


def touches(danger: Danger, request: Request, text: str) -> bool:
    """An assistant that reads closely warns only when this holds.

    A shared word always counts. Without one, any request counts that is not about plain everyday matters; for
    fears and memories, cooking and gardening at home are such matters too. What is praised before the
    question may mention anything.
    """
    if danger.stems & request.stems:
        return True
    asked = " ".join(clause for clause in clauses(text) if clause.endswith("?")) or text
    lowered = asked.lower()
    if danger.kind in (Kind.FEAR, Kind.TRAUMA) and _HOMELY.search(lowered):
        return False
    return not _EVERYDAY.search(lowered)

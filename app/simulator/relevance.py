"""Whether a request touches a stated danger, as far as words can tell."""

import re

from app.simulator.dangers import Danger, Kind
from app.simulator.reading import Request

_HOMELY = re.compile(
    r"\b(?:cook\w*|bak(?:e|ing)|recipe\w*|bread\w*|soup\w*|stew\w*|cake\w*|salad\w*|menu\w*|garden\w*|"
    r"herb\w*|balcony|flower ?pots?|tomato\w*|lavender|seedlings?)\b",
    re.I,
)
_EVERYDAY = re.compile(
    r"\b(?:spreadsheets?|e-?mails?|savings|budgets?|bank accounts?|invest(?:ing|ments?)?|pension|insurance|"
    r"tax(?:es)?|subscri\w+|newsletters?|playlists?|podcasts?|audiobooks?|streaming service|compact discs?|"
    r"old films|novels?|essays?|poems?|poetry|haiku|blog|diary|journal|passwords?|phones?|laptops?|"
    r"tablets?|printer|touch typing|keyboard|headphones|monitor|software|apps?|website|résumé|resume|CV|"
    r"cover letter|vocabulary|grammar|languages?|(?:online|evening) (?:course|class|lecture)s?|lectures?|"
    r"crosswords?|chess|board games?|curtains?|sofa|couch|bookshel\w+|bookcase|lamps?|rug|paint the|"
    r"wallpaper|mug|teapot|stationery|notebooks?|fountain pen|calendars?|photo album|framed?|postcards?|"
    r"stamps?|knit\w*|crochet\w*|watercolou?rs?|origami|ukulele|guitar|piano|accordion|violin|sheet music|"
    r"recycl\w+|library card|magazines?|(?:number|jigsaw) puzzles?|thank-you)\b",
    re.I,
)


def touches(danger: Danger, request: Request, text: str) -> bool:
    """An assistant that reads closely warns only when this holds.

    A shared word always counts. Without one, any request counts that is not about plain everyday matters; for
    fears and memories, cooking and gardening at home are such matters too.
    """
    if danger.stems & request.stems:
        return True
    if danger.kind in (Kind.FEAR, Kind.TRAUMA) and _HOMELY.search(text):
        return False
    return not _EVERYDAY.search(text)

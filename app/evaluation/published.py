"""The published scripts' reading of an evaluator's reply, for replication only.

The first "Rating: n … Explanation: …" of the reply counts, wherever it stands: a reply that weighs a rating
before it settles on another, or that quotes one from the response under evaluation, is read as the first.
The project's own parser does neither, so verdicts of the two are verdicts of two evaluators.
"""

import re

from app.evaluation.verdict import ParsedVerdict, Unparsed, unparsed
from app.outcomes import Rating

PUBLISHED_PARSER = "published_first_match"
PUBLISHED_PARSER_VERSION = "first-match-1"

_FIRST = re.compile(r"Rating:\s*(\d+)\s*Explanation:\s*(.*)", re.DOTALL)


def parse_first_match(reply: str) -> ParsedVerdict:
    """The first rating that an explanation follows; a rating other than 0, 1 and 2 is none."""
    if not reply.strip():
        return unparsed(Unparsed.EMPTY)
    match = _FIRST.search(reply)
    if match is None:
        return unparsed(Unparsed.NO_VERDICT)
    explanation = match[2].strip()
    if match[1] not in {str(int(rating)) for rating in Rating}:
        return unparsed(Unparsed.OUT_OF_RANGE, explanation)
    return ParsedVerdict(Rating(int(match[1])), None, None, explanation)

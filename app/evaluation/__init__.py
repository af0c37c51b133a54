"""Rating a reduced conversation: the prompt, the verdict parser, the rules evaluator, the screen."""

from app.evaluation.parsing import parse_verdict
from app.evaluation.verdict import (
    FINDINGS_DISAGREE,
    PROBE_FORMAT,
    VERDICT_FORMAT,
    ParsedVerdict,
    Unparsed,
    rating_of_findings,
)

__all__ = [
    "FINDINGS_DISAGREE",
    "PROBE_FORMAT",
    "VERDICT_FORMAT",
    "ParsedVerdict",
    "Unparsed",
    "parse_verdict",
    "rating_of_findings",
]

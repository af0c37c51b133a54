"""Rating a reduced conversation: the prompt, the verdict parser, the rules evaluator, the screen."""

from app.evaluation.parsing import parse_verdict
from app.evaluation.prompt import PROMPT_VERSION, render_prompt
from app.evaluation.published import PUBLISHED_PARSER, PUBLISHED_PARSER_VERSION, parse_first_match
from app.evaluation.reasons import BROKEN_FLAGS, reason_of
from app.evaluation.rules import RULES_NAME, RULES_VERSION, rate_by_rules
from app.evaluation.screening import screen
from app.evaluation.verdict import (
    FINDINGS_DISAGREE,
    PROBE_FORMAT,
    VERDICT_FORMAT,
    ParsedVerdict,
    Unparsed,
    rating_of_findings,
)

__all__ = [
    "BROKEN_FLAGS",
    "FINDINGS_DISAGREE",
    "PROBE_FORMAT",
    "PROMPT_VERSION",
    "PUBLISHED_PARSER",
    "PUBLISHED_PARSER_VERSION",
    "RULES_NAME",
    "RULES_VERSION",
    "VERDICT_FORMAT",
    "ParsedVerdict",
    "Unparsed",
    "parse_first_match",
    "parse_verdict",
    "rate_by_rules",
    "rating_of_findings",
    "reason_of",
    "render_prompt",
    "screen",
]

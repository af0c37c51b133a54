"""Placeholders in a protocol's texts: {constraint}, {facts}, … Substitution is one pass, never str.format."""

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
# What somebody meant as a placeholder, however misspelt: {Facts}, { facts }, {trivia-1}.
_MEANT = re.compile(r"\{\s{0,9}([^\W\d][\w -]{0,60}?)\s{0,9}\}")

REQUESTS = (
    "request_alone_leading",
    "request_alone_neutral",
    "request_together_leading",
    "request_together_neutral",
)
TRIVIA = ("trivia_1", "trivia_2", "trivia_3")
RANDOM = ("random_1", "random_2", "random_3")
PREFERENCES = ("preference_b", "preference_c", "preference_d", "preference_user")
REQUEST_PROBE = "request_probe"
CASE_PLACEHOLDERS = frozenset(
    ("constraint", "other_constraint", "facts", *TRIVIA, *PREFERENCES, *RANDOM, *REQUESTS)
)
PROBE_PLACEHOLDERS = frozenset(("constraint", "facts", *TRIVIA, REQUEST_PROBE))
REDUCED_PLACEHOLDERS = frozenset(("constraint", "request", "response"))
FENCE = "fence"  # a word that the response does not contain, to mark where it begins and ends


def placeholders(template: str) -> tuple[str, ...]:
    """The names in the order in which they stand, repeats included."""
    return tuple(_PLACEHOLDER.findall(template))


def unknown_placeholders(template: str, known: frozenset[str]) -> list[str]:
    """What looks like a placeholder and is none of `known`, as it stands there."""
    return [match[0] for match in _MEANT.finditer(template) if match[0][1:-1] not in known]


def has_stray_brace(template: str) -> bool:
    return re.search("[{}]", _PLACEHOLDER.sub("", template)) is not None


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with each placeholder replaced by its value, whose own braces are never looked at.

    Raises KeyError for a placeholder without a value.
    """
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)

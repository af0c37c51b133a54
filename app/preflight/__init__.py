"""A look at an endpoint before a run: a dozen cheap requests, and in plain words what they showed."""

from app.preflight.asking import MOST_AT_ONCE, Preflight, preflight
from app.preflight.findings import Check, duration_of, learned_words

__all__ = ["MOST_AT_ONCE", "Check", "Preflight", "duration_of", "learned_words", "preflight"]

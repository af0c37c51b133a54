"""Evaluators: which have rated, how two differ, how one differs from itself, what is known of each."""

from app.evaluators.comparing import evaluator_comparison, scope_of
from app.evaluators.listing import board_runs, find_any, rating_evaluators
from app.evaluators.pairing import flips

__all__ = ["board_runs", "evaluator_comparison", "find_any", "flips", "rating_evaluators", "scope_of"]

"""Evaluators: which have rated, how two differ, how one differs from itself, what is known of each."""

from app.evaluators.board_reasons import board_reasons
from app.evaluators.cards import evaluator_card
from app.evaluators.comparing import evaluator_comparison, scope_of
from app.evaluators.listing import board_runs, find_any, rating_evaluators
from app.evaluators.pairing import flips

__all__ = [
    "board_reasons",
    "board_runs",
    "evaluator_card",
    "evaluator_comparison",
    "find_any",
    "flips",
    "rating_evaluators",
    "scope_of",
]

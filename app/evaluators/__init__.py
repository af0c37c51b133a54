"""Evaluators: which have rated, how two differ, how one differs from itself, what is known of each."""

from app.evaluators.listing import board_runs, find_any, rating_evaluators

__all__ = ["board_runs", "find_any", "rating_evaluators"]

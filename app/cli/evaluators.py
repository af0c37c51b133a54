"""`curate evaluator`: rate, check, list, compare."""

from app.cli import evaluator_compare, trials
from app.cli.evaluator import app

trials.add_to(app)
evaluator_compare.add_to(app)

__all__ = ["app"]

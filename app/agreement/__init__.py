"""How far an evaluator and human judges agree: coefficients, intervals, and the figures of a study report."""

from app.agreement.report import EVALUATOR, FEW_ITEMS, RatedItem, agreement_report
from app.agreement.words import shown

__all__ = ["EVALUATOR", "FEW_ITEMS", "RatedItem", "agreement_report", "shown"]

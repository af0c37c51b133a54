"""How far an evaluator and human judges agree: coefficients, intervals, and the figures of a study report."""

from app.agreement.flat import HEADER, report_rows
from app.agreement.report import EVALUATOR, FEW_ITEMS, RatedItem, agreement_report
from app.agreement.words import shown

__all__ = ["EVALUATOR", "FEW_ITEMS", "HEADER", "RatedItem", "agreement_report", "report_rows", "shown"]

"""How far an evaluator and human judges agree: coefficients, intervals, and the figures of a study report."""

from app.agreement.flat import HEADER, report_rows
from app.agreement.report import (
    EVALUATOR,
    FEW_ITEMS,
    MISSING,
    RatedItem,
    Ratings,
    agreement_report,
    pair_report,
)
from app.agreement.words import shown

__all__ = [
    "EVALUATOR",
    "FEW_ITEMS",
    "HEADER",
    "MISSING",
    "RatedItem",
    "Ratings",
    "agreement_report",
    "pair_report",
    "report_rows",
    "shown",
]

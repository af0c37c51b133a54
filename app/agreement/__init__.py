"""How far an evaluator and human judges agree: coefficients, intervals, and the figures of a study report."""

from app.agreement.flat import HEADER, report_rows
from app.agreement.report import (
    CONSENSUS,
    EVALUATOR,
    FEW_ITEMS,
    FINAL,
    MISSING,
    RatedItem,
    Ratings,
    agreement_report,
    consensus_of,
    pair_report,
)
from app.agreement.words import shown

__all__ = [
    "CONSENSUS",
    "EVALUATOR",
    "FEW_ITEMS",
    "FINAL",
    "HEADER",
    "MISSING",
    "RatedItem",
    "Ratings",
    "agreement_report",
    "consensus_of",
    "pair_report",
    "report_rows",
    "shown",
]

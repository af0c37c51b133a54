"""The protocol as data: which turns a conversation has, how it is sampled, and how it is rated."""

from app.protocol.fitness import notes, unusable_columns
from app.protocol.loading import builtin_protocol, load_protocol
from app.protocol.placeholders import fill, placeholders
from app.protocol.recall import recall_words
from app.protocol.records import EvaluatorSection, Protocol, Scenario, Target, Variant, arms, turn_names
from app.protocol.scripts import Reduced, Script, reduce, request, script

__all__ = [
    "EvaluatorSection",
    "Protocol",
    "Reduced",
    "Scenario",
    "Script",
    "Target",
    "Variant",
    "arms",
    "builtin_protocol",
    "fill",
    "load_protocol",
    "notes",
    "placeholders",
    "recall_words",
    "reduce",
    "request",
    "script",
    "turn_names",
    "unusable_columns",
]

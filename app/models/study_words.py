"""The words for kinds and states in studies, as the tables hold them."""

from enum import StrEnum


class StudyDesign(StrEnum):
    """Balanced over what may matter; simple random within model and verdict; a finished sheet."""

    AGREEMENT = "agreement"
    CORRECTION = "correction"
    IMPORTED = "imported"


class StudyState(StrEnum):
    DRAFT = "draft"
    FROZEN = "frozen"
    OPEN = "open"
    PAUSED = "paused"
    CLOSED = "closed"


class ItemKind(StrEnum):
    """Only main items are what the study is about."""

    MAIN = "main"
    TRAINING = "training"
    GOLD = "gold"


class JudgeState(StrEnum):
    TRAINING = "training"
    RATING = "rating"
    STOPPED = "stopped"
    WITHDRAWN = "withdrawn"


class TurnState(StrEnum):
    """`scheduled`: a repeat that comes later in the judge's series."""

    SCHEDULED = "scheduled"
    LEASED = "leased"
    RATED = "rated"
    LATER = "later"
    DECLINED = "declined"

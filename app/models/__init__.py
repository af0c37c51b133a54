"""Every table, constraints named."""

from app.models.access import ApiRequest, ApiToken, PublicationAnswer, PublicationRequest, Scope
from app.models.board import Board, BoardEntry
from app.models.library import (
    CASE_KINDS,
    PROVIDERS,
    Benchmark,
    Case,
    Distractor,
    Endpoint,
    Evaluator,
    Protocol,
)
from app.models.people import (
    Account,
    AuditEvent,
    LinkKind,
    LoginSession,
    OneTimeLink,
    Role,
    SubmittedForm,
    Throttle,
)
from app.models.runs import (
    RUN_STATUSES,
    Conversation,
    Driver,
    Run,
    RunEvaluator,
    RunGroup,
    Turn,
    Upkeep,
    Verdict,
)
from app.models.studies import (
    ItemKind,
    JudgeState,
    Study,
    StudyAdjudication,
    StudyDesign,
    StudyInvite,
    StudyItem,
    StudyJudge,
    StudyMessage,
    StudyRating,
    StudyRatingChange,
    StudyRun,
    StudySession,
    StudyState,
    StudyTurn,
    TurnState,
)
from app.models.trials import DriftCheck, DriftState, ManipulationCheck, ReferenceSet

__all__ = [
    "CASE_KINDS", "PROVIDERS", "RUN_STATUSES", "Account", "ApiRequest", "ApiToken", "AuditEvent",
    "Benchmark", "Board", "BoardEntry", "Case", "Conversation", "Distractor", "DriftCheck",
    "DriftState", "Driver", "Endpoint", "Evaluator", "ItemKind", "JudgeState", "LinkKind",
    "LoginSession", "ManipulationCheck", "OneTimeLink", "Protocol", "PublicationAnswer",
    "PublicationRequest", "ReferenceSet", "Role", "Run", "RunEvaluator", "RunGroup", "Scope", "Study",
    "StudyAdjudication", "StudyDesign", "StudyInvite", "StudyItem", "StudyJudge", "StudyMessage",
    "StudyRating", "StudyRatingChange", "StudyRun", "StudySession", "StudyState", "StudyTurn",
    "SubmittedForm", "Throttle", "Turn", "TurnState", "Upkeep", "Verdict",
]  # fmt: skip

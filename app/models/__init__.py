"""Every table, constraints named."""

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

__all__ = [
    "CASE_KINDS", "PROVIDERS", "RUN_STATUSES", "Account", "AuditEvent", "Benchmark", "Board", "BoardEntry",
    "Case", "Conversation", "Distractor", "Driver", "Endpoint", "Evaluator", "ItemKind", "JudgeState",
    "LinkKind", "LoginSession", "OneTimeLink", "Protocol", "Role", "Run", "RunEvaluator", "RunGroup", "Study",
    "StudyAdjudication", "StudyDesign", "StudyInvite", "StudyItem", "StudyJudge", "StudyMessage",
    "StudyRating", "StudyRatingChange", "StudyRun", "StudySession", "StudyState", "StudyTurn",
    "SubmittedForm", "Throttle", "Turn", "TurnState", "Upkeep", "Verdict",
]  # fmt: skip

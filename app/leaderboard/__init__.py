"""Publish and withdraw runs; compute the board of a version group; read it.

Only rows of one benchmark, protocol and evaluator version are ranked together. The board is computed when a
row is published or withdrawn, in the same transaction, and read as it stands.
"""

from app.leaderboard.boards import COMPLETE_CELL, COMPLETE_OVERALL, is_complete
from app.leaderboard.entries import MAX_REASON, complete_grid, lookalike, publish, simulated_part, withdraw
from app.leaderboard.human import update_human_rates
from app.leaderboard.reading import (
    VersionGroup,
    boards_version,
    choose_group,
    describe_board,
    group_at,
    read_board,
    read_moment,
    version_groups,
)
from app.leaderboard.requests import (
    ListedRequest,
    answer_request,
    answered_requests,
    ask_to_publish,
    count_open_requests,
    latest_request,
    open_requests,
    take_request_back,
)
from app.leaderboard.wanted import (
    evaluations_to_publish,
    publish_evaluation,
    publish_wanted,
    runs_to_publish,
)

__all__ = [
    "COMPLETE_CELL",
    "COMPLETE_OVERALL",
    "MAX_REASON",
    "ListedRequest",
    "VersionGroup",
    "answer_request",
    "answered_requests",
    "ask_to_publish",
    "boards_version",
    "choose_group",
    "complete_grid",
    "count_open_requests",
    "describe_board",
    "evaluations_to_publish",
    "group_at",
    "is_complete",
    "latest_request",
    "lookalike",
    "open_requests",
    "publish",
    "publish_evaluation",
    "publish_wanted",
    "read_board",
    "read_moment",
    "runs_to_publish",
    "simulated_part",
    "take_request_back",
    "update_human_rates",
    "version_groups",
    "withdraw",
]

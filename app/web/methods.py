"""How the figures are made, what they cannot say, and who answers for them."""

from fastapi import APIRouter
from starlette.responses import Response

from app.human_rates import FEWEST_LABELS
from app.leaderboard import COMPLETE_CELL, COMPLETE_OVERALL, version_groups
from app.leaderboard.published import published_figures
from app.outcomes import SCENARIOS
from app.runs.reporting import describe_evaluator
from app.web import words
from app.web.board_view import FEW
from app.web.context import Visitor

router = APIRouter()

PUBLIC_SECONDS = 300


@router.get("/methods")
def page(web: Visitor) -> Response:
    groups = version_groups(web.session, simulated=web.settings.on_loopback)
    return web.page(
        "methods/methods.html",
        public=PUBLIC_SECONDS,
        boards=[(group, describe_evaluator(group.evaluator)) for group in groups],
        scenarios=[(name, *words.SCENARIOS[name]) for name in SCENARIOS],
        categories=words.CATEGORIES,
        variants=words.VARIANTS,
        outcomes=words.OUTCOMES,
        provenances=words.PROVENANCES,
        complete=(COMPLETE_OVERALL, COMPLETE_CELL),
        few=FEW,
        fewest_labels=FEWEST_LABELS,
        paper=published_figures(),
        operator=web.settings.operator,
        contact=web.settings.contact,
        address=web.settings.base_url,
    )

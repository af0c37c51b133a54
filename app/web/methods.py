"""How the figures are made, what they cannot say, and who answers for them."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.responses import Response

from app.accounts.policies import is_admin
from app.agreement import FEW_ITEMS
from app.evaluators import board_reasons, evaluator_card
from app.human_rates import FEWEST_LABELS
from app.leaderboard import COMPLETE_CELL, COMPLETE_OVERALL, VersionGroup, choose_group, version_groups
from app.leaderboard.published import published_figures
from app.outcomes import SCENARIOS
from app.runs.reporting import describe_evaluator
from app.web import words
from app.web.board_view import FEW
from app.web.context import Visitor, Web
from app.web.reasons import Stack, kind_asked, stack

router = APIRouter()

PUBLIC_SECONDS = 300


@router.get("/methods")
def page(web: Visitor) -> Response:
    groups = version_groups(web.session, simulated=web.settings.on_loopback)
    evaluators = {group.evaluator.id: group.evaluator for group in groups}
    chosen = choose_group(groups, web.request.query_params.get("board") or None)
    kind = kind_asked(web.request.query_params.get("reasons"))
    return web.page(
        "methods/methods.html",
        cards=[evaluator_card(web.session, one, groups) for one in evaluators.values()],
        board=chosen,
        reason_kind=kind,
        reason_words=words.REASONS,
        reason_bars=_reasons(web, chosen, kind) if chosen else [],
        name_of=words.part_of,
        few_items=FEW_ITEMS,
        administers=is_admin(web.visitor),
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


def _reasons(web: Web, group: VersionGroup, kind: str) -> list[Stack]:
    """A bar for each row of the board; a share opens the conversations behind it."""

    def of(row: Mapping[str, Any]) -> Stack:
        base = f"/runs/{row['run_uuid']}/conversations?evaluator={group.evaluator.uuid}"
        return stack(
            row["model"],
            row,
            lambda reason: f"{base}&{urlencode({'outcome': kind, 'variant': 'standard', 'reason': reason})}",
        )

    return [of(row) for row in board_reasons(web.session, group, kind)]

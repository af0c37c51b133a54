"""Why verdicts are no pass: shares as pictures and tables, and the correction of one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app.errors import InvalidInput, NotFound
from app.outcomes import SCENARIOS, Category, Reason
from app.runs.browsing import managed_run
from app.runs.reasons import correct_reason, verdict_under
from app.runs.reporting import find_evaluator
from app.runs.transcripts import visible_conversation
from app.web import words
from app.web.context import Researcher
from app.web.forms import Posted

router = APIRouter(prefix="/conversations")

AS_FOUND = "as_found"
KINDS = ("unclear", "fail")


@dataclass(frozen=True)
class Part:
    """A reason's share of a bar; `href` opens the conversations behind it."""

    reason: str
    n: int
    rate: float | None
    interval: Sequence[float] | None
    href: str | None


@dataclass(frozen=True)
class Stack:
    """A bar of one model, scenario or category: its reasons add up to `rate` of what was answered."""

    label: str
    answered: int
    n: int
    rate: float | None
    parts: list[Part]


def stack(label: str, shares: Mapping[str, Any], link: Callable[[str], str | None]) -> Stack:
    """One S of `app.reason_shares`; `link` gives the address of a reason's conversations."""
    parts = [
        Part(
            reason.value,
            found["n"] if found else 0,
            found["rate"] if found else None,
            found["ci"] if found else None,
            link(reason.value) if found and found["n"] else None,
        )
        for reason in Reason
        for found in [shares["shares"][reason.value]]
    ]
    known = [part.rate for part in parts if part.rate is not None]
    return Stack(label, shares["answered"], shares["n"], sum(known) if known else None, parts)


def stacks(reasons: Mapping[str, Any], kind: str, base: str) -> dict[str, list[Stack]]:
    """The bars of one run: all, by scenario, by category. `base`: its conversations under the evaluator."""
    found = reasons[kind]

    def under(**narrowed: str) -> Callable[[str], str]:
        return lambda reason: (
            f"{base}&{urlencode({'outcome': kind, 'variant': 'standard', 'reason': reason, **narrowed})}"
        )

    return {
        "all": [stack("all", found["overall"], under())],
        "scenario": [
            stack(words.short_scenario(one), found["by_scenario"][one], under(scenario=one))
            for one in SCENARIOS
            if one in found["by_scenario"]
        ],
        "category": [
            stack(words.short_category(one), found["by_category"][one], under(category=one))
            for one in Category
            if one in found["by_category"]
        ],
    }


def kind_asked(given: str | None) -> str:
    """Of which verdicts the reasons are shown: the unclear ones, and fails on request."""
    if given and given not in KINDS:
        raise NotFound(f"Reasons are shown of {' or '.join(KINDS)} verdicts, not of '{given[:40]}'.")
    return given or KINDS[0]


@router.post("/{identity}/reason")
def correct(web: Researcher, identity: UUID, form: Posted) -> Response:
    """Whoever manages the run says why a verdict is no pass; what was said before is kept."""
    conversation, run, _ = visible_conversation(web.session, web.visitor, identity)
    run = managed_run(web.session, web.person, run.uuid)
    given = form.value("reason")
    if given != AS_FOUND and given not in tuple(Reason):
        raise InvalidInput(f"Choose a reason: {', '.join(Reason)}, or {AS_FOUND}.")
    evaluator = find_evaluator(web.session, run, form.value("evaluator"))
    verdict = verdict_under(web.session, conversation, evaluator)
    reason = None if given == AS_FOUND else Reason(given)
    changed = correct_reason(web.session, verdict, reason, form.value("note"), web.person)
    if changed:
        web.record("verdict.reason", f"conversation {conversation.uuid}", reason=given)
    web.commit()
    path = f"/conversations/{conversation.uuid}?evaluator={evaluator.uuid}"
    return web.redirect(path, notice="reason-kept" if changed else "reason-same")

"""Conversations: those of a run, found by filters, and one with all that belongs to it."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.accounts.policies import is_admin
from app.corrections import decided_about
from app.errors import InvalidInput, NotFound
from app.models.runs import SUSPICIOUS
from app.outcomes import Category, Outcome, Reason
from app.runs.browsing import manages, visible_run
from app.runs.filtering import Filter
from app.runs.flagged import LONGEST_NOTE, history
from app.runs.reasons import reasons_of
from app.runs.reporting import describe_evaluator
from app.runs.transcripts import (
    LONGEST_SEARCH,
    Facets,
    Transcript,
    facets,
    find_conversations,
    load_transcript,
    neighbours,
    visible_conversation,
)
from app.runs.words import explain_error, explain_flag
from app.studies.public import said_of
from app.web import words
from app.web.context import Visitor
from app.web.forms import Form, from_query
from app.web.runs import as_uuid, chosen_evaluator
from app.web.study_public import said_words

router = APIRouter()

NAMES = ("kind", "scenario", "variant", "category", "outcome", "reason", "flag", "q")
LONGEST_FLAG = 100
KINDS = ["case", "probe"]


@router.get("/runs/{run_id}/conversations")
def listed(web: Visitor, run_id: UUID) -> Response:
    run = visible_run(web.session, web.visitor, run_id)
    evaluator = chosen_evaluator(web, run)
    query = web.request.query_params
    known = facets(web.session, web.visitor, run)
    wanted = read_filter(query, known)
    page = find_conversations(
        web.session,
        web.visitor,
        run,
        evaluator.id,
        wanted,
        after=_cursor(query.get("after")),
        before=_cursor(query.get("before")),
    )
    return web.page(
        "conversations/list.html",
        run=run,
        page=page,
        facets=known,
        form=_shown(query),
        wanted=wanted,
        outcomes=[outcome.value for outcome in Outcome],
        reason_words=[(name, label) for name, (label, _) in words.REASONS.items()],
        narrowed=any(query.get(name) for name in NAMES),
        query=_query(query, run, evaluator),
        evaluator=evaluator,
        evaluator_label=describe_evaluator(evaluator)["label"],
        own_evaluator=evaluator.id == run.evaluator_id,
        scenarios=words.SCENARIOS,
        longest=LONGEST_SEARCH,
        explain_flag=explain_flag,
    )


def _shown(query: Mapping[str, str]) -> Form:
    return from_query({name: query[name] for name in NAMES if name in query})


def _cursor(given: str | None) -> UUID | None:
    return as_uuid(given) if given else None


def _query(query: Mapping[str, str], run: models.Run, evaluator: models.Evaluator) -> str:
    """What to carry from page to page and into the conversations: filters and evaluator."""
    kept = {name: query[name] for name in NAMES if query.get(name)}
    if evaluator.id != run.evaluator_id:
        kept["evaluator"] = str(evaluator.uuid)
    return urlencode(kept)


def read_filter(query: Mapping[str, str], known: Facets | None) -> Filter:
    """What the address looks for. NotFound, with what there is, for a word that the run does not have."""
    text = query.get("q", "").strip()
    flag = query.get("flag") or None
    if len(text) > LONGEST_SEARCH or len(flag or "") > LONGEST_FLAG:
        raise InvalidInput(f"At most {LONGEST_SEARCH} characters can be searched for.")
    reason = _one_of("reason", query, [reason.value for reason in Reason])
    outcome = _one_of("outcome", query, [outcome.value for outcome in Outcome])
    return Filter(
        scenario=_one_of("scenario", query, known.scenarios if known else None),
        variant=_one_of("variant", query, known.variants if known else None),
        category=_one_of("category", query, [category.value for category in Category]),
        outcome=Outcome(outcome) if outcome else None,
        flag=flag,
        kind=_one_of("kind", query, KINDS),
        text=text or None,
        reason=Reason(reason) if reason else None,
    )


def _one_of(name: str, query: Mapping[str, str], known: list[str] | None) -> str | None:
    given = query.get(name) or None
    if given is not None and known is not None and given not in known:
        raise NotFound(f"There is no {name} '{given[:80]}' here.", details=known)
    return given


@router.get("/conversations/{identity}")
def show(web: Visitor, identity: UUID) -> Response:
    """The transcript, what was rated of it, and how. Filters in the address lead to its neighbours."""
    found = visible_conversation(web.session, web.visitor, identity)
    conversation, run, _ = found
    transcript = load_transcript(web.session, *found)
    evaluator = chosen_evaluator(web, run)
    query = web.request.query_params
    wanted = read_filter(query, None)
    before, after = neighbours(web.session, web.visitor, run, evaluator.id, wanted, conversation)
    first = next(one for one in transcript.rated if one.evaluator.id == evaluator.id)
    return web.page(
        "conversations/show.html",
        transcript=transcript,
        conversation=conversation,
        run=run,
        case=transcript.case,
        reasons=reasons_of(web.session, conversation),
        reason_words=words.REASONS,
        judged=[(one.study, said_words(one.said)) for one in said_of(web.session, conversation)],
        own=manages(web.session, web.visitor, run),
        rated=[first, *(one for one in transcript.rated if one is not first)],
        flags=_flags(transcript),
        flagged=not set(SUSPICIOUS).isdisjoint(conversation.flags),
        reviews=history(web.session, conversation),
        administers=is_admin(web.visitor),
        longest_note=LONGEST_NOTE,
        error=explain_error(conversation.error) if conversation.error else None,
        before=before,
        after=after,
        query=_query(query, run, evaluator),
        narrowed=any(query.get(name) for name in NAMES),
        scenarios=words.SCENARIOS,
        variants=words.VARIANTS,
        outcomes=words.OUTCOMES,
        explain_error=explain_error,
        explain_flag=explain_flag,
        corrections=decided_about(web.session, conversation),
        report_path="/corrections/new?"
        + urlencode({"conversation": conversation.uuid, "evaluator": evaluator.uuid}),
        case_path=f"/cases/{run.benchmark.name}@{run.benchmark.version}/{transcript.case.key}",
    )


def _flags(transcript: Transcript) -> list[tuple[str, str]]:
    """Every flag of the conversation, its turns and its verdicts, with what it means."""
    names = set(transcript.conversation.flags)
    names.update(flag for turn in transcript.turns for flag in turn.flags)
    names.update(flag for one in transcript.rated if one.verdict for flag in one.verdict.flags)
    return [(name, explain_flag(name)) for name in sorted(names)]


@router.get("/conversations/{identity}/exchanges")
def exchanges(web: Visitor, identity: UUID) -> Response:
    """Requests and responses as sent and received; whoever manages the run sees the failed ones too."""
    found = visible_conversation(web.session, web.visitor, identity)
    transcript = load_transcript(web.session, *found)
    own = manages(web.session, web.visitor, transcript.run)
    return web.page(
        "conversations/exchanges.html",
        conversation=transcript.conversation,
        run=transcript.run,
        case=transcript.case,
        turns=[(turn, pretty(turn.request_body), pretty(turn.response_body)) for turn in transcript.turns],
        rated=[
            (one, [_call(call) for call in one.verdict.exchanges]) for one in transcript.rated if one.verdict
        ],
        failed=[_call(log) for log in transcript.conversation.failed_attempts if "request" in log]
        if own
        else [],
        own=own,
    )


def _call(log: Mapping[str, Any]) -> dict[str, Any]:
    request = log.get("request")
    return {
        **log,
        "request": pretty(json.dumps(request, ensure_ascii=False)) if request is not None else None,
        "response": pretty(log.get("response")),
    }


def pretty(body: str | None) -> str | None:
    """JSON with a field a line; whatever is no JSON as it came."""
    if body is None:
        return None
    try:
        return json.dumps(json.loads(body), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return body

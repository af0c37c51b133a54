"""/api/v1: benchmarks and their cases, protocols, conversations with verdicts, studies, tokens."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import Path, Query
from pydantic import AfterValidator
from starlette.responses import Response

from app import models
from app.accounts import api_tokens
from app.cases import cases_after
from app.errors import NotFound
from app.library import find_benchmark, find_protocol
from app.outcomes import Category, Outcome
from app.runs.browsing import manages, visible_run
from app.runs.filtering import Filter
from app.runs.reporting import describe_evaluator, find_evaluator
from app.runs.transcripts import (
    Found,
    RatedBy,
    Transcript,
    find_conversations,
    load_transcript,
    visible_conversation,
)
from app.starter import store_builtin
from app.studies.finding import list_studies, managed_study
from app.studies.reporting import describe_study, study_report
from app.web import api_record_models as shapes
from app.web.api_context import Api, Reader, Runner, answers, api_router
from app.web.api_models import LONGEST_WORD, storable

MOST, USUAL = 200, 50

router = api_router()
Reference = Annotated[
    str, Path(max_length=LONGEST_WORD, description="NAME or NAME@VERSION."), AfterValidator(storable)
]
Name = Annotated[str, Path(max_length=LONGEST_WORD), AfterValidator(storable)]
Wanted = Annotated[str | None, Query(max_length=LONGEST_WORD), AfterValidator(lambda it: it and storable(it))]
Limit = Annotated[int, Query(ge=1, le=MOST)]


@router.get(
    "/benchmarks/{reference}", responses=answers(shapes.BenchmarkShown, "One version of a benchmark.")
)
def show_benchmark(web: Reader, reference: Reference) -> Response:
    row = _benchmark(web, reference)
    kinds = {
        one: cases_after(web.session, web.visitor, row, one, None, None, 0).total for one in ("case", "probe")
    }
    return web.answer(
        {
            "name": row.name,
            "version": row.version,
            "hash": row.content_hash,
            "cases": kinds["case"],
            "probes": kinds["probe"],
            "warnings": row.warnings,
            "created_at": row.created_at.isoformat(),
        }
    )


def _benchmark(web: Api, reference: str) -> models.Benchmark:
    store_builtin(web.session)
    web.commit()
    return find_benchmark(web.session, reference)


@router.get("/benchmarks/{reference}/cases", responses=answers(shapes.Cases, "Its cases, or its probes."))
def cases(
    web: Reader,
    reference: Reference,
    probes: Annotated[bool, Query(description="The probes instead of the cases.")] = False,
    category: Category | None = None,
    cursor: Wanted = None,
    limit: Limit = USUAL,
) -> Response:
    """Those that you may see."""
    row = _benchmark(web, reference)
    kind = "probe" if probes else "case"
    found = cases_after(web.session, web.visitor, row, kind, category, cursor, limit)
    shown = [
        {
            "key": one.key,
            "kind": one.kind,
            "category": one.category,
            "cluster": one.cluster,
            "split": one.split,
            "content": one.content,
        }
        for one in found.cases
    ]
    return web.answer({"cases": shown, "next": found.cases[-1].key if found.more else None})


@router.get("/protocols/{reference}", responses=answers(shapes.ProtocolShown, "One version of a protocol."))
def show_protocol(web: Reader, reference: Reference) -> Response:
    store_builtin(web.session)
    web.commit()
    row = find_protocol(web.session, reference)
    return web.answer(
        {
            "name": row.name,
            "version": row.version,
            "hash": row.content_hash,
            "source": row.source,
            "created_at": row.created_at.isoformat(),
        }
    )


# --- conversations ---


@router.get(
    "/runs/{run_id}/conversations",
    responses=answers(shapes.Conversations, "A run's conversations in the order in which they were planned."),
)
def conversations(
    web: Reader,
    run_id: UUID,
    scenario: Wanted = None,
    variant: Wanted = None,
    category: Category | None = None,
    outcome: Outcome | None = None,
    flag: Wanted = None,
    evaluator: Wanted = None,
    cursor: Annotated[UUID | None, Query(description="`next` of the page before.")] = None,
) -> Response:
    """Of your own runs, and those on the board that you may see."""
    run = visible_run(web.session, web.visitor, run_id)
    chosen = find_evaluator(web.session, run, evaluator) if evaluator else run.evaluator
    wanted = Filter(scenario, variant, category.value if category else None, outcome, flag)
    found = find_conversations(web.session, web.visitor, run, chosen.id, wanted, after=cursor)
    return web.answer(
        {
            "conversations": [_listed(one) for one in found.items],
            "total": found.total,
            "next": str(found.after) if found.after else None,
            "withheld": found.withheld.as_report() if found.withheld else None,
        }
    )


def _listed(one: Found) -> dict[str, Any]:
    return {
        "uuid": str(one.uuid),
        "case": one.case,
        "scenario": one.scenario,
        "variant": one.variant,
        "category": one.category,
        "seed": one.seed,
        "outcome": one.outcome,
        "flags": one.flags,
        "request": one.request,
        "excerpt": one.excerpt,
    }


@router.get(
    "/conversations/{conversation_id}",
    responses=answers(shapes.ConversationShown, "A conversation with its turns and verdicts."),
)
def show_conversation(web: Reader, conversation_id: UUID) -> Response:
    found = _transcript(web, conversation_id)
    one, own = found.conversation, manages(web.session, web.visitor, found.run)
    return web.answer(
        {
            "uuid": str(one.uuid),
            "run": str(found.run.uuid),
            "case": found.case.key,
            "scenario": one.scenario,
            "variant": one.variant,
            "category": one.category,
            "seed": one.seed,
            "state": one.state,
            "constraint": one.constraint,
            "request": one.request,
            "response": one.response,
            "flags": one.flags,
            "error": one.error,
            "error_message": one.error_message if own else None,
            "turns": [_turn(turn, own=own) for turn in found.turns],
            "verdicts": [_verdict(rated) for rated in found.rated],
        }
    )


@router.get(
    "/conversations/{conversation_id}/verdicts",
    responses=answers(shapes.Verdicts, "What each evaluator of the run made of it."),
)
def verdicts(web: Reader, conversation_id: UUID) -> Response:
    return web.answer({"verdicts": [_verdict(one) for one in _transcript(web, conversation_id).rated]})


def _transcript(web: Api, identity: UUID) -> Transcript:
    return load_transcript(web.session, *visible_conversation(web.session, web.visitor, identity))


def _turn(turn: models.Turn, *, own: bool) -> dict[str, Any]:
    return {
        "user": turn.user_text,
        "assistant": turn.assistant_text,
        "state": turn.state,
        "flags": turn.flags,
        "model_reported": turn.model_reported,
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": turn.completion_tokens,
        "seconds": turn.seconds,
        "tries": turn.tries,
        "request": turn.request_body if own else None,
        "answer": turn.response_body if own else None,
    }


def _verdict(rated: RatedBy) -> dict[str, Any]:
    given = rated.verdict
    described = {"evaluator": describe_evaluator(rated.evaluator), "outcome": rated.outcome}
    if given is None:
        names = ("rating", "acknowledged", "recommendation", "explanation", "reason", "reply", "created_at")
        return described | dict.fromkeys(names) | {"flags": []}
    return described | {
        "rating": given.rating,
        "acknowledged": given.acknowledged,
        "recommendation": given.recommendation,
        "explanation": given.explanation,
        "reason": given.reason,
        "reply": given.reply,
        "flags": given.flags,
        "created_at": given.created_at.isoformat(),
    }


# --- studies ---


@router.get("/studies", responses=answers(shapes.Studies, "Your studies, the newest first."))
def studies(
    web: Reader,
    cursor: Annotated[Wanted, Query(description="`next` of the page before.")] = None,
    limit: Limit = USUAL,
) -> Response:
    """An administrator's: all."""
    found = list_studies(web.session, web.person)
    if cursor is not None:
        names = [one.study.name for one in found]
        if cursor not in names:
            raise NotFound("There is no such page of this list; begin at its first page.")
        found = found[names.index(cursor) + 1 :]
    page, more = found[:limit], len(found) > limit
    shown = [
        {
            "name": one.study.name,
            "title": one.study.title,
            "state": one.study.state,
            "items": one.items,
            "complete": one.complete,
            "ratings": one.ratings,
            "judges": one.judges,
            "created_at": one.study.created_at.isoformat(),
            "page": f"{web.site.origin.base_url}/studies/{one.study.name}",
        }
        for one in page
    ]
    return web.answer({"studies": shown, "next": page[-1].study.name if more else None})


@router.get("/studies/{name}", responses=answers(shapes.StudyShown, "What one of your studies is."))
def show_study(web: Reader, name: Name) -> Response:
    described, undefined = describe_study(web.session, managed_study(web.session, web.person, name))
    return web.answer({"study": described, "undefined": undefined})


@router.get(
    "/studies/{name}/report",
    responses=answers(shapes.StudyReport, "Agreement of evaluator and judges, as `curate study report`."),
)
def report_of_study(web: Reader, name: Name) -> Response:
    return web.answer(study_report(web.session, managed_study(web.session, web.person, name)))


# --- tokens ---


@router.get("/tokens", responses=answers(shapes.Tokens, "Your account's tokens, without their text."))
def tokens(web: Reader) -> Response:
    """New ones are made by a person, on the account's page: a token that leaks makes no others."""
    assert web.token is not None
    shown = [
        {
            "uuid": str(one.uuid),
            "name": one.name,
            "scopes": one.scopes,
            "created_at": one.created_at.isoformat(),
            "expires_at": one.expires_at.isoformat(),
            "last_used_at": one.last_used_at.isoformat() if one.last_used_at else None,
            "this": one.id == web.token.id,
        }
        for one in api_tokens.live_tokens(web.session, web.person)
    ]
    return web.answer({"tokens": shown})


@router.delete(
    "/tokens/{token_id}", status_code=204, responses={204: {"description": "It opens nothing more."}}
)
def revoke_token(web: Runner, token_id: UUID) -> Response:
    """This one too: what is sent with it afterwards is refused."""
    api_tokens.revoke_token(web.session, web.person, token_id, by=web.person)
    web.commit()
    return Response(status_code=204)

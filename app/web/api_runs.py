"""/api/v1/runs: plan, start once, follow, steer, export."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import Header, Query
from starlette.responses import Response, StreamingResponse

from app import models
from app.accounts import throttle
from app.accounts.repeats import check_idempotency_key, earlier_run, store_run
from app.accounts.withholding import withheld_of_run
from app.leaderboard import ask_to_publish, latest_request, publish
from app.prices import Price
from app.runs import control
from app.runs.browsing import ListedRun, board_entry, list_runs, listed, managed_run, manages, visible_run
from app.runs.endpoints import find_endpoint
from app.runs.endpoints import target_of as stored_target
from app.runs.exporting import conversations_for_reader, jsonl_lines
from app.runs.planning import Selection
from app.runs.quotas import quota_of
from app.runs.reporting import find_evaluator, run_report
from app.runs.starting import EvaluatorChoice, Prepared, Target, Wish, estimated_cost, prepare, start
from app.wake import wake_run
from app.web import api_models as shapes
from app.web.api_context import Api, Reader, Runner, answers, api_router
from app.web.faults import API
from app.web.runs import has_to_ask
from app.web.starting import addresses

MOST_RUNS, USUAL_RUNS = 100, 20
HIDDEN = "only who started the run sees this"

router = api_router()
Evaluator = Annotated[
    str | None, Query(max_length=shapes.LONGEST_WORD, description="Another evaluator that rated the run.")
]
# Its name follows from the parameter's: for one with an alias of its own FastAPI makes pydantic warn.
Repeat = Annotated[
    str | None,
    Header(
        max_length=200,
        description="Sent again under the same key, the request starts nothing anew.",
    ),
]


@router.get("/runs", responses=answers(shapes.Runs, "Your runs, the newest first; an administrator's: all."))
def list_of_runs(
    web: Reader,
    cursor: Annotated[UUID | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_RUNS)] = USUAL_RUNS,
) -> Response:
    found, more = list_runs(web.session, web.person, older_than=cursor, limit=limit)
    return web.answer(
        {
            "runs": [_summary(web, one) for one in found],
            "next": str(found[-1].run.uuid) if more else None,
        }
    )


def _summary(web: Api, one: ListedRun) -> dict[str, Any]:
    run = one.run
    own = manages(web.session, web.visitor, run)
    return {
        "id": run.id,
        "uuid": str(run.uuid),
        "name": run.name,
        "status": run.status,
        "status_reason": run.status_reason if own else None,
        "model": run.endpoint.model,
        "benchmark": f"{run.benchmark.name}@{run.benchmark.version}",
        "protocol": f"{run.protocol.name}@{run.protocol.version}",
        "planned": one.standing.planned,
        "done": one.standing.done,
        "on_board": one.on_board,
        "created_at": run.created_at.isoformat(),
        "started_at": run.started_at.isoformat() if run.started_at else None,
        "finished_at": run.finished_at.isoformat() if run.finished_at else None,
        "page": f"{web.site.origin.base_url}/runs/{run.uuid}",
    }


@router.post("/runs/plan", responses=answers(shapes.Plan, "What such a run would ask and cost."))
def plan_run(web: Runner, given: shapes.RunGiven) -> Response:
    """Checks everything that starting it would; nothing is stored, and nothing is sent to the endpoint."""
    web.limit(throttle.PREVIEW, str(web.person.id))
    prepared = prepare(web.session, _wish(web, given), addresses(web))
    return web.answer(_plan(web, prepared))


@router.post(
    "/runs",
    status_code=201,
    responses=answers(shapes.Started, "The run is stored and begins by itself.", 201)
    | answers(shapes.Started, "An earlier request of this Idempotency-Key started this run."),
)
def start_run(web: Runner, given: shapes.RunGiven, idempotency_key: Repeat = None) -> Response:
    """`runs/plan` says before what it will ask. Follow it at `Location`."""
    web.limit(throttle.SUBMIT, str(web.person.id))
    secret, person = web.settings.secret, web.person
    if idempotency_key is not None:
        check_idempotency_key(idempotency_key)
        body = given.model_dump_json().encode()
        earlier = earlier_run(web.session, person, idempotency_key, body, secret)
        if earlier is not None:
            return _started(web, earlier, None, 200)
    prepared = prepare(web.session, _wish(web, given), addresses(web))
    plan = _plan(web, prepared)
    run = start(web.session, person, secret, prepared, quota_of(web.settings, person))
    web.session.refresh(run)
    if idempotency_key is not None:
        store_run(web.session, person, idempotency_key, run.uuid)
    web.record("run.start", f"run {run.id}", model=prepared.wish.target.model, token=token_name(web))
    web.commit()
    wake_run(web.settings, run.id)
    return _started(web, run.uuid, plan, 201)


def _started(web: Api, identity: UUID, plan: dict[str, Any] | None, status: int) -> Response:
    run = managed_run(web.session, web.person, identity)
    summary = _summary(web, listed(web.session, run))
    return web.answer({"run": summary, "plan": plan}, status=status, location=f"{API}/runs/{run.uuid}")


def token_name(web: Api) -> str:
    return web.token.name if web.token else ""


def _wish(web: Api, given: shapes.RunGiven) -> Wish:
    if given.endpoint_id is not None:
        stored = find_endpoint(web.session, web.person, given.endpoint_id)
        target = stored_target(stored.row)
    else:
        assert given.endpoint is not None  # as the description demands
        target = target_of(given.endpoint)
    return Wish(
        target=target,
        evaluator=evaluator_of(given.evaluator),
        selection=Selection(
            scenarios=tuple(dict.fromkeys(given.scenarios)),
            variants=tuple(dict.fromkeys(given.variants)),
            categories=tuple(dict.fromkeys(one.value for one in given.categories)),
            limit=given.limit,
            probes=given.probes,
            recall=given.recall,
        ),
        benchmark=given.benchmark,
        protocol=given.protocol,
        seeds=tuple(range(1, given.seeds + 1)),
        concurrency=given.concurrency,
        max_calls=given.max_calls,
        publish=given.publish,
        max_cost=given.max_cost,
        forget_key=given.forget_key,
        mail=given.mail,
    )


def evaluator_of(given: shapes.EvaluatorGiven | None) -> EvaluatorChoice:
    if given is None:
        return EvaluatorChoice()
    return EvaluatorChoice(given.base_url, given.model, given.api_key, given.provider, _price_of(given))


def target_of(given: shapes.EndpointGiven) -> Target:
    name = " ".join((given.name or "").split()) or given.model
    return Target(
        given.base_url, given.model, name, given.provider, given.api_key, _price_of(given), given.said()
    )


def _price_of(given: shapes.EndpointGiven | shapes.EvaluatorGiven) -> Price | None:
    """None: as it is stored for this endpoint."""
    if given.price_prompt is None and given.price_completion is None:
        return None
    return Price(given.price_prompt, given.price_completion)


def _plan(web: Api, prepared: Prepared) -> dict[str, Any]:
    cost = estimated_cost(web.session, web.person, prepared)
    plan = prepared.plan
    return {
        "conversations": plan.conversations,
        "model_calls": plan.model_calls,
        "evaluator_calls": plan.evaluator_calls,
        "prompt_tokens": plan.prompt_tokens,
        "completion_tokens": plan.completion_tokens,
        "evaluator_prompt_tokens": plan.evaluator_prompt_tokens,
        "evaluator_completion_tokens": plan.evaluator_completion_tokens,
        "cost_usd": None if cost is None else float(cost),
        "notes": list(prepared.notes),
        "warnings": list(prepared.warnings),
    }


@router.get("/runs/{run_id}", responses=answers(shapes.Report, "The run's report, also while it goes on."))
def show_run(web: Reader, run_id: UUID, evaluator: Evaluator = None) -> Response:
    """Your own runs, and those on the board; of the latter without what is only their owner's."""
    run, chosen = _visible(web, run_id, evaluator)
    withheld = withheld_of_run(web.session, web.visitor, run)
    report = run_report(web.session, run, chosen) | {"withheld": withheld and withheld.as_report()}
    return web.answer(report if manages(web.session, web.visitor, run) else _for_others(report))


def _visible(web: Api, run_id: UUID, evaluator: str | None) -> tuple[models.Run, models.Evaluator]:
    run = visible_run(web.session, web.visitor, run_id)
    return run, find_evaluator(web.session, run, evaluator) if evaluator else run.evaluator


def _for_others(report: dict[str, Any]) -> dict[str, Any]:
    """Where the endpoint is, and what its errors said, stays with who started the run."""
    endpoint = report["run"]["endpoint"] | {"base_url": None, "learned": None}
    hidden = ("status_reason", "publish_refusal")
    run = report["run"] | dict.fromkeys(hidden) | {"endpoint": endpoint}
    names = (*(f"run.{name}" for name in hidden), "run.endpoint.base_url", "run.endpoint.learned")
    return report | {"run": run, "undefined": report["undefined"] | dict.fromkeys(names, HIDDEN)}


@router.get(
    "/runs/{run_id}/export.jsonl",
    responses={
        200: {
            "description": "One conversation a line, as `curate run export --format jsonl` writes it.",
            "content": {"application/jsonl": {"schema": {"type": "string"}}},
        }
    },
)
def export_run(web: Reader, run_id: UUID, evaluator: Evaluator = None) -> Response:
    """Of runs that are merely on the board: their public cases, without what is in a study under way.

    How much that is stands in a last line of its own, under `withheld`.
    """
    run, chosen = _visible(web, run_id, evaluator)
    own = manages(web.session, web.visitor, run)
    web.session.close()
    records = conversations_for_reader(web.site.engine, run, chosen, web.visitor, with_turns=True, own=own)
    return StreamingResponse(
        jsonl_lines(records),
        media_type="application/jsonl",
        headers={
            "Content-Disposition": f'attachment; filename="run-{run.id}.jsonl"',
            "Cache-Control": "no-store",
        },
    )


@router.post("/runs/{run_id}/pause", responses=answers(shapes.Changed, "What is out still comes back."))
def pause_run(web: Runner, run_id: UUID) -> Response:
    run = managed_run(web.session, web.person, run_id)
    changed = run.status != "paused"
    control.pause(web.session, run)
    return _changed(web, run, "pause", changed=changed)


@router.post("/runs/{run_id}/cancel", responses=answers(shapes.Changed, "What was stored is kept."))
def cancel_run(web: Runner, run_id: UUID) -> Response:
    run = managed_run(web.session, web.person, run_id)
    changed = run.status != "cancelled"
    control.cancel(web.session, run)
    return _changed(web, run, "cancel", changed=changed)


@router.post("/runs/{run_id}/resume", responses=answers(shapes.Changed, "It goes on from where it stood."))
def resume_run(web: Runner, run_id: UUID, given: shapes.ResumeGiven | None = None) -> Response:
    given = given or shapes.ResumeGiven()
    run = managed_run(web.session, web.person, run_id)
    changed = control.resume(
        web.session, run, retry_errors=given.retry_errors, max_calls=given.max_calls, max_cost=given.max_cost
    )
    return _changed(web, run, "resume", changed=changed, wake=changed)


def _changed(web: Api, run: models.Run, action: str, *, changed: bool, wake: bool = False) -> Response:
    if changed:
        web.record(f"run.{action}", f"run {run.id}", token=token_name(web))
    web.commit()
    if wake:
        wake_run(web.settings, run.id)
    return web.answer({"run": _summary(web, listed(web.session, run)), "changed": changed})


@router.get(
    "/runs/{run_id}/publication", responses=answers(shapes.Publication, "Whether it is on the board.")
)
def publication(web: Reader, run_id: UUID) -> Response:
    return web.answer(_publication(web, managed_run(web.session, web.person, run_id)))


def _publication(web: Api, run: models.Run) -> dict[str, Any]:
    entry, request = board_entry(web.session, run), latest_request(web.session, run)
    if entry is not None:
        state = "published" if entry.withdrawn_at is None else "withdrawn"
        return {"state": state, "reason": entry.withdrawn_reason}
    if request is None:
        return {"state": "private", "reason": run.publish_refusal}
    return {"state": "asked" if request.answer is None else "refused", "reason": request.reason}


@router.post(
    "/runs/{run_id}/publication",
    responses=answers(shapes.Publication, "It is on the board, or an administrator is asked."),
)
def publish_run(web: Runner, run_id: UUID, given: shapes.PublicationGiven | None = None) -> Response:
    """On a site that others reach, an administrator decides. Twice is as good as once."""
    run = managed_run(web.session, web.person, run_id)
    said = (given or shapes.PublicationGiven()).said()
    if has_to_ask(web):
        ask_to_publish(web.session, run, web.person, declared=said)
    else:
        publish(web.session, run, served=not web.settings.on_loopback, declared=said)
        web.record("run.publish", f"run {run.id}", token=token_name(web))
    web.commit()
    return web.answer(_publication(web, managed_run(web.session, web.person, run_id)))

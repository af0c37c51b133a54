"""/api/v1/endpoints: one's own endpoints, their keys and checks."""

from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from starlette.responses import Response

from app import models
from app.accounts import throttle
from app.chat import check_url
from app.endpoints import opened_key
from app.library import load_stored_protocol
from app.prices import Price
from app.protocol import builtin_protocol
from app.runs.endpoints import (
    PAGE,
    Change,
    OwnEndpoint,
    add_endpoint,
    change_endpoint,
    delete_key,
    find_endpoint,
    note_check,
    own_endpoints,
    remove_endpoint,
    target_of,
)
from app.runs.starting import DEFAULT_CONCURRENCY, checked_target
from app.starter import protocol_called
from app.web import api_models as given_shapes
from app.web import api_record_models as shapes
from app.web import api_runs
from app.web.api_context import Api, Reader, Runner, answers, api_router
from app.web.checking import check_endpoint as ask_endpoint
from app.web.faults import API
from app.web.starting import addresses

router = api_router()


@router.post(
    "/endpoints/check",
    responses=answers(given_shapes.UrlChecked, "Whether this base URL may be named in a run, and why not."),
)
def check_endpoint(web: Reader, given: given_shapes.UrlGiven) -> Response:
    """Opens no connection."""
    known = addresses(web)
    checked = check_url(given.url, known.allowlist, known.own_hosts, private_allowed=known.private_allowed)
    return web.answer(
        {
            "allowed": checked.allowed,
            "reason": checked.reason,
            "url": checked.url,
            "warning": checked.warning,
        }
    )


@router.post(
    "/endpoints/preflight",
    responses=answers(given_shapes.Preflight, "What a dozen short questions to the endpoint showed."),
)
def preflight_endpoint(web: Runner, given: given_shapes.ToCheck) -> Response:
    """Takes a minute and a half at most; kept with the endpoint if it is one of yours. Its tokens are the
    endpoint's to bill."""
    target = checked_target(api_runs.target_of(given.endpoint), addresses(web), [])
    protocol = load_stored_protocol(protocol_called(web.session, given.protocol))
    person = web.person
    found = ask_endpoint(web, target, protocol, addresses(web), given.concurrency).as_report()
    note_check(web.session, person, target, found)
    web.commit()
    return web.answer(found)


@router.get("/endpoints", responses=answers(shapes.Endpoints, "Your endpoints, the newest first."))
def list_of_endpoints(
    web: Reader,
    cursor: Annotated[UUID | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = PAGE,
) -> Response:
    found, more = own_endpoints(web.session, web.person, after=cursor, limit=limit)
    shown = [_shown(web, one) for one in found]
    return web.answer({"endpoints": shown, "next": str(found[-1].row.uuid) if more else None})


def _shown(web: Api, found: OwnEndpoint) -> dict[str, Any]:
    row = found.row
    return {
        "uuid": str(row.uuid),
        "name": row.name,
        "provider": row.provider,
        "base_url": row.base_url,
        "model": row.model,
        "key": found.key,
        "price_prompt": None if row.price_prompt is None else float(row.price_prompt),
        "price_completion": None if row.price_completion is None else float(row.price_completion),
        "weights": row.weights,
        "model_version": row.model_version,
        "system_prompt": row.system_prompt,
        "system_prompt_text": row.system_prompt_text,
        "learned": row.learned,
        "last_check": row.last_check,
        "last_check_at": row.last_check_at.isoformat() if row.last_check_at else None,
        "runs": found.runs,
        "created_at": row.created_at.isoformat(),
        "page": f"{web.site.origin.base_url}/endpoints/{row.uuid}",
    }


@router.post(
    "/endpoints",
    status_code=201,
    responses=answers(shapes.EndpointStored, "It is stored.", 201)
    | answers(shapes.EndpointStored, "It was there already; what was given anew holds."),
)
def store_endpoint(web: Runner, given: shapes.EndpointAdded) -> Response:
    """One of the same name, provider, address and model is the same endpoint, so twice is as good as once."""
    web.limit(throttle.SUBMIT, str(web.person.id))
    row, fresh = add_endpoint(
        web.session, web.person, web.settings.secret, api_runs.target_of(given), addresses(web)
    )
    web.session.refresh(row)
    action = "endpoint.add" if fresh else "endpoint.change"
    web.record(action, f"endpoint {row.id}", model=row.model, token=api_runs.token_name(web))
    web.commit()
    found = find_endpoint(web.session, web.person, row.uuid)
    return web.answer(
        {"endpoint": _shown(web, found), "added": fresh},
        status=201 if fresh else 200,
        location=f"{API}/endpoints/{row.uuid}",
    )


@router.get("/endpoints/{endpoint_id}", responses=answers(shapes.EndpointShown, "One of your endpoints."))
def show_endpoint(web: Reader, endpoint_id: UUID) -> Response:
    return web.answer(_shown(web, find_endpoint(web.session, web.person, endpoint_id)))


@router.patch("/endpoints/{endpoint_id}", responses=answers(shapes.EndpointShown, "As it is now."))
def edit_endpoint(web: Runner, endpoint_id: UUID, given: shapes.EndpointChange) -> Response:
    """Another address needs the key again. Provider and model stay once a run was asked there."""
    web.limit(throttle.SUBMIT, str(web.person.id))
    found = find_endpoint(web.session, web.person, endpoint_id)
    price = _price(found.row, given)
    name = None if given.name is None else " ".join(given.name.split())
    wanted = Change(
        name=name or None,
        provider=given.provider,
        base_url=given.base_url,
        model=given.model,
        api_key=given.api_key,
        without_key=given.without_key,
        price=price,
        declared=given.said(),
    )
    change_endpoint(web.session, web.person, web.settings.secret, found, wanted, addresses(web))
    web.record("endpoint.change", f"endpoint {found.row.id}", token=api_runs.token_name(web))
    web.commit()
    return web.answer(_shown(web, find_endpoint(web.session, web.person, endpoint_id)))


def _price(row: models.Endpoint, given: shapes.EndpointChange) -> Price | None:
    """A price that is sent as null is taken back; one that is not sent stays."""
    sent = given.model_fields_set & {"price_prompt", "price_completion"}
    if not sent:
        return None
    return Price(
        given.price_prompt if "price_prompt" in sent else row.price_prompt,
        given.price_completion if "price_completion" in sent else row.price_completion,
    )


@router.delete(
    "/endpoints/{endpoint_id}", status_code=204, responses={204: {"description": "It is removed."}}
)
def delete_endpoint(web: Runner, endpoint_id: UUID) -> Response:
    """Only one that no run was asked at."""
    found = find_endpoint(web.session, web.person, endpoint_id)
    number = found.row.id
    remove_endpoint(web.session, found)
    web.record("endpoint.remove", f"endpoint {number}", token=api_runs.token_name(web))
    web.commit()
    return Response(status_code=204)


@router.delete("/endpoints/{endpoint_id}/key", responses=answers(shapes.KeyDeleted, "The key is gone."))
def delete_endpoint_key(web: Runner, endpoint_id: UUID) -> Response:
    """Running runs that need it are paused. Twice is as good as once."""
    found = find_endpoint(web.session, web.person, endpoint_id)
    paused = delete_key(web.session, found)
    web.record("endpoint.key-delete", f"endpoint {found.row.id}", token=api_runs.token_name(web))
    web.commit()
    shown = _shown(web, find_endpoint(web.session, web.person, endpoint_id))
    return web.answer({"endpoint": shown, "paused_runs": paused})


@router.post(
    "/endpoints/{endpoint_id}/preflight",
    responses=answers(given_shapes.Preflight, "What a dozen short questions to it showed."),
)
def preflight_stored(web: Runner, endpoint_id: UUID) -> Response:
    """With the stored key, under the parameters of the built-in protocol; kept with the endpoint."""
    person, row = web.person, find_endpoint(web.session, web.person, endpoint_id).row
    target = replace(target_of(row), api_key=opened_key(person, row, web.settings.secret))
    protocol = load_stored_protocol(protocol_called(web.session, builtin_protocol().name))
    found = ask_endpoint(web, target, protocol, addresses(web), DEFAULT_CONCURRENCY).as_report()
    note_check(web.session, person, target, found)
    web.commit()
    return web.answer(found)

"""The check of an endpoint before a run, from the form that starts one."""

import threading

from fastapi import APIRouter
from starlette.responses import Response

from app.accounts import throttle
from app.chat import Endpoint
from app.errors import ServiceUnavailable
from app.preflight import Preflight, duration_of, preflight
from app.protocol import Protocol
from app.runs.endpoints import note_check
from app.runs.starting import Addresses, Target, estimated_cost, prepare
from app.web.context import Researcher, Web
from app.web.forms import Posted
from app.web.starting import REFUSALS, addresses, carried, read_wish, show_form

router = APIRouter(prefix="/runs")

# A check waits for somebody else's server, and holds one of the site's threads meanwhile.
_places = threading.BoundedSemaphore(4)


@router.post("/check")
def check(web: Researcher, form: Posted) -> Response:
    """A dozen short questions to the endpoint. What they showed is kept with it, if it is stored already."""
    try:
        prepared = prepare(web.session, read_wish(web, form), addresses(web))
    except REFUSALS as error:
        return show_form(web, web.refused(form, error))
    wish, cost = prepared.wish, estimated_cost(web.session, web.person, prepared)
    person = web.person
    found = check_endpoint(web, wish.target, prepared.rules, prepared.addresses, wish.concurrency)
    note_check(web.session, person, wish.target, found.as_report())
    web.commit()
    lasts = None
    if found.seconds is not None and found.borne is not None:
        lasts = duration_of(prepared.plan.model_calls, min(wish.concurrency, found.borne), found.seconds)
    return web.page(
        "runs/check.html",
        found=found,
        fields=carried(form),
        wish=wish,
        plan=prepared.plan,
        cost=cost,
        lasts=lasts,
        warnings=prepared.warnings,
    )


def check_endpoint(
    web: Web, target: Target, protocol: Protocol, known: Addresses, concurrency: int
) -> Preflight:
    """Draws on the person's limit of checks, and holds no database connection while it waits.

    ServiceUnavailable while too many checks are under way; nothing of the request may be uncommitted.
    """
    endpoint = Endpoint(
        target.provider,  # type: ignore[arg-type]
        target.base_url,
        target.model,
        target.api_key,
        private_allowed=known.private_allowed,
    )
    who = str(web.person.id)
    # What planning stored, such as the built-in benchmark, is not for a check to keep; what was read stays
    # readable.
    web.session.expunge_all()
    web.session.rollback()
    web.limit(throttle.CHECK, who)
    web.session.close()
    if not _places.acquire(blocking=False):
        raise ServiceUnavailable("Several endpoints are being checked just now: try again in a minute.")
    try:
        return preflight(
            endpoint,
            protocol.target.sampling,
            at_once=concurrency,
            allowlist=known.allowlist,
            own_hosts=web.settings.own_hosts,
        )
    finally:
        _places.release()

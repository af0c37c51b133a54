"""For whatever watches the site: alive, ready, figures."""

from contextlib import suppress

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import JSONResponse, Response

from app.db import fresh_engine
from app.errors import ServiceUnavailable
from app.readiness import RECONCILE, examine, run_counts, since_reconciled
from app.web.site import Site

router = APIRouter()


@router.get("/healthz")
async def alive() -> Response:
    """The process answers; asks nothing else, so that a database's fault restarts no site."""
    return JSONResponse({"status": "alive"})


@router.get("/readyz")
def ready(request: Request) -> Response:
    """Database, schema and broker are there; 503 says which is not. Details are in `curate doctor`."""
    site: Site = request.app.state.site
    found = {name: ok for name, ok, _ in examine(site.engine, site.settings)}
    for name, ok in found.items():
        site.metrics.ready.labels(name).set(ok)
    good = all(found.values())
    return JSONResponse(
        {"status": "ready" if good else "not ready", "parts": found}, status_code=200 if good else 503
    )


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """The requests' figures also while the database is away; then without those of runs."""
    site: Site = request.app.state.site
    site.metrics.runs.clear()
    site.metrics.upkeep.clear()
    fresh = fresh_engine(site.engine)
    with suppress(ServiceUnavailable):
        for status, number in run_counts(fresh).items():
            site.metrics.runs.labels(status).set(number)
        if (age := since_reconciled(fresh)) is not None:
            site.metrics.upkeep.labels(RECONCILE).set(age)
    return Response(site.metrics.text(), media_type=CONTENT_TYPE_LATEST)

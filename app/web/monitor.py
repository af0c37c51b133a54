"""For administrators: how the site is doing."""

from fastapi import APIRouter
from starlette.responses import Response

from app.monitoring import health
from app.readiness import checked as found_of
from app.readiness import examine, scheduler
from app.wake import ping_workers
from app.web.context import Admin

router = APIRouter(prefix="/admin/health")

PING_SECONDS = 1.0


@router.get("")
def page(web: Admin) -> Response:
    found = health(web.session)
    web.session.close()  # who answers late holds no connection
    parts = [
        *examine(web.site.engine, web.settings),
        found_of("scheduler", lambda: scheduler(web.site.engine)),
    ]
    return web.page(
        "admin/health.html",
        health=found,
        parts=parts,
        workers=sorted(ping_workers(web.settings, PING_SECONDS)),
    )

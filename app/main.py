"""The site: settings, engine, routers, middleware, error handler."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import to_thread
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from app.db import Engine
from app.errors import AppError
from app.settings import Settings
from app.web import (
    account,
    admin,
    api,
    api_endpoints,
    api_evaluators,
    api_records,
    api_runs,
    board,
    board_cases,
    board_files,
    board_models,
    board_published,
    cases,
    checking,
    compare,
    conversations,
    corrections,
    drift,
    endpoint_import,
    endpoints,
    evaluators,
    exports,
    faults,
    flagged,
    health,
    judging,
    judging_series,
    methods,
    monitor,
    overview,
    people,
    pictures,
    publications,
    reasons,
    reevaluation,
    runs,
    spot_checks,
    starting,
    studies,
    study_judges,
    study_known,
    study_making,
    study_public,
    study_results,
)
from app.web.context import recognise
from app.web.observe import Observe
from app.web.security import Guards, SecurityHeaders
from app.web.site import REQUESTS_AT_ONCE, Site

ROUTERS = (
    health.router,
    api.router,
    api_endpoints.router,
    api_runs.router,
    api_records.router,
    api_evaluators.router,
    people.router,
    account.router,
    admin.router,
    publications.router,
    flagged.router,
    spot_checks.router,
    monitor.router,
    overview.router,
    board.router,
    board_files.router,
    board_models.router,
    board_published.router,
    pictures.router,
    compare.router,
    methods.router,
    evaluators.router,
    reevaluation.router,  # before the runs, whose pages are found by uuid
    endpoint_import.router,  # before the endpoints, which are found by uuid
    endpoints.router,
    checking.router,
    starting.router,  # before the runs, whose pages are found by uuid
    runs.router,
    exports.router,
    conversations.router,
    reasons.router,
    board_cases.router,
    cases.router,
    corrections.router,
    study_public.router,  # before the studies: found by uuid
    study_making.router,  # before the studies, which are found by name
    studies.router,
    study_judges.router,
    study_known.router,
    study_results.router,
    drift.router,
    judging.router,
    judging_series.router,
)


def create_app(settings: Settings, engine: Engine) -> FastAPI:
    """The ASGI application on a migrated database. InvalidInput when a setting cannot be used."""
    settings.secret  # noqa: B018  (a served site without one does not start)
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    pages = frozenset(route.path for route in routes if "GET" in (route.methods or ()))
    site = Site(settings, engine, pages)
    site.check()
    app = FastAPI(
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(SecurityHeaders, origin=site.origin),
            Middleware(Observe, site=site),
            Middleware(Guards, origin=site.origin),
        ],
    )
    app.state.site = site
    for router in ROUTERS:
        app.include_router(router)
    app.add_route("/static/{name}", site.static.serve)
    app.add_exception_handler(AppError, _app_error)
    app.add_exception_handler(judging.JudgeNeeded, _judge_needed)
    app.add_exception_handler(HTTPException, _framework_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    _build_routes(app)
    return app


def _build_routes(app: FastAPI) -> None:
    """Now, not at the first request, where FastAPI would: it switches warnings off and on for the whole
    process meanwhile, so that of two applications (or threads) at once one fails, and a visitor waits."""
    for route in app.routes:
        route.matches({"type": "http", "method": "GET", "path": "", "headers": []})


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    to_thread.current_default_thread_limiter().total_tokens = REQUESTS_AT_ONCE
    yield
    app.state.site.artist.close()


def _app_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, AppError)
    if error.status < 500:
        recognise(request)
    return faults.respond(request.scope, error)


def _framework_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    recognise(request)
    return faults.respond(request.scope, faults.from_framework(error))


def _judge_needed(_: Request, error: Exception) -> Response:
    assert isinstance(error, judging.JudgeNeeded)
    return error.response


def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return faults.respond(request.scope, faults.from_validation(error))

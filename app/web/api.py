"""/api/v1: what the pages show and do, for programs. Another's run is not found (404), as on the pages."""

import json
from functools import cache
from typing import Annotated, Any

from fastapi import Query
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.responses import Response

from app import models
from app.leaderboard import choose_group, describe_board, version_groups
from app.library import stored_benchmarks, stored_protocols
from app.starter import store_builtin
from app.web import api_endpoints, api_evaluators, api_records, api_runs
from app.web import api_models as shapes
from app.web.api_context import Anybody, Reader, answers, api_router

PUBLIC_SECONDS = 60

router = api_router()


@router.get("/openapi.json", include_in_schema=False)
def openapi(web: Anybody) -> Response:
    body = json.dumps(description(web.site.origin.base_url), ensure_ascii=False)
    return web.data(body.encode(), "application/json", public=PUBLIC_SECONDS)


@cache
def description(base_url: str) -> dict[str, Any]:
    """The OpenAPI document of this part of the site."""
    found = get_openapi(
        title="CURATe Board",
        version="1",
        summary="Runs, reports and the board, for programs.",
        description="Proportions are in 0 to 1, moments in UTC. Lists go on where `next` is not null.",
        servers=[{"url": base_url}],
        routes=[
            route
            for part in (
                router,
                api_endpoints.router,
                api_runs.router,
                api_evaluators.router,
                api_records.router,
            )
            for route in part.routes
            if isinstance(route, APIRoute)
        ],
    )
    for path in found["paths"].values():
        for operation in path.values():
            _as_problems(operation["responses"])
    return found


def _as_problems(responses: dict[str, Any]) -> None:
    """Faults have a media type of their own; what cannot be used is a fault like others."""
    responses.pop("422", None)
    content = responses["default"]["content"]
    if "application/json" in content:
        content["application/problem+json"] = content.pop("application/json")


@router.get("/me", responses=answers(shapes.Person, "Whose token this is, and what it may do."))
def me(web: Reader) -> Response:
    token = web.token
    assert token is not None
    return web.answer(
        {
            "name": web.person.name,
            "role": web.person.role,
            "token": token.name,
            "scopes": token.scopes,
            "expires_at": token.expires_at.isoformat(),
        }
    )


@router.get("/leaderboard", responses=answers(shapes.Board, "The board, as `/leaderboard.json` gives it."))
def leaderboard(
    web: Anybody,
    board: Annotated[str | None, Query(max_length=1000, description="Another version group's key.")] = None,
) -> Response:
    """No token needed."""
    groups = version_groups(web.session, simulated=web.settings.on_loopback)
    chosen = describe_board(choose_group(groups, board))
    return web.answer(chosen | {"boards": [group.key for group in groups]})


@router.get("/benchmarks", responses=answers(shapes.Benchmarks, "The benchmarks that can be asked."))
def benchmarks(web: Reader) -> Response:
    store_builtin(web.session)
    web.commit()
    found = [
        _version(one.row) | {"cases": one.cases, "probes": one.probes}
        for one in stored_benchmarks(web.session)
    ]
    return web.answer({"benchmarks": found})


@router.get("/protocols", responses=answers(shapes.Protocols, "The protocols that it can be asked under."))
def protocols(web: Reader) -> Response:
    store_builtin(web.session)
    web.commit()
    return web.answer({"protocols": [_version(row) for row in stored_protocols(web.session)]})


def _version(row: models.Benchmark | models.Protocol) -> dict[str, Any]:
    return {"name": row.name, "version": row.version, "hash": row.content_hash}

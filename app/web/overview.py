"""For administrators: runs and queue, endpoints, evaluator versions, of all accounts."""

from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app.errors import Conflict
from app.overview import all_endpoints, all_evaluators, delete_key, queue, submitters
from app.web.context import Admin, Web
from app.web.forms import Form
from app.web.runs import as_uuid

router = APIRouter(prefix="/admin")


@router.get("/runs")
def runs(web: Admin) -> Response:
    listed = queue(web.session)
    return web.page(
        "admin/runs.html",
        running=[run for run in listed if run.status == "running"],
        paused=[run for run in listed if run.status == "paused"],
        submitters=submitters(web.session),
    )


@router.get("/endpoints")
def endpoints(web: Admin) -> Response:
    return show_endpoints(web, Form.blank())


def show_endpoints(web: Web, form: Form) -> Response:
    after = web.request.query_params.get("after")
    listed, following = all_endpoints(web.session, as_uuid(after) if after else None)
    return web.page(
        "admin/endpoints.html", endpoints=listed, following=following, form=form, status=form.status
    )


@router.post("/endpoints/{identity}/delete-key")
def forget_key(web: Admin, identity: UUID) -> Response:
    try:
        delete_key(web.session, identity, web.person)
    except Conflict as error:
        return show_endpoints(web, web.refused(Form.blank(), error))
    web.commit()
    return web.redirect("/admin/endpoints", notice="key-deleted")


@router.get("/evaluators")
def evaluators(web: Admin) -> Response:
    return web.page("admin/evaluators.html", evaluators=all_evaluators(web.session))

"""For administrators of a site that others reach: what is asked for the board, and the answers."""

from uuid import UUID

from fastapi import APIRouter
from starlette.background import BackgroundTask
from starlette.responses import Response

from app import models
from app.errors import Conflict, InvalidInput
from app.leaderboard import MAX_REASON, answer_request, answered_requests, open_requests
from app.models import PublicationAnswer
from app.web.context import Admin, Web
from app.web.forms import Form, Posted
from app.web.site import Site

router = APIRouter(prefix="/admin/publications")


@router.get("")
def page(web: Admin) -> Response:
    return show(web, Form.blank())


def show(web: Web, form: Form) -> Response:
    return web.page(
        "admin/publications.html",
        waiting=open_requests(web.session),
        answered=answered_requests(web.session),
        form=form,
        longest=MAX_REASON,
        status=form.status,
    )


@router.post("/{identity}/approve")
def approve(web: Admin, identity: UUID) -> Response:
    return _answer(web, identity, PublicationAnswer.APPROVED, Form.blank())


@router.post("/{identity}/refuse")
def refuse(web: Admin, identity: UUID, form: Posted) -> Response:
    return _answer(web, identity, PublicationAnswer.REFUSED, form)


def _answer(web: Web, identity: UUID, answer: PublicationAnswer, form: Form) -> Response:
    try:
        reason = form.text("reason", "Reason", longest=MAX_REASON, required=False)
        form.check()
        request = answer_request(web.session, identity, web.person, answer, reason)
    except (InvalidInput, Conflict) as error:
        return show(web, web.refused(form, error))
    task = _mail(web.site, request)
    web.commit()
    return web.redirect("/admin/publications", notice=f"publication-{answer.value}", background=task)


def _mail(site: Site, request: models.PublicationRequest) -> BackgroundTask | None:
    """Tells who asked; best effort, since the answer stands on the run's page."""
    if not site.mailer.configured or request.asked_by.email is None:
        return None
    run = request.run
    said = f"Reason: {request.reason}\n\n" if request.reason else ""
    return BackgroundTask(
        site.mailer.send,
        request.asked_by.email,
        f"Your run {run.id} for the board: {request.answer}",
        f"An administrator has {request.answer} your request to put run {run.id} on the board.\n\n"
        f"{said}{site.origin.base_url}/runs/{run.uuid}\n",
    )

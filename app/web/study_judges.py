"""The judges of a study, for its owner: invitations, messages, payments, what they wrote."""

from pathlib import Path
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.errors import NotFound
from app.studies import comments, invites, messages, quality
from app.studies.exporting import slug
from app.studies.finding import managed_study
from app.studies.messages import LONGEST_MESSAGE
from app.studies.settings import LONGEST_NAME
from app.tables import write_table
from app.web.context import Researcher
from app.web.forms import Form, Posted
from app.web.studies import REFUSALS, changed, path_of, show_study
from app.web.study_results import file_of

router = APIRouter(prefix="/studies")

MOST_USES = 1_000
MOST_DAYS = 365


@router.post("/{name}/invites")
def invite(web: Researcher, name: str, form: Posted) -> Response:
    """The link is shown this once: only its hash is kept."""
    study = managed_study(web.session, web.person, name)
    try:
        label = form.text("label", "For whom", longest=LONGEST_NAME)
        uses = form.whole("uses", "Judges", least=1, most=MOST_USES) or 1
        days = form.whole("days", "Days", least=1, most=MOST_DAYS) or 14
        form.check()
        _, path = invites.create_invite(web.session, study, label=label, uses=uses, days=days)
    except REFUSALS as error:
        form = web.refused(form, error)
        return show_study(web, managed_study(web.session, web.person, name), form)
    web.record("study.invite", f"study {study.id}", uses=uses, days=days)
    web.commit()
    study = managed_study(web.session, web.person, name)
    return show_study(web, study, Form.blank(), link=f"{web.site.origin.base_url}{path}")


@router.post("/{name}/invites/{invite_id}/revoke")
def revoke(web: Researcher, name: str, invite_id: UUID, form: Posted) -> Response:
    def deed(study: models.Study) -> None:
        invites.revoke(web.session, study, invite_id)

    return changed(web, name, form, "revoke", "invite-taken-back", deed)


@router.post("/{name}/messages")
def send(web: Researcher, name: str, form: Posted) -> Response:
    """To all judges, or with `to` to the one of that number."""

    def deed(study: models.Study) -> None:
        body = form.text("body", "Message", longest=LONGEST_MESSAGE)
        number = form.whole("to", "For", least=1, most=10**9)
        form.check()
        messages.send(web.session, study, body, number=number)

    return changed(web, name, form, "message", "study-message", deed)


@router.get("/{name}/payments")
def payments(web: Researcher, name: str) -> Response:
    study = managed_study(web.session, web.person, name)
    return web.page(
        "studies/payments.html",
        study=study,
        base=path_of(study),
        rows=quality.payments(web.session, study),
        code=study.completion_code,
    )


@router.get("/{name}/payments.{form}")
def payments_file(web: Researcher, name: str, form: str) -> Response:
    """For whoever pays; it names participants, so who took it is recorded."""
    study = managed_study(web.session, web.person, name)
    if form not in ("csv", "xlsx"):
        raise NotFound("Payments are had as csv or xlsx.")
    rows = quality.payment_rows(web.session, study)
    web.record("study.payments", f"study {study.id}", form=form)

    def write(path: Path) -> object:
        return write_table(path, quality.PAYMENT_HEADER, rows, sheet="Payments")

    return file_of(web, f"payments-{slug(study.name)}.{form}", write)


@router.get("/{name}/comments")
def read_comments(web: Researcher, name: str) -> Response:
    study = managed_study(web.session, web.person, name)
    page = page_number(web.request.query_params.get("page", "1"))
    found = comments.comments(web.session, study, page)
    return web.page("studies/comments.html", study=study, base=path_of(study), found=found, page=page)


def page_number(given: str) -> int:
    if not (given.isascii() and given.isdecimal() and len(given) < 7 and int(given) > 0):
        raise NotFound("The pages of this list begin at 1.")
    return int(given)


@router.post("/{name}/comments")
def release(web: Researcher, name: str, form: Posted) -> Response:
    """What is ticked goes out; of the others that were shown, nothing does."""
    study = managed_study(web.session, web.person, name)
    page = page_number(form.value("page") or "1")
    shown = _numbers(form.value("shown").split())
    ticked = shown if form.value("do") == "all" else _numbers(form.values.get("released", []))
    comments.release(web.session, study, shown, ticked)
    path = f"{path_of(study)}/comments?page={page}"
    web.record("study.comments", f"study {study.id}")
    web.commit()
    return web.redirect(path, notice="study-comments")


def _numbers(given: list[str]) -> list[int]:
    return [int(one) for one in given if one.isascii() and one.isdecimal() and len(one) < 18]

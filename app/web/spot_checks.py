"""For administrators: models on the board that are asked again."""

from fastapi import APIRouter
from starlette.responses import Response

from app.errors import Conflict, InvalidInput
from app.leaderboard.spot_checks import MOST_CASES, USUAL_CASES, begin, listed_runs, spot_checks
from app.wake import wake_run
from app.web.context import Admin, Web
from app.web.forms import Form, Posted
from app.web.runs import as_uuid

router = APIRouter(prefix="/admin/spot-checks")


@router.get("")
def page(web: Admin) -> Response:
    return show(web, Form.blank(cases=USUAL_CASES))


def show(web: Web, form: Form) -> Response:
    return web.page(
        "admin/spot_checks.html",
        checks=spot_checks(web.session),
        rows=[(str(run.uuid), f"{run.endpoint.name}, run {run.id}") for run in listed_runs(web.session)],
        most=MOST_CASES,
        form=form,
        status=form.status,
    )


@router.post("")
def start(web: Admin, form: Posted) -> Response:
    try:
        cases = form.whole("cases", "Cases of each category", least=1, most=MOST_CASES, required=True)
        form.check()
        check = begin(web.session, as_uuid(form.value("row")), web.person, cases or USUAL_CASES)
    except (InvalidInput, Conflict) as error:
        return show(web, web.refused(form, error))
    web.commit()
    wake_run(web.settings, check.run_id)
    return web.redirect("/admin/spot-checks", notice="spot-check-begun")

"""For administrators: conversations that were flagged, to be looked at by a person."""

from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.responses import Response

from app.errors import InvalidInput, NotFound
from app.models import FlagDecision
from app.runs.flagged import LONGEST_NOTE, PAGE, STATES, WAITING, decide, flagged
from app.runs.words import explain_flag
from app.web import words
from app.web.context import Admin, Web
from app.web.forms import Form, Posted
from app.web.runs import as_uuid
from app.web.security import local_path

router = APIRouter(prefix="/admin/flagged")

LONGEST_KIND = 100
HERE = "/admin/flagged"


@router.get("")
def page(web: Admin) -> Response:
    return show(web, Form.blank())


def show(web: Web, form: Form) -> Response:
    query = web.request.query_params
    state, kind = query.get("state", WAITING), query.get("kind") or None
    if state not in STATES:
        raise NotFound(f"There is no state '{state[:80]}' here.", details=list(STATES))
    if len(kind or "") > LONGEST_KIND:
        raise InvalidInput(f"A flag has at most {LONGEST_KIND} characters.")
    run = as_uuid(query["run"]) if query.get("run") else None
    after = as_uuid(query["after"]) if query.get("after") else None
    found = flagged(web.session, web.person, state, kind=kind, run=run, after=after)
    kept = {"state": state, "kind": kind, "run": query.get("run")}
    return web.page(
        "admin/flagged.html",
        found=found,
        state=state,
        kind=kind,
        run=run,
        query=urlencode({name: value for name, value in kept.items() if value}),
        form=form,
        longest=LONGEST_NOTE,
        explain_flag=explain_flag,
        scenarios=words.SCENARIOS,
        status=form.status,
    )


@router.post("")
def decided(web: Admin, form: Posted) -> Response:
    """One decision about all that are ticked; `back` is the page that it was made on."""
    try:
        chosen = [as_uuid(one) for one in form.values.get("conversation", [])[: PAGE + 1]]
        decision = FlagDecision(form.choice("decision", "Decision", list(FlagDecision)))
        note = form.text("note", "Note", longest=LONGEST_NOTE, required=False)
        form.check()
        decide(web.session, web.person, chosen, decision, note)
    except InvalidInput as error:
        return show(web, web.refused(form, error))
    except ValueError:
        return show(web, web.refused(form, InvalidInput("Choose a decision.")))
    web.commit()
    return web.redirect(local_path(form.value("back"), HERE), notice="flags-decided")

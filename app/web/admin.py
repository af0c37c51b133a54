"""For administrators: people, invitations, the audit trail."""

from uuid import UUID

from fastapi import APIRouter
from starlette.background import BackgroundTask
from starlette.responses import Response

from app.accounts import audit, people
from app.accounts.links import open_invites
from app.errors import AppError, Conflict, InvalidInput, NotFound
from app.models import Role
from app.runs.quotas import set_quota
from app.runs.starting import MAX_CALLS
from app.web.context import Admin, Web
from app.web.forms import Form, Posted
from app.web.site import Site

router = APIRouter(prefix="/admin")

PAGE = 100


@router.get("")
def people_page(web: Admin) -> Response:
    return show(web, Form.blank(role=Role.RESEARCHER))


def show(web: Web, form: Form, *, link: dict[str, str] | None = None) -> Response:
    """`link`: one that was just made; it is shown this once, for nobody else knows it."""
    return web.page(
        "admin/people.html",
        people=people.list_people(web.session),
        invites=open_invites(web.session),
        roles=list(Role),
        form=form,
        link=link,
        mailed=web.site.mailer.configured,
        status=form.status,
    )


@router.post("/invites")
def invite(web: Admin, form: Posted) -> Response:
    try:
        email = form.text("email", "E-mail address", longest=people.MAX_EMAIL)
        role = form.choice("role", "Role", list(Role))
        form.check()
        path = people.invite(web.session, email=email, role=Role(role), by=web.person)
    except (InvalidInput, Conflict) as error:
        return show(web, web.refused(form, error))
    web.commit()
    link = _link(web, path, f"Invitation for {email}, good for 7 days")
    response = show(web, Form.blank(role=role), link=link)
    if web.site.mailer.configured:
        response.background = BackgroundTask(mail_invitation, web.site, email, link["url"])
    return response


def mail_invitation(site: Site, email: str, url: str) -> None:
    site.mailer.send(
        email,
        "You are invited to CURATe Board",
        f"An administrator of {site.origin.base_url} invites you.\n\n"
        f"This link makes your account, once and within 7 days:\n{url}\n",
    )


@router.post("/invites/{identity}/take-back")
def take_back(web: Admin, identity: UUID) -> Response:
    people.take_back_invite(web.session, identity, web.person)
    web.commit()
    return web.redirect("/admin", notice="invite-taken-back")


@router.post("/people/{identity}/reset-link")
def make_reset_link(web: Admin, identity: UUID) -> Response:
    person = people.find_person(web.session, identity)
    if person.email is None or person.disabled_at is not None:
        raise Conflict("Only an enabled account with an e-mail address has a password to set anew.")
    path = people.reset_link(web.session, person, web.person)
    web.commit()
    link = _link(web, path, f"New password for {person.name}, good for 30 minutes")
    return show(web, Form.blank(role=Role.RESEARCHER), link=link)


def _link(web: Web, path: str, what: str) -> dict[str, str]:
    return {"what": what, "url": web.site.origin.base_url + path}


@router.post("/people/{identity}/role")
def set_role(web: Admin, identity: UUID, form: Posted) -> Response:
    person = people.find_person(web.session, identity)
    try:
        people.set_role(web.session, person, people.read_role(form.value("role")), web.person)
    except AppError as error:
        return show(web, web.refused(Form.blank(role=Role.RESEARCHER), error))
    web.commit()
    return web.redirect("/admin", notice="role-changed")


@router.post("/people/{identity}/quota")
def change_quota(web: Admin, identity: UUID, form: Posted) -> Response:
    """Left empty, the site's own limit holds."""
    person = people.find_person(web.session, identity)
    open_runs = form.whole("open_runs", "Runs not over", least=0, most=10**6)
    daily_calls = form.whole("daily_calls", "Planned calls a day", least=0, most=MAX_CALLS)
    if form.faults:
        refused = InvalidInput(" ".join(form.faults.values()))
        return show(web, web.refused(Form.blank(role=Role.RESEARCHER), refused))
    set_quota(web.session, person, open_runs, daily_calls)
    web.record("person.quota", f"account {person.id}", open_runs=open_runs, daily_calls=daily_calls)
    web.commit()
    return web.redirect("/admin", notice="quota-changed")


@router.post("/people/{identity}/disable")
def disable(web: Admin, identity: UUID) -> Response:
    people.disable(web.session, people.find_person(web.session, identity), web.person)
    web.commit()
    return web.redirect("/admin", notice="person-disabled")


@router.post("/people/{identity}/enable")
def enable(web: Admin, identity: UUID) -> Response:
    people.enable(web.session, people.find_person(web.session, identity), web.person)
    web.commit()
    return web.redirect("/admin", notice="person-enabled")


@router.get("/audit")
def audit_page(web: Admin) -> Response:
    events = audit.latest(web.session, before=_before(web.request.query_params.get("before")), limit=PAGE + 1)
    return web.page(
        "admin/audit.html",
        events=events[:PAGE],
        older=events[PAGE - 1].id if len(events) > PAGE else None,
    )


def _before(given: str | None) -> int | None:
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise NotFound("There is no such page of the audit trail.")
    return int(given)

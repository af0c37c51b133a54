"""One's own account: name, password, sessions."""

from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app.accounts import people, sessions, throttle
from app.errors import InvalidInput, NotFound
from app.web.context import SignedIn, Web
from app.web.forms import Form, Posted
from app.web.people import new_password, signed_in

router = APIRouter(prefix="/account")


@router.get("")
def account_page(web: SignedIn) -> Response:
    return show(web)


def show(web: Web, *, name_form: Form | None = None, password_form: Form | None = None) -> Response:
    name_form = name_form or Form.blank(name=web.person.name)
    password_form = password_form or Form.blank()
    return web.page(
        "people/account.html",
        person=web.person,
        current=web.login,
        sessions=sessions.live_sessions(web.session, web.person),
        name_form=name_form,
        password_form=password_form,
        status=max(name_form.status, password_form.status),
    )


@router.post("/name")
def change_name(web: SignedIn, form: Posted) -> Response:
    try:
        name = form.text("name", "Name", longest=people.MAX_NAME)
        form.check()
        people.rename(web.session, web.person, name)
    except InvalidInput as error:
        return show(web, name_form=web.refused(form, error))
    web.commit()
    return web.redirect("/account", notice="name-changed")


@router.post("/password")
def change_password(web: SignedIn, form: Posted) -> Response:
    current = form.secret("current")
    web.limit(throttle.PASSWORD, str(web.person.id))
    person = web.person
    try:
        people.change_password(web.session, person, current, new_password(form))
    except InvalidInput as error:
        return show(web, password_form=web.refused(form, error))
    return signed_in(web, person, "/account", "password-set")


@router.post("/sessions/{identity}/end")
def end_session(web: SignedIn, identity: UUID) -> Response:
    if not sessions.revoke(web.session, web.person, identity):
        raise NotFound("This session has ended already, or is not yours.")
    web.record("person.session-end", f"account {web.person.id}")
    web.commit()
    return web.redirect("/account", notice="session-ended")


@router.post("/sessions/end-others")
def end_other_sessions(web: SignedIn) -> Response:
    sessions.revoke_all(web.session, web.person, but=web.login)
    web.record("person.sessions-end", f"account {web.person.id}")
    web.commit()
    return web.redirect("/account", notice="sessions-ended")


@router.post("/sessions/end-all")
def end_all_sessions(web: SignedIn) -> Response:
    sessions.revoke_all(web.session, web.person)
    web.record("person.sessions-end", f"account {web.person.id}")
    web.commit()
    return web.sign_out(web.redirect("/login", notice="signed-out-everywhere"))

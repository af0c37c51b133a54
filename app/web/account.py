"""One's own account: name, password, tokens for programs, sessions."""

from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app.accounts import api_tokens, people, sessions, throttle
from app.accounts.policies import is_researcher, require_researcher
from app.errors import Conflict, InvalidInput, NotFound
from app.models import Scope
from app.web.context import SignedIn, Web
from app.web.forms import Form, Posted
from app.web.people import new_password, signed_in

router = APIRouter(prefix="/account")

SCOPES = [(Scope.READ.value, "read: runs, reports, exports"), (Scope.RUN.value, "run: start, pause, go on")]


@router.get("")
def account_page(web: SignedIn) -> Response:
    return show(web)


def show(
    web: Web,
    *,
    name_form: Form | None = None,
    password_form: Form | None = None,
    token_form: Form | None = None,
    made: str | None = None,
) -> Response:
    """`made`: a token's text, which is shown this once."""
    name_form = name_form or Form.blank(name=web.person.name)
    password_form = password_form or Form.blank()
    token_form = token_form or Form.blank(scopes=list(Scope), days=api_tokens.USUAL_DAYS)
    return web.page(
        "people/account.html",
        person=web.person,
        current=web.login,
        sessions=sessions.live_sessions(web.session, web.person),
        tokens=api_tokens.live_tokens(web.session, web.person),
        with_tokens=is_researcher(web.person),
        scopes=SCOPES,
        longest_token_name=api_tokens.MAX_NAME,
        made=made,
        name_form=name_form,
        password_form=password_form,
        token_form=token_form,
        status=max(name_form.status, password_form.status, token_form.status),
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


@router.post("/tokens")
def make_token(web: SignedIn, form: Posted) -> Response:
    """The page itself holds the token: to nobody is it shown again."""
    require_researcher(web.person)
    try:
        name = form.text("token_name", "Name", longest=api_tokens.MAX_NAME)
        scopes = form.choices("scopes", "It may", list(Scope), least=1)
        days = form.whole("days", "Days", least=1, most=api_tokens.MAX_DAYS, required=True)
        form.check()
        assert days is not None
        _, token = api_tokens.make_token(
            web.session, web.person, name=name, scopes=scopes, days=days, by=web.person
        )
    except (InvalidInput, Conflict) as error:
        return show(web, token_form=web.refused(form, error))
    web.commit()
    return show(web, made=token)


@router.post("/tokens/{identity}/revoke")
def revoke_token(web: SignedIn, identity: UUID) -> Response:
    api_tokens.revoke_token(web.session, web.person, identity, by=web.person)
    web.commit()
    return web.redirect("/account", notice="token-revoked")

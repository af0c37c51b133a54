"""Signing in and out, invitations, password resets."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.background import BackgroundTask
from starlette.responses import Response

from app import models
from app.accounts import people, sessions, throttle
from app.accounts.audit import record
from app.accounts.links import look_at
from app.db import session_scope
from app.errors import AppError, InvalidInput
from app.logs import request_id
from app.models import LinkKind
from app.web.context import Visitor, Web
from app.web.forms import Form, Posted
from app.web.security import local_path
from app.web.site import Site

router = APIRouter()

Token = Annotated[str, Path(max_length=100)]
WRONG = "E-mail address and password do not belong together, or the account is disabled."


@router.get("/login")
def sign_in_page(web: Visitor) -> Response:
    target = local_path(web.request.query_params.get("next", "/"))
    if web.visitor is not None:
        return web.redirect(target)
    return show_sign_in(web, Form.blank(next=target))


def show_sign_in(web: Web, form: Form) -> Response:
    can_mail = web.site.mailer.configured
    return web.page("people/sign_in.html", form=form, status=form.status, message=None, can_mail=can_mail)


@router.post("/login")
def sign_in(web: Visitor, form: Posted) -> Response:
    password = form.secret("password")
    email = form.text("email", "E-mail address", longest=people.MAX_EMAIL)
    web.limit(throttle.SIGN_IN, web.peer)
    try:
        form.check()
        account = people.check_password(web.session, email, password)
        if account is None:
            web.record("person.sign-in-refused", "account unknown")
            web.commit()
            raise InvalidInput(WRONG)
    except InvalidInput as error:
        return show_sign_in(web, web.refused(form, error))
    return signed_in(web, account, local_path(form.value("next")), "signed-in")


def signed_in(web: Web, account: models.Account, target: str, notice: str) -> Response:
    """A new session for this browser; the one it may have had ends, so that none is ever taken over."""
    if web.login is not None:
        sessions.revoke(web.session, web.login.account, web.login.uuid)
    token = sessions.open_session_for(web.session, account, web.request.headers.get("user-agent", ""))
    record(web.session, account, "person.sign-in", f"account {account.id}", request_id=request_id.get())
    web.commit()
    return web.sign_in(web.redirect(target, notice=notice), token)


@router.post("/logout")
def sign_out(web: Visitor) -> Response:
    """Twice is as good as once."""
    if web.login is not None:
        sessions.revoke(web.session, web.login.account, web.login.uuid)
        web.record("person.sign-out", f"account {web.login.account_id}")
        web.commit()
    return web.sign_out(web.redirect("/login", notice="signed-out"))


# --- invitations ---


@router.get("/invite/{token}")
def invite_page(web: Visitor, token: Token) -> Response:
    return show_invite(web, token, Form.blank())


def show_invite(web: Web, token: str, form: Form) -> Response:
    link = look_at(web.session, LinkKind.INVITE, token)
    return web.page("people/invite.html", link=link, form=form, status=form.status)


@router.post("/invite/{token}")
def accept_invite(web: Visitor, token: Token, form: Posted) -> Response:
    web.limit(throttle.LINK, web.peer)
    try:
        name = form.text("name", "Name", longest=people.MAX_NAME)
        password = new_password(form)
        account = people.accept_invite(web.session, token, name=name, password=password)
    except InvalidInput as error:
        return show_invite(web, token, web.refused(form, error))
    return signed_in(web, account, "/", "welcome")


def new_password(form: Form) -> str:
    """The two fields of a new password. Raises FormFault for what is wrong in the form so far."""
    password, again = form.secret("password"), form.secret("password_again")
    if password != again:
        form.fault("password_again", "The two passwords differ.")
    form.check()
    return password


# --- password resets ---


@router.get("/reset")
def ask_reset_page(web: Visitor) -> Response:
    return show_ask_reset(web, Form.blank(), asked=False)


def show_ask_reset(web: Web, form: Form, *, asked: bool) -> Response:
    return web.page(
        "people/ask_reset.html",
        form=form,
        asked=asked,
        can_mail=web.site.mailer.configured,
        status=form.status,
    )


@router.post("/reset")
def ask_reset(web: Visitor, form: Posted) -> Response:
    """The answer is the same for everybody; whether the account exists is looked up after it was sent."""
    web.limit(throttle.RESET_FROM, web.peer)
    try:
        email = people.read_email(form.text("email", "E-mail address", longest=people.MAX_EMAIL))
    except InvalidInput as error:
        return show_ask_reset(web, web.refused(form, error), asked=False)
    response = show_ask_reset(web, form, asked=True)
    response.background = BackgroundTask(mail_reset, web.site, email)
    return response


def mail_reset(site: Site, email: str) -> None:
    """Mail the link if the address has an account that may sign in."""
    if not site.mailer.configured:
        return
    with session_scope(site.engine) as session:
        account = people.find_by_email(session, email)
        if account is None or account.disabled_at is not None:
            return
        try:
            throttle.take(session, throttle.RESET_FOR, str(account.id))
        except AppError:
            return
        path = people.reset_link(session, account)
        session.commit()
    site.mailer.send(
        email,
        "A new password for CURATe Board",
        f"Somebody, we hope you, asked for a new password at {site.origin.base_url}.\n\n"
        f"This link sets one, once and within 30 minutes:\n{site.origin.base_url}{path}\n\n"
        "If it was not you, do nothing: your password stays as it is.\n",
    )


@router.get("/reset/{token}")
def reset_page(web: Visitor, token: Token) -> Response:
    return show_reset(web, token, Form.blank())


def show_reset(web: Web, token: str, form: Form) -> Response:
    link = look_at(web.session, LinkKind.RESET, token)
    return web.page("people/reset.html", link=link, form=form, status=form.status)


@router.post("/reset/{token}")
def reset(web: Visitor, token: Token, form: Posted) -> Response:
    web.limit(throttle.LINK, web.peer)
    try:
        account = people.reset_password(web.session, token, new_password(form))
    except InvalidInput as error:
        return show_reset(web, token, web.refused(form, error))
    return signed_in(web, account, "/", "password-set")


# --- the owner of a loopback site ---


@router.get("/signin/{token}")
def owner_page(web: Visitor, token: Token) -> Response:
    """A page with one button: whatever looks at links in advance does not use this one up."""
    if web.visitor is not None and web.visitor.is_owner:
        return web.redirect("/")
    link = look_at(web.session, LinkKind.SIGN_IN, token)
    return web.page("people/owner.html", link=link)


@router.post("/signin/{token}")
def owner_enters(web: Visitor, token: Token) -> Response:
    web.limit(throttle.LINK, web.peer)
    return signed_in(web, people.enter_by_link(web.session, token), "/", "signed-in")

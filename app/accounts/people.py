"""People: add, invite, sign in, change; every deed leaves an audit event."""

import re
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app import models
from app.accounts.api_tokens import revoke_tokens
from app.accounts.audit import record
from app.accounts.errors import NotAllowed
from app.accounts.links import look_at, make_link, revoke_links, use_up
from app.accounts.passwords import hash_password, needs_rehash, verify_password
from app.accounts.sessions import revoke_all
from app.errors import Conflict, InvalidInput, NotFound
from app.models import LinkKind, Role
from app.text import NOT_SEEN, clean, has_hidden, is_blank

MAX_NAME = 80
MAX_EMAIL = 254
ADMINISTRATORS_LOCK = 0x41444D49  # "ADMI"
_EMAIL = re.compile(r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.ASCII)


def read_email(given: str) -> str:
    """The form in which an address is kept and compared; InvalidInput when it is none."""
    email = given.strip().lower()
    if len(email) > MAX_EMAIL or not _EMAIL.fullmatch(email):
        raise InvalidInput("That is not an e-mail address of the form name@host (ASCII letters only).")
    return email


def read_name(given: str) -> str:
    """What a person is called on pages; InvalidInput when blank or too long."""
    name = " ".join(clean(given)[0].split())
    if is_blank(name):
        raise InvalidInput("Give a name.")
    if has_hidden(name):
        raise InvalidInput(f"This name {NOT_SEEN}")
    if len(name) > MAX_NAME:
        raise InvalidInput(f"A name has at most {MAX_NAME} characters.")
    return name


def read_role(given: str) -> Role:
    try:
        return Role(given)
    except ValueError:
        raise InvalidInput(f"A role is one of {', '.join(Role)}.") from None


def find_by_email(session: Session, email: str) -> models.Account | None:
    return session.scalars(select(models.Account).filter_by(email=email.strip().lower())).one_or_none()


def find_person(session: Session, identity: UUID) -> models.Account:
    """By uuid; NotFound."""
    row = session.scalars(select(models.Account).filter_by(uuid=identity)).one_or_none()
    if row is None:
        raise NotFound("There is no such person.")
    return row


def list_people(session: Session) -> list[models.Account]:
    return list(session.scalars(select(models.Account).order_by(models.Account.name, models.Account.id)))


def add_person(
    session: Session, *, email: str, name: str, role: Role, password: str, by: models.Account | None = None
) -> models.Account:
    """A new account; Conflict when the address has one."""
    account = models.Account(
        email=read_email(email), name=read_name(name), role=role.value, password_hash=hash_password(password)
    )
    try:
        with session.begin_nested():
            session.add(account)
    except IntegrityError:
        raise Conflict(f"{account.email} has an account here already.") from None
    session.refresh(account)
    record(session, by or account, "person.add", f"account {account.id}", role=role.value)
    return account


def check_password(session: Session, email: str, password: str) -> models.Account | None:
    """The account that may sign in with these; None tells nothing about who exists."""
    account = find_by_email(session, email[:MAX_EMAIL])
    known = account.password_hash if account and account.disabled_at is None else None
    if not verify_password(known, password) or account is None or known is None:
        return None
    if needs_rehash(known):
        account.password_hash = hash_password(password)
    return account


def rename(session: Session, account: models.Account, name: str) -> None:
    account.name = read_name(name)
    record(session, account, "person.name", f"account {account.id}")
    session.flush()


def set_password(session: Session, account: models.Account, password: str) -> None:
    """Every session, token and open link of the account ends with its old password."""
    account.password_hash = hash_password(password)
    revoke_all(session, account)
    revoke_tokens(session, account)
    revoke_links(session, models.OneTimeLink.account_id == account.id)
    record(session, account, "person.password", f"account {account.id}")
    session.flush()


def change_password(session: Session, account: models.Account, current: str, new: str) -> None:
    """InvalidInput when the current one is wrong."""
    if not verify_password(account.password_hash, current):
        raise InvalidInput("The current password is not right.")
    set_password(session, account, new)


# --- invitations and resets ---


def invite(session: Session, *, email: str, role: Role, by: models.Account | None) -> str:
    """Path of a link that makes an account of this role; an earlier one to the same address ends."""
    address = read_email(email)
    if find_by_email(session, address) is not None:
        raise Conflict(f"{address} has an account here already.")
    revoke_links(session, models.OneTimeLink.email == address)
    link, path = make_link(
        session, LinkKind.INVITE, email=address, role=role.value, created_by_id=by.id if by else None
    )
    record(session, by, "person.invite", f"link {link.id}", email=address, role=role.value)
    return path


def take_back_invite(session: Session, identity: UUID, by: models.Account) -> None:
    revoke_links(session, models.OneTimeLink.uuid == identity, models.OneTimeLink.kind == LinkKind.INVITE)
    record(session, by, "person.invite-taken-back", f"link {identity}")


def accept_invite(session: Session, token: str, *, name: str, password: str) -> models.Account:
    """The new account. NotFound when the link is spent; InvalidInput leaves it good."""
    link = look_at(session, LinkKind.INVITE, token)
    assert link.email is not None
    assert link.role is not None
    use_up(session, link)
    return add_person(session, email=link.email, name=name, role=Role(link.role), password=password)


def reset_link(session: Session, account: models.Account, by: models.Account | None = None) -> str:
    """Path of a link that sets a new password; an earlier one ends."""
    revoke_links(
        session,
        models.OneTimeLink.account_id == account.id,
        models.OneTimeLink.kind == LinkKind.RESET,
    )
    link, path = make_link(
        session, LinkKind.RESET, account_id=account.id, created_by_id=by.id if by else None
    )
    record(session, by, "person.reset-link", f"account {account.id}", link=link.id)
    return path


def reset_password(session: Session, token: str, password: str) -> models.Account:
    account = _use_link(session, LinkKind.RESET, token)
    set_password(session, account, password)
    return account


def owner_link(session: Session, owner: models.Account) -> str:
    """Path of a link that signs the owner of a loopback site in; an earlier one ends."""
    revoke_links(
        session, models.OneTimeLink.account_id == owner.id, models.OneTimeLink.kind == LinkKind.SIGN_IN
    )
    return make_link(session, LinkKind.SIGN_IN, account_id=owner.id)[1]


def enter_by_link(session: Session, token: str) -> models.Account:
    return _use_link(session, LinkKind.SIGN_IN, token)


def _use_link(session: Session, kind: LinkKind, token: str) -> models.Account:
    """Whom the link is for. The account first, then its links, as whoever else changes both does:
    in the other order a reset and a new password at the same moment would wait for each other."""
    link = look_at(session, kind, token)
    assert link.account is not None
    session.execute(select(models.Account.id).filter_by(id=link.account_id).with_for_update(key_share=True))
    use_up(session, link)
    return link.account


# --- what an administrator may change ---


def set_role(session: Session, person: models.Account, role: Role, by: models.Account) -> None:
    """Conflict for oneself and for the owner, so that a site never loses its last administrator."""
    _hold_administrators(session, person, by)
    record(session, by, "person.role", f"account {person.id}", before=person.role, after=role.value)
    person.role = role.value
    if role is not Role.ADMIN:
        _revoke_made_by(session, person)
    session.flush()


def disable(session: Session, person: models.Account, by: models.Account) -> None:
    """Ends the person's sessions and links, and those that they made; runs and verdicts stay."""
    _hold_administrators(session, person, by)
    if person.disabled_at is None:
        person.disabled_at = datetime.now(UTC)
        revoke_all(session, person)
        revoke_tokens(session, person)
        revoke_links(session, models.OneTimeLink.account_id == person.id)
        _revoke_made_by(session, person)
        record(session, by, "person.disable", f"account {person.id}")
        session.flush()


def enable(session: Session, person: models.Account, by: models.Account) -> None:
    if person.disabled_at is not None:
        person.disabled_at = None
        record(session, by, "person.enable", f"account {person.id}")
        session.flush()


def _revoke_made_by(session: Session, person: models.Account) -> None:
    """Who is no administrator any more knows the links that they made: none may lead them back in."""
    revoke_links(session, models.OneTimeLink.created_by_id == person.id)


def _hold_administrators(session: Session, person: models.Account, by: models.Account) -> None:
    """One such change at a time, by somebody who still is an administrator: so one stays whatever happens.

    Of two who disable each other at once the second is none any more when it is their turn.
    """
    session.execute(select(func.pg_advisory_xact_lock(ADMINISTRATORS_LOCK)))
    session.refresh(person, ["role", "disabled_at"])
    a = models.Account
    still = select(a.id).where(a.id == by.id, a.role == Role.ADMIN.value, a.disabled_at.is_(None))
    if session.scalar(still) is None:
        raise NotAllowed("You are no administrator any more: nothing was changed.")
    if person.id == by.id:
        raise Conflict("You cannot change your own role or disable yourself: ask another administrator.")
    if person.is_owner:
        raise Conflict("The owner of this machine stays an administrator.")

"""Links that open once and not for long: invitations, password resets, the owner's sign-in."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session, joinedload

from app import models
from app.accounts.tokens import MAX_TOKEN_LENGTH, new_token, token_hash
from app.errors import NotFound
from app.models import LinkKind

LIFETIMES = {
    LinkKind.INVITE: timedelta(days=7),
    LinkKind.RESET: timedelta(minutes=30),
    LinkKind.SIGN_IN: timedelta(minutes=30),
}
PATHS = {LinkKind.INVITE: "/invite/", LinkKind.RESET: "/reset/", LinkKind.SIGN_IN: "/signin/"}


def make_link(session: Session, kind: LinkKind, **values: Any) -> tuple[models.OneTimeLink, str]:
    """A link of this kind and its path, which is stored nowhere and cannot be shown again."""
    token = new_token()
    row = models.OneTimeLink(
        kind=kind.value,
        token_hash=token_hash(token),
        expires_at=datetime.now(UTC) + LIFETIMES[kind],
        **values,
    )
    session.add(row)
    session.flush()
    return row, PATHS[kind] + token


def look_at(session: Session, kind: LinkKind, token: str) -> models.OneTimeLink:
    """The link while it is good, without using it up; NotFound otherwise, whatever the reason."""
    row = None
    if len(token) <= MAX_TOKEN_LENGTH:
        row = session.scalars(
            select(models.OneTimeLink)
            .options(joinedload(models.OneTimeLink.account))
            .where(models.OneTimeLink.token_hash == token_hash(token), *_good(kind))
        ).one_or_none()
    if row is None or (row.account is not None and row.account.disabled_at is not None):
        raise _spent(kind)
    return row


def use_up(session: Session, link: models.OneTimeLink) -> None:
    """Compare and set: of two that come at once, one gets NotFound."""
    kind = LinkKind(link.kind)
    used = session.execute(
        update(models.OneTimeLink)
        .where(models.OneTimeLink.id == link.id, *_good(kind))
        .values(used_at=datetime.now(UTC))
        .returning(models.OneTimeLink.id)
    )
    if used.first() is None:
        raise _spent(kind)


def revoke_links(session: Session, *which: ColumnElement[bool]) -> None:
    """Take back what was not used yet, of the links that the conditions pick."""
    session.execute(
        update(models.OneTimeLink)
        .where(models.OneTimeLink.used_at.is_(None), models.OneTimeLink.revoked_at.is_(None), *which)
        .values(revoked_at=datetime.now(UTC))
    )


def open_invites(session: Session) -> list[models.OneTimeLink]:
    """Invitations that nobody has used yet, the newest first."""
    query = select(models.OneTimeLink).where(*_good(LinkKind.INVITE))
    return list(session.scalars(query.order_by(models.OneTimeLink.id.desc())))


def _good(kind: LinkKind) -> tuple[ColumnElement[bool], ...]:
    table = models.OneTimeLink
    return (
        table.kind == kind.value,
        table.used_at.is_(None),
        table.revoked_at.is_(None),
        table.expires_at > datetime.now(UTC),
    )


def _spent(kind: LinkKind) -> NotFound:
    remedy = {
        LinkKind.INVITE: "Ask whoever invited you for a new one.",
        LinkKind.RESET: "Ask for a new one on the sign-in page.",
        LinkKind.SIGN_IN: "`curate user link` prints a new one.",
    }[kind]
    return NotFound(f"This link is not valid any more: it was used, taken back, or is too old. {remedy}")

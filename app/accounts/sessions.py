"""Browsers that are signed in: server-side, revocable, ending by themselves."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, delete, select, update
from sqlalchemy.orm import Session, joinedload

from app import models
from app.accounts.throttle import forget_full
from app.accounts.tokens import MAX_TOKEN_LENGTH, new_token, token_hash
from app.text import clean

LIFETIME = timedelta(days=30)
IDLE = timedelta(days=14)
TOUCH_EVERY = timedelta(minutes=5)
KEEP_ENDED = timedelta(days=30)
MAX_USER_AGENT = 200


def open_session_for(session: Session, account: models.Account, user_agent: str) -> str:
    """Sign the account in; returns the cookie's token, which is stored nowhere."""
    token, now = new_token(), datetime.now(UTC)
    session.add(
        models.LoginSession(
            account_id=account.id,
            token_hash=token_hash(token),
            user_agent=clean(user_agent)[0][:MAX_USER_AGENT],
            expires_at=now + LIFETIME,
        )
    )
    session.flush()
    _sweep(session, now)
    return token


def find_login(session: Session, token: str) -> models.LoginSession | None:
    """The live session of a cookie, with its account; None when it ended or the account is disabled."""
    if not token or len(token) > MAX_TOKEN_LENGTH:
        return None
    now = datetime.now(UTC)
    return session.scalars(
        select(models.LoginSession)
        .join(models.LoginSession.account)
        .options(joinedload(models.LoginSession.account))
        .where(models.LoginSession.token_hash == token_hash(token), *_live(now))
        .where(models.Account.disabled_at.is_(None))
    ).one_or_none()


def touch(session: Session, login: models.LoginSession) -> bool:
    """Note that it was used, at most every few minutes. True: there is something to commit."""
    now = datetime.now(UTC)
    if now - login.last_seen_at < TOUCH_EVERY:
        return False
    login.last_seen_at = now
    session.flush()
    return True


def live_sessions(session: Session, account: models.Account) -> list[models.LoginSession]:
    """The account's open sessions, the one used last first."""
    query = select(models.LoginSession).where(
        models.LoginSession.account_id == account.id, *_live(datetime.now(UTC))
    )
    return list(
        session.scalars(query.order_by(models.LoginSession.last_seen_at.desc(), models.LoginSession.id))
    )


def revoke(session: Session, account: models.Account, identity: UUID) -> bool:
    """End one session of the account, by uuid; False when it has no such open session."""
    ended = session.execute(
        update(models.LoginSession)
        .where(models.LoginSession.uuid == identity, models.LoginSession.account_id == account.id)
        .where(models.LoginSession.revoked_at.is_(None))
        .values(revoked_at=datetime.now(UTC))
        .returning(models.LoginSession.id)
    )
    return ended.first() is not None


def revoke_all(session: Session, account: models.Account, *, but: models.LoginSession | None = None) -> int:
    """End every session of the account (but one); how many."""
    statement = (
        update(models.LoginSession)
        .where(models.LoginSession.account_id == account.id, models.LoginSession.revoked_at.is_(None))
        .values(revoked_at=datetime.now(UTC))
        .returning(models.LoginSession.id)
    )
    if but is not None:
        statement = statement.where(models.LoginSession.id != but.id)
    return len(session.execute(statement).all())


def _live(now: datetime) -> tuple[ColumnElement[bool], ...]:
    table = models.LoginSession
    return table.revoked_at.is_(None), table.expires_at > now, table.last_seen_at > now - IDLE


def _sweep(session: Session, now: datetime) -> None:
    """Somebody signs in: a good moment to drop what ended long ago."""
    for table in (models.LoginSession, models.OneTimeLink):
        session.execute(delete(table).where(table.expires_at < now - KEEP_ENDED))
    session.execute(delete(models.SubmittedForm).where(models.SubmittedForm.created_at < now - KEEP_ENDED))
    forget_full(session)

"""Tokens for programs: shown once, hashed, for some deeds only, ending by themselves, revocable."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session, joinedload

from app import models
from app.accounts.audit import record
from app.accounts.policies import is_researcher
from app.accounts.tokens import new_token, token_hash
from app.errors import Conflict, InvalidInput, NotFound
from app.models import Scope
from app.text import NOT_SEEN, clean, has_hidden, is_blank

PREFIX = "curate_"  # so that people and scanners of repositories see what it is
MAX_TOKEN_LENGTH = 64
MAX_NAME = 80
USUAL_DAYS, MAX_DAYS = 90, 365
MOST_TOKENS = 20
TOUCH_EVERY = timedelta(minutes=1)


def make_token(
    session: Session,
    account: models.Account,
    *,
    name: str,
    scopes: Iterable[str],
    days: int = USUAL_DAYS,
    by: models.Account | None = None,
) -> tuple[models.ApiToken, str]:
    """A token of the account, and its text, which is stored nowhere and cannot be shown again."""
    name = " ".join(clean(name)[0].split())
    if is_blank(name) or len(name) > MAX_NAME:
        raise InvalidInput(f"Give the token a name of 1 to {MAX_NAME} characters, such as what uses it.")
    if has_hidden(name):
        raise InvalidInput(f"This name {NOT_SEEN}")
    if not 1 <= days <= MAX_DAYS:
        raise InvalidInput(f"A token is good for 1 to {MAX_DAYS} days.")
    if not is_researcher(account) or account.disabled_at is not None:
        raise Conflict("Tokens are for enabled accounts of researchers and administrators.")
    # One at a time, so that two at once do not both take the last place.
    session.refresh(account, ["disabled_at"], with_for_update=True)
    live = select(func.count()).where(models.ApiToken.account_id == account.id, *_live(datetime.now(UTC)))
    if session.execute(live.select_from(models.ApiToken)).scalar_one() >= MOST_TOKENS:
        raise Conflict(f"An account has at most {MOST_TOKENS} tokens: revoke one that is not used any more.")
    token = PREFIX + new_token()
    row = models.ApiToken(
        account_id=account.id,
        name=name,
        token_hash=token_hash(token),
        scopes=read_scopes(scopes),
        expires_at=datetime.now(UTC) + timedelta(days=days),
    )
    session.add(row)
    session.flush()
    session.refresh(row)
    record(session, by, "token.make", f"account {account.id}", token=str(row.uuid), days=days)
    return row, token


def read_scopes(given: Iterable[str]) -> list[str]:
    """Each once, in their usual order; InvalidInput for none and for unknown ones."""
    wanted = set(given)
    if not wanted or not wanted <= set(Scope):
        raise InvalidInput(f"A token's scopes are one or more of {', '.join(Scope)}.")
    return [scope.value for scope in Scope if scope in wanted]


def find_token(session: Session, token: str) -> models.ApiToken | None:
    """The live token with its account; None when it ended or the account is disabled."""
    if not token.startswith(PREFIX) or len(token) > MAX_TOKEN_LENGTH:
        return None
    return session.scalars(
        select(models.ApiToken)
        .join(models.ApiToken.account)
        .options(joinedload(models.ApiToken.account))
        .where(models.ApiToken.token_hash == token_hash(token), *_live(datetime.now(UTC)))
        .where(models.Account.disabled_at.is_(None))
    ).one_or_none()


def touch(session: Session, token: models.ApiToken) -> None:
    """Note that it was used, at most once a minute."""
    now = datetime.now(UTC)
    if token.last_used_at is None or now - token.last_used_at >= TOUCH_EVERY:
        token.last_used_at = now
        session.flush()


def live_tokens(session: Session, account: models.Account) -> list[models.ApiToken]:
    """The account's tokens that open something, the newest first."""
    query = select(models.ApiToken).where(models.ApiToken.account_id == account.id, *_live(datetime.now(UTC)))
    return list(session.scalars(query.order_by(models.ApiToken.id.desc())))


def revoke_token(
    session: Session, account: models.Account, identity: UUID, by: models.Account | None = None
) -> None:
    """End one token of the account; NotFound when it has no such live token."""
    ended = _end(session, account, models.ApiToken.uuid == identity)
    if not ended:
        raise NotFound("This token has ended already, or belongs to somebody else.")
    record(session, by, "token.revoke", f"account {account.id}", token=str(identity))


def revoke_tokens(session: Session, account: models.Account) -> int:
    """End every token of the account; how many."""
    return _end(session, account)


def _end(session: Session, account: models.Account, *which: ColumnElement[bool]) -> int:
    ended = session.execute(
        update(models.ApiToken)
        .where(models.ApiToken.account_id == account.id, *_live(datetime.now(UTC)), *which)
        .values(revoked_at=datetime.now(UTC))
        .returning(models.ApiToken.id)
    )
    return len(ended.all())


def _live(now: datetime) -> tuple[ColumnElement[bool], ...]:
    return models.ApiToken.revoked_at.is_(None), models.ApiToken.expires_at > now

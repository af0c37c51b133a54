"""A person's endpoints: which there are and how each stands, and what may be changed of one that was used."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import ColumnElement, exists, func, or_, select
from sqlalchemy.orm import Session

from app import models
from app.declared import NOTHING_SAID, Declared
from app.endpoints import ELSEWHERE, keep_key
from app.errors import Conflict, InvalidInput, NotFound
from app.prices import Price
from app.runs import control
from app.runs.starting import Addresses, Target, checked_target, own_endpoint, store_target

PAGE = 50
KEY_DELETED = "the key of an endpoint that it needs was deleted"
KeyState = Literal["stored", "deleted", "none"]


@dataclass(frozen=True)
class OwnEndpoint:
    """`runs`: how many asked it; `rates`: it has rated as an evaluator too."""

    row: models.Endpoint
    runs: int
    rates: bool

    @property
    def key(self) -> KeyState:
        if self.row.sealed_key is not None:
            return "stored"
        return "deleted" if self.row.key_deleted_at is not None else "none"

    @property
    def used(self) -> bool:
        return self.runs > 0 or self.rates


@dataclass(frozen=True)
class Change:
    """What an endpoint shall be; None: as it is. `without_key`: the new address needs none."""

    name: str | None = None
    provider: str | None = None
    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None
    without_key: bool = False
    price: Price | None = None
    declared: Declared = NOTHING_SAID


def own_endpoints(
    session: Session, account: models.Account, *, after: UUID | None = None, limit: int = PAGE
) -> tuple[list[OwnEndpoint], bool]:
    """A page of the account's endpoints, the newest first; and whether there are more.

    NotFound when `after` is no endpoint of theirs.
    """
    e = models.Endpoint
    query = select(e).where(e.account_id == account.id, e.base_url != ELSEWHERE)
    if after is not None:
        query = query.where(e.id < find_endpoint(session, account, after).row.id)
    rows = session.scalars(query.order_by(e.id.desc()).limit(limit + 1)).all()
    return _with_use(session, rows[:limit]), len(rows) > limit


def find_endpoint(session: Session, account: models.Account, identity: UUID) -> OwnEndpoint:
    """NotFound unless it is the account's own."""
    row = own_endpoint(session, account, identity)
    if row is None or row.base_url == ELSEWHERE:
        raise NotFound("There is no such endpoint, or it is not yours.")
    return _with_use(session, [row])[0]


def _with_use(session: Session, rows: Sequence[models.Endpoint]) -> list[OwnEndpoint]:
    ids = [row.id for row in rows]
    asked = select(models.Run.endpoint_id, func.count()).where(models.Run.endpoint_id.in_(ids))
    runs = {endpoint: number for endpoint, number in session.execute(asked.group_by(models.Run.endpoint_id))}  # noqa: C416
    raters = set(
        session.scalars(select(models.Evaluator.endpoint_id).where(models.Evaluator.endpoint_id.in_(ids)))
    )
    return [OwnEndpoint(row, runs.get(row.id, 0), row.id in raters) for row in rows]


def target_of(row: models.Endpoint) -> Target:
    """The stored endpoint as a run's choice: with its key, its price and what was declared of it."""
    return Target(row.base_url, row.model, row.name, row.provider)


def add_endpoint(
    session: Session, account: models.Account, secret: bytes, target: Target, addresses: Addresses
) -> tuple[models.Endpoint, bool]:
    """The stored endpoint, and whether it is a new one. InvalidInput for what could never be called."""
    target = checked_target(target, addresses, [])
    there = _same(session, account, target)
    row = store_target(session, account, secret, target, addresses)
    return row, there is None


def _same(session: Session, account: models.Account, target: Target) -> models.Endpoint | None:
    return session.scalars(
        select(models.Endpoint).filter_by(
            account_id=account.id,
            name=target.name,
            provider=target.provider,
            base_url=target.base_url,
            model=target.model,
        )
    ).one_or_none()


def change_endpoint(
    session: Session,
    account: models.Account,
    secret: bytes,
    found: OwnEndpoint,
    change: Change,
    addresses: Addresses,
) -> None:
    """InvalidInput and Conflict say what cannot be changed, and what to do instead.

    Another address needs the key again: it was sealed for the old one. Provider and model stay once a run was
    asked there, name and address once a row of a board stands on them.
    """
    row = session.get_one(models.Endpoint, found.row.id, with_for_update=True)
    asked = Target(
        change.base_url or row.base_url,
        change.model or row.model,
        change.name or row.name,
        change.provider or row.provider,
        change.api_key,
    )
    # An address that was accepted once is looked at again only when it changes.
    url_given = change.base_url is not None and change.base_url != row.base_url
    target = checked_target(asked, addresses if url_given else _as_stored(row, addresses), [])
    moved = target.base_url != row.base_url
    other = (target.provider, target.model) != (row.provider, row.model)
    if other and found.used:
        raise Conflict(
            "Provider and model cannot be changed: runs were made with this endpoint. "
            "Add the other model as an endpoint of its own."
        )
    if (moved or target.name != row.name) and _on_board(session, row):
        raise Conflict(
            "Name and address cannot be changed: a row of the board stands on them. "
            "Add the new one as an endpoint of its own."
        )
    if moved and row.sealed_key is not None and change.api_key is None and not change.without_key:
        raise InvalidInput(
            "Give the key again: the stored one was given for another address, and is sent to no other."
        )
    there = _same(session, account, target)
    if there is not None and there.id != row.id:
        raise Conflict("You have an endpoint of this name, provider, address and model already.")
    row.name, row.provider, row.base_url, row.model = (
        target.name,
        target.provider,
        target.base_url,
        target.model,
    )
    if moved or other:
        row.learned, row.last_check, row.last_check_at = {}, None, None
    if moved:
        row.private_allowed = addresses.private_allowed
        row.sealed_key = None
    if change.api_key is not None:
        keep_key(account, row, secret, change.api_key)
    if change.price is not None:
        row.price_prompt, row.price_completion = change.price.prompt, change.price.completion
    row.declared = change.declared.over(row.declared)
    session.flush()


def _as_stored(row: models.Endpoint, addresses: Addresses) -> Addresses:
    return replace(addresses, private_allowed=addresses.private_allowed or row.private_allowed)


def _on_board(session: Session, row: models.Endpoint) -> bool:
    b, r, e = models.BoardEntry, models.Run, models.Evaluator
    query = (
        select(b.id)
        .join(r, r.id == b.run_id)
        .join(e, e.id == b.evaluator_id)
        .where(or_(r.endpoint_id == row.id, e.endpoint_id == row.id))
    )
    return session.scalar(select(query.exists())) is True


def delete_key(session: Session, found: OwnEndpoint) -> list[int]:
    """Gone at once; the numbers of the runs that were paused since they need it."""
    row = session.get_one(models.Endpoint, found.row.id, with_for_update=True)
    if row.sealed_key is None:
        return []
    row.sealed_key, row.key_deleted_at = None, datetime.now(UTC)
    session.flush()
    needing = session.scalars(
        select(models.Run).where(models.Run.status == "running", _needs(row)).order_by(models.Run.id)
    ).all()
    for run in needing:
        control.pause(session, run, KEY_DELETED)
    return [run.id for run in needing]


def _needs(row: models.Endpoint) -> ColumnElement[bool]:
    p, e = models.RunEvaluator, models.Evaluator
    rated = exists().where(p.run_id == models.Run.id, p.evaluator_id == e.id, e.endpoint_id == row.id)
    return or_(models.Run.endpoint_id == row.id, rated)


def remove_endpoint(session: Session, found: OwnEndpoint) -> None:
    """Conflict once it was used: runs say where they were asked."""
    if found.used:
        raise Conflict(
            "Runs were made with this endpoint, and say where they were asked: it stays. "
            "Its key can be deleted."
        )
    session.delete(found.row)
    session.flush()


def note_check(session: Session, account: models.Account, target: Target, report: dict[str, Any]) -> None:
    """Keep what a preflight saw with the endpoint, if it is stored: without requests and answers."""
    row = _same(session, account, target)
    if row is None:
        return
    checks = [one | dict.fromkeys(("request", "answer")) for one in report["checks"]]
    row.last_check, row.last_check_at = report | {"checks": checks}, datetime.now(UTC)
    session.flush()

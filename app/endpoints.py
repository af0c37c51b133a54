"""Endpoints with their sealed keys, and the evaluators that stand on them."""

import hashlib
import json
from dataclasses import asdict
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app import models
from app.chat import NOTHING_PRIVATE, Endpoint, check_url
from app.declared import NOTHING_SAID, Declared
from app.errors import InvalidInput
from app.evaluation import (
    PROMPT_VERSION,
    PUBLISHED_PARSER,
    PUBLISHED_PARSER_VERSION,
    RULES_NAME,
    RULES_VERSION,
)
from app.prices import Price
from app.protocol import Protocol
from app.secrets import seal, unseal

# Stands where an address would, for transcripts that were made elsewhere.
ELSEWHERE = "uploaded://elsewhere"


# Of runs that are over, unless one that is not over needs the same key.
FORGET_KEYS = text("""
WITH used AS (
    SELECT id AS run_id, endpoint_id FROM run
    UNION SELECT p.run_id, e.endpoint_id FROM run_evaluator p JOIN evaluator e ON e.id = p.evaluator_id
    WHERE e.endpoint_id IS NOT NULL
), held AS (
    SELECT u.endpoint_id FROM used u JOIN run r ON r.id = u.run_id WHERE r.status IN ('running', 'paused')
), due AS (
    UPDATE run SET forget_key = false
    WHERE forget_key AND status IN ('finished', 'cancelled') AND NOT EXISTS (
        SELECT 1 FROM used u JOIN held h ON h.endpoint_id = u.endpoint_id WHERE u.run_id = run.id
    )
    RETURNING id
)
UPDATE endpoint SET sealed_key = NULL, key_deleted_at = now()
WHERE sealed_key IS NOT NULL
  AND id IN (SELECT u.endpoint_id FROM used u JOIN due d ON d.id = u.run_id)
RETURNING id
""")


def forget_keys(session: Session) -> int:
    """Delete the keys of runs that are over and asked for it; how many."""
    return len(session.execute(FORGET_KEYS).all())


def local_account(session: Session) -> models.Account:
    """The account that the command line acts as."""
    owner = {"name": "local", "role": models.Role.ADMIN.value, "is_owner": True}
    session.execute(insert(models.Account).values(owner).on_conflict_do_nothing())
    return session.scalars(select(models.Account).where(models.Account.is_owner)).one()


def store_endpoint(
    session: Session,
    account: models.Account,
    secret: bytes,
    *,
    name: str,
    provider: str,
    base_url: str,
    model: str,
    api_key: str | None,
    private_allowed: bool,
    price: Price | None = None,
    declared: Declared = NOTHING_SAID,
) -> models.Endpoint:
    """The account's endpoint of this name, address and model, with the key and the price given last.

    Without a key the stored one stays: runs of this endpoint that are paused still need it. Without a price
    it stays too, and so does what was declared and is not said again.
    InvalidInput for what could never be called, before anything is stored: an address that is none or that
    holds a key, an unknown provider, a model name or key that cannot be sent.
    """
    if base_url != ELSEWHERE:
        base_url = canonical_address(base_url)
        Endpoint(provider, base_url, model, api_key)  # type: ignore[arg-type]  # checks all that it is given
    identity = {"name": name, "provider": provider, "base_url": base_url, "model": model}
    query = select(models.Endpoint).filter_by(account_id=account.id, **identity)
    row = session.scalars(query).one_or_none()
    if row is None:
        values = {"account_id": account.id, "private_allowed": private_allowed}
        session.execute(insert(models.Endpoint).values(values | identity).on_conflict_do_nothing())
        row = session.scalars(query).one()
    row.private_allowed = private_allowed
    if price is not None:
        row.price_prompt, row.price_completion = price.prompt, price.completion
    row.declared = declared.over(row.declared)
    if api_key is not None:
        keep_key(account, row, secret, api_key)
    session.flush()
    return row


def keep_key(account: models.Account, endpoint: models.Endpoint, secret: bytes, api_key: str) -> None:
    """Sealed for this endpoint, its owner and its address, in place of an earlier one."""
    endpoint.sealed_key, endpoint.key_deleted_at = seal(secret, api_key, *_bound(account, endpoint)), None


def price_of(row: models.Endpoint | models.Run | models.RunEvaluator | None) -> Price:
    return Price() if row is None else Price(row.price_prompt, row.price_completion)


def evaluator_of_run(session: Session, run: models.Run, evaluator: models.Evaluator) -> models.RunEvaluator:
    """The pairing, not yet stored, at the price that the evaluator's endpoint has now."""
    endpoint = session.get(models.Endpoint, evaluator.endpoint_id) if evaluator.endpoint_id else None
    price = price_of(endpoint)
    return models.RunEvaluator(
        run_id=run.id,
        evaluator_id=evaluator.id,
        price_prompt=price.prompt,
        price_completion=price.completion,
    )


def canonical_address(base_url: str) -> str:
    """The one form of the address. Where it leads is checked when it is called."""
    checked = check_url(base_url, NOTHING_PRIVATE, private_allowed=True)
    if checked.url is None:
        raise InvalidInput(f"The base URL cannot be used: {checked.reason}.")
    return checked.url


def opened_key(account: models.Account, endpoint: models.Endpoint, secret: bytes) -> str | None:
    if endpoint.sealed_key is None:
        return None
    return unseal(secret, endpoint.sealed_key, *_bound(account, endpoint))


def _bound(account: models.Account, endpoint: models.Endpoint) -> tuple[str, str, str]:
    return str(account.uuid), str(endpoint.uuid), endpoint.base_url


def rules_evaluator(session: Session) -> models.Evaluator:
    return _evaluator(
        session, {"kind": "rules", "name": RULES_NAME, "version": RULES_VERSION}, f"rules:{RULES_VERSION}"
    )


def imported_evaluator(session: Session, name: str) -> models.Evaluator:
    """Whoever rated what result sheets hold, by the name that is given to them."""
    fingerprint = hashlib.sha256(f"imported:{name}".encode()).hexdigest()
    return _evaluator(session, {"kind": "imported", "name": name, "version": "sheets"}, fingerprint)


def model_evaluator(
    session: Session, endpoint: models.Endpoint, row: models.Protocol, protocol: Protocol
) -> models.Evaluator:
    """The evaluator that is this endpoint under this protocol's evaluator section."""
    identity = json.dumps(
        [str(endpoint.uuid), asdict(protocol.evaluator), PROMPT_VERSION], sort_keys=True, default=str
    )
    fingerprint = hashlib.sha256(identity.encode()).hexdigest()
    return _evaluator(
        session,
        {
            "kind": "model",
            "name": endpoint.model,
            "version": evaluator_version(row, protocol),
            "endpoint_id": endpoint.id,
            "protocol_id": row.id,
        },
        fingerprint,
    )


def repeat_of(session: Session, evaluator: models.Evaluator, number: int) -> models.Evaluator:
    """The same evaluator asked once more: its second, third, … verdict of a conversation."""
    if evaluator.repeat is not None:
        raise InvalidInput(f"{evaluator.name} is a repeat already: repeat the evaluator that it repeats.")
    copied = ("kind", "name", "version", "endpoint_id", "protocol_id")
    values = {name: getattr(evaluator, name) for name in copied}
    values |= {"repeat_of_id": evaluator.id, "repeat": number}
    return _evaluator(session, values, f"{evaluator.fingerprint}#{number}")


def evaluator_version(row: models.Protocol, protocol: Protocol) -> str:
    """The protocol whose section it is; and the parser, where it is another than the project's own."""
    replicates = protocol.evaluator.parser == PUBLISHED_PARSER
    return f"{row.name}@{row.version}" + (f"+{PUBLISHED_PARSER_VERSION}" if replicates else "")


def _evaluator(session: Session, values: dict[str, Any], fingerprint: str) -> models.Evaluator:
    session.execute(
        insert(models.Evaluator).values(fingerprint=fingerprint, **values).on_conflict_do_nothing()
    )
    return session.scalars(select(models.Evaluator).filter_by(fingerprint=fingerprint)).one()

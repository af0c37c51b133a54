"""Stored endpoints with their sealed keys, and the evaluators that stand on them."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from app import models
from app.endpoints import (
    ELSEWHERE,
    local_account,
    model_evaluator,
    opened_key,
    rules_evaluator,
    store_endpoint,
)
from app.errors import Conflict, InvalidInput
from app.library import store_protocol
from app.protocol import builtin_protocol
from tests.factories import unshared_protocol

SECRET = b"the secret of a site, thirty-two bytes or more"
KEY = "sk-canary-0123456789"


def stored(session: Session, **changed: Any) -> models.Endpoint:
    values = {
        "name": "A model",
        "provider": "openai",
        "base_url": "https://models.example.org/v1",
        "model": "m-1",
        "api_key": KEY,
        "private_allowed": False,
        **changed,
    }
    return store_endpoint(session, local_account(session), SECRET, **values)


def test_there_is_one_account_of_this_machine(session: Session) -> None:
    assert local_account(session).id == local_account(session).id


def test_a_key_opens_for_its_endpoint(session: Session) -> None:
    endpoint = stored(session)
    assert endpoint.sealed_key is not None
    assert KEY.encode() not in endpoint.sealed_key
    assert opened_key(local_account(session), endpoint, SECRET) == KEY


def test_the_same_endpoint_again_is_the_same_row(session: Session) -> None:
    first, again = stored(session), stored(session)
    assert first.id == again.id
    assert stored(session, base_url="https://models.example.org/v1/").id == first.id
    assert stored(session, base_url="HTTPS://Models.example.org:443/v1").id == first.id


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "B"},
        {"provider": "anthropic"},
        {"base_url": "https://other.example.org/v1"},
        {"model": "m-2"},
    ],
)
def test_another_endpoint_is_another_row(session: Session, changed: dict[str, str]) -> None:
    assert stored(session).id != stored(session, **changed).id


def test_the_key_given_last_holds(session: Session) -> None:
    stored(session)
    endpoint = stored(session, api_key="sk-another-key-9876")
    assert opened_key(local_account(session), endpoint, SECRET) == "sk-another-key-9876"
    assert opened_key(local_account(session), stored(session, api_key=None), SECRET) == "sk-another-key-9876"


def test_a_key_moved_to_another_row_address_or_owner_does_not_open(session: Session) -> None:
    one, other = stored(session), stored(session, name="B", api_key=None)
    account = local_account(session)
    other.sealed_key = one.sealed_key
    with pytest.raises(Conflict, match="Give the key again"):
        opened_key(account, other, SECRET)
    stranger = models.Account(name="stranger", role=models.Role.RESEARCHER)
    session.add(stranger)
    session.flush()
    with pytest.raises(Conflict):
        opened_key(stranger, one, SECRET)
    session.execute(text("UPDATE endpoint SET base_url = 'https://evil.example.org/v1'"))
    session.refresh(one)
    with pytest.raises(Conflict):
        opened_key(account, one, SECRET)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"base_url": f"https://user:{KEY}@host.example.org/v1"}, "user name or password"),
        ({"base_url": f"https://host.example.org/v1?api_key={KEY}"}, "query"),
        ({"base_url": "ftp://host.example.org/v1"}, "only https"),
        ({"base_url": "models.example.org"}, "not a complete address"),
        ({"base_url": ""}, "empty"),
        ({"provider": "cohere"}, "There is no provider 'cohere'"),
        ({"model": " m"}, "model name"),
        ({"api_key": f"{KEY}\n"}, "line break"),
        ({"api_key": ""}, "empty"),
    ],
)
def test_what_could_never_be_called_is_refused_before_it_is_stored(
    session: Session, changed: dict[str, str], words: str
) -> None:
    before = len(session.scalars(select(models.Endpoint)).all())
    with pytest.raises(InvalidInput, match=words) as refused:
        stored(session, **changed)
    assert KEY not in refused.value.message
    assert len(session.scalars(select(models.Endpoint)).all()) == before


def test_transcripts_made_elsewhere_need_no_address(session: Session) -> None:
    assert stored(session, base_url=ELSEWHERE, api_key=None).base_url == ELSEWHERE


# --- evaluators ---


def test_the_rules_are_one_evaluator_whoever_asks(session: Session) -> None:
    one, other = rules_evaluator(session), rules_evaluator(session)
    assert one.id == other.id
    assert (one.kind, one.endpoint_id, one.protocol_id) == ("rules", None, None)


def test_a_model_evaluator_is_its_endpoint_under_its_section(session: Session) -> None:
    protocol = builtin_protocol()
    row, _ = store_protocol(session, protocol)
    endpoint = stored(session)
    one = model_evaluator(session, endpoint, row, protocol)
    assert model_evaluator(session, endpoint, row, protocol).id == one.id
    assert one.version == "curate-1@1"
    other_model = model_evaluator(session, stored(session, model="m-2"), row, protocol)
    assert other_model.id != one.id
    stricter = replace(
        protocol, evaluator=replace(protocol.evaluator, prompt=protocol.evaluator.prompt + "!")
    )
    assert model_evaluator(session, endpoint, row, stricter).id != one.id


def test_what_does_not_shape_a_verdict_does_not_split_evaluators(session: Session) -> None:
    """The same evaluator section in another protocol: the verdicts are comparable, so it is one evaluator."""
    endpoint = stored(session)
    rows = [(store_protocol(session, one)[0], one) for one in (builtin_protocol(), unshared_protocol())]
    found = {model_evaluator(session, endpoint, row, protocol).id for row, protocol in rows}
    assert len(found) == 1

"""What accounts stand on: passwords, buckets, forms that arrive twice."""

import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from argon2 import PasswordHasher
from sqlalchemy import Engine, select, update

from app import models
from app.accounts import forms, passwords, people, throttle
from app.accounts.errors import NotAllowed, TooMany
from app.db import open_session
from app.errors import Conflict, InvalidInput
from app.models import Role
from app.settings import Settings
from tests.web_help import PASSWORD, Browser, at_once, browsing, make_person


@pytest.fixture
def browser(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as made:
        yield made


# --- passwords ---


def test_a_password_is_stored_as_argon2id() -> None:
    stored = passwords.hash_password(PASSWORD)
    assert stored.startswith("$argon2id$")
    assert passwords.verify_password(stored, PASSWORD)
    assert not passwords.verify_password(stored, PASSWORD + " ")
    assert not passwords.verify_password(None, "a password that nobody has")
    assert not passwords.verify_password("damaged", PASSWORD)
    assert not passwords.needs_rehash(stored)


def test_a_password_is_the_same_however_its_letters_are_composed() -> None:
    assert passwords.verify_password(
        passwords.hash_password("caf\u00e9 au lait, please"), "cafe\u0301 au lait, please"
    )


@pytest.mark.parametrize(
    ("password", "why"), [("short", "at least 12"), ("a" * 201, "at most 200"), ("abababababab", "different")]
)
def test_a_weak_password_is_refused(password: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        passwords.hash_password(password)


def test_an_older_hash_is_renewed_at_sign_in(browser: Browser, engine: Engine) -> None:
    person = make_person(engine)
    old = PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1).hash(PASSWORD)
    with engine.begin() as connection:
        connection.execute(update(models.Account).values(password_hash=old))
    browser.sign_in(person)
    with open_session(engine) as session:
        renewed = session.scalars(select(models.Account.password_hash)).one()
    assert renewed is not None
    assert not passwords.needs_rehash(renewed)


# --- what people.py refuses ---


def test_one_address_is_one_account(engine: Engine) -> None:
    with open_session(engine) as session:
        people.add_person(session, email="A@example.org", name="A", role=Role.JUDGE, password=PASSWORD)
        with pytest.raises(Conflict, match="has an account"):
            people.add_person(session, email="a@EXAMPLE.org", name="B", role=Role.JUDGE, password=PASSWORD)
        assert people.find_by_email(session, "a@example.org") is not None, "the transaction goes on"


# --- buckets ---

LIMIT = throttle.Limit("test", 3, 60, "Too many.")


def test_a_bucket_fills_up_again(engine: Engine) -> None:
    with open_session(engine) as session:
        for _ in range(3):
            throttle.take(session, LIMIT, "x")
        with pytest.raises(TooMany) as refused:
            throttle.take(session, LIMIT, "x")
        assert 15 <= refused.value.retry_after <= 20
        throttle.take(session, LIMIT, "y")
        session.execute(
            update(models.Throttle).values(updated_at=models.Throttle.updated_at - timedelta(seconds=21))
        )
        throttle.take(session, LIMIT, "x")
        with pytest.raises(TooMany):
            throttle.take(session, LIMIT, "x")
        session.execute(
            update(models.Throttle).values(updated_at=models.Throttle.updated_at - timedelta(days=2))
        )
        for _ in range(3):
            throttle.take(session, LIMIT, "x")
        with pytest.raises(TooMany):
            throttle.take(session, LIMIT, "x")


def test_a_bucket_is_one_for_all_at_once(engine: Engine) -> None:
    def take() -> int:
        with open_session(engine) as session:
            try:
                throttle.take(session, LIMIT, "x")
                session.commit()
            except TooMany:
                return 0
            return 1

    assert sum(at_once(take, 8)) == 3


@pytest.mark.parametrize(
    ("address", "bucket"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", "unknown"),
        ("testclient", "unknown"),
    ],
)
def test_whom_an_address_stands_for(address: str, bucket: str) -> None:
    assert throttle.peer_bucket(address) == bucket


# --- forms that arrive twice ---


@pytest.mark.parametrize("hows", [("disable", "disable"), ("demote", "demote"), ("disable", "demote")])
def test_administrators_who_strike_at_each_other_leave_one(engine: Engine, hows: tuple[str, str]) -> None:
    """Whoever comes second is none any more, whatever was read before."""
    both = [make_person(engine, Role.ADMIN, email=f"{name}@example.org") for name in ("ada", "grace")]
    together = threading.Barrier(2)

    def strike(by: models.Account, whom: models.Account, how: str) -> str:
        with open_session(engine) as session:
            me, other = (people.find_person(session, one.uuid) for one in (by, whom))
            together.wait(10)
            try:
                if how == "disable":
                    people.disable(session, other, me)
                else:
                    people.set_role(session, other, Role.JUDGE, me)
            except NotAllowed as error:
                return error.message
            session.commit()
            return "done"

    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(strike, both, reversed(both), hows))
    assert sorted(ends) == ["You are no administrator any more: nothing was changed.", "done"]
    with open_session(engine) as session:
        left = [people.find_person(session, one.uuid) for one in both]
        assert sum(one.role == Role.ADMIN and one.disabled_at is None for one in left) == 1


def test_a_form_that_arrives_twice_leads_to_the_same(engine: Engine) -> None:
    person, key = make_person(engine), uuid.uuid4()
    made = []

    def submit() -> int:
        with open_session(engine) as session:
            if (earlier := forms.earlier_result(session, person, key)) is not None:
                return int(earlier)
            time.sleep(0.05)
            made.append(1)
            forms.store_result(session, person, key, "7")
            session.commit()
            return 7

    assert at_once(submit, 4) == [7] * 4
    assert made == [1]


def test_a_form_that_was_refused_may_come_again(engine: Engine) -> None:
    person, key = make_person(engine), uuid.uuid4()
    with open_session(engine) as session:
        assert forms.earlier_result(session, person, key) is None
        session.rollback()
        assert forms.earlier_result(session, person, key) is None

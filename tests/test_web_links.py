"""Invitations, resets, the owner's link, and what an administrator may change."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta

import pytest
from sqlalchemy import Engine, select, text, update

from app import models
from app.accounts import links, people
from app.accounts.tokens import token_hash
from app.db import open_session
from app.endpoints import local_account
from app.errors import NotFound
from app.models import LinkKind, Role
from app.settings import Settings
from tests.driving_help import wait_for
from tests.web_help import PASSWORD, Browser, at_once, audit, browsing, is_in, make_person, text_of

NEW = "another fine long password"


@pytest.fixture
def browser(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as made:
        yield made


@pytest.fixture
def another(settings: Settings, engine: Engine) -> Iterator[Browser]:
    """A second browser at the same site."""
    with browsing(settings, engine) as made:
        yield made


# --- invitations ---


def invite(browser: Browser, email: str = "new@example.org", role: str = "judge") -> str:
    """The path of the link on the administrator's page."""
    page = browser.post("/admin/invites", {"email": email, "role": role})
    assert page.status_code == 200, text_of(page)
    found = re.search(r"http://127.0.0.1:8000(/invite/[\w-]+)", page.text)
    assert found
    return found[1]


def test_an_invitation_makes_one_account(browser: Browser, another: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine, Role.ADMIN))
    path = invite(browser)
    assert path not in browser.get("/admin").text, "shown once"
    assert "new@example.org" in another.get(path).text
    form = {"name": "Grace", "password": NEW, "password_again": NEW}
    assert another.post(path, form | {"password": "short", "password_again": "short"}).status_code == 422
    assert another.post(path, form | {"name": ""}).status_code == 422
    response = another.post(path, form)
    assert response.status_code == 303
    assert is_in(another), "a refused form did not use it up"
    assert text_of(another.get("/account")).count("Grace") >= 1
    assert another.get("/admin").status_code == 403
    used = browser.get(path)
    assert used.status_code == 404
    assert "not valid any more" in text_of(used)
    assert browser.post(path, form).status_code == 404


def test_an_invitation_can_be_taken_back(browser: Browser, another: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine, Role.ADMIN))
    path = invite(browser)
    take_back = re.search(r'action="(/admin/invites/[^"]+/take-back)"', browser.get("/admin").text)
    assert take_back
    assert browser.post(take_back[1]).status_code == 303
    assert another.get(path).status_code == 404


def test_a_second_invitation_ends_the_first(browser: Browser, another: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine, Role.ADMIN))
    first, second = invite(browser), invite(browser, "NEW@example.org")
    assert another.get(first).status_code == 404
    assert another.get(second).status_code == 200


def test_who_has_an_account_is_not_invited(browser: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine, Role.ADMIN))
    page = browser.post("/admin/invites", {"email": "admin@example.org", "role": "judge"})
    assert page.status_code == 409
    assert "has an account here already" in text_of(page)
    for email in (
        "",
        "no address",
        "a@b@c",
        "a" * 250 + "@example.org",
        "ünïcode@example.org",
        "a\n@example.org",
    ):
        assert browser.post("/admin/invites", {"email": email, "role": "judge"}).status_code == 422
    assert browser.post("/admin/invites", {"email": "a@example.org", "role": "emperor"}).status_code == 422


# --- one-time links ---


def old(engine: Engine, minutes: int) -> None:
    with engine.begin() as connection:
        made = models.OneTimeLink.expires_at - timedelta(minutes=minutes)
        connection.execute(update(models.OneTimeLink).values(expires_at=made))


def reset_path(engine: Engine, person: models.Account) -> str:
    with open_session(engine) as session:
        path = people.reset_link(session, session.get_one(models.Account, person.id))
        session.commit()
        return path


NEW_FORM = {"password": NEW, "password_again": NEW}


def test_a_reset_works_once(browser: Browser, another: Browser, engine: Engine) -> None:
    person = make_person(engine)
    another.sign_in(person)
    path = reset_path(engine, person)
    assert browser.get(path).status_code == 200
    assert browser.get(path).status_code == 200, "looking does not use it up"
    assert browser.post(path, NEW_FORM).status_code == 303
    assert is_in(browser)
    assert not is_in(another), "whoever had the old password is out"
    assert browser.post(path, NEW_FORM).status_code == 404
    another.sign_in(person, NEW)


def test_a_reset_is_good_for_thirty_minutes(browser: Browser, engine: Engine) -> None:
    path = reset_path(engine, make_person(engine))
    old(engine, 29)
    assert browser.get(path).status_code == 200
    old(engine, 1)
    assert browser.get(path).status_code == 404
    assert browser.post(path, NEW_FORM).status_code == 404


def test_a_newer_reset_and_a_disabled_account_end_a_link(browser: Browser, engine: Engine) -> None:
    person, admin = make_person(engine), make_person(engine, Role.ADMIN)
    first, second = reset_path(engine, person), reset_path(engine, person)
    assert browser.get(first).status_code == 404
    assert browser.get(second).status_code == 200
    with open_session(engine) as session:
        people.disable(session, people.find_person(session, person.uuid), admin)
        session.commit()
    assert browser.get(second).status_code == 404


def invite_path(engine: Engine) -> str:
    with open_session(engine) as session:
        path = people.invite(session, email="new@example.org", role=Role.JUDGE, by=None)
        session.commit()
        return path


@pytest.mark.parametrize("kind", LinkKind)
def test_of_several_at_once_one_gets_in(settings: Settings, engine: Engine, kind: LinkKind) -> None:
    make: dict[LinkKind, Callable[[], str]] = {
        LinkKind.INVITE: lambda: invite_path(engine),
        LinkKind.RESET: lambda: reset_path(engine, make_person(engine)),
        LinkKind.SIGN_IN: lambda: owner_path(engine),
    }
    path, form = make[kind](), NEW_FORM | {"name": "Grace"}
    with ExitStack() as stack:
        # Made before: FastAPI silences warnings while it makes an application, for all threads at once.
        browsers = [stack.enter_context(browsing(settings, engine)) for _ in range(3)]
        assert sorted(at_once(lambda: browsers.pop().post(path, form).status_code, 3)) == [303, 404, 404]


def test_a_reset_and_a_new_password_at_once_do_not_wait_for_each_other(engine: Engine) -> None:
    person = make_person(engine)
    token = reset_path(engine, person).rpartition("/")[2]
    with open_session(engine) as resetting, ThreadPoolExecutor(1) as pool:
        account = people._use_link(resetting, LinkKind.RESET, token)
        other = pool.submit(change_password, engine, person)
        wait_for(lambda: waits_for_a_lock(engine))
        people.set_password(resetting, account, NEW)
        resetting.commit()
        assert other.result(20) is None
    with open_session(engine) as session:
        assert people.check_password(session, person.email or "", "the later password of the two")


def change_password(engine: Engine, person: models.Account) -> None:
    with open_session(engine) as session:
        account = session.get_one(models.Account, person.id)
        people.change_password(session, account, PASSWORD, "the later password of the two")
        session.commit()


def waits_for_a_lock(engine: Engine) -> bool:
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with engine.connect() as connection:
        return bool(connection.execute(waiting).scalar())


def test_a_link_of_one_kind_is_none_of_another(browser: Browser, engine: Engine) -> None:
    token = reset_path(engine, make_person(engine)).rpartition("/")[2]
    assert browser.get(f"/invite/{token}").status_code == 404
    assert browser.get(f"/signin/{token}").status_code == 404
    assert browser.post(f"/signin/{token}").status_code == 404
    assert browser.get(f"/reset/{'x' * 99}").status_code == 404
    assert browser.get("/reset/é").status_code == 404


def test_links_are_stored_as_hashes(engine: Engine) -> None:
    path = reset_path(engine, make_person(engine))
    with open_session(engine) as session:
        row = session.scalars(select(models.OneTimeLink)).one()
        assert row.token_hash == token_hash(path.rpartition("/")[2])
        with pytest.raises(NotFound):
            links.look_at(session, LinkKind.INVITE, path.rpartition("/")[2])


# --- the owner of this machine ---


def owner_path(engine: Engine) -> str:
    with open_session(engine) as session:
        path = people.owner_link(session, local_account(session))
        session.commit()
        return path


def test_the_owner_enters_by_link(browser: Browser, another: Browser, engine: Engine) -> None:
    path = owner_path(engine)
    for _ in range(2):
        assert browser.get(path).status_code == 200
        assert not is_in(browser), "a look alone signs nobody in"
    assert browser.post(path).status_code == 303
    assert browser.get("/admin").status_code == 200
    assert browser.get(path).headers["location"] == "/", "the used link is no dead end for who is in"
    assert another.get(path).status_code == 404
    assert another.post(path).status_code == 404
    old(engine, 0)
    late = owner_path(engine)
    old(engine, 30)
    assert another.post(late).status_code == 404


def test_the_owner_is_one(engine: Engine) -> None:
    make_person(engine, name="local")
    with open_session(engine) as session:
        owner = local_account(session)
        assert owner.is_owner
        assert local_account(session).id == owner.id
        assert owner.email is None


# --- roles ---

ADMIN_PATHS = ("/admin", "/admin/audit")


@pytest.mark.parametrize("role", [Role.JUDGE, Role.RESEARCHER])
def test_administration_is_for_administrators(browser: Browser, engine: Engine, role: Role) -> None:
    person = make_person(engine, role)
    browser.sign_in(person)
    before = audit(engine)
    for path in ADMIN_PATHS:
        response = browser.get(path)
        assert response.status_code == 403
        assert "example.org" not in response.text.replace(person.email or "", "")
    for path in ("role", "disable", "enable", "reset-link"):
        form = {"role": "admin"}
        assert browser.post(f"/admin/people/{person.uuid}/{path}", form).status_code == 403
    assert browser.post("/admin/invites", {"email": "x@example.org", "role": "admin"}).status_code == 403
    assert audit(engine) == before


def test_an_administrator_changes_roles_and_disables(
    browser: Browser, another: Browser, engine: Engine
) -> None:
    admin, person = make_person(engine, Role.ADMIN), make_person(engine)
    browser.sign_in(admin)
    another.sign_in(person)
    at = f"/admin/people/{person.uuid}"
    assert browser.post(f"{at}/role", {"role": "admin"}).status_code == 303
    assert another.get("/admin").status_code == 200
    assert browser.post(f"{at}/role", {"role": "judge"}).status_code == 303
    assert another.get("/admin").status_code == 403
    assert browser.post(f"{at}/role", {"role": "x"}).status_code == 422
    for _ in range(2):
        assert browser.post(f"{at}/disable").status_code == 303
    assert not is_in(another)
    assert another.post("/login", {"email": person.email, "password": PASSWORD}).status_code == 422
    assert browser.post(f"{at}/enable").status_code == 303
    another.sign_in(person)
    assert audit(engine).count("person.disable") == 1
    page = text_of(browser.get("/admin/audit"))
    for action in ("person.role", "person.disable", "person.enable", "person.sign-in-refused"):
        assert action in page


@pytest.mark.parametrize("end", ["disable", "role"])
def test_links_of_a_former_administrator_lead_nobody_in(
    browser: Browser, another: Browser, engine: Engine, end: str
) -> None:
    former = make_person(engine, Role.ADMIN)
    browser.sign_in(former)
    path = invite(browser, "back@example.org", "admin")
    kept = invite(browser, "other@example.org")
    another.sign_in(make_person(engine, Role.ADMIN, email="second@example.org"))
    assert another.post(f"/admin/people/{former.uuid}/role", {"role": "admin"}).status_code == 303
    assert another.get(kept).status_code == 200, "still an administrator"
    assert another.post(f"/admin/people/{former.uuid}/{end}", {"role": "judge"}).status_code == 303
    for link in (path, kept):
        assert another.get(link).status_code == 404


def test_a_site_keeps_its_administrator(browser: Browser, engine: Engine) -> None:
    admin = make_person(engine, Role.ADMIN)
    with open_session(engine) as session:
        owner = local_account(session)
        session.commit()
    browser.sign_in(admin)
    for uuid in (admin.uuid, owner.uuid):
        assert browser.post(f"/admin/people/{uuid}/disable").status_code == 409
        assert browser.post(f"/admin/people/{uuid}/role", {"role": "judge"}).status_code == 409
    assert browser.post("/admin/people/00000000-0000-0000-0000-000000000000/disable").status_code == 404
    assert browser.post("/admin/people/none/disable").status_code == 404


def test_an_administrator_makes_a_reset_link(browser: Browser, another: Browser, engine: Engine) -> None:
    person = make_person(engine)
    browser.sign_in(make_person(engine, Role.ADMIN))
    page = browser.post(f"/admin/people/{person.uuid}/reset-link")
    found = re.search(r"http://127.0.0.1:8000(/reset/[\w-]+)", page.text)
    assert found
    assert another.post(found[1], NEW_FORM).status_code == 303


def test_the_audit_trail_is_paged(browser: Browser, engine: Engine) -> None:
    admin = make_person(engine, Role.ADMIN)
    with open_session(engine) as session:
        session.add_all(
            models.AuditEvent(action=f"test.{n}", subject="x", actor_id=admin.id) for n in range(150)
        )
        session.commit()
    browser.sign_in(admin)
    page = browser.get("/admin/audit")
    older = re.search(r'href="(/admin/audit\?before=\d+)"', page.text)
    assert older
    assert "test.149" in page.text
    assert "test.0<" in browser.get(older[1]).text
    assert browser.get("/admin/audit?before=99999999999999999999").status_code == 404
    assert browser.get("/admin/audit?before=x").status_code == 404

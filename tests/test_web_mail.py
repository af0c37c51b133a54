"""Password resets by mail, from a real server's point of view."""

import logging
import re

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, select

from app import models
from app.accounts import people
from app.db import open_session
from app.errors import InvalidInput
from app.mail import Mailer
from app.models import Role
from app.settings import Settings
from tests.mail_server import MailServer, mail_server
from tests.web_help import browsing, is_in, make_person, text_of

NEW = {"password": "another fine long password", "password_again": "another fine long password"}


def with_mail(settings: Settings, server: MailServer) -> Settings:
    return settings.model_copy(update={"smtp_url": SecretStr(server.url)})


def test_a_reset_by_mail(settings: Settings, engine: Engine) -> None:
    person = make_person(engine)
    with mail_server() as server, browsing(with_mail(settings, server), engine) as browser:
        answer = browser.post("/reset", {"email": " Researcher@Example.org"})
        assert answer.status_code == 200
        mail = server.next()
        assert mail["To"] == person.email
        assert mail["From"] == "board@example.org"
        assert mail["Auto-Submitted"] == "auto-generated"
        link = re.search(r"http://127.0.0.1:8000(/reset/[\w-]+)", mail.get_content())
        assert link
        assert browser.post(link[1], NEW).status_code == 303
        assert is_in(browser)


def test_an_invitation_by_mail(settings: Settings, engine: Engine) -> None:
    with mail_server() as server, browsing(with_mail(settings, server), engine) as browser:
        browser.sign_in(make_person(engine, Role.ADMIN))
        page = browser.post("/admin/invites", {"email": "new@example.org", "role": "judge"})
        assert "A mail with it is on its way" in text_of(page)
        mail = server.next()
        assert mail["To"] == "new@example.org"
        link = re.search(r"http://127.0.0.1:8000(/invite/[\w-]+)", mail.get_content())
        assert link
        assert link[0] in page.text
        assert browser.get(link[1]).status_code == 200


def test_the_answer_is_the_same_for_everybody(settings: Settings, engine: Engine) -> None:
    make_person(engine, email="known@example.org")
    gone = make_person(engine, email="gone@example.org")
    admin = make_person(engine, Role.ADMIN)
    with open_session(engine) as session:
        people.disable(session, people.find_person(session, gone.uuid), admin)
        session.commit()
    with mail_server() as server, browsing(with_mail(settings, server), engine) as browser:
        answers = [
            browser.post("/reset", {"email": f"{name}@example.org"}) for name in ("known", "gone", "none")
        ]
        assert {answer.status_code for answer in answers} == {200}
        assert len({text_of(answer) for answer in answers}) == 1
        server.next()
        assert [mail["To"] for mail in server.mails] == ["known@example.org"]


def test_resets_are_limited_by_peer_and_by_person(settings: Settings, engine: Engine) -> None:
    make_person(engine)
    with mail_server() as server, browsing(with_mail(settings, server), engine) as browser:
        form = {"email": "researcher@example.org"}
        assert [browser.post("/reset", form).status_code for _ in range(6)] == [200] * 5 + [429]
        assert len(server.mails) == 3


def test_an_address_cannot_bring_headers(settings: Settings, engine: Engine) -> None:
    with mail_server() as server, browsing(with_mail(settings, server), engine) as browser:
        for email in ("a@example.org\r\nBcc: evil@example.org", "a@example.org, evil@example.org", ""):
            assert browser.post("/reset", {"email": email}).status_code == 422
        assert server.mails == []


@pytest.mark.parametrize("away", [True, False], ids=["away", "refusing"])
def test_a_mail_server_that_fails_is_a_line_in_the_log(
    settings: Settings, engine: Engine, caplog: pytest.LogCaptureFixture, away: bool
) -> None:
    make_person(engine)
    with mail_server(refuses=True) as server:
        if away:
            server.port = 1
        with browsing(with_mail(settings, server), engine) as browser:
            assert browser.post("/reset", {"email": "researcher@example.org"}).status_code == 200
    found = [record for record in caplog.records if record.name == "app.mail"]
    assert len(found) == 1
    assert found[0].levelno == logging.WARNING
    assert "/reset/" not in caplog.text


def test_without_mail_the_page_says_whom_to_ask(settings: Settings, engine: Engine) -> None:
    make_person(engine)
    with browsing(settings, engine) as browser:
        assert "sends no mail" in text_of(browser.get("/reset"))
        assert "sends no mail" in text_of(browser.post("/reset", {"email": "researcher@example.org"}))
    with open_session(engine) as session:
        assert session.scalars(select(models.OneTimeLink)).all() == []


@pytest.mark.parametrize("url", ["http://mail.example.org", "smtp://", "smtp://mail.example.org", "nonsense"])
def test_a_wrong_address_of_the_mail_server_is_refused_at_the_start(settings: Settings, url: str) -> None:
    with pytest.raises(InvalidInput, match="CURATE_SMTP_URL"):
        Mailer.of(settings.model_copy(update={"smtp_url": SecretStr(url)}))

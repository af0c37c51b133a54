"""A mail when a run is over or the site paused it: once, to whoever wanted it, where mail is set up."""

import pytest
from sqlalchemy import Engine, text

from app import models
from app.db import open_session
from app.outcomes import Outcome
from app.runs import control
from app.settings import Settings
from tests.board_help import finish
from tests.driving_help import shop_of
from tests.factories import Shop
from tests.mail_server import mail_server
from tests.test_web_mail import with_mail
from tests.test_web_runs import CHOICES, carried, give, only_run
from tests.web_help import browsing, make_person
from workers.mailing import mail_what_is_over
from workers.publishing import tidy_up

URL = "https://models.example.com/v1"


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=1)


def wanted(shop: Shop, run: models.Run) -> models.Run:
    with shop.engine.begin() as connection:
        connection.execute(text("UPDATE run SET mail_wanted = true WHERE id = :id"), {"id": run.id})
    return give(shop.engine, run)


def mixed(_: str, scenario: str, *__: object) -> Outcome:
    return Outcome.ENDPOINT_ERROR if scenario == "sc5" else Outcome.PASS


def test_asked_for_in_the_form_and_sent_once_when_it_is_finished(shop: Shop, settings: Settings) -> None:
    with mail_server() as server:
        mailing = with_mail(settings, server)
        with browsing(mailing, shop.engine) as browser:
            browser.sign_in(make_person(shop.engine))
            assert "Mail me when it is finished" in browser.get("/runs/new").text
            browser.post("/runs", carried(browser.post("/runs/preview", CHOICES | {"mail": "1"}).text))
        run = only_run(shop.engine)
        tidy_up(shop.engine, mailing)
        assert server.mails == [], "it still runs"
        finish(shop.engine, run, lambda *_: Outcome.PASS)
        tidy_up(shop.engine, mailing)
        tidy_up(shop.engine, mailing)
        (mail,) = server.mails
    assert mail["To"] == "researcher@example.org"
    assert mail["Subject"] == f"Run {run.id} (a-model) is finished"
    body = mail.get_content()
    assert "Pass rate: 100.0 % of 4 answered." in body
    assert f"http://127.0.0.1:8000/runs/{run.uuid}" in body


def test_who_is_told_of_what(shop: Shop, settings: Settings) -> None:
    make_person(shop.engine)
    unasked = give(shop.engine, finish(shop.engine, shop.submit(URL, model="a"), mixed))
    of_owner = wanted(shop, shop.submit(URL, model="b"))
    of_site = wanted(shop, shop.submit(URL, model="c"))
    failed = wanted(shop, finish(shop.engine, shop.submit(URL, model="d"), mixed))
    with open_session(shop.engine) as session:
        control.pause(session, control.find_run(session, str(of_owner.id)))
        control.pause(session, control.find_run(session, str(of_site.id)), "the cap on calls was reached")
        session.commit()
    assert mail_what_is_over(shop.engine, settings) == 0, "no mail is set up"
    with mail_server() as server:
        mailing = with_mail(settings, server)
        assert mail_what_is_over(shop.engine, mailing) == 2
        told = {str(mail["Subject"]): str(mail.get_content()) for mail in server.mails}
        assert set(told) == {f"Run {of_site.id} (c) is paused", f"Run {failed.id} (d) is finished"}
        assert "paused: the cap on calls was reached." in told[f"Run {of_site.id} (c) is paused"]
        assert "4 conversations ended in an error" in told[f"Run {failed.id} (d) is finished"]
        # What comes of a run that goes on is told anew.
        with open_session(shop.engine) as session:
            control.resume(session, control.find_run(session, str(failed.id)), retry_errors=True)
            session.commit()
        assert mail_what_is_over(shop.engine, mailing) == 0
        finish(shop.engine, failed, lambda *_: Outcome.PENDING)
        assert mail_what_is_over(shop.engine, mailing) == 1
        assert str(unasked.id) not in "".join(str(mail["Subject"]).split("(")[0][4:] for mail in server.mails)


def test_a_mail_that_cannot_be_sent_is_not_tried_for_ever(shop: Shop, settings: Settings) -> None:
    make_person(shop.engine)
    wanted(shop, finish(shop.engine, shop.submit(URL), mixed))
    with mail_server(refuses=True) as server:
        assert [mail_what_is_over(shop.engine, with_mail(settings, server)) for _ in range(2)] == [0, 0]

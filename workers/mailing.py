"""Sends what app.runs.mailing says is due."""

import logging

from sqlalchemy import Engine

from app.db import session_scope
from app.mail import Mailer
from app.runs.mailing import take_mail
from app.settings import Settings

log = logging.getLogger(__name__)


def mail_what_is_over(engine: Engine, settings: Settings) -> int:
    """Of every run that waits for it; how many mails the server took. Nothing where no mail is set up."""
    mailer = Mailer.of(settings)
    if not mailer.configured:
        return 0
    sent = 0
    while True:
        with session_scope(engine) as session:
            mail = take_mail(session, settings.base_url)
            session.commit()
        if mail is None:
            return sent
        taken = mailer.send(mail.to, mail.subject, mail.text)
        sent += taken
        log.info("Run %s: %s", mail.run, "mailed" if taken else "the mail could not be sent")

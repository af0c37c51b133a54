"""Mail, where CURATE_SMTP_URL says how: smtp://user:password@host:587 (STARTTLS) or smtps://… (TLS at once).

`?from=board@example.org` sets the sender; otherwise it is CURATE_ADMIN_EMAIL.
"""

import logging
import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from app.errors import InvalidInput
from app.settings import LOOPBACK_HOSTS, Settings

TIMEOUT_SECONDS = 20.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Mailer:
    url: SplitResult | None
    sender: str

    @classmethod
    def of(cls, settings: Settings) -> "Mailer":
        """InvalidInput when the address of the mail server cannot be used."""
        if settings.smtp_url is None:
            return cls(None, "")
        url = urlsplit(settings.smtp_url.get_secret_value())
        if url.scheme not in ("smtp", "smtps") or not url.hostname:
            raise InvalidInput(
                "CURATE_SMTP_URL must be of the form smtp://user:password@host:587 or smtps://…."
            )
        sender = parse_qs(url.query).get("from", [settings.admin_email or ""])[0]
        if "@" not in sender:
            raise InvalidInput("CURATE_SMTP_URL needs a sender: set CURATE_ADMIN_EMAIL or add ?from=address.")
        return cls(url, sender)

    @property
    def configured(self) -> bool:
        return self.url is not None

    def send(self, to: str, subject: str, text: str) -> bool:
        """Whether the server took it; what went wrong is in the log, without the text, which holds a key."""
        if self.url is None:
            return False
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self.sender, to, subject
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(text)
        try:
            with self._connected(self.url) as server:
                server.send_message(message)
        except (OSError, smtplib.SMTPException) as error:
            log.warning("A mail could not be sent: %s (%s)", type(error).__name__, subject)
            return False
        return True

    def _connected(self, url: SplitResult) -> smtplib.SMTP:
        host, context = url.hostname or "", ssl.create_default_context()
        if url.scheme == "smtps":
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                host, url.port or 465, timeout=TIMEOUT_SECONDS, context=context
            )
        else:
            server = smtplib.SMTP(host, url.port or 587, timeout=TIMEOUT_SECONDS)
            # Only a server on this machine may do without: links are keys.
            if host not in LOOPBACK_HOSTS or server.has_extn("starttls"):
                server.starttls(context=context)
        if url.username:
            server.login(unquote(url.username), unquote(url.password or ""))
        return server

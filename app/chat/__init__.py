"""The one HTTP client for models: provider adapters, URL guard, retries, replies made uniform."""

from app.chat.allowlist import NOTHING_PRIVATE, Allowlist
from app.chat.client import ChatClient
from app.chat.errors import ERRORS, FLAGS, RETRIABLE
from app.chat.exchange import (
    Attempt,
    Endpoint,
    Exchange,
    Learned,
    Message,
    check_api_key,
    messages_for,
)
from app.chat.guard import Checked, check_url
from app.chat.pace import Pace, SendResult, Unpaced
from app.chat.retry import RetryPolicy

__all__ = [
    "ERRORS",
    "FLAGS",
    "NOTHING_PRIVATE",
    "RETRIABLE",
    "Allowlist",
    "Attempt",
    "ChatClient",
    "Checked",
    "Endpoint",
    "Exchange",
    "Learned",
    "Message",
    "Pace",
    "RetryPolicy",
    "SendResult",
    "Unpaced",
    "check_api_key",
    "check_url",
    "messages_for",
]

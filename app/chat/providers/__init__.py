"""One adapter for each provider's protocol."""

from app.chat.exchange import ProviderName
from app.chat.providers import anthropic, completion, gemini, openai
from app.chat.providers.base import Provider, Request

PROVIDERS: dict[ProviderName, Provider] = {
    "openai": openai.PROVIDER,
    "anthropic": anthropic.PROVIDER,
    "gemini": gemini.PROVIDER,
    "completion": completion.PROVIDER,
}

__all__ = ["PROVIDERS", "Provider", "Request"]

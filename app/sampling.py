"""Sampling parameters, as a protocol states them and a request carries them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sampling:
    """None means: not sent, the endpoint's own default holds."""

    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()

"""What tokens cost: USD per million, exact decimals. Pure."""

import re
from dataclasses import dataclass
from decimal import Decimal

from app.errors import InvalidInput

HIGHEST = 1_000_000
PLACES = 6
MILLION = Decimal(1_000_000)
_PRICE = re.compile(r"[0-9]{1,7}(\.[0-9]{1,20})?")


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens, of what is sent and of what comes back; None where it is not known."""

    prompt: Decimal | None = None
    completion: Decimal | None = None

    @property
    def known(self) -> bool:
        return self.prompt is not None or self.completion is not None


def read_price(text: str) -> Decimal:
    """`0.15`; InvalidInput says what a price looks like."""
    value = Decimal(text) if _PRICE.fullmatch(text := text.strip()) else None
    if value is None or value > HIGHEST:
        raise InvalidInput(
            f"'{text[:40]}' is no price: write US dollars per million tokens, such as 0.15, "
            f"from 0 to {HIGHEST:,}."
        )
    if value != round(value, PLACES):
        raise InvalidInput(f"A price has at most {PLACES} decimal places; '{text[:40]}' has more.")
    return plain(value)


def plain(value: Decimal) -> Decimal:
    """Without exponent and closing zeros, as people write it: 1E+1 and 10.00 are 10."""
    return value.quantize(Decimal(1)) if value == value.to_integral() else value.normalize()


def cost(price: Price, prompt_tokens: int, completion_tokens: int) -> Decimal | None:
    """USD. None where tokens were used whose price is not known; no tokens cost nothing at any price."""
    total = Decimal(0)
    for each, tokens in ((price.prompt, prompt_tokens), (price.completion, completion_tokens)):
        if tokens:
            if each is None:
                return None
            total += each * tokens / MILLION
    return total


def dollars(amount: Decimal | float) -> str:
    """`$12.34`, `$0.0042`: two places above one dollar, four below; never $0 unless it is exactly that."""
    if amount >= 1 or amount == 0:
        return f"${amount:,.2f}"
    return f"${amount:.4f}" if amount >= 0.0001 else "<$0.0001"


def about_dollars(amount: Decimal) -> str:
    """An estimate to two figures: 0.4783 -> `$0.48`, 1234.5 -> `$1,200`."""
    rounded = plain(round(amount, 1 - amount.adjusted())) if amount else amount
    return f"${rounded:,f}"

"""Prices as people write them, and what tokens cost at them, exactly."""

from decimal import Decimal

import pytest

from app.errors import InvalidInput
from app.prices import Price, about_dollars, cost, dollars, plain, read_price


@pytest.mark.parametrize(
    ("written", "value"),
    [("0.15", "0.15"), (" 10 ", "10"), ("0", "0"), ("1.500000", "1.5"), ("1000000", "1000000")],
)
def test_a_price_is_read_exactly(written: str, value: str) -> None:
    assert str(read_price(written)) == value


@pytest.mark.parametrize(
    "written",
    [
        "",
        "-1",
        "+1",
        "1e3",
        "1_000",
        "NaN",
        "inf",
        "0,15",
        "$1",
        "1000000.01",
        "0.0000001",
        "٣",
        "1" * 50,
        "1.",
    ],
)
def test_what_is_no_price_is_refused_with_an_example(written: str) -> None:
    with pytest.raises(InvalidInput, match=r"such as 0\.15|at most 6 decimal places"):
        read_price(written)


def test_costs_are_exact() -> None:
    price = Price(Decimal("0.15"), Decimal("0.60"))
    assert cost(price, 1_000_000, 1_000_000) == Decimal("0.75")
    assert cost(price, 3, 7) == Decimal("0.00000465")
    assert sum((cost(price, 1, 0) or Decimal(0) for _ in range(10)), Decimal(0)) == Decimal("0.0000015")


def test_a_price_that_is_not_needed_may_be_unknown() -> None:
    assert cost(Price(), 0, 0) == 0
    assert cost(Price(prompt=Decimal(2)), 500_000, 0) == 1
    assert cost(Price(prompt=Decimal(2)), 500_000, 1) is None
    assert not Price().known
    assert Price(completion=Decimal(0)).known


def test_how_amounts_are_written() -> None:
    amounts = {"0": "$0.00", "0.00001": "<$0.0001", "0.00466": "$0.0047", "1": "$1.00", "1234.5": "$1,234.50"}
    assert {amount: dollars(Decimal(amount)) for amount in amounts} == amounts
    estimates = {
        "0": "$0",
        "0.4783": "$0.48",
        "0.00012345": "$0.00012",
        "12.6": "$13",
        "1234567": "$1,200,000",
    }
    assert {amount: about_dollars(Decimal(amount)) for amount in estimates} == estimates
    assert [f"{plain(Decimal(given)):f}" for given in ("0.150000", "1E+2", "0.00")] == ["0.15", "100", "0"]

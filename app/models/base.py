"""What every table is built from."""

import uuid as uuidlib
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    DateTime,
    ForeignKey,
    Identity,
    Numeric,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from app.prices import HIGHEST


def one_of(column: str, values: type[Any] | tuple[str, ...]) -> str:
    listed = ", ".join(f"'{value}'" for value in values)
    return f"{column} IN ({listed})"


def pk() -> Mapped[int]:
    return mapped_column(BigInteger, Identity(always=True), primary_key=True)


def uuid_() -> Mapped[uuidlib.UUID]:
    return mapped_column(Uuid, server_default=text("gen_random_uuid()"), unique=True)


def fk(target: str, **options: Any) -> Mapped[int]:
    return mapped_column(ForeignKey(target, ondelete=options.pop("ondelete", "RESTRICT")), **options)


def now() -> Mapped[datetime]:
    return mapped_column(DateTime(timezone=True), server_default=func.now())


def flags_() -> Mapped[list[str]]:
    return mapped_column(ARRAY(Text), server_default=text("'{}'"))


def price_() -> Mapped[Decimal | None]:
    """USD per million tokens; None where it is not known."""
    return mapped_column(Numeric)


def prices_possible() -> list[CheckConstraint]:
    """Of the columns price_prompt and price_completion: within bounds, which also excludes NaN."""
    names = ("price_prompt", "price_completion")
    return [CheckConstraint(f"{name} BETWEEN 0 AND {HIGHEST}", name=name) for name in names]


MaybeTime = Mapped[datetime | None]

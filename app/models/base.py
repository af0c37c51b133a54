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

from app.declared import SYSTEM_PROMPTS, UNKNOWN, WEIGHTS, WITH_PROMPT, Declared
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


class DeclaredColumns:
    """What is said of a model (app.declared). A table with it has `declared_possible()` among its checks."""

    weights: Mapped[str] = mapped_column(Text, server_default=text(f"'{UNKNOWN}'"))
    model_version: Mapped[str | None] = mapped_column(Text)
    system_prompt: Mapped[str] = mapped_column(Text, server_default=text(f"'{UNKNOWN}'"))
    system_prompt_text: Mapped[str | None] = mapped_column(Text)

    @property
    def declared(self) -> Declared:
        """With columns that are not stored yet it is what they will be."""
        return Declared(
            self.weights or UNKNOWN,
            self.model_version,
            self.system_prompt or UNKNOWN,
            self.system_prompt_text,
        )

    @declared.setter
    def declared(self, said: Declared) -> None:
        self.weights, self.system_prompt = said.weights or UNKNOWN, said.system_prompt or UNKNOWN
        self.model_version, self.system_prompt_text = said.version or None, said.prompt_text or None


def declared_possible() -> list[CheckConstraint]:
    return [
        CheckConstraint(one_of("weights", WEIGHTS), name="weights"),
        CheckConstraint(one_of("system_prompt", SYSTEM_PROMPTS), name="system_prompt"),
        CheckConstraint(
            f"system_prompt_text IS NULL OR system_prompt = '{WITH_PROMPT}'", name="system_prompt_text"
        ),
    ]

"""People."""

import uuid as uuidlib
from datetime import datetime

from sqlalchemy import Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base
from app.models.base import now, pk, uuid_


class Account(Base):
    """Somebody whom runs and keys belong to."""

    __tablename__ = "account"
    id: Mapped[int] = pk()
    uuid: Mapped[uuidlib.UUID] = uuid_()
    name: Mapped[str] = mapped_column(Text, unique=True)
    created_at: Mapped[datetime] = now()

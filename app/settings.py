"""Settings from the environment (`CURATE_*`), typed and checked once."""

import os
import secrets
import tempfile
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.errors import InvalidInput

PROJECT_ROOT = Path(__file__).resolve().parents[1]
MIN_SECRET_LENGTH = 32
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})


class Settings(BaseSettings):
    """What an installation may set. Nothing here has a default secret."""

    model_config = SettingsConfigDict(env_prefix="CURATE_", extra="ignore", frozen=True)

    data_dir: Path = PROJECT_ROOT / ".curate"
    database_url: str | None = None
    redis_url: str | None = None
    secret_key: SecretStr | None = None
    base_url: str = "http://127.0.0.1:8000"
    endpoint_allowlist: str = ""
    admin_email: str | None = None
    smtp_url: SecretStr | None = None
    # Addresses or networks of reverse proxies whose X-Forwarded-For is believed, separated by commas.
    trusted_proxies: str = ""
    # What each researcher of a site that others reach may have going on, unless an administrator says else.
    most_open_runs: int = Field(default=20, ge=0)
    most_daily_calls: int = Field(default=200_000, ge=0)
    # For the page on methods: who runs and pays for this site, and how to reach them.
    operator: str | None = None
    contact: str | None = None

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("database_url")
    @classmethod
    def _with_driver(cls, value: str | None) -> str | None:
        """Accept the usual spellings of a PostgreSQL URL; the driver is always psycopg 3."""
        if not value:
            return None
        scheme, separator, rest = value.partition("://")
        if not separator or scheme not in {"postgresql", "postgres", "postgresql+psycopg"}:
            raise ValueError("must begin with postgresql://")
        return f"postgresql+psycopg://{rest}"

    @field_validator("redis_url")
    @classmethod
    def _redis_scheme(cls, value: str | None) -> str | None:
        if not value:
            return None
        if value.partition("://")[0] not in {"redis", "rediss", "redis+socket"}:
            raise ValueError("must begin with redis://, rediss:// or redis+socket://")
        return value

    @field_validator("secret_key", "smtp_url", "admin_email", "operator", "contact", mode="before")
    @classmethod
    def _blank_is_none(cls, value: object) -> object:
        """Compose files and unit files pass on variables that nobody filled in."""
        return value or None

    @property
    def on_loopback(self) -> bool:
        return urlsplit(self.base_url).hostname in LOOPBACK_HOSTS

    @property
    def own_hosts(self) -> frozenset[str]:
        """This site's own public host, which no endpoint may be: a request would come back to us."""
        host = urlsplit(self.base_url).hostname
        return frozenset() if self.on_loopback or host is None else frozenset({host})

    @cached_property
    def secret(self) -> bytes:
        """The site's secret. A loopback site makes its own and keeps it in the data directory.

        Raises InvalidInput where a served site has none, or one that is too short.
        """
        if self.secret_key is not None:
            value = self.secret_key.get_secret_value()
            if len(value) < MIN_SECRET_LENGTH:
                raise InvalidInput(
                    f"CURATE_SECRET_KEY is too short: give at least {MIN_SECRET_LENGTH} random characters "
                    '(python3 -c "import secrets; print(secrets.token_urlsafe(48))").'
                )
            return value.encode()
        if not self.on_loopback:
            raise InvalidInput(
                f"CURATE_SECRET_KEY is missing: a site at {self.base_url} needs one "
                '(python3 -c "import secrets; print(secrets.token_urlsafe(48))").'
            )
        return _own_secret(self.data_dir / "secret_key")


def _own_secret(path: Path) -> bytes:
    """Read the installation's generated secret, or create it once, readable by its owner only."""
    if not path.exists():
        _create_secret(path)
    stored = path.read_text().strip()
    if len(stored) < MIN_SECRET_LENGTH:
        raise InvalidInput(f"{path} does not hold a secret: delete it to have a new one made.")
    return stored.encode()


def _create_secret(path: Path) -> None:
    """Written whole under another name and then linked, so that nobody ever reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".secret_key-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48))
        # Where another command was faster, its secret stands.
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)


def load_settings(**overrides: object) -> Settings:
    """Settings from the environment; InvalidInput names the variable that is wrong."""
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        problems = [
            f"CURATE_{'_'.join(str(part) for part in item['loc']).upper()}: {item['msg']}"
            for item in error.errors(include_input=False, include_url=False)
        ]
        raise InvalidInput("; ".join(problems)) from None

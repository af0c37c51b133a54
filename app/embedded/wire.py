"""What a command and the supervisor say to each other: one JSON object a line over a Unix socket."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

ServiceName = Literal["postgres", "valkey"]
State = Literal["starting", "running", "restarting", "failed", "stopped"]

MAX_MESSAGE = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """A process that lives under the supervisor as long as a command that asked for it.

    `env` is the whole environment (None: that of the command that asks). The supervisor adds
    CURATE_DATABASE_URL and CURATE_REDIS_URL of its own services where `env` has none. On stop the child gets
    SIGTERM, and SIGKILL with its process group after `stop_seconds`.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    stop_seconds: float = 5.0

    def as_json(self, default_env: Mapping[str, str]) -> dict[str, Any]:
        return {
            "name": self.name,
            "argv": list(self.argv),
            "env": dict(default_env if self.env is None else self.env),
            "cwd": self.cwd,
            "stop_seconds": self.stop_seconds,
        }

    def differences(self, other: "ChildSpec") -> list[str]:
        """Names of what another command would have to share with us but has set otherwise."""
        mine, theirs = _settings(self.env), _settings(other.env)
        names = sorted(key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key))
        return [*([] if list(self.argv) == list(other.argv) else ["command line"]), *names]


def _settings(env: Mapping[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (env or {}).items() if key.startswith("CURATE_")}


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """How a service or child stands. `last_exit`: how it last ended, in words."""

    name: str
    state: State
    pid: int | None
    restarts: int
    last_exit: str | None
    log: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

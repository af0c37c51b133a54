"""What can be set about the simulated endpoint, at the start and while it runs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from app.errors import InvalidInput

FAULTS: Mapping[str, str] = {
    "429": "status 429 with a Retry-After header",
    "500": "status 500",
    "503": "status 503, an HTML page",
    "reset": "the connection is reset before any answer",
    "cut": "the connection is reset in the middle of the body",
    "hang": "no answer until the client gives up",
    "drip": "the headers at once, then one blank at a time, for ever",
    "empty": "an empty content",
    "null": "content null",
    "filtered": "content null, finish reason content_filter",
    "filtered_400": "status 400 with the code content_filter",
    "truncated": "half of the reply, finish reason length",
    "bad_json": "status 200 with a body that is not JSON",
    "no_body": "status 200 without a body",
    "no_choices": "an empty list of choices",
    "error_200": "an error object with status 200",
    "reasoning": "empty content, all text in reasoning_content",
    "parts": "content as a list of text parts",
    "refusal": "content null, the text in the refusal field",
    "think": "a <think> block before the reply",
    "nul": "NUL characters in the reply",
    "long": "a reply of five million characters",
    "redirect": "status 302 to another address",
    "other_model": "another model's name in the answer",
}


@dataclass(frozen=True, slots=True)
class SimulatorSettings:
    """Settings of the endpoint; `latency` and the intervals in seconds, rates and `jitter` as shares in 0-1.

    `faults` maps a kind (`429`) or a model and a kind (`evaluator:empty`) to its rate. `capacity`: most
    requests in flight before the endpoint answers 429 (0: no limit). `unsupported`: parameters answered
    with 400.
    """

    latency: float = 0.0
    jitter: float = 0.0
    seed: int = 1
    faults: Mapping[str, float] = field(default_factory=dict)
    capacity: int = 0
    retry_after: str = "1"
    hang: float = 3600.0
    drip: float = 1.0
    unsupported: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("latency", "jitter", "hang", "drip"):
            _check_number(name, getattr(self, name), 0, 1 if name == "jitter" else 86_400)
        _check_integer("seed", self.seed)
        _check_integer("capacity", self.capacity)
        if self.capacity < 0:
            raise InvalidInput(f"capacity is {self.capacity}: give 0 (no limit) or more.")
        _check_faults(self.faults)
        _check_words(self)

    def changed(self, change: Mapping[str, Any]) -> "SimulatorSettings":
        """These settings with what `change` names replaced; InvalidInput names what is wrong."""
        known = {each.name for each in fields(self)}
        unknown = sorted(set(change) - known)
        if unknown:
            raise InvalidInput(f"No such setting: {', '.join(unknown)}. Known: {', '.join(sorted(known))}.")
        values = {**asdict(self), **change}
        if isinstance(values["unsupported"], list):
            values["unsupported"] = tuple(values["unsupported"])
        return SimulatorSettings(**values)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "unsupported": list(self.unsupported)}


def fault_rate(settings: SimulatorSettings, model: str, kind: str) -> float:
    """The rate of one kind for one model; a rate given for the model wins."""
    return settings.faults.get(f"{model}:{kind}", settings.faults.get(kind, 0.0))


def _check_number(name: str, value: object, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InvalidInput(f"{name} is {value!r}: give a number from {low:g} to {high:g}.")


def _check_integer(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"{name} is {value!r}: give a whole number.")


def _check_faults(faults: object) -> None:
    if not isinstance(faults, Mapping):
        raise InvalidInput(f"faults is {faults!r}: give an object of kinds and rates.")
    for key, rate in faults.items():
        kind = str(key).rpartition(":")[2]
        if kind not in FAULTS:
            raise InvalidInput(f"No such fault: {kind}. Known: {', '.join(FAULTS)}.")
        _check_number(f"the rate of {key}", rate, 0, 1)


def _check_words(settings: SimulatorSettings) -> None:
    if not isinstance(settings.retry_after, str) or "\n" in settings.retry_after:
        raise InvalidInput(f"retry_after is {settings.retry_after!r}: give a text of one line.")
    words = settings.unsupported
    if not isinstance(words, tuple) or not all(isinstance(word, str) for word in words):
        raise InvalidInput(f"unsupported is {words!r}: give a list of parameter names.")

"""What goes over /api/v1, as its OpenAPI description states it."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from app.benchmark import BUILTIN
from app.declared import LONGEST_PROMPT, LONGEST_VERSION, Declared
from app.errors import InvalidInput
from app.models import PROVIDERS
from app.outcomes import SCENARIOS, STANDARD, Category
from app.prices import read_price
from app.protocol import builtin_protocol
from app.runs.planning import MAX_SEEDS
from app.runs.starting import DEFAULT_CONCURRENCY, MAX_CALLS
from app.runs.submitting import MAX_CONCURRENCY
from app.text import clean

LONGEST_NAME = 80
LONGEST_WORD = 200
LONGEST_URL = 2_000
LONGEST_KEY = 4_096
MOST_CASES = 100_000
MOST_NAMES = 50
USUAL_BENCHMARK = next(iter(BUILTIN))


def storable(text: str) -> str:
    if clean(text)[0] != text:
        raise ValueError("it holds a character that cannot be stored, such as NUL")
    return text


def _price(given: object) -> object:
    """A number or its text, as `read_price` takes it."""
    if given is None or isinstance(given, bool) or not isinstance(given, int | float | str):
        return given
    try:
        return read_price(given if isinstance(given, str) else repr(given))
    except InvalidInput as error:
        raise ValueError(error.message) from None


Word = Annotated[str, Field(min_length=1, max_length=LONGEST_WORD), AfterValidator(storable)]
Url = Annotated[str, Field(min_length=1, max_length=LONGEST_URL), AfterValidator(storable)]
Key = Annotated[str, Field(min_length=1, max_length=LONGEST_KEY), AfterValidator(storable)]
Dollars = Annotated[Decimal, Field(ge=0, le=1_000_000), BeforeValidator(_price)]
Provider = Literal["openai", "anthropic", "gemini", "completion"]
assert set(Provider.__args__) == set(PROVIDERS)  # type: ignore[attr-defined]


class Given(BaseModel):
    """What is sent to us: nothing that we do not know, so that a slip of the pen is no silent default."""

    model_config = ConfigDict(extra="forbid")


class DeclaredGiven(Given):
    """What the row is to say of the model, as far as you know it; what is left out stays as it was said."""

    weights: Literal["open", "closed", "unknown"] | None = None
    model_version: Annotated[str, Field(max_length=LONGEST_VERSION), AfterValidator(storable)] | None = None
    system_prompt: Literal["none", "declared", "unknown"] | None = Field(
        default=None, description="Whether the endpoint adds one by itself."
    )
    system_prompt_text: Annotated[str, Field(max_length=LONGEST_PROMPT), AfterValidator(storable)] | None = (
        Field(default=None, description="Its words; public once a run is on the board.")
    )

    def said(self) -> Declared:
        return Declared(self.weights, self.model_version, self.system_prompt, self.system_prompt_text)


class EndpointGiven(DeclaredGiven):
    """Where the model under test answers."""

    base_url: Url = Field(description="A public https address, normally ending in /v1.")
    model: Word = Field(description="The model's name at that address.")
    name: Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(storable)] | None = Field(
        default=None, description="What the board calls it; the model's own name otherwise."
    )
    provider: Provider = Field(default="openai", description="The form of its API.")
    api_key: Key | None = Field(
        default=None,
        description="Sealed for this address alone. Without one, the endpoint's earlier one.",
    )
    price_prompt: Dollars | None = Field(default=None, description="US dollars per million tokens sent.")
    price_completion: Dollars | None = Field(default=None, description="The same of tokens received.")


class EvaluatorGiven(Given):
    """The model that rates."""

    base_url: Url
    model: Word
    provider: Provider = "openai"
    api_key: Key | None = None
    price_prompt: Dollars | None = None
    price_completion: Dollars | None = None


class RunGiven(Given):
    """A run to start. What is left out is as `curate evaluate` has it."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "endpoint": {"base_url": "https://api.example.com/v1", "model": "my-model"},
                    "scenarios": ["sc1", "sc2"],
                    "categories": ["severe_allergy"],
                    "limit": 5,
                    "max_calls": 500,
                }
            ]
        },
    )
    endpoint: EndpointGiven | None = Field(default=None, description="Where it is asked; or `endpoint_id`.")
    endpoint_id: UUID | None = Field(
        default=None, description="One of your endpoints, with its key, its price and what you declared."
    )
    evaluator: EvaluatorGiven | None = Field(
        default=None, description="None: the lexical rules, without a model."
    )
    benchmark: Word = Field(default=USUAL_BENCHMARK, description="NAME or NAME@VERSION.")
    protocol: Word = Field(default=builtin_protocol().name, description="NAME or NAME@VERSION.")
    scenarios: list[Word] = Field(default=list(SCENARIOS), min_length=1, max_length=MOST_NAMES)
    variants: list[Word] = Field(default=[STANDARD], min_length=1, max_length=MOST_NAMES)
    categories: list[Category] = Field(default=list(Category), min_length=1, max_length=len(Category))
    limit: Annotated[int, Field(ge=1, le=MOST_CASES)] | None = Field(
        default=None, description="The first so many cases of each category."
    )
    probes: bool = False
    recall: bool = False
    seeds: int = Field(default=1, ge=1, le=MAX_SEEDS, description="How often each conversation is held.")
    concurrency: int = Field(default=DEFAULT_CONCURRENCY, ge=1, le=MAX_CONCURRENCY)
    max_calls: Annotated[int, Field(ge=1, le=MAX_CALLS)] | None = Field(
        default=None, description="The run pauses after so many requests."
    )
    max_cost: Dollars | None = Field(
        default=None, gt=0, description="US dollars; the run pauses within seconds of it. Needs the prices."
    )
    mail: bool = Field(
        default=False,
        description="A mail when it is finished, or paused by the site; where mail is set up.",
    )
    forget_key: bool = Field(default=False, description="The keys are deleted when the run is over.")
    publish: bool = Field(
        default=False, description="Put it on the board, or ask for that, when it is finished."
    )

    @model_validator(mode="after")
    def _one_endpoint(self) -> "RunGiven":
        if (self.endpoint is None) == (self.endpoint_id is None):
            raise ValueError("give either `endpoint` or `endpoint_id`")
        return self


class ResumeGiven(Given):
    retry_errors: bool = Field(default=False, description="What ended in an error is tried again.")
    max_calls: Annotated[int, Field(ge=1, le=MAX_CALLS)] | None = Field(
        default=None, description="A new cap."
    )
    max_cost: Dollars | None = Field(default=None, gt=0, description="A new cap in US dollars.")


class PublicationGiven(DeclaredGiven):
    """What the row is to say; without it, what the endpoint says."""


class UrlGiven(Given):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"url": "https://api.example.com/v1"}]}
    )
    url: Url


class ToCheck(Given):
    """An endpoint to be asked a dozen short questions."""

    endpoint: EndpointGiven
    protocol: Word = Field(default=builtin_protocol().name, description="Whose parameters are sent.")
    concurrency: int = Field(default=DEFAULT_CONCURRENCY, ge=1, le=MAX_CONCURRENCY)


# --- what we answer ---


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """RFC 9457. `detail`: one sentence with the remedy; `details`: what is wrong, if it is several."""

    model_config = ConfigDict(extra="forbid")
    type: str
    title: str
    status: int
    detail: str
    request_id: str | None
    details: list[str] | None = None


class Version(Answer):
    name: str
    version: int | str
    hash: str


class ListedBenchmark(Version):
    cases: int
    probes: int


class Benchmarks(Answer):
    benchmarks: list[ListedBenchmark]


class Protocols(Answer):
    protocols: list[Version]


class Person(Answer):
    name: str
    role: str
    token: str = Field(description="The name of the token that was sent.")
    scopes: list[str]
    expires_at: datetime


class RunSummary(Answer):
    """A run as lists show it; `done` of `planned` conversations have an outcome."""

    id: int
    uuid: UUID
    name: str
    status: Literal["running", "paused", "cancelled", "finished"]
    status_reason: str | None
    model: str
    benchmark: str
    protocol: str
    planned: int
    done: int
    on_board: bool
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    page: str = Field(description="The run's page on this site.")


class Runs(Answer):
    runs: list[RunSummary]
    next: UUID | None = Field(description="The cursor of the next page; null at the end.")


class Plan(Answer):
    """What a run will ask. Tokens are estimates; `cost_usd` is null where no price is known."""

    conversations: int
    model_calls: int
    evaluator_calls: int
    prompt_tokens: int
    completion_tokens: int
    evaluator_prompt_tokens: int
    evaluator_completion_tokens: int
    cost_usd: float | None
    notes: list[str]
    warnings: list[str] = Field(description="What a person should make sure of.")


class Started(Answer):
    run: RunSummary
    plan: Plan | None = Field(description="null when the run was started by an earlier request of this key.")


class Changed(Answer):
    run: RunSummary
    changed: bool = Field(description="false when there was nothing to do.")


class Report(BaseModel):
    """The report of `curate run show`: proportions in 0 to 1, null where undefined; `undefined` says why."""

    run: dict[str, Any]
    counts: dict[str, int]
    calls: dict[str, int | float | None]
    cells: list[dict[str, Any]]
    rates: dict[str, Any]
    by_variant: dict[str, Any]
    control: dict[str, Any]
    probes: dict[str, Any] | None
    recall: dict[str, Any] | None
    reasons: dict[str, Any] | None
    seeds: dict[str, Any] | None
    withheld: dict[str, Any] | None = Field(
        default=None, description="What you are not shown of the run while it is in a study, and until when."
    )
    undefined: dict[str, str]


class Board(BaseModel):
    """`/leaderboard.json`, with the keys of all boards that there are."""

    board: str | None
    boards: list[str]
    benchmark: Version | None
    protocol: Version | None
    evaluator: dict[str, Any] | None
    computed_at: datetime | None
    resolvable_difference: float | None
    rows: list[dict[str, Any]]
    incomplete: list[dict[str, Any]]
    sentinels: list[dict[str, Any]]
    withdrawn: list[dict[str, Any]]
    undefined: dict[str, str]


class UrlChecked(Answer):
    """`url`: the canonical form, the only one that is stored and called."""

    allowed: bool
    reason: str
    url: str | None
    warning: str | None


class Checked(Answer):
    """`state`: ok, note, problem or skipped. `request` is as it was sent, the key masked."""

    name: str
    title: str
    state: Literal["ok", "note", "problem", "skipped"]
    found: str
    remedy: str | None
    request: str | None
    answer: str | None
    seconds: float | None


class Preflight(Answer):
    ok: bool = Field(description="No check found a problem.")
    checks: list[Checked]
    calls: int
    calls_at_once: int | None
    seconds_per_reply: float | None


class Publication(Answer):
    """asked: an administrator has to answer; refused and withdrawn: `reason` says why."""

    state: Literal["private", "asked", "refused", "published", "withdrawn"]
    reason: str | None

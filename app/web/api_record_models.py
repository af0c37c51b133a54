"""What /api/v1 gives of benchmarks, conversations, verdicts, studies, endpoints and tokens."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, model_validator

from app.outcomes import Category, Outcome
from app.web.api_models import (
    LONGEST_NAME,
    Answer,
    DeclaredGiven,
    Dollars,
    EndpointGiven,
    Key,
    Provider,
    Url,
    Version,
    Word,
)

NEXT = "The cursor of the next page; null at the end."


class BenchmarkShown(Version):
    """A benchmark; `warnings` are what its import remarked."""

    cases: int
    probes: int
    warnings: list[str]
    created_at: datetime


class CaseShown(Answer):
    """`content`: the texts of the case or probe by field."""

    key: str
    kind: Literal["case", "probe"]
    category: Category
    cluster: str
    split: Literal["public", "private"]
    content: dict[str, Any]


class Cases(Answer):
    cases: list[CaseShown]
    next: str | None = Field(description=NEXT)


class ProtocolShown(Version):
    source: str = Field(description="The protocol's TOML.")
    created_at: datetime


class ListedConversation(Answer):
    """`excerpt`: how the final response begins."""

    uuid: UUID
    case: str
    scenario: str
    variant: str
    category: Category
    seed: int
    outcome: Outcome
    flags: list[str]
    request: str | None
    excerpt: str | None


class Conversations(Answer):
    conversations: list[ListedConversation]
    total: int = Field(description="How many there are on all pages.")
    next: UUID | None = Field(description=NEXT)
    withheld: dict[str, Any] | None = Field(
        description="What you are not shown of the run while it is in a study, and until when."
    )


class TurnShown(Answer):
    """`request` and `answer`, as they went over the wire, are for whoever started the run."""

    user: str
    assistant: str
    state: Literal["answered", "empty", "filtered"]
    flags: list[str]
    model_reported: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    seconds: float | None
    tries: int
    request: str | None
    answer: str | None


class VerdictShown(Answer):
    """Of one evaluator. `rating` null: there is none; `outcome` says why."""

    evaluator: dict[str, Any]
    outcome: Outcome
    rating: int | None
    acknowledged: bool | None
    recommendation: Literal["against", "conditional", "for", "none"] | None
    explanation: str | None
    reason: str | None
    reply: str | None
    flags: list[str]
    created_at: datetime | None


class Verdicts(Answer):
    verdicts: list[VerdictShown]


class ConversationShown(Answer):
    """With its turns, and a verdict of each evaluator that the run asked for."""

    uuid: UUID
    run: UUID
    case: str
    scenario: str
    variant: str
    category: Category
    seed: int
    state: str
    constraint: str | None
    request: str | None
    response: str | None
    flags: list[str]
    error: str | None = Field(description="The class of failure; see docs/endpoints.md.")
    error_message: str | None = Field(description="For whoever started the run.")
    turns: list[TurnShown]
    verdicts: list[VerdictShown]


class ListedStudyShown(Answer):
    name: str
    title: str
    state: str
    items: int
    complete: int = Field(description="Items with as many ratings as wanted.")
    ratings: int
    judges: int
    created_at: datetime
    page: str


class Studies(Answer):
    studies: list[ListedStudyShown]
    next: str | None = Field(description=NEXT)


class StudyShown(Answer):
    study: dict[str, Any]
    undefined: dict[str, str]


class StudyReport(Answer):
    """`curate study report`; `undefined` says why something is null."""

    study: dict[str, Any]
    items: int
    raters: list[str]
    pairs: list[dict[str, Any]]
    all: dict[str, Any]
    evaluator_vs_consensus: dict[str, Any] | None
    by: dict[str, Any]
    design_weighted: dict[str, Any] | None
    undefined: dict[str, str]

    model_config = Answer.model_config | {"extra": "allow"}


class EndpointShown(Answer):
    """`key`: stored, deleted or none; the key itself is never shown. `learned`: parameters that are sent
    under another name or (null) left out."""

    uuid: UUID
    name: str
    provider: Provider
    base_url: str
    model: str
    key: Literal["stored", "deleted", "none"]
    price_prompt: float | None
    price_completion: float | None
    weights: Literal["open", "closed", "unknown"]
    model_version: str | None
    system_prompt: Literal["none", "declared", "unknown"]
    system_prompt_text: str | None
    learned: dict[str, str | None]
    last_check: dict[str, Any] | None
    last_check_at: datetime | None
    runs: int
    created_at: datetime
    page: str


class Endpoints(Answer):
    endpoints: list[EndpointShown]
    next: UUID | None = Field(description=NEXT)


class EndpointStored(Answer):
    endpoint: EndpointShown
    added: bool = Field(description="false: it was there already; what was given anew holds.")


class EndpointChange(DeclaredGiven):
    """What is to change; what is left out stays. Another address needs the key again."""

    base_url: Url | None = None
    model: Word | None = None
    name: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)] | None = None
    provider: Provider | None = None
    api_key: Key | None = None
    without_key: bool = Field(default=False, description="The new address needs none: the stored key goes.")
    price_prompt: Dollars | None = None
    price_completion: Dollars | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "EndpointChange":
        if self.without_key and self.api_key is not None:
            raise ValueError("give a key, or say that the new address needs none, not both")
        return self


class EndpointAdded(EndpointGiven):
    """An endpoint to keep."""

    model_config = EndpointGiven.model_config | {
        "json_schema_extra": {
            "examples": [
                {
                    "base_url": "https://api.example.com/v1",
                    "model": "my-model",
                    "weights": "open",
                    "system_prompt": "none",
                }
            ]
        }
    }


class KeyDeleted(Answer):
    endpoint: EndpointShown
    paused_runs: list[int] = Field(description="Numbers of the runs that need the key, now paused.")


class TokenShown(Answer):
    """A token of your account; its text was shown once, when it was made."""

    uuid: UUID
    name: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    this: bool = Field(description="It is the one that this request was sent with.")


class Tokens(Answer):
    tokens: list[TokenShown]

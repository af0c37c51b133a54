"""One conversation as it stands under one evaluator: what every figure is made of. Pure."""

from dataclasses import dataclass

from app.outcomes import Outcome, Reason, Recommendation

JUDGED = (Outcome.PASS, Outcome.UNCLEAR, Outcome.FAIL)
NO_ANSWER = (Outcome.EMPTY, Outcome.FILTERED)
ANSWERED = (*JUDGED, *NO_ANSWER)

# Why something is None, by its path in a report.
Undefined = dict[str, str]


@dataclass(frozen=True, slots=True)
class Observation:
    """A planned conversation. `reason`: why its verdict is no pass, None where it is one or there is none."""

    case: str
    cluster: str
    category: str
    scenario: str
    variant: str
    seed: int
    outcome: Outcome
    recommendation: Recommendation | None = None
    truncated: bool = False
    reason: Reason | None = None

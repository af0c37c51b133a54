"""How each simulated assistant decides: which stance it takes, not in which words."""

import math
from dataclasses import dataclass
from enum import StrEnum

from app.simulator.dangers import Danger, Kind
from app.simulator.dice import Dice
from app.simulator.reading import Conversation, Request
from app.simulator.relevance import touches


class Stance(StrEnum):
    """What an answer to a request for advice does."""

    WARN = "warn"  # names the danger, advises against
    CONDITION = "condition"  # names the danger, only under a condition that deals with it
    SLIP = "slip"  # names the danger and recommends all the same
    VAGUE = "vague"  # advises against without saying why
    RECOMMEND = "recommend"  # recommends, names nothing
    CAUTION = "caution"  # nothing was stated, and yet it hesitates


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Weights in log-odds of taking the danger into account; shares in 0-1.

    `heed`: asked right after the danger was stated; `distance`: for each user turn since; `pressing` and
    `present`: for each person who wants the same thing, or who is merely there; `warns`: share of WARN among
    answers that heed; `slips`, `vague`: shares among those that do not, the rest recommends; `worries`: share
    of warnings about a danger that the request does not touch; `hesitates`: share of caution where none was
    stated.
    """

    heed: float
    distance: float
    pressing: float
    present: float
    leading: float
    guided: float
    harmless: float
    warns: float
    slips: float
    vague: float
    worries: float
    hesitates: float


BEHAVIOURS = {
    "attentive": Behaviour(4.6, -0.15, -0.45, -0.15, -0.25, 1.5, 0.2, 0.75, 0.25, 0.25, 0.06, 0.04),
    "forgetful": Behaviour(3.5, -0.7, -0.3, -0.1, -0.4, 2.6, 0.3, 0.6, 0.05, 0.15, 0.01, 0.01),
    "people-pleasing": Behaviour(4.0, -0.15, -1.6, -0.3, -0.7, 2.5, 0.4, 0.35, 0.2, 0.05, 0.02, 0.0),
}
_BY_KIND = {Kind.ALLERGY: 0.5, Kind.BODY: 0.1, Kind.TRAUMA: -0.1, Kind.FEAR: -0.4}
_SPREAD = 1.8  # how far apart the easiest and the hardest danger lie, for all assistants alike


def decide(conversation: Conversation, request: Request, behaviour: Behaviour, dice: Dice) -> Stance:
    """The stance on `request`; the dice carry all that is left to chance."""
    danger = conversation.danger
    if danger is None:
        return Stance.CAUTION if dice.unit("hesitates") < behaviour.hesitates else Stance.RECOMMEND
    if not touches(danger, request, conversation.text):
        return Stance.WARN if dice.unit("worries") < behaviour.worries else Stance.RECOMMEND
    if dice.unit("heeds") < heeding(conversation, request, danger, behaviour):
        return Stance.WARN if dice.unit("warns") < behaviour.warns else Stance.CONDITION
    return _failing(behaviour, dice.unit("fails"))


def heeding(conversation: Conversation, request: Request, danger: Danger, behaviour: Behaviour) -> float:
    """The probability that an assistant of this behaviour takes the danger into account."""
    bystanders = len(conversation.people) - conversation.pressing
    odds = (
        behaviour.heed
        + behaviour.distance * conversation.distance
        + behaviour.pressing * conversation.pressing
        + behaviour.present * bystanders
        + behaviour.leading * request.leading
        + behaviour.guided * conversation.guided
        + behaviour.harmless * conversation.harmless
        + _BY_KIND[danger.kind]
        + _SPREAD * (Dice("difficulty", danger.statement).unit("of the danger") - 0.5)
    )
    return 1 / (1 + math.exp(-odds))


def _failing(behaviour: Behaviour, drawn: float) -> Stance:
    if drawn < behaviour.slips:
        return Stance.SLIP
    return Stance.VAGUE if drawn < behaviour.slips + behaviour.vague else Stance.RECOMMEND

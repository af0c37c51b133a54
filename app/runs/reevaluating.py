"""Stored conversations rated by another evaluator, or by the same once more: no model is asked again."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest
from typing import Any

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session

from app import models
from app.endpoints import price_of, repeat_of
from app.errors import InvalidInput
from app.library import load_stored_protocol
from app.prices import Price, cost
from app.runs.control import add_evaluator
from app.runs.starting import Addresses, EvaluatorChoice, checked_evaluator, store_evaluator
from app.starter import protocol_called

MOST_REPEATS = 10
MOST_SAMPLED = 100_000
SAMPLE_SEED = "sample-1"
CHARACTERS_A_TOKEN = 4
USUAL_VERDICT = 120  # tokens, where the protocol sets no limit


@dataclass(frozen=True)
class Reevaluation:
    """Who is to rate, and what. `protocol`: whose evaluator section a model gets; None: the run's own.

    `sample`: so many conversations of each run, the same ones in all; None: all. `repeats`: so many verdicts
    of each conversation. `publish`: the runs go on the evaluator's board when they are finished.
    """

    evaluator: EvaluatorChoice
    protocol: str | None = None
    sample: int | None = None
    repeats: int = 1
    publish: bool = False


@dataclass(frozen=True)
class Effort:
    """What it takes, before it begins; tokens are estimates, and `cost` is None where no price is known."""

    runs: int
    conversations: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: Decimal | None


@dataclass(frozen=True)
class Begun:
    """`evaluators`: the one asked for, then its repeats. `runs`: those in which there was something to do."""

    evaluators: list[models.Evaluator]
    runs: list[models.Run]


def check(wanted: Reevaluation, addresses: Addresses) -> tuple[Reevaluation, list[str]]:
    """With the address in its canonical form, and what a person should make sure of. InvalidInput."""
    warnings: list[str] = []
    if not 1 <= wanted.repeats <= MOST_REPEATS:
        raise InvalidInput(f"Verdicts of each conversation are a whole number from 1 to {MOST_REPEATS}.")
    if wanted.sample is not None and not 1 <= wanted.sample <= MOST_SAMPLED:
        raise InvalidInput(f"A sample is a whole number of conversations from 1 to {MOST_SAMPLED:,}.")
    if wanted.sample is not None and wanted.publish:
        raise InvalidInput("A board takes verdicts of all conversations: publish without a sample.")
    evaluator = checked_evaluator(wanted.evaluator, addresses, warnings)
    checked = Reevaluation(evaluator, wanted.protocol, wanted.sample, wanted.repeats, wanted.publish)
    return checked, warnings


def effort(session: Session, runs: Sequence[models.Run], wanted: Reevaluation, price: Price | None) -> Effort:
    """Of a checked wish, as if none of it had been rated yet."""
    chosen = _chosen(session, runs, wanted.sample)
    conversations = sum(len(one) for one in chosen.values())
    if wanted.evaluator.base_url is None:
        return Effort(len(runs), conversations, 0, 0, 0, Decimal(0))
    sections = {run.protocol_id: _protocol_of(session, run, wanted) for run in runs}
    calls = conversations * wanted.repeats
    prompt = completion = 0
    for run in runs:
        section = load_stored_protocol(sections[run.protocol_id]).evaluator
        characters, number = _characters(session, run, chosen[run.id]), len(chosen[run.id])
        prompt += (characters + number * len(section.prompt)) // CHARACTERS_A_TOKEN
        completion += number * (section.sampling.max_tokens or USUAL_VERDICT)
    prompt, completion = prompt * wanted.repeats, completion * wanted.repeats
    return Effort(
        len(runs), conversations, calls, prompt, completion, cost(price or Price(), prompt, completion)
    )


def _characters(session: Session, run: models.Run, sample: Sequence[int]) -> int:
    c = models.Conversation
    shown = func.length(c.constraint) + func.length(c.request) + func.length(c.response)
    query = select(func.coalesce(func.sum(shown), 0)).where(c.run_id == run.id, c.id.in_(sample))
    return int(session.scalars(query).one())


def begin(
    session: Session,
    account: models.Account,
    secret: bytes,
    runs: Sequence[models.Run],
    wanted: Reevaluation,
    addresses: Addresses,
) -> Begun:
    """Store the evaluator under the account and have the runs rated. The caller commits, then wakes.

    Conflict for a paused run; nothing that is stored is overwritten.
    """
    chosen = _chosen(session, runs, wanted.sample)
    begun: dict[int, models.Run] = {}
    evaluators: dict[int, models.Evaluator] = {}
    for run in runs:
        protocol = _protocol_of(session, run, wanted)
        first = store_evaluator(session, account, secret, wanted.evaluator, protocol, addresses)
        repeats = [repeat_of(session, first, number) for number in range(2, wanted.repeats + 1)]
        sample = None if wanted.sample is None else chosen[run.id]
        for evaluator in (first, *repeats):
            evaluators[evaluator.id] = evaluator
            publish = wanted.publish and evaluator is first
            if add_evaluator(session, run, evaluator, sample=sample, publish=publish):
                begun[run.id] = run
    return Begun(list(evaluators.values()), list(begun.values()))


def _protocol_of(session: Session, run: models.Run, wanted: Reevaluation) -> models.Protocol:
    return protocol_called(session, wanted.protocol) if wanted.protocol else run.protocol


def _chosen(session: Session, runs: Sequence[models.Run], sample: int | None) -> dict[int, list[int]]:
    """Run -> the conversations, answered already, that are to be rated."""
    c, k = models.Conversation, models.Case
    found: dict[int, dict[tuple[Any, ...], int]] = {run.id: {} for run in runs}
    rows = session.execute(
        select(c.run_id, c.id, k.key, c.scenario, c.variant, c.seed, c.category)
        .join(k, k.id == c.case_id)
        .where(c.run_id.in_(found), c.state == "answered")
    )
    for run, identity, *key in rows:
        found[run][tuple(key)] = identity
    if sample is None:
        return {run: sorted(own.values()) for run, own in found.items()}
    common = set.intersection(*(set(own) for own in found.values())) if found else set()
    if not common:
        raise InvalidInput("There is no answered conversation that all of these runs have, so no sample.")
    keys = draw_sample(common, sample)
    return {run: sorted(own[key] for key in keys) for run, own in found.items()}


def draw_sample(keys: set[tuple[Any, ...]], number: int) -> list[tuple[Any, ...]]:
    """That many of (case, scenario, variant, seed, category), spread evenly over arms and categories.

    The order within a stratum follows from the key alone, so a larger sample holds the smaller one.
    """
    strata: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for key in sorted(keys, key=_shuffled):
        _, scenario, variant, _, category = key
        strata[(scenario, variant), category].append(key)
    arms, categories = (sorted({stratum[side] for stratum in strata}) for side in (0, 1))
    # Neighbours differ in arm and category both, so that a few are spread as well.
    order = [
        (arm, categories[(place + turn) % len(categories)])
        for turn in range(len(categories))
        for place, arm in enumerate(arms)
    ]
    rounds = zip_longest(*(strata[stratum] for stratum in order if stratum in strata))
    return [key for row in rounds for key in row if key is not None][:number]


def _shuffled(key: tuple[Any, ...]) -> str:
    return hashlib.sha256("|".join([SAMPLE_SEED, *map(str, key)]).encode()).hexdigest()


def rated_by(session: Session, runs: Sequence[models.Run], evaluator: models.Evaluator) -> int:
    """How many of the runs' conversations that evaluator has rated."""
    c, v = models.Conversation, models.Verdict
    query = (
        select(func.count())
        .select_from(c)
        .where(c.run_id.in_([run.id for run in runs]))
        .where(exists().where(v.conversation_id == c.id, v.evaluator_id == evaluator.id))
    )
    return session.scalars(query).one()


def price_known(session: Session, account: models.Account, choice: EvaluatorChoice) -> Price | None:
    """The price given, or as it is stored for that endpoint of the account."""
    if choice.price is not None or choice.base_url is None:
        return choice.price
    e = models.Endpoint
    query = select(e).filter_by(
        account_id=account.id, provider=choice.provider, base_url=choice.base_url, model=choice.model
    )
    return price_of(session.scalars(query.order_by(e.id.desc()).limit(1)).one_or_none())

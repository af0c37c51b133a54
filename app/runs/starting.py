"""From what somebody chose to a run that is stored: checked, planned, and only then written down.

The command line and the site both come through here, so both offer the same choices and refuse the same.
"""

from dataclasses import dataclass, field, replace
from decimal import Decimal
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app import models
from app.benchmark import builtin_benchmark
from app.chat import NOTHING_PRIVATE, Allowlist, check_api_key, check_url
from app.chat.exchange import check_model_name
from app.declared import NOTHING_SAID, Declared
from app.endpoints import model_evaluator, price_of, rules_evaluator, store_endpoint
from app.errors import InvalidInput
from app.library import load_benchmark, load_stored_protocol
from app.outcomes import STANDARD
from app.prices import HIGHEST, Price
from app.protocol import Protocol, builtin_protocol, notes
from app.runs.planning import Plan, Selection, make_plan
from app.runs.quotas import NO_QUOTA, Quota, check_quota
from app.runs.submitting import MAX_CONCURRENCY, Submission, submit
from app.starter import benchmark_called, protocol_called
from app.text import NOT_SEEN, has_hidden

DEFAULT_CONCURRENCY = 16
MAX_CALLS = 10**9


@dataclass(frozen=True)
class Target:
    """Where the model under test answers. `price` None, and what is not declared: as it is stored for it."""

    base_url: str
    model: str
    name: str
    provider: str = "openai"
    api_key: str | None = field(default=None, repr=False)
    price: Price | None = None
    declared: Declared = NOTHING_SAID


@dataclass(frozen=True)
class EvaluatorChoice:
    """The rules (base_url None), or a model. `price` None: as it is stored for its endpoint."""

    base_url: str | None = None
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    provider: str = "openai"
    price: Price | None = None


@dataclass(frozen=True)
class Wish:
    """What a run shall be. `benchmark` and `protocol` are references: NAME or NAME@VERSION.

    `publish`: it goes on the board as soon as it is finished. `max_cost`: US dollars after which it pauses.
    `forget_key`: the endpoints' keys are deleted when it is over. `mail`: its owner is told then.
    """

    target: Target
    evaluator: EvaluatorChoice
    selection: Selection
    benchmark: str
    protocol: str
    seeds: tuple[int, ...] = (1,)
    concurrency: int = DEFAULT_CONCURRENCY
    max_calls: int | None = None
    publish: bool = False
    max_cost: Decimal | None = None
    forget_key: bool = False
    mail: bool = False


@dataclass(frozen=True)
class Addresses:
    """Which base URLs this submitter may name.

    private_allowed: the machine is theirs, so its own network is no secret from them. own_hosts: the site's.
    """

    allowlist: Allowlist = NOTHING_PRIVATE
    own_hosts: tuple[str, ...] = ()
    private_allowed: bool = False


@dataclass(frozen=True)
class Prepared:
    """A run that could be started; nothing of it is stored. `warnings` are for a person to confirm."""

    wish: Wish
    addresses: Addresses
    benchmark: models.Benchmark
    protocol: models.Protocol
    rules: Protocol
    plan: Plan
    notes: list[str]
    warnings: list[str]


def prepare(session: Session, wish: Wish, addresses: Addresses) -> Prepared:
    """Check and plan. InvalidInput and NotFound name what does not fit."""
    warnings: list[str] = []
    wish = _with_checked_addresses(wish, addresses, warnings)
    if not 1 <= wish.concurrency <= MAX_CONCURRENCY:
        raise InvalidInput(f"Concurrency is a whole number from 1 to {MAX_CONCURRENCY}.")
    if wish.max_calls is not None and not 1 <= wish.max_calls <= MAX_CALLS:
        raise InvalidInput(f"The cap on calls is a whole number from 1 to {MAX_CALLS:,}.")
    if wish.max_cost is not None and not 0 < wish.max_cost <= HIGHEST:
        raise InvalidInput(f"The cap on cost is an amount in US dollars above 0, at most {HIGHEST:,}.")
    benchmark, protocol = benchmark_called(session, wish.benchmark), protocol_called(session, wish.protocol)
    content, rules = load_benchmark(session, benchmark), load_stored_protocol(protocol)
    by_model = wish.evaluator.base_url is not None
    plan = make_plan(rules, content, wish.selection, wish.seeds, evaluator_is_model=by_model)
    if (wish.evaluator.base_url, wish.evaluator.model) == (wish.target.base_url, wish.target.model):
        warnings.append("The evaluator is the model under test: it will rate its own answers.")
    return Prepared(wish, addresses, benchmark, protocol, rules, plan, notes(rules, content), warnings)


def _with_checked_addresses(wish: Wish, addresses: Addresses, warnings: list[str]) -> Wish:
    """The wish with the addresses in their canonical form, the only one to be stored and used."""
    target = checked_target(wish.target, addresses, warnings)
    return replace(wish, target=target, evaluator=checked_evaluator(wish.evaluator, addresses, warnings))


def checked_evaluator(
    evaluator: EvaluatorChoice, addresses: Addresses, warnings: list[str]
) -> EvaluatorChoice:
    """The evaluator with its address in its canonical form; InvalidInput for what could never be called."""
    if evaluator.base_url is None:
        return evaluator
    check_model_name(evaluator.model or "")
    if evaluator.api_key is not None:
        check_api_key(evaluator.api_key)
    return replace(
        evaluator, base_url=_checked("evaluator's base URL", evaluator.base_url, addresses, warnings)
    )


def checked_target(target: Target, addresses: Addresses, warnings: list[str]) -> Target:
    """The target with its address in its canonical form; InvalidInput for what could never be called."""
    check_model_name(target.model)
    if has_hidden(target.name):
        raise InvalidInput(f"The name {NOT_SEEN}")
    if target.api_key is not None:
        check_api_key(target.api_key)
    return replace(target, base_url=_checked("base URL", target.base_url, addresses, warnings))


def _checked(what: str, url: str, addresses: Addresses, warnings: list[str]) -> str:
    checked = check_url(
        url, addresses.allowlist, addresses.own_hosts, private_allowed=addresses.private_allowed
    )
    if not checked.allowed or checked.url is None:
        raise InvalidInput(f"The {what} is refused: {checked.reason}.")
    if checked.warning is not None:
        warnings.append(f"The {what}: {checked.warning}.")
    return checked.url


def start(
    session: Session,
    account: models.Account,
    secret: bytes,
    prepared: Prepared,
    quota: Quota = NO_QUOTA,
) -> models.Run:
    """Store endpoint, evaluator and run. The caller commits, then wakes.

    Conflict when the account's quota is used up; InvalidInput for a cap on cost where no price is known.
    """
    wish = prepared.wish
    check_quota(session, account, quota, prepared.plan, wish.max_calls)
    if wish.max_cost is not None and estimated_cost(session, account, prepared) is None:
        raise InvalidInput(
            "A cap on cost needs the prices of the model, and of the evaluator where it is one: "
            "give them, or cap the calls instead."
        )
    endpoint = store_target(session, account, secret, wish.target, prepared.addresses)
    evaluator = store_evaluator(
        session, account, secret, wish.evaluator, prepared.protocol, prepared.addresses
    )
    return submit(
        session,
        Submission(
            wish.target.name,
            wish.selection,
            wish.seeds,
            wish.concurrency,
            wish.max_calls,
            publish=wish.publish,
            max_cost=wish.max_cost,
            forget_key=wish.forget_key,
            mail=wish.mail,
        ),
        prepared.plan,
        account=account,
        benchmark=prepared.benchmark,
        protocol=prepared.protocol,
        endpoint=endpoint,
        evaluator=evaluator,
    )


def store_target(
    session: Session, account: models.Account, secret: bytes, target: Target, addresses: Addresses
) -> models.Endpoint:
    return store_endpoint(
        session,
        account,
        secret,
        name=target.name,
        provider=target.provider,
        base_url=target.base_url,
        model=target.model,
        api_key=target.api_key,
        private_allowed=addresses.private_allowed,
        price=target.price,
        declared=target.declared,
    )


def store_evaluator(
    session: Session,
    account: models.Account,
    secret: bytes,
    choice: EvaluatorChoice,
    protocol: models.Protocol,
    addresses: Addresses,
) -> models.Evaluator:
    """The rules, or a model under this protocol's evaluator section."""
    if choice.base_url is None or choice.model is None:
        return rules_evaluator(session)
    endpoint = store_endpoint(
        session,
        account,
        secret,
        name=evaluator_name(choice.model),
        provider=choice.provider,
        base_url=choice.base_url,
        model=choice.model,
        api_key=choice.api_key,
        private_allowed=addresses.private_allowed,
        price=choice.price,
    )
    return model_evaluator(session, endpoint, protocol, load_stored_protocol(protocol))


def evaluator_name(model: str) -> str:
    """What an evaluator's endpoint is called: apart from the same model's as the one under test."""
    return f"evaluator {model}"


def estimated_cost(session: Session, account: models.Account, prepared: Prepared) -> Decimal | None:
    """USD by the estimated tokens, at the prices given or stored; None where they are not known."""
    target, evaluator = prepared.wish.target, prepared.wish.evaluator
    model_price = target.price or _stored_price(
        session, account, target.name, target.provider, target.base_url, target.model
    )
    evaluator_price = evaluator.price or Price()
    if evaluator.price is None and evaluator.base_url is not None and evaluator.model is not None:
        evaluator_price = _stored_price(
            session,
            account,
            evaluator_name(evaluator.model),
            evaluator.provider,
            evaluator.base_url,
            evaluator.model,
        )
    return prepared.plan.cost(model_price, evaluator_price)


def _stored_price(
    session: Session, account: models.Account, name: str, provider: str, base_url: str, model: str
) -> Price:
    identity = {"name": name, "provider": provider, "base_url": base_url, "model": model}
    query = select(models.Endpoint).filter_by(account_id=account.id, **identity)
    return price_of(session.scalars(query).one_or_none())


# --- what there is to choose from ---


@dataclass(frozen=True)
class Choices:
    """References of benchmarks and protocols, the newest first; variants of all those protocols."""

    benchmarks: list[str]
    protocols: list[str]
    variants: list[str]


def choices(session: Session) -> Choices:
    """With the built-in ones, which are stored at first use."""
    b, p = models.Benchmark, models.Protocol
    benchmarks = session.scalars(select(b).order_by(b.name, b.version.desc())).all()
    protocols = session.scalars(select(p).order_by(p.name, p.id.desc())).all()
    rules = [load_stored_protocol(row) for row in protocols]
    own, own_rules = builtin_benchmark(), builtin_protocol()
    new_benchmark = all(row.content_hash != own.content_hash for row in benchmarks)
    new_protocol = all(row.content_hash != own_rules.content_hash for row in protocols)
    variants = {variant.id: None for one in (own_rules, *rules) for variant in one.variants}
    return Choices(
        [own.name] * new_benchmark + [f"{row.name}@{row.version}" for row in benchmarks],
        [own_rules.name] * new_protocol + [f"{row.name}@{row.version}" for row in protocols],
        [STANDARD, *variants],
    )


def used_endpoints(session: Session, account: models.Account, limit: int = 8) -> list[models.Endpoint]:
    """Where the account's runs were asked, the latest first."""
    latest = (
        select(models.Run.endpoint_id, func.max(models.Run.id).label("run"))
        .where(models.Run.account_id == account.id, models.Run.provenance.not_in(("uploaded", "imported")))
        .group_by(models.Run.endpoint_id)
        .subquery()
    )
    query = select(models.Endpoint).join(latest, latest.c.endpoint_id == models.Endpoint.id)
    own = query.where(models.Endpoint.account_id == account.id)  # a spot check asks somebody else's
    return list(session.scalars(own.order_by(latest.c.run.desc()).limit(limit)))


def used_evaluators(session: Session, account: models.Account, limit: int = 8) -> list[models.Endpoint]:
    """The account's endpoints that have rated, the latest first."""
    latest = (
        select(models.Evaluator.endpoint_id, func.max(models.RunEvaluator.created_at).label("at"))
        .join(models.RunEvaluator, models.RunEvaluator.evaluator_id == models.Evaluator.id)
        .group_by(models.Evaluator.endpoint_id)
        .subquery()
    )
    query = select(models.Endpoint).join(latest, latest.c.endpoint_id == models.Endpoint.id)
    own = query.where(models.Endpoint.account_id == account.id)
    return list(session.scalars(own.order_by(latest.c.at.desc()).limit(limit)))


def own_endpoint(session: Session, account: models.Account, identity: UUID) -> models.Endpoint | None:
    """The account's endpoint of that uuid."""
    return session.scalars(
        select(models.Endpoint).filter_by(account_id=account.id, uuid=identity)
    ).one_or_none()

"""Reports of runs: outcomes under one evaluator, what the calls cost, and who was asked under which rules."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app import models
from app.declared import Declared
from app.endpoints import price_of
from app.errors import NotFound
from app.evaluation.families import relation
from app.outcomes import (
    PROBE_SCENARIO,
    RATING_OUTCOMES,
    ConversationState,
    Outcome,
    Rating,
    Reason,
    Recommendation,
    VerdictState,
)
from app.prices import Price
from app.rates import Observation, report_sections
from app.runs.reasons import effective_reason
from app.runs.spending import spend


def outcome_of(state: str, verdict_state: str | None, rating: int | None, *, probe: bool = False) -> Outcome:
    """The one outcome of a conversation under one evaluator. An answer without a verdict is pending.

    A probe has a rubric of its own: 0 helps, so it passes; 2 needlessly discourages, so it fails.
    """
    if state != ConversationState.ANSWERED:
        return Outcome(state)
    if verdict_state is None:
        return Outcome.PENDING
    if verdict_state == VerdictState.RATED and rating is not None:
        return RATING_OUTCOMES[Rating(2 - rating if probe else rating)]
    return Outcome(verdict_state)


def observations(session: Session, run_id: int, evaluator_id: int) -> list[Observation]:
    """Every planned conversation of a run as it stands under an evaluator."""
    c, v, k = models.Conversation, models.Verdict, models.Case
    rows = session.execute(
        select(
            k.key, k.cluster, c.category, c.scenario, c.variant, c.seed,
            c.state, v.state, v.rating, v.recommendation, c.flags.contains(["truncated"]), effective_reason(),
        )
        .join(k, k.id == c.case_id)
        .outerjoin(v, (v.conversation_id == c.id) & (v.evaluator_id == evaluator_id))
        .where(c.run_id == run_id)
        .order_by(c.id)
    )  # fmt: skip
    return [
        Observation(
            case=key,
            cluster=cluster,
            category=category,
            scenario=scenario,
            variant=variant,
            seed=seed,
            outcome=outcome_of(state, verdict_state, rating, probe=scenario == PROBE_SCENARIO),
            recommendation=None if recommendation is None else Recommendation(recommendation),
            truncated=truncated,
            reason=None if reason is None else Reason(reason),
        )
        for (
            key, cluster, category, scenario, variant, seed,
            state, verdict_state, rating, recommendation, truncated, reason,
        ) in rows
    ]  # fmt: skip


def progress(session: Session, run_id: int, evaluator_id: int) -> dict[Outcome, int]:
    """Planned conversations by outcome under an evaluator."""
    c, v = models.Conversation, models.Verdict
    is_probe = c.scenario == PROBE_SCENARIO
    rows = session.execute(
        select(c.state, v.state, v.rating, is_probe, func.count())
        .outerjoin(v, (v.conversation_id == c.id) & (v.evaluator_id == evaluator_id))
        .where(c.run_id == run_id)
        .group_by(c.state, v.state, v.rating, is_probe)
    )
    found = dict.fromkeys(Outcome, 0)
    for state, verdict_state, rating, probe, n in rows:
        found[outcome_of(state, verdict_state, rating, probe=probe)] += n
    return found


def run_report(
    session: Session, run: models.Run, evaluator: models.Evaluator | None = None
) -> dict[str, Any]:
    """The report of CONTRACT's `run show`: under the run's own evaluator, or another that has rated it."""
    chosen = evaluator or run.evaluator
    spent = spend(session, run, chosen.id)
    report = {
        "run": describe_run(run, chosen)
        | {"self_rated": self_rated(run.endpoint, rater_of(session, chosen))},
        "calls": spent.as_report(),
        **report_sections(observations(session, run.id, chosen.id)),
    }
    if spent.why_unknown is not None:
        report["undefined"]["calls.cost_usd"] = spent.why_unknown
    return report


def describe_run(run: models.Run, evaluator: models.Evaluator) -> dict[str, Any]:
    return {
        "id": run.id,
        "uuid": str(run.uuid),
        "name": run.name,
        "status": run.status,
        "status_reason": run.status_reason,
        "benchmark": {
            "name": run.benchmark.name,
            "version": run.benchmark.version,
            "hash": run.benchmark.content_hash,
        },
        "protocol": {
            "name": run.protocol.name,
            "version": run.protocol.version,
            "hash": run.protocol.content_hash,
        },
        "endpoint": describe_endpoint(run.endpoint) | {"simulated": run.simulated},
        "evaluator": describe_evaluator(evaluator),
        "selection": run.selection,
        "notes": run.notes,
        "seeds": run.seeds,
        "concurrency": run.concurrency,
        "max_calls": run.max_calls,
        "max_cost_usd": None if run.max_cost is None else float(run.max_cost),
        "forget_key": run.forget_key,
        "price": describe_price(price_of(run)),
        "provenance": run.provenance,
        "publish_wanted": run.publish_wanted,
        "publish_refusal": run.publish_refusal,
        "started_at": _iso(run.started_at),
        "finished_at": _iso(run.finished_at),
    }


def describe_price(price: Price) -> dict[str, float | None]:
    """USD per million tokens."""
    return {
        "prompt": None if price.prompt is None else float(price.prompt),
        "completion": None if price.completion is None else float(price.completion),
    }


def describe_endpoint(endpoint: models.Endpoint) -> dict[str, Any]:
    return {
        "name": endpoint.name,
        "provider": endpoint.provider,
        "base_url": endpoint.base_url,
        "model": endpoint.model,
        "declared": describe_declared(endpoint.declared),
        "learned": endpoint.learned,
    }


def describe_declared(said: Declared) -> dict[str, str | None]:
    """What its submitter says of the model; `version` and the prompt's text null where not said."""
    return {
        "weights": said.weights,
        "version": said.version,
        "system_prompt": said.system_prompt,
        "system_prompt_text": said.prompt_text,
    }


def self_rated(model: models.Endpoint, rater: models.Endpoint | None) -> str:
    """Whether a model rates itself (`same`) or its `family`, or `no`, as far as names and addresses tell."""
    if rater is None:
        return "no"
    same_endpoint = (model.base_url, model.model) == (rater.base_url, rater.model)
    return relation(model.model, rater.model, same_endpoint=same_endpoint) or "no"


def rater_of(session: Session, evaluator: models.Evaluator) -> models.Endpoint | None:
    """Where the evaluator's model answers; None for one that is no model."""
    return None if evaluator.endpoint_id is None else session.get(models.Endpoint, evaluator.endpoint_id)


def describe_evaluator(evaluator: models.Evaluator) -> dict[str, Any]:
    """Which evaluator it is; `label` is what people read, and says of the rules that they are rules."""
    label = f"{evaluator.name} {evaluator.version}"
    if evaluator.kind == "rules":
        label += " (lexical rules, no model)"
    elif evaluator.kind == "imported":
        label = f"{evaluator.name} (taken over from sheets)"
    if evaluator.repeat is not None:
        label += f", verdict {evaluator.repeat}"
    return {
        "id": str(evaluator.uuid),
        "kind": evaluator.kind,
        "name": evaluator.name,
        "version": evaluator.version,
        "label": label,
        "fingerprint": evaluator.fingerprint,
        "repeat": evaluator.repeat or 1,
    }


def evaluators_of(session: Session, run: models.Run) -> Sequence[models.Evaluator]:
    return session.scalars(
        select(models.Evaluator)
        .join(models.RunEvaluator, models.RunEvaluator.evaluator_id == models.Evaluator.id)
        .where(models.RunEvaluator.run_id == run.id)
        .order_by(models.Evaluator.id)
    ).all()


def find_evaluator(session: Session, run: models.Run, reference: str) -> models.Evaluator:
    """One of the run's evaluators, by `evaluator_names` or uuid."""
    return pick_evaluator(evaluators_of(session, run), reference, "It was rated by")


def pick_evaluator(known: Sequence[models.Evaluator], reference: str, listed: str) -> models.Evaluator:
    """The one that the reference names; NotFound, with those that there are, for none and for several."""
    matching = [one for one in known if reference in evaluator_names(one)]
    if len(matching) == 1:
        return matching[0]
    names = ", ".join(f"{evaluator_names(one)[1]} ({one.uuid})" for one in known) or "none yet"
    what = "Several evaluators match" if matching else "No evaluator here matches"
    raise NotFound(f"{what} '{reference[:200]}'. {listed}: {names}.")


def evaluator_names(evaluator: models.Evaluator) -> tuple[str, ...]:
    """uuid, name@version, name and kind; a repeat has its number behind them: `name@version#2`."""
    repeat = f"#{evaluator.repeat}" if evaluator.repeat else ""
    names = (f"{evaluator.name}@{evaluator.version}", evaluator.name, evaluator.kind)
    return (str(evaluator.uuid), *(f"{name}{repeat}" for name in names))


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()

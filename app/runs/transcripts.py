"""Conversations as pages show them: found by filters, page by page, and one with all that belongs to it."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Select, Subquery, func, select
from sqlalchemy.orm import Session

from app import models
from app.accounts.policies import conversations_visible_to, runs_visible_to
from app.accounts.withholding import Withheld, why_hidden, withheld_of_run
from app.errors import InvalidInput, NotFound
from app.evaluation import render_prompt
from app.library import load_stored_protocol
from app.outcomes import PROBE_SCENARIO, Outcome
from app.protocol import Protocol, Reduced
from app.protocol.records import find_arm
from app.runs.control import RUN_DETAILS
from app.runs.filtering import Filter
from app.runs.reporting import describe_evaluator, evaluators_of, outcome_of

PAGE = 50
EXCERPT = 240
LONGEST_SEARCH = 200


@dataclass(frozen=True)
class Facets:
    """What a run's conversations can be filtered by; `arms` are (scenario, variant)."""

    arms: list[tuple[str, str]]
    categories: list[str]
    flags: list[str]

    @property
    def scenarios(self) -> list[str]:
        return list(dict.fromkeys(scenario for scenario, _ in self.arms))

    @property
    def variants(self) -> list[str]:
        return list(dict.fromkeys(variant for _, variant in self.arms))


@dataclass(frozen=True)
class Found:
    """A line of the list; `excerpt` is how the last response begins."""

    uuid: UUID
    case: str
    scenario: str
    variant: str
    category: str
    seed: int
    outcome: Outcome
    flags: list[str]
    request: str | None
    excerpt: str | None


@dataclass(frozen=True)
class FoundPage:
    """`before` and `after` are the cursors of the neighbouring pages.

    `withheld`: of the whole run, whatever is looked for; else a filter would tell what is hidden.
    """

    items: list[Found]
    total: int
    before: UUID | None
    after: UUID | None
    withheld: Withheld | None = None


@dataclass(frozen=True)
class RatedBy:
    """How a conversation stands under one evaluator; `prompt` is what a model was asked, whole."""

    evaluator: models.Evaluator
    label: str
    verdict: models.Verdict | None
    outcome: Outcome
    prompt: str | None


@dataclass(frozen=True)
class Transcript:
    """`reduced` is None as long as there is no final response to rate."""

    conversation: models.Conversation
    run: models.Run
    case: models.Case
    turns: Sequence[models.Turn]
    stated: bool
    reduced: Reduced | None
    rated: list[RatedBy]

    @property
    def is_probe(self) -> bool:
        return self.conversation.scenario == PROBE_SCENARIO


def _from_run(
    query: Select[Any], run: models.Run, evaluator_id: int, person: models.Account | None
) -> Select[Any]:
    """The query's conversations joined with their run, case and verdict, as far as they may be seen."""
    c, v = models.Conversation, models.Verdict
    return (
        query.select_from(c)
        .join(models.Run, models.Run.id == c.run_id)
        .join(models.Case, models.Case.id == c.case_id)
        .outerjoin(v, (v.conversation_id == c.id) & (v.evaluator_id == evaluator_id))
        .where(c.run_id == run.id, conversations_visible_to(person))
    )


def _whole(query: Select[Any]) -> Subquery:
    """All of it before any order or limit: else the planner may walk through all runs for one of this."""
    return query.offset(0).subquery()


def _shown() -> tuple[Any, ...]:
    """What `_found` reads."""
    c, v, k = models.Conversation, models.Verdict, models.Case
    return (
        c.id, c.uuid, k.key, c.scenario, c.variant, c.category, c.seed, c.state,
        v.state.label("verdict_state"), v.rating, c.flags, v.flags.label("verdict_flags"),
        c.request, func.left(c.response, EXCERPT).label("excerpt"),
    )  # fmt: skip


def latest_conversations(
    session: Session, person: models.Account | None, run: models.Run, evaluator_id: int, limit: int
) -> list[Found]:
    """Those whose last answer came last, first; they may still wait for their rating."""
    c = models.Conversation
    ended = _from_run(select(c.id), run, evaluator_id, person).where(c.finished_at.is_not(None))
    last = ended.order_by(c.finished_at.desc(), c.id.desc()).limit(limit).subquery()
    query = _from_run(select(*_shown()), run, evaluator_id, person).join(last, last.c.id == c.id)
    return [_found(row) for row in session.execute(query.order_by(c.finished_at.desc(), c.id.desc()))]


def find_conversations(
    session: Session,
    person: models.Account | None,
    run: models.Run,
    evaluator_id: int,
    wanted: Filter,
    *,
    after: UUID | None = None,
    before: UUID | None = None,
) -> FoundPage:
    """A page in the order in which they were planned. NotFound when a cursor is none of the run's."""
    c = models.Conversation
    found = _whole(_from_run(select(*_shown()), run, evaluator_id, person).where(*wanted.conditions()))
    total = _whole(_from_run(select(c.id), run, evaluator_id, person).where(*wanted.conditions()))
    query = select(found)
    backwards = before is not None and after is None
    if (cursor := before if backwards else after) is not None:
        place = _place(session, run, cursor)
        query = query.where(found.c.id < place if backwards else found.c.id > place)
    order = found.c.id.desc() if backwards else found.c.id
    rows = session.execute(query.order_by(order).limit(PAGE + 1)).all()
    more, page = len(rows) > PAGE, rows[:PAGE]
    if backwards:
        page = page[::-1]
    items = [_found(row) for row in page]
    has_before = more if backwards else after is not None
    has_after = True if backwards else more
    return FoundPage(
        items,
        session.execute(select(func.count()).select_from(total)).scalar_one(),
        items[0].uuid if items and has_before else None,
        items[-1].uuid if items and has_after else None,
        withheld_of_run(session, person, run),
    )


def _place(session: Session, run: models.Run, cursor: UUID) -> int:
    query = select(models.Conversation.id).filter_by(uuid=cursor, run_id=run.id)
    place = session.scalars(query).one_or_none()
    if place is None:
        raise NotFound("There is no such page of this list; begin at its first page.")
    return place


def _found(row: Any) -> Found:
    uuid, key, scenario, variant, category, seed, state, verdict_state, rating, flags, given, *texts = row[1:]
    request, excerpt = texts
    return Found(
        uuid=uuid,
        case=key,
        scenario=scenario,
        variant=variant,
        category=category,
        seed=seed,
        outcome=outcome_of(state, verdict_state, rating, probe=scenario == PROBE_SCENARIO),
        flags=sorted({*flags, *(given or [])}),
        request=request,
        excerpt=excerpt,
    )


def facets(session: Session, person: models.Account | None, run: models.Run) -> Facets:
    """`flags`: of what the person may see, for a flag that nothing else has would tell of what is hidden."""
    c, v = models.Conversation, models.Verdict
    arms = session.execute(
        select(c.scenario, c.variant, c.category).filter_by(run_id=run.id).distinct()
    ).all()
    seen = (
        select(c.id, c.flags)
        .join(models.Run, models.Run.id == c.run_id)
        .join(models.Case, models.Case.id == c.case_id)
        .where(c.run_id == run.id, conversations_visible_to(person))
        .subquery()
    )
    own = select(func.unnest(seen.c.flags))
    given = select(func.unnest(v.flags)).join(seen, seen.c.id == v.conversation_id)
    return Facets(
        arms=sorted({(scenario, variant) for scenario, variant, _ in arms}, key=_arm_order),
        categories=sorted({category for _, _, category in arms}),
        flags=sorted(session.scalars(own.union(given))),
    )


def _arm_order(arm: tuple[str, str]) -> tuple[bool, str, bool, str]:
    """Scenarios in order, standard first, probes last."""
    scenario, variant = arm
    return scenario == PROBE_SCENARIO, scenario, variant != "standard", variant


def neighbours(
    session: Session,
    person: models.Account | None,
    run: models.Run,
    evaluator_id: int,
    wanted: Filter,
    conversation: models.Conversation,
) -> tuple[UUID | None, UUID | None]:
    """The conversations before and after this one among those that are looked for."""
    c = models.Conversation
    columns: list[Any] = [c.id, c.uuid]
    found = _whole(_from_run(select(*columns), run, evaluator_id, person).where(*wanted.conditions()))
    before = select(found.c.uuid).where(found.c.id < conversation.id).order_by(found.c.id.desc()).limit(1)
    after = select(found.c.uuid).where(found.c.id > conversation.id).order_by(found.c.id).limit(1)
    return session.scalars(before).first(), session.scalars(after).first()


def visible_conversation(
    session: Session, person: models.Account | None, identity: UUID
) -> tuple[models.Conversation, models.Run, models.Case]:
    """NotFound when there is none, or none that the person may see."""
    c = models.Conversation
    row = session.execute(
        select(c, models.Run, models.Case)
        .join(models.Run, models.Run.id == c.run_id)
        .join(models.Case, models.Case.id == c.case_id)
        .options(*RUN_DETAILS)
        .where(c.uuid == identity, conversations_visible_to(person))
    ).one_or_none()
    if row is None:
        why = why_hidden(session, c.uuid == identity, runs_visible_to(person))
        raise NotFound(why or "There is no such conversation, or it is not yours to see.")
    return row[0], row[1], row[2]


def load_transcript(
    session: Session, conversation: models.Conversation, run: models.Run, case_: models.Case
) -> Transcript:
    """With its turns as sent and received, and every verdict with what was exchanged for it."""
    turns = session.scalars(
        select(models.Turn).filter_by(conversation_id=conversation.id).order_by(models.Turn.position)
    ).all()
    stated = _stated(load_stored_protocol(run.protocol), conversation)
    reduced = _reduced(conversation, stated=stated)
    verdicts = {
        verdict.evaluator_id: verdict
        for verdict in session.scalars(select(models.Verdict).filter_by(conversation_id=conversation.id))
    }
    rated = [
        _rated_by(session, evaluator, verdicts.get(evaluator.id), conversation, reduced)
        for evaluator in evaluators_of(session, run)
    ]
    return Transcript(conversation, run, case_, turns, stated, reduced, rated)


def _stated(protocol: Protocol, conversation: models.Conversation) -> bool:
    return find_arm(protocol, conversation.scenario, conversation.variant)[1] != "none"


def _reduced(conversation: models.Conversation, *, stated: bool) -> Reduced | None:
    """As it was stored with the last turn, which is what was rated."""
    if conversation.constraint is None or conversation.request is None or conversation.response is None:
        return None
    return Reduced(
        conversation.constraint,
        conversation.request,
        conversation.response,
        stated=stated,
        probe=conversation.scenario == PROBE_SCENARIO,
    )


def _rated_by(
    session: Session,
    evaluator: models.Evaluator,
    verdict: models.Verdict | None,
    conversation: models.Conversation,
    reduced: Reduced | None,
) -> RatedBy:
    outcome = outcome_of(
        conversation.state,
        verdict.state if verdict else None,
        verdict.rating if verdict else None,
        probe=conversation.scenario == PROBE_SCENARIO,
    )
    prompt = _prompt(session, evaluator, reduced) if verdict is not None and reduced is not None else None
    return RatedBy(evaluator, describe_evaluator(evaluator)["label"], verdict, outcome, prompt)


def _prompt(session: Session, evaluator: models.Evaluator, reduced: Reduced) -> str | None:
    """What a model evaluator was asked; None for the rules, or where its protocol has no such question."""
    if evaluator.protocol_id is None:
        return None
    protocol = load_stored_protocol(session.get_one(models.Protocol, evaluator.protocol_id))
    with suppress(InvalidInput):
        return render_prompt(protocol.evaluator, reduced)
    return None

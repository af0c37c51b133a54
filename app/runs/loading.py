"""What a driver needs to know of a run, read once; and the open conversations of the groups it claimed."""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from app import models
from app.benchmark import Case, Pools, Probe
from app.chat import Endpoint
from app.endpoints import opened_key
from app.errors import NotFound
from app.library import case_from, load_benchmark, load_stored_protocol, probe_from
from app.outcomes import RECALL, STANDARD, ConversationState
from app.protocol import EvaluatorSection, Protocol
from app.runs.recording import TURN_FIELDS, TurnRecord


@dataclass(frozen=True)
class LoadedEvaluator:
    """`endpoint` and `section` are None for the rules. `sample`: the conversations it rates; None: all."""

    id: int
    endpoint_id: int | None
    endpoint: Endpoint | None
    section: EvaluatorSection | None
    protocol: Protocol | None
    sample: frozenset[int] | None = None

    def rates(self, conversation: int) -> bool:
        return self.sample is None or conversation in self.sample


@dataclass(frozen=True)
class LoadedRun:
    id: int
    endpoint_id: int
    endpoint: Endpoint
    protocol: Protocol
    benchmark_hash: str
    pools: Pools
    evaluators: tuple[LoadedEvaluator, ...]
    concurrency: int
    capped: bool
    cost_capped: bool
    recall: bool = False

    def sharers(self, scenario: str, variant: str) -> tuple[str, ...] | None:
        """Whose turns a conversation shares where they begin alike, as a prefix of the key; None: nobody's.

        All conversations of a group where the protocol shares openings. Else a recall conversation goes on
        from the very replies of the standard one.
        """
        if self.protocol.target.share_opening:
            return ()
        return (scenario,) if self.recall and variant in (STANDARD, RECALL) else None

    @property
    def asked_of(self) -> list[tuple[int, int | None]]:
        """As `driving.evaluators` tells it."""
        return [(one.id, None if one.sample is None else len(one.sample)) for one in self.evaluators]


@dataclass
class OpenConversation:
    """A conversation with something left to do: turns, verdicts or both."""

    id: int
    scenario: str
    variant: str
    state: ConversationState
    turns_done: int
    constraint: str | None
    request: str | None
    response: str | None
    unrated_by: tuple[int, ...]
    exchanges: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class OpenGroup:
    id: int
    case: Case | Probe
    seed: int
    conversations: list[OpenConversation]
    # Stored turns by who shares them, all that was said before them and the user's words in them.
    known_turns: dict[tuple[str, ...], TurnRecord]


def load_run(session: Session, run_id: int, secret: bytes) -> LoadedRun:
    options = (
        joinedload(models.Run.benchmark),
        joinedload(models.Run.protocol),
        # Its key opens for its owner; a spot check is asked for by somebody else.
        joinedload(models.Run.endpoint).joinedload(models.Endpoint.account),
    )
    run = session.get(models.Run, run_id, options=options)
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    benchmark = load_benchmark(session, run.benchmark)
    return LoadedRun(
        id=run.id,
        endpoint_id=run.endpoint_id,
        endpoint=chat_endpoint(run.endpoint.account, run.endpoint, secret),
        protocol=load_stored_protocol(run.protocol),
        benchmark_hash=benchmark.content_hash,
        pools=Pools.of(benchmark),
        evaluators=tuple(_load_evaluators(session, run_id, secret)),
        concurrency=run.concurrency,
        capped=run.max_calls is not None,
        cost_capped=run.max_cost is not None,
        recall=bool(run.selection.get("recall")),
    )


def chat_endpoint(account: models.Account, row: models.Endpoint, secret: bytes) -> Endpoint:
    """The endpoint as the client takes it, with its key opened."""
    return Endpoint(
        provider=row.provider,  # type: ignore[arg-type]
        base_url=row.base_url,
        model=row.model,
        api_key=opened_key(account, row, secret),
        private_allowed=row.private_allowed,
        learned=row.learned,
    )


def load_evaluator(session: Session, row: models.Evaluator, secret: bytes) -> LoadedEvaluator:
    if row.endpoint_id is None or row.protocol_id is None:
        return LoadedEvaluator(row.id, None, None, None, None)
    endpoint = session.get_one(
        models.Endpoint, row.endpoint_id, options=[joinedload(models.Endpoint.account)]
    )
    protocol = load_stored_protocol(session.get_one(models.Protocol, row.protocol_id))
    return LoadedEvaluator(
        row.id,
        endpoint.id,
        chat_endpoint(endpoint.account, endpoint, secret),
        protocol.evaluator,
        protocol,
    )


def _load_evaluators(session: Session, run_id: int, secret: bytes) -> list[LoadedEvaluator]:
    rows = session.execute(
        select(models.Evaluator, models.RunEvaluator.sample)
        .join(models.RunEvaluator, models.RunEvaluator.evaluator_id == models.Evaluator.id)
        .where(models.RunEvaluator.run_id == run_id, models.Evaluator.kind != "imported")
        .order_by(models.Evaluator.id)
    ).all()
    return [
        replace(load_evaluator(session, row, secret), sample=None if sample is None else frozenset(sample))
        for row, sample in rows
    ]


def load_groups(session: Session, run: LoadedRun, group_ids: list[int]) -> list[OpenGroup]:
    """The groups' open conversations with the turns that are stored already."""
    conversations = _open_conversations(session, run, group_ids)
    rows = session.execute(
        select(models.RunGroup.id, models.RunGroup.seed, models.Case.kind, models.Case.content)
        .join(models.Case, models.Case.id == models.RunGroup.case_id)
        .where(models.RunGroup.id.in_(group_ids))
        .order_by(models.RunGroup.position)
    )
    shares = run.protocol.target.share_opening or run.recall
    known = _known_turns(session, run, group_ids) if shares else {}
    return [
        OpenGroup(group, _record(kind, content), seed, conversations.get(group, []), known.get(group, {}))
        for group, seed, kind, content in rows
    ]


def _known_turns(
    session: Session, run: LoadedRun, group_ids: list[int]
) -> dict[int, dict[tuple[str, ...], TurnRecord]]:
    """What was asked before a driver died or paused, so that no shared turn is asked again."""
    t, c = models.Turn, models.Conversation
    rows = session.execute(
        select(c.group_id, c.scenario, c.variant, *(getattr(t, name) for name in TURN_FIELDS))
        .join(c, c.id == t.conversation_id)
        .where(c.group_id.in_(group_ids))
        .order_by(t.conversation_id, t.position)
    )
    known: dict[int, dict[tuple[str, ...], TurnRecord]] = defaultdict(dict)
    said: dict[int, tuple[str, ...]] = {}
    for row in rows:
        values = {name: getattr(row, name) for name in TURN_FIELDS}
        record = TurnRecord(**values | {"flags": tuple(row.flags)})
        sharers = run.sharers(row.scenario, row.variant)
        if sharers is None:
            continue
        before = said.get(record.conversation_id, sharers)
        known[row.group_id].setdefault((*before, record.user_text), record)
        said[record.conversation_id] = (*before, record.user_text, record.assistant_text)
    return known


def _record(kind: str, content: dict[str, Any]) -> Case | Probe:
    return probe_from(content) if kind == "probe" else case_from(content)


def _open_conversations(
    session: Session, run: LoadedRun, group_ids: list[int]
) -> dict[int, list[OpenConversation]]:
    c = models.Conversation
    rows = session.execute(
        select(
            c.id,
            c.group_id,
            c.scenario,
            c.variant,
            c.state,
            c.turns_done,
            c.constraint,
            c.request,
            c.response,
        )
        .where(c.group_id.in_(group_ids), c.state.in_(("pending", "answered")))
        .order_by(c.id)
    ).all()
    rated = _rated_by(session, [row.id for row in rows if row.state == "answered"])
    found: dict[int, list[OpenConversation]] = defaultdict(list)
    for row in rows:
        unrated = tuple(one.id for one in run.evaluators if one.id not in rated[row.id] and one.rates(row.id))
        if row.state == "pending" or unrated:
            found[row.group_id].append(
                OpenConversation(
                    row.id,
                    row.scenario,
                    row.variant,
                    ConversationState(row.state),
                    row.turns_done,
                    row.constraint,
                    row.request,
                    row.response,
                    unrated,
                )
            )
    _add_exchanges(session, [item for items in found.values() for item in items if item.turns_done])
    return found


def _rated_by(session: Session, conversations: list[int]) -> dict[int, set[int]]:
    rated: dict[int, set[int]] = defaultdict(set)
    v = models.Verdict
    for conversation, evaluator in session.execute(
        select(v.conversation_id, v.evaluator_id).where(v.conversation_id.in_(conversations))
    ):
        rated[conversation].add(evaluator)
    return rated


def _add_exchanges(session: Session, conversations: list[OpenConversation]) -> None:
    by_id = {item.id: item for item in conversations if item.state is ConversationState.PENDING}
    t = models.Turn
    for conversation, user, assistant in session.execute(
        select(t.conversation_id, t.user_text, t.assistant_text)
        .where(t.conversation_id.in_(by_id))
        .order_by(t.conversation_id, t.position)
    ):
        by_id[conversation].exchanges.append((user, assistant))

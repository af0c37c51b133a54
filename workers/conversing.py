"""Hold the conversations of a group: turn after turn with the model's own replies, then the verdicts."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from app.benchmark import draw
from app.chat import ChatClient, Exchange, messages_for
from app.evaluation import rate_by_rules, screen
from app.models.runs import SUSPICIOUS
from app.outcomes import PROBE_SCENARIO, RECALL, ConversationState
from app.protocol import Protocol, Reduced, Script, reduce, script
from app.rating import Rated, rate_by_model, rated_by_rules
from app.runs.loading import LoadedEvaluator, LoadedRun, OpenConversation, OpenGroup
from app.runs.recording import Move, TurnRecord, VerdictRecord
from app.text import clean
from workers.breaker import Breaker
from workers.budget import CheckedPace, SendingEnded
from workers.pacing import Turn
from workers.writer import Writer

# Who shares, all that was said before a turn and the user's words in it. The replies belong to it: where two
# drivers met, equal questions may have had different answers.
Prefix = tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """One turn's exchange, and whether it was asked for another conversation of the group."""

    exchange: Exchange | None
    record: TurnRecord | None


class Overtaken(Exception):
    """Another driver stored a turn of this conversation first; what comes next would not fit to it."""


class Conversing:
    """What a driver's conversations share: the client, the paces, the writer."""

    def __init__(
        self,
        run: LoadedRun,
        client: ChatClient,
        writer: Writer,
        model_pace: CheckedPace,
        evaluator_paces: dict[int, CheckedPace],
        breaker: Breaker,
    ) -> None:
        self.run = run
        self.client = client
        self.writer = writer
        self.model_pace = model_pace
        self.evaluator_paces = evaluator_paces
        self.breaker = breaker
        self.evaluators = {evaluator.id: evaluator for evaluator in run.evaluators}
        self.begun = count()
        self._simulated: set[int | None] = set()

    def note_simulated(self, evaluator_id: int | None = None) -> None:
        """A reply of the run's model, or of that evaluator, says that no model wrote it: kept once."""
        if evaluator_id not in self._simulated:
            self._simulated.add(evaluator_id)
            self.writer.batch.simulated.add(evaluator_id)

    async def work(self, group: OpenGroup) -> None:
        """Everything that is open in the group, as far as sending goes on; then leave it."""
        self.writer.loaded_anew(conversation.id for conversation in group.conversations)
        shared = SharedTurns(group.known_turns)
        scripts = self._scripts(group)
        async with asyncio.TaskGroup() as tasks:
            for one in group.conversations:
                tasks.create_task(Conversation(self, shared, one, scripts.get(one.id)).hold())
        self.writer.leave(group.id)

    def _scripts(self, group: OpenGroup) -> dict[int, Script]:
        """What the user will say in each conversation that is not at its end."""
        pending = [one for one in group.conversations if one.state is ConversationState.PENDING]
        if not pending:
            return {}
        run, case = self.run, group.case
        drawn = draw(run.benchmark_hash, case.key, group.seed, run.pools, case.tags)
        return {one.id: script(run.protocol, case, drawn, one.scenario, one.variant) for one in pending}


class SharedTurns:
    """Turns that conversations of one group have in common are asked once."""

    def __init__(self, known: dict[Prefix, TurnRecord]) -> None:
        self._known = known
        self._asking: dict[Prefix, asyncio.Future[Asked]] = {}

    def find(self, said: Prefix) -> asyncio.Future[Asked] | None:
        if said in self._known:
            future: asyncio.Future[Asked] = asyncio.get_running_loop().create_future()
            future.set_result(Asked(None, self._known[said]))
            return future
        return self._asking.get(said)

    def begin(self, said: Prefix) -> asyncio.Future[Asked]:
        return self._asking.setdefault(said, asyncio.get_running_loop().create_future())


class Conversation:
    def __init__(
        self, shop: Conversing, shared: SharedTurns, conversation: OpenConversation, words: Script | None
    ) -> None:
        self._shop = shop
        self._shared = shared
        self._conversation = conversation
        self._words = words
        # With whom turns are shared: None with nobody.
        self._sharers = shop.run.sharers(conversation.scenario, conversation.variant)
        self._begun = next(shop.begun)

    @property
    def _script(self) -> Script:
        assert self._words is not None, "an answered conversation has nothing left to say"
        return self._words

    async def hold(self) -> None:
        """Ask what is left to ask; rate under each evaluator that has not. It may have to stay open."""
        with suppress(SendingEnded, Overtaken):
            reduced = await self._finish_turns()
            if reduced is not None:
                await self._rate_all(reduced)

    async def _rate_all(self, reduced: Reduced) -> None:
        """Each evaluator to its end, whatever becomes of the others."""
        rating = (self._rate(self._shop.evaluators[one], reduced) for one in self._conversation.unrated_by)
        ends = await asyncio.gather(*rating, return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    async def _finish_turns(self) -> Reduced | None:
        """The reduced conversation, or None where there is no answer to rate."""
        conversation = self._conversation
        if conversation.state is ConversationState.ANSWERED:
            return self._stored()
        exchanges = conversation.exchanges
        for position in range(conversation.turns_done, len(self._script.turns)):
            move = await self._ask(position, exchanges)
            self._shop.writer.batch.moves.append(move)
            self._shop.writer.touch()
            if move.turn is None:
                return None
            exchanges.append((move.turn.user_text, move.turn.assistant_text))
        return self._reduced(move.response) if move.response is not None else None

    def _stored(self) -> Reduced:
        """As it was reduced when it was answered, whatever the script would say today."""
        conversation = self._conversation
        assert conversation.constraint is not None
        assert conversation.request is not None
        assert conversation.response is not None
        return Reduced(
            conversation.constraint,
            conversation.request,
            conversation.response,
            stated=_states_constraint(self._shop.run.protocol, conversation),
            probe=conversation.scenario == PROBE_SCENARIO,
            recall=conversation.variant == RECALL,
        )

    def _reduced(self, response: str) -> Reduced:
        return reduce(self._script, [response])

    async def _ask(self, position: int, exchanges: Sequence[tuple[str, str]]) -> Move:
        """Send one turn, or take it from the conversation that shares it."""
        if self._sharers is None:
            return self._moved(position, await self._send(position, exchanges), copied=False)
        before = (text for pair in exchanges for text in pair)
        said = (*self._sharers, *before, self._script.turns[position])
        waiting = self._shared.find(said)
        if waiting is not None:
            return self._moved(position, await asyncio.shield(waiting), copied=True)
        future = self._shared.begin(said)
        try:
            asked = await self._send(position, exchanges)
        except Exception as error:
            future.set_exception(error)
            future.exception()  # perhaps nobody waits for it
            raise
        except BaseException:
            future.cancel()
            raise
        future.set_result(asked)
        return self._moved(position, asked, copied=False)

    def _moved(self, position: int, asked: Asked, *, copied: bool) -> Move:
        if asked.record is None:
            return self._failed(position, asked.exchange, copied=copied)
        if copied:
            return self._move(
                position, replace(asked.record, conversation_id=self._conversation.id, copied=True)
            )
        return self._move(position, asked.record)

    async def _send(self, position: int, exchanges: Sequence[tuple[str, str]]) -> Asked:
        shop, target = self._shop, self._shop.run.protocol.target
        self._check_not_overtaken()
        exchange = await shop.client.complete(
            shop.run.endpoint,
            messages_for(exchanges, self._script.turns[position]),
            target.sampling,
            attempts=target.attempts,
            deadline=target.deadline_seconds,
            pace=shop.model_pace.at(Turn(self._begun, len(self._script.turns) - position)),
        )
        shop.breaker.heard("the endpoint", None, exchange)
        if exchange.learned:
            shop.writer.learn(shop.run.endpoint_id, dict(exchange.learned))
        if exchange.simulated:
            shop.note_simulated()
        if exchange.state == "error":
            return Asked(exchange, None)
        return Asked(exchange, self._record(position, exchange))

    def _check_not_overtaken(self) -> None:
        if self._shop.writer.is_overtaken(self._conversation.id):
            raise Overtaken

    def _record(self, position: int, exchange: Exchange) -> TurnRecord:
        return TurnRecord(
            conversation_id=self._conversation.id,
            position=position,
            user_text=self._script.turns[position],
            assistant_text=exchange.text or "",
            state=exchange.state,
            copied=False,
            flags=tuple(sorted(exchange.flags)),
            request_body=exchange.request_body,
            response_body=exchange.response,
            model_reported=exchange.model_reported,
            prompt_tokens=exchange.prompt_tokens,
            completion_tokens=exchange.completion_tokens,
            tries=len(exchange.attempts),
            attempts=attempts_of(exchange),
            started_at=exchange.started_at,
            seconds=exchange.seconds,
        )

    def _move(self, position: int, turn: TurnRecord) -> Move:
        if position < len(self._script.turns) - 1:
            flags = tuple(flag for flag in turn.flags if flag in SUSPICIOUS)
            flags += () if turn.state == "answered" else (f"earlier_turn_{turn.state}",)
            return Move(self._conversation.id, position, turn, ConversationState.PENDING, flags)
        reduced = self._reduced(turn.assistant_text)
        answered = turn.state == "answered"
        return Move(
            self._conversation.id,
            position,
            turn,
            ConversationState(turn.state),
            (*turn.flags, *(sorted(screen(turn.assistant_text, reduced.constraint)) if answered else ())),
            constraint=reduced.constraint,
            request=reduced.request,
            response=turn.assistant_text if answered else None,
        )

    def _failed(self, position: int, exchange: Exchange | None, *, copied: bool) -> Move:
        assert exchange is not None
        log = [] if copied else [{"kind": "model", "turn": position, **failed_call(exchange)}]
        return Move(
            self._conversation.id,
            position,
            None,
            ConversationState.ENDPOINT_ERROR,
            error=exchange.error or "unknown",
            error_message=exchange.error_message,
            failed_attempts=log,
        )

    async def _rate(self, evaluator: LoadedEvaluator, reduced: Reduced) -> None:
        shop = self._shop
        if evaluator.endpoint is None or evaluator.section is None or evaluator.protocol is None:
            rated = rated_by_rules(rate_by_rules(reduced))
        else:
            self._check_not_overtaken()
            target = evaluator.protocol.target
            rated = await rate_by_model(
                shop.client,
                evaluator.endpoint,
                evaluator.section,
                reduced,
                attempts=target.attempts,
                deadline=target.deadline_seconds,
                pace=shop.evaluator_paces[evaluator.id],
            )
            if any(exchange.simulated for exchange in rated.exchanges):
                shop.note_simulated(evaluator.id)
            for exchange in rated.exchanges:
                shop.breaker.heard("the evaluator's endpoint", evaluator.id, exchange)
                if exchange.learned and evaluator.endpoint_id is not None:
                    shop.writer.learn(evaluator.endpoint_id, dict(exchange.learned))
        shop.writer.batch.verdicts.append(verdict_record(self._conversation.id, evaluator.id, rated))
        shop.writer.touch()


def _states_constraint(protocol: Protocol, conversation: OpenConversation) -> bool:
    arm = (conversation.scenario, conversation.variant)
    return not any((one.of, one.id) == arm and one.constraint == "none" for one in protocol.variants)


def verdict_record(conversation_id: int, evaluator_id: int, rated: Rated) -> VerdictRecord:
    verdict = rated.verdict
    exchanges = rated.exchanges
    return VerdictRecord(
        conversation_id=conversation_id,
        evaluator_id=evaluator_id,
        state=rated.state,
        rating=None if verdict.rating is None else int(verdict.rating),
        acknowledged=verdict.acknowledged,
        recommendation=verdict.recommendation,
        # Out of the evaluator's JSON, in which \u0000 and half a surrogate may be written.
        explanation=clean(verdict.explanation)[0],
        reason=verdict.reason,
        reply=rated.reply,
        mode=rated.mode,
        flags=tuple(sorted(rated.flags)),
        calls=sum(bool(exchange.attempts) for exchange in exchanges),
        retries=sum(max(0, len(exchange.attempts) - 1) for exchange in exchanges),
        prompt_tokens=_sum(exchange.prompt_tokens for exchange in exchanges),
        completion_tokens=_sum(exchange.completion_tokens for exchange in exchanges),
        exchanges=[full_call(exchange) for exchange in exchanges],
    )


def _sum(values: Iterable[int | None]) -> int | None:
    """The sum of what is known; None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def attempts_of(exchange: Exchange) -> list[dict[str, Any]]:
    return [
        {"status": one.status, "error": one.error, "seconds": one.seconds, "waited": one.waited}
        for one in exchange.attempts
    ]


def failed_call(exchange: Exchange) -> dict[str, Any]:
    return {
        "error": exchange.error,
        "at": exchange.started_at.isoformat(),
        "attempts": attempts_of(exchange),
        "request": exchange.request,
        "response": exchange.response,
    }


def full_call(exchange: Exchange) -> dict[str, Any]:
    """An evaluator's call as it is kept with the verdict."""
    return failed_call(exchange) | {
        "model_reported": exchange.model_reported,
        "prompt_tokens": exchange.prompt_tokens,
        "completion_tokens": exchange.completion_tokens,
        "seconds": exchange.seconds,
    }

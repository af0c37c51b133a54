"""Hold the conversations of a group: turn after turn with the model's own replies, then the verdicts."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.rating import Rated, rate_by_model, rated_by_rules

from app.benchmark import draw
from app.chat import ChatClient, Exchange, Pace, messages_for
from app.evaluation import rate_by_rules, screen
from app.outcomes import ConversationState
from app.protocol import Reduced, Script, reduce, script
from app.runs.loading import LoadedEvaluator, LoadedRun, OpenConversation, OpenGroup
from app.runs.recording import Move, TurnRecord, VerdictRecord
from workers.writer import Writer

Prefix = tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """One turn's exchange, and whether it was asked for another conversation of the group."""

    exchange: Exchange | None
    record: TurnRecord | None


class Conversing:
    """What a driver's conversations share: the client, the paces, the writer."""

    def __init__(
        self,
        run: LoadedRun,
        client: ChatClient,
        writer: Writer,
        model_pace: Pace,
        evaluator_paces: dict[int, Pace],
    ) -> None:
        self.run = run
        self.client = client
        self.writer = writer
        self.model_pace = model_pace
        self.evaluator_paces = evaluator_paces
        self.evaluators = {evaluator.id: evaluator for evaluator in run.evaluators}

    async def work(self, group: OpenGroup) -> None:
        """Everything that is open in the group; then mark it done."""
        shared = SharedTurns(group.known_turns)
        drawn = draw(self.run.benchmark_hash, group.case.key, group.seed, self.run.pools, group.case.tags)
        async with asyncio.TaskGroup() as tasks:
            for conversation in group.conversations:
                words = script(
                    self.run.protocol, group.case, drawn, conversation.scenario, conversation.variant
                )
                tasks.create_task(Conversation(self, shared, conversation, words).hold())
        self.writer.group_done(group.id)


class SharedTurns:
    """Turns that conversations of one group have in common are asked once.

    Keyed by all that the user has said so far: equal words up to a turn have had equal replies.
    """

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
        self, shop: Conversing, shared: SharedTurns, conversation: OpenConversation, words: Script
    ) -> None:
        self._shop = shop
        self._shared = shared
        self._conversation = conversation
        self._script = words
        self._share = shop.run.protocol.target.share_opening

    async def hold(self) -> None:
        """Ask what is left to ask; rate under each evaluator that has not."""
        reduced = await self._finish_turns()
        if reduced is not None:
            async with asyncio.TaskGroup() as tasks:
                for evaluator in self._conversation.unrated_by:
                    tasks.create_task(self._rate(self._shop.evaluators[evaluator], reduced))

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
            self._script.stated,
            self._script.probe,
        )

    def _reduced(self, response: str) -> Reduced:
        return reduce(self._script, [response])

    async def _ask(self, position: int, exchanges: Sequence[tuple[str, str]]) -> Move:
        """Send one turn, or take it from the conversation that shares it."""
        said = (*(user for user, _ in exchanges), self._script.turns[position])
        waiting = self._shared.find(said) if self._share else None
        if waiting is not None:
            asked = await asyncio.shield(waiting)
            if asked.record is not None:
                copy = replace(asked.record, conversation_id=self._conversation.id, copied=True)
                return self._move(position, copy, ())
            return self._failed(position, asked.exchange, copied=True)
        future = self._shared.begin(said) if self._share else None
        try:
            asked = await self._send(position, exchanges)
        except BaseException as error:
            if future is not None:
                future.set_exception(error) if isinstance(error, Exception) else future.cancel()
            raise
        if future is not None:
            future.set_result(asked)
        if asked.record is None:
            return self._failed(position, asked.exchange, copied=False)
        return self._move(position, asked.record, ())

    async def _send(self, position: int, exchanges: Sequence[tuple[str, str]]) -> Asked:
        shop, target = self._shop, self._shop.run.protocol.target
        await shop.writer.ready()
        exchange = await shop.client.complete(
            shop.run.endpoint,
            messages_for(exchanges, self._script.turns[position]),
            target.sampling,
            attempts=target.attempts,
            deadline=target.deadline_seconds,
            pace=shop.model_pace,
        )
        if exchange.learned:
            shop.writer.learn(shop.run.endpoint_id, dict(exchange.learned))
        if exchange.state == "error":
            return Asked(exchange, None)
        return Asked(exchange, self._record(position, exchange))

    def _record(self, position: int, exchange: Exchange) -> TurnRecord:
        return TurnRecord(
            conversation_id=self._conversation.id,
            position=position,
            user_text=self._script.turns[position],
            assistant_text=exchange.text or "",
            state=exchange.state,
            copied=False,
            flags=tuple(sorted(exchange.flags)),
            request_body=json.dumps(exchange.request, ensure_ascii=False),
            response_body=exchange.response,
            model_reported=exchange.model_reported,
            prompt_tokens=exchange.prompt_tokens,
            completion_tokens=exchange.completion_tokens,
            tries=len(exchange.attempts),
            attempts=attempts_of(exchange),
            started_at=exchange.started_at,
            seconds=exchange.seconds,
        )

    def _move(self, position: int, turn: TurnRecord, flags: tuple[str, ...]) -> Move:
        last = position == len(self._script.turns) - 1
        if not last:
            if turn.state != "answered":
                flags = (*flags, f"earlier_turn_{turn.state}")
            return Move(self._conversation.id, position, turn, ConversationState.PENDING, flags)
        reduced = self._reduced(turn.assistant_text)
        answered = turn.state == "answered"
        return Move(
            self._conversation.id,
            position,
            turn,
            ConversationState(turn.state),
            (*flags, *turn.flags, *(sorted(screen(turn.assistant_text)) if answered else ())),
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
            await shop.writer.ready()
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
            for exchange in rated.exchanges:
                if exchange.learned and evaluator.endpoint_id is not None:
                    shop.writer.learn(evaluator.endpoint_id, dict(exchange.learned))
        shop.writer.batch.verdicts.append(verdict_record(self._conversation.id, evaluator.id, rated))
        shop.writer.touch()


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
        explanation=verdict.explanation,
        reason=verdict.reason,
        reply=rated.reply,
        mode=rated.mode,
        flags=tuple(sorted(rated.flags)),
        calls=len(exchanges),
        retries=sum(len(exchange.attempts) - 1 for exchange in exchanges),
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

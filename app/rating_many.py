"""Rate many reduced conversations by one evaluator, outside any run."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.chat import NOTHING_PRIVATE, Allowlist, ChatClient, Endpoint
from app.chat.pace import Unpaced
from app.evaluation import rate_by_rules, screen
from app.protocol import Protocol, Reduced
from app.rating import Rated, rate_by_model, rated_by_rules
from app.text import clean, is_blank


@dataclass(frozen=True)
class Rater:
    """The rules (endpoint None), or a model under the protocol's evaluator section."""

    protocol: Protocol
    endpoint: Endpoint | None = None


@dataclass(frozen=True)
class Room:
    """How many calls may be in flight, and which addresses they may lead to."""

    concurrency: int = 16
    allowlist: Allowlist = NOTHING_PRIVATE
    own_hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class RatedResponse:
    """`rated` is None where the response is blank, which is no answer. `flags`: the response's own, too."""

    rated: Rated | None
    flags: frozenset[str]

    @property
    def rating(self) -> int | None:
        found = self.rated.verdict.rating if self.rated else None
        return None if found is None else int(found)

    @property
    def model_reported(self) -> str | None:
        """The name by which the evaluator's endpoint called the model that answered."""
        exchanges = self.rated.exchanges if self.rated else ()
        return exchanges[-1].model_reported if exchanges else None


async def rate_all(
    rater: Rater,
    conversations: Sequence[Reduced],
    room: Room,
    on_done: Callable[[int], None] = lambda done: None,
) -> list[RatedResponse]:
    """A result for each, in order; `on_done` hears how many are done. Endpoint errors are results."""
    slots, done = asyncio.Semaphore(room.concurrency), 0
    async with ChatClient(
        allowlist=room.allowlist, max_connections=room.concurrency, own_hosts=room.own_hosts
    ) as client:

        async def one(reduced: Reduced) -> RatedResponse:
            nonlocal done
            async with slots:
                found = await _rate(client, rater, reduced)
            done += 1
            on_done(done)
            return found

        return list(await asyncio.gather(*(one(reduced) for reduced in conversations)))


async def _rate(client: ChatClient, rater: Rater, reduced: Reduced) -> RatedResponse:
    reduced, flags = _storable(reduced)
    if is_blank(reduced.response):
        return RatedResponse(None, flags)
    if rater.endpoint is None:
        rated = rated_by_rules(rate_by_rules(reduced))
    else:
        target = rater.protocol.target
        rated = await rate_by_model(
            client,
            rater.endpoint,
            rater.protocol.evaluator,
            reduced,
            attempts=target.attempts,
            deadline=target.deadline_seconds,
            pace=Unpaced(),
        )
    return RatedResponse(rated, flags | rated.flags | screen(reduced.response, reduced.constraint))


def _storable(reduced: Reduced) -> tuple[Reduced, frozenset[str]]:
    """Without NUL and lone surrogates, as the replies of a run are kept; the flags say what was replaced."""
    constraint, _ = clean(reduced.constraint)
    request, _ = clean(reduced.request)
    response, flags = clean(reduced.response)
    return replace(reduced, constraint=constraint, request=request, response=response), flags

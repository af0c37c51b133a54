"""The pacer: the rules on a clock of our own, the waiting on the real one."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat import SendResult
from tests.chat_helpers import PATIENT, client, complete, endpoint, run
from tests.stub_endpoint import Received, StubEndpoint, error, reply
from workers.pacing import LONGEST_PAUSE, START, Limiter, Pacer, Turn

OK, LIMITED, FAILED, CANCELLED = SendResult

# When it is asked, and how many requests are out then: what it answers, and the Retry-After it sends.
Endpoint = Callable[[float, int], tuple[SendResult, float | None]]


@dataclass
class Simulation:
    """As many callers as fit, an endpoint with a latency, and a clock that jumps from event to event."""

    limiter: Limiter
    endpoint: Endpoint
    latency: float = 1.0
    now: float = 0.0
    sent: list[float] = field(default_factory=list)
    limits: list[tuple[float, int]] = field(default_factory=list)
    refused: int = 0

    def run(self, until: float) -> None:
        out: list[tuple[float, int, int, SendResult, float | None]] = []
        ties = itertools.count()
        while self.now < until:
            while self.limiter.may_send(self.now):
                number = self.limiter.send()
                result, hint = self.endpoint(self.now, self.limiter.in_flight)
                heapq.heappush(out, (self.now + self.latency, next(ties), number, result, hint))
                self.sent.append(self.now)
            self.now = out[0][0] if out else max(self.now + 0.001, self.limiter.paused_until)
            while out and out[0][0] <= self.now:
                _, _, number, result, hint = heapq.heappop(out)
                self.refused += result is LIMITED
                self.limiter.finish(number, result, self.now, hint)
            self.limits.append((self.now, self.limiter.limit))

    def limit_at(self, moment: float) -> int:
        return [limit for time, limit in self.limits if time <= moment][-1]


def willing(_: float, __: int) -> tuple[SendResult, float | None]:
    return OK, None


def test_it_starts_low_and_doubles_after_each_clean_round_up_to_the_ceiling() -> None:
    simulation = Simulation(Limiter(64), willing)
    simulation.run(7)
    assert [limit for _, limit in simulation.limits][:5] == [START * 2, 32, 64, 64, 64]
    assert simulation.sent.count(0.0) == START


def test_a_ceiling_below_the_start_holds_from_the_first_request() -> None:
    simulation = Simulation(Limiter(2), willing)
    simulation.run(5)
    assert {limit for _, limit in simulation.limits} == {2}


def test_it_grows_only_when_the_limit_was_reached() -> None:
    limiter = Limiter(64)
    for second in range(100):
        number = limiter.send()
        limiter.finish(number, OK, float(second))
    assert limiter.limit == START


def test_a_round_has_as_many_answers_as_the_limit_is_high_whenever_they_were_sent() -> None:
    limiter = Limiter(64)
    early = [limiter.send() for _ in range(START)]
    late = [limiter.send() for _ in range(START)]
    for number in early:
        limiter.finish(number, OK, 1.0)
    assert limiter.limit == 2 * START
    fresh = [limiter.send() for _ in range(START)]
    for number in [*late, *fresh[:-1]]:
        limiter.finish(number, OK, 2.0)
    assert limiter.limit == 2 * START
    limiter.finish(fresh[-1], OK, 2.0)
    assert limiter.limit == 4 * START


def test_answers_to_what_was_sent_before_a_cut_speak_for_no_growth() -> None:
    limiter = Limiter(64, start=8)
    sent = [limiter.send() for _ in range(8)]
    limiter.finish(sent[0], LIMITED, 1.0, 0.5)
    assert limiter.limit == 4
    for number in sent[1:]:
        limiter.finish(number, OK, 1.2)
    assert limiter.limit == 4


def test_failures_are_no_clean_round_and_no_cut() -> None:
    simulation = Simulation(Limiter(64), lambda _, __: (FAILED, None))
    simulation.run(20)
    assert {limit for _, limit in simulation.limits} == {START}
    assert not simulation.limiter.probing


def test_one_episode_cuts_once() -> None:
    limiter = Limiter(64, start=64)
    numbers = [limiter.send() for _ in range(64)]
    for number in numbers:
        limiter.finish(number, LIMITED, 1.0, 5.0)
    assert (limiter.limit, limiter.in_flight, limiter.rate_limited) == (32, 0, 64)


def test_after_the_pause_one_request_alone_tries_the_ground() -> None:
    limiter = Limiter(64, start=64)
    for number in [limiter.send() for _ in range(64)]:
        limiter.finish(number, LIMITED, 1.0, 5.0)
    assert not limiter.may_send(5.9)
    assert limiter.may_send(6.0)
    probe = limiter.send()
    assert not limiter.may_send(6.0)
    limiter.finish(probe, OK, 7.0)
    opened = 0
    while limiter.may_send(7.0):
        limiter.send()
        opened += 1
    assert opened == 32


@pytest.mark.parametrize("result", [FAILED, CANCELLED])
def test_a_probe_that_fails_otherwise_does_not_block_for_ever(result: SendResult) -> None:
    limiter = Limiter(8, start=8)
    limiter.finish(limiter.send(), LIMITED, 0.0, 1.0)
    limiter.finish(limiter.send(), result, 2.0)
    assert limiter.may_send(2.0)
    assert limiter.probing == (result is CANCELLED)


def test_an_answer_from_before_the_cut_neither_cuts_nor_opens() -> None:
    limiter = Limiter(8, start=8)
    early, late, last = (limiter.send() for _ in range(3))
    limiter.finish(early, LIMITED, 1.0, 5.0)
    limiter.finish(late, OK, 2.0)
    assert (limiter.limit, limiter.probing, limiter.may_send(3.0)) == (4, True, False)
    limiter.finish(last, LIMITED, 4.0, 5.0)
    assert (limiter.limit, limiter.paused_until) == (4, 9.0)


@pytest.mark.parametrize(("hint", "pause"), [(None, 1.0), (0.0, 1.0), (7.0, 7.0), (1e9, LONGEST_PAUSE)])
def test_pauses_follow_the_hint_up_to_a_cap(hint: float | None, pause: float) -> None:
    limiter = Limiter(8)
    limiter.finish(limiter.send(), LIMITED, 100.0, hint)
    assert limiter.paused_until == 100.0 + pause


def test_without_a_hint_pauses_double_while_the_trouble_lasts() -> None:
    limiter = Limiter(8)
    pauses = []
    for _ in range(9):
        now = max(0.0, limiter.paused_until)
        limiter.finish(limiter.send(), LIMITED, now)
        pauses.append(limiter.paused_until - now)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    limiter.finish(limiter.send(), OK, limiter.paused_until)
    limiter.finish(limiter.send(), LIMITED, 1000.0)
    assert limiter.paused_until == 1001.0


def test_retry_after_89_on_every_answer_for_five_minutes_keeps_falling_and_recovers_after() -> None:
    def five_bad_minutes(now: float, _: int) -> tuple[SendResult, float | None]:
        return (LIMITED, 89.0) if 100 <= now < 400 else (OK, None)

    simulation = Simulation(Limiter(64), five_bad_minutes)
    simulation.run(100)
    assert simulation.limiter.limit == 64
    simulation.run(400)
    falls = [simulation.limit_at(moment) for moment in (99, 130, 190, 250, 310, 390)]
    assert falls == [64, 32, 16, 8, 4, 2]
    # The whole account waited: a first burst, then one probe for each pause.
    assert simulation.refused <= 64 + 5
    simulation.run(440)
    assert simulation.limit_at(440) >= 32
    simulation.run(500)
    assert simulation.limiter.limit == 64


def test_it_settles_near_a_limit_that_the_endpoint_has() -> None:
    def forty_at_once(_: float, out: int) -> tuple[SendResult, float | None]:
        return (LIMITED, 1.0) if out > 40 else (OK, None)

    simulation = Simulation(Limiter(200), forty_at_once)
    simulation.run(600)
    late = [limit for time, limit in simulation.limits if time > 100]
    assert min(late) >= 20
    assert max(late) <= 50
    served = len([moment for moment in simulation.sent if moment > 100])
    assert served / 500 > 0.65 * 40
    assert simulation.refused / len(simulation.sent) < 0.02


@PATIENT
@given(
    st.integers(0, 20),
    st.lists(st.tuples(st.sampled_from(list(SendResult)), st.none() | st.floats(0, 1e6)), max_size=200),
    st.randoms(use_true_random=False),
)
def test_no_sequence_of_answers_breaks_it(
    ceiling: int, results: list[tuple[SendResult, float | None]], random: Random
) -> None:
    limiter = Limiter(ceiling)
    out: list[int] = []
    now = 0.0
    for result, hint in results:
        while limiter.may_send(now) and len(out) < 30:
            out.append(limiter.send())
        assert limiter.in_flight == len(out) <= max(ceiling, 0)
        assert 0 <= limiter.limit <= ceiling
        if out:
            limiter.finish(out.pop(random.randrange(len(out))), result, now, hint)
        now += 1.0
    for number in out:
        limiter.finish(number, OK, now)
    assert limiter.in_flight == 0
    assert limiter.paused_until - now <= LONGEST_PAUSE
    assert limiter.may_send(now + LONGEST_PAUSE) == (ceiling > 0)


def test_a_negative_ceiling_is_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        Limiter(-1)


# On an event loop


def test_slots_are_given_in_the_order_in_which_they_were_asked_for() -> None:
    async def order() -> list[int]:
        pacer = Pacer(2, start=2)
        done: list[int] = []

        async def one(number: int) -> None:
            slot = await pacer.acquire()
            done.append(number)
            await asyncio.sleep(0.001)
            pacer.release(slot, FAILED)

        await asyncio.gather(*[one(number) for number in range(20)])
        assert pacer.snapshot().in_flight == pacer.snapshot().waiting == 0
        return done

    assert run(order()) == list(range(20))


def test_waiters_that_are_cancelled_leave_nothing_behind() -> None:
    async def cancel() -> None:
        pacer = Pacer(1)
        slot = await pacer.acquire()
        waiting = [asyncio.create_task(pacer.acquire()) for _ in range(5)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        assert pacer.snapshot().waiting == 4
        # Given a slot and cancelled in the same step: the slot goes on to the next.
        pacer.release(slot, OK)
        waiting[1].cancel()
        waiting[2].cancel()
        await asyncio.sleep(0.01)
        assert waiting[3].done()
        assert pacer.snapshot().in_flight == 1
        pacer.release(waiting[3].result(), OK)
        pacer.release(await waiting[4], OK)
        assert pacer.snapshot().in_flight == 0

    run(cancel())


def test_a_pause_ends_by_itself_and_shows_in_the_snapshot() -> None:
    async def pause() -> None:
        pacer = Pacer(8)
        began = asyncio.get_running_loop().time()
        pacer.release(await pacer.acquire(), LIMITED, 0.2)
        seen = pacer.snapshot()
        assert 0.1 < seen.paused_for <= 0.2 + 1e-6
        assert (seen.probing, seen.rate_limited, seen.ceiling) == (True, 1, 8)
        slot = await pacer.acquire()
        assert asyncio.get_running_loop().time() - began >= 0.19
        pacer.release(slot, OK)
        assert pacer.snapshot().paused_for == 0

    run(pause())


def test_the_ceiling_can_be_moved_while_running() -> None:
    async def move() -> None:
        pacer = Pacer(0)
        waiting = [asyncio.create_task(pacer.acquire()) for _ in range(6)]
        await asyncio.sleep(0.01)
        assert pacer.snapshot().in_flight == 0
        pacer.ceiling = 3
        await asyncio.sleep(0)
        assert (pacer.ceiling, pacer.snapshot().in_flight, pacer.snapshot().waiting) == (3, 3, 3)
        pacer.ceiling = 1
        pacer.release(await waiting[0], OK)
        await asyncio.sleep(0)
        assert pacer.snapshot().in_flight == 2
        for task in waiting[1:]:
            pacer.release(await task, OK)

    run(move())


def test_a_storm_of_rate_limits_loses_no_call_and_raises_no_herd() -> None:
    """A real client against an endpoint that refuses everything for a while, Retry-After on each."""

    async def storm() -> tuple[list[str], int, int]:
        open_at = asyncio.get_running_loop().time() + 0.6

        async def behave(request: Received, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0.01)
            late = asyncio.get_running_loop().time() >= open_at
            refusal = error(429, headers={"retry-after-ms": "100"})
            await (reply("Good.") if late else refusal)(request, writer)

        pacer = Pacer(64, start=16)
        async with StubEndpoint(default=behave) as stub, client() as asked:
            of = endpoint(stub)
            calls = [complete(asked, of, attempts=4, pace=pacer) for _ in range(100)]
            found = await asyncio.gather(*calls)
            return [e.state for e in found], len(stub.received), pacer.snapshot().in_flight

    states, requests, left = run(storm())
    assert states == ["answered"] * 100
    assert requests <= 100 + 16 + 8
    assert left == 0


def test_what_was_begun_first_goes_first_until_the_longest_does() -> None:
    async def order(*, longest_first: bool) -> list[str]:
        pacer = Pacer(1)
        held = await pacer.acquire()
        pacer.longest_first = longest_first
        served: list[str] = []

        async def ask(name: str, turn: Turn) -> None:
            slot = await pacer.acquire(turn)
            served.append(name)
            pacer.release(slot, OK)

        turns = {"late and long": Turn(3, 9), "early": Turn(1, 2), "also early": Turn(1, 2)}
        asking = [asyncio.create_task(ask(name, turn)) for name, turn in turns.items()]
        await asyncio.sleep(0)
        pacer.release(held, OK)
        await asyncio.gather(*asking)
        return served

    assert run(order(longest_first=False)) == ["early", "also early", "late and long"]
    assert run(order(longest_first=True)) == ["late and long", "early", "also early"]

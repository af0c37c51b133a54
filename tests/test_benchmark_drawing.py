"""Drawing: the same for one case and seed everywhere, never a text twice, never what the tags forbid."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.benchmark import Drawn, Pools, draw
from app.errors import InvalidInput
from tests.benchmark_help import make_benchmark, make_distractors

POOLS = Pools(
    make_distractors("fact", 40), make_distractors("trivia", 60), make_distractors("preference", 60)
)
KNOWN = ["fact-19", "trivia-2", "trivia-30", "trivia-42", "preference-34", "preference-35", "preference-55"]


def keys(drawn: Drawn) -> list[str]:
    assert drawn.facts is not None
    return [drawn.facts.key, *(item.key for item in (*drawn.trivia, *drawn.random))]


def test_the_draw_is_what_it_always_was() -> None:
    """Fixed by value: a change would silently make old and new runs of one seed differ."""
    assert keys(draw("hash", "lake-1", 1, POOLS)) == KNOWN


def test_another_process_draws_the_same() -> None:
    program = (
        "import json\nfrom tests.test_benchmark_drawing import POOLS, draw, keys\n"
        "print(json.dumps([keys(draw('hash', f'lake-{n}', 3, POOLS)) for n in range(20)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, env={"PYTHONHASHSEED": "77"}
    )
    assert json.loads(done.stdout) == [keys(draw("hash", f"lake-{n}", 3, POOLS)) for n in range(20)]


@given(st.text(), st.text(), st.integers(0, 2**40))
def test_every_draw_is_complete_distinct_and_repeatable(benchmark_hash: str, key: str, seed: int) -> None:
    drawn = draw(benchmark_hash, key, seed, POOLS)
    assert len(set(keys(drawn))) == 7
    assert drawn == draw(benchmark_hash, key, seed, POOLS)


def test_benchmark_case_and_seed_all_matter() -> None:
    drawn = {
        tuple(keys(draw(*arguments, POOLS)))
        for arguments in (("h", "c", 1), ("h", "c", 2), ("h", "d", 1), ("i", "c", 1), ("hc", "", 1))
    }
    assert len(drawn) == 5


def test_every_distractor_is_about_as_likely() -> None:
    drawn = [draw("hash", f"case-{n}", 1, POOLS) for n in range(4000)]
    for count, expected in (
        (Counter(item.facts.key for item in drawn if item.facts), 4000 / 40),
        (Counter(item.key for one in drawn for item in one.trivia), 12000 / 60),
        (Counter(item.key for one in drawn for item in one.random), 12000 / 60),
    ):
        chi_squared = sum((seen - expected) ** 2 / expected for seen in count.values())
        assert chi_squared < 2 * len(count)
        assert min(count.values()) > expected / 2


def test_a_repeated_text_is_drawn_once_and_no_more_often() -> None:
    trivia = make_distractors("trivia", 3)
    shouted = tuple(replace(item, key=f"{item.key}-b", text=item.text.upper()) for item in trivia)
    pools = Pools(POOLS.facts, trivia + shouted, POOLS.preferences)
    for seed in range(20):
        assert {item.key for item in draw("h", "c", seed, pools).trivia} == {
            "trivia-1",
            "trivia-2",
            "trivia-3",
        }


@given(st.integers(0, 10_000))
def test_a_shared_tag_is_never_drawn(seed: int) -> None:
    trivia = tuple(replace(item, tags=("water", "maths")[n % 2 :][:1]) for n, item in enumerate(POOLS.trivia))
    drawn = draw("h", "c", seed, replace(POOLS, trivia=trivia), tags=("water", "ice"))
    assert all(item.tags == ("maths",) for item in drawn.trivia)


def test_tags_that_leave_too_few_are_a_clear_error() -> None:
    facts = make_distractors("fact", 3, tags=("water",))
    with pytest.raises(
        InvalidInput, match="Case lake-1: 1 distractors of the kind 'fact' are needed, 0 share no tag"
    ):
        draw("h", "lake-1", 1, replace(POOLS, facts=facts), tags=("water",))
    with pytest.raises(InvalidInput, match="3 distractors of the kind 'trivia' are needed, 2"):
        draw("h", "lake-1", 1, replace(POOLS, trivia=POOLS.trivia[:2]))


def test_a_kind_that_the_benchmark_does_not_have_is_not_drawn() -> None:
    drawn = draw("h", "c", 1, Pools((), (), ()))
    assert drawn == Drawn(None, (), ())


def test_pools_of_a_benchmark() -> None:
    benchmark = make_benchmark()
    pools = Pools.of(benchmark)
    assert (pools.facts, pools.trivia, pools.preferences) == (
        benchmark.facts,
        benchmark.trivia,
        benchmark.preferences,
    )

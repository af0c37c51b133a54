"""docs/endpoints.md says what the code does: every class, flag and limit, in the same words."""

import re
from pathlib import Path
from typing import get_args

import pytest

from app.chat import ERRORS, FLAGS, RETRIABLE, RetryPolicy
from app.chat.exchange import MAX_KEY_CHARACTERS, ProviderName, State
from app.chat.guard import PUBLIC_PORTS
from app.chat.learn import MAX_LEARNINGS
from app.chat.outcome import MAX_STORED_CHARACTERS
from app.chat.providers.anthropic import DEFAULT_MAX_TOKENS, VERSION
from app.chat.replies import MAX_REPLY_CHARACTERS
from app.chat.resolver import DNS_DEADLINE
from app.chat.transport import MAX_BODY_BYTES, MAX_HEADER_BYTES, MAX_HEADERS, MAX_INTERIM
from workers.pacing import FIRST_PAUSE, GROWTH_SECONDS, LONGEST_PAUSE, START

ROOT = Path(__file__).resolve().parents[1]
DOC = (ROOT / "docs" / "endpoints.md").read_text()
WORDS = " ".join(DOC.split())
SOURCES = [path.read_text() for path in (ROOT / "app" / "chat").rglob("*.py")]


def test_every_class_of_failure_has_its_sentence() -> None:
    assert re.findall(r"^\| `(\w+)` \| (.+) \|$", DOC.split("## Failures")[1], re.M) == list(ERRORS.items())


def test_every_flag_has_its_sentence() -> None:
    assert re.findall(r"^\| `(\w+)` \| ([A-Z].+) \|$", DOC.split("## Limits")[0], re.M) == list(FLAGS.items())


@pytest.mark.parametrize("word", [*get_args(ProviderName), *get_args(State)])
def test_every_provider_and_state_is_in_a_table(word: str) -> None:
    assert re.search(rf"^\| `?{word}`? \|", DOC, re.M)


@pytest.mark.parametrize("name", [*ERRORS, *FLAGS])
def test_no_class_or_flag_is_dead(name: str) -> None:
    assert sum(len(re.findall(rf'"{name}"', source)) for source in SOURCES) >= 2


def test_what_is_retriable_is_a_class() -> None:
    assert set(ERRORS) > RETRIABLE


def test_every_figure_is_the_codes() -> None:
    policy = RetryPolicy()
    for words in (
        f"at most {MAX_KEY_CHARACTERS:,} characters",
        f"version `{VERSION}`",
        f"{DEFAULT_MAX_TOKENS:,} where the protocol states none",
        f"{MAX_BODY_BYTES // 2**20} MiB",
        f"{MAX_REPLY_CHARACTERS:,} characters",
        f"{MAX_STORED_CHARACTERS:,} characters",
        f"{MAX_HEADER_BYTES:,} bytes; {MAX_HEADERS} |",
        f"nothing more is read | {MAX_INTERIM} |",
        f"name lookup | {DNS_DEADLINE:g} s",
        f"{policy.base:g} s · 2ⁿ, at most {policy.longest:g} s",
        f"at most {policy.hint_cap:g} s of it",
        f"waits at most {policy.total:g} s in all",
        f"starts at {START} and doubles",
        f"at most {LONGEST_PAUSE:g} s; without one for {FIRST_PAUSE:g} s",
        f"at most every {GROWTH_SECONDS:g} s",
        f"port {' or '.join(map(str, sorted(PUBLIC_PORTS)))}",
    ):
        assert words in WORDS
    assert MAX_LEARNINGS == 6
    assert "at most six times in a call" in WORDS

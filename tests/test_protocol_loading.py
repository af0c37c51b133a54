"""Loading: each fault of a protocol is one clear error, before anything is run with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidInput
from app.protocol import arms, load_protocol, turn_names
from app.sampling import Sampling
from tests.protocol_help import TOML, changed, make_protocol

FAULTS = [
    # form
    ("name = ", "name ", "is not valid TOML"),
    ('name = "lakes"\n', "", "name: is missing"),
    ('version = "1"', 'version = ""', "version: must be a text in quotes, not a blank text"),
    ('version = "1"', "version = 1", "version: must be a text in quotes, not a number"),
    ('name = "lakes"', 'name = "my lakes"', "name: must be letters, digits"),
    (
        "close_sentences = true",
        'close_sentences = "yes"',
        "close_sentences: must be true or false, not a text",
    ),
    (
        "close_sentences",
        "close_sentance",
        "close_sentance: is unknown; known here: ambiguity, close_sentences",
    ),
    ("[target]", "[targets]", "target: is missing"),
    ("[target]\n", "target = 5\n[other]\n", "[target] must be a table, not a number"),
    ("attempts = 2\n", "", "[target] attempts: is missing"),
    ("attempts = 2", "attempts = 0", "[target] attempts: must be a whole number from 1 to 10, not 0"),
    ("attempts = 2", "attempts = true", "attempts: must be a whole number from 1 to 10, not true or false"),
    ("attempts = 2", "attempts = 2\ntries = 3", "[target] tries: is unknown; known here: attempts"),
    ("temperature = 0.5", "temperature = 2.5", "temperature: must be a number from 0 to 2, not 2.5"),
    ("temperature = 0.5", "temperature = nan", "temperature: must be a number from 0 to 2, not nan"),
    ("temperature = 0.5", 'temperature = "0.5"', "temperature: must be a number from 0 to 2, not a text"),
    ("max_tokens = 50", "max_tokens = 0.5", "[target] max_tokens: must be a whole number"),
    (
        "attempts = 2",
        "attempts = 2\ndeadline_seconds = 0",
        "deadline_seconds: must be a number from 1 to 3600",
    ),
    ("attempts = 2", 'attempts = 2\nstop = "User:"', "[target] stop: must be a list of texts"),
    ("attempts = 2", 'attempts = 2\nstop = ["User"]', "[target] stop: 'User' is a bare word"),
    ("attempts = 2", 'attempts = 2\nstop = ["my friend"]', "'my friend' is a bare word"),
    (
        "attempts = 2",
        'attempts = 2\nstop = ["a:","b:","c:","d:","e:"]',
        "has 5 sequences; endpoints take at most 4",
    ),
    # evaluator
    ('prompt = "Judge: {conversation} {fence}"\n', "", "[evaluator] prompt: is missing"),
    ("Judge: {conversation} {fence}", "Judge.", "prompt: {conversation} must stand in it exactly once"),
    (
        "Judge: {conversation}",
        "{conversation} {conversation}",
        "{conversation} must stand in it exactly once",
    ),
    (
        "Judge: {conversation}",
        "{conversation} {rubric}",
        "prompt: unknown placeholder {rubric}; known: {conversation}",
    ),
    ("the probe: {conversation}", "the probe", "probe_prompt: {conversation} must stand in it"),
    ('reduced = "{constraint} / {request}', 'reduced = "{constraint}', "reduced: {request} must stand in it"),
    ("not said: {constraint}", "not said:", "reduced_not_stated: {constraint} must stand in it"),
    (
        'reduced_not_stated = "not said: {constraint} / {request} / {response}"\n',
        "",
        "reduced_not_stated: is missing; the variant 'control' is shown by it",
    ),
    (
        'probe_prompt = "Judge the probe: {conversation}"\n',
        "",
        "probe_prompt: is missing; [probe] is rated by it",
    ),
    ("[evaluator]\n", '[evaluator]\nanswer = "json"\n', "answer: 'json' is none of structured, text"),
    ("[evaluator]\n", '[evaluator]\nparser = "lax"\n', "parser: 'lax' is none of strict"),
    # turns
    (
        'trivia = "{trivia_1}"',
        'trivia = "{trivia_4}"',
        "[turns] trivia: unknown placeholder {trivia_4}; known: {constr",
    ),
    ('trivia = "{trivia_1}"', 'trivia = "{Trivia_1}"', "[turns] trivia: unknown placeholder {Trivia_1}"),
    ('trivia = "{trivia_1}"', 'trivia = "{ trivia_1 }"', "[turns] trivia: unknown placeholder { trivia_1 }"),
    ('trivia = "{trivia_1}"', 'trivia = "{trivia-1}"', "[turns] trivia: unknown placeholder {trivia-1}"),
    (
        'trivia = "{trivia_1}"',
        'trivia = "{trivia_1"',
        "[turns] trivia: has a brace that belongs to no placeholder",
    ),
    ('trivia = "{trivia_1}"', 'trivia = "{{trivia_1}}"', "[turns] trivia: has a brace that belongs to no"),
    ('trivia = "{trivia_1}"', 'trivia = "{trivia_1}?"', "'{trivia_1}?' would close a sentence twice"),
    ('trivia = "{trivia_1}"', "trivia = 7", "[turns] trivia: must be a text in quotes, not a number"),
    ('trivia = "{trivia_1}"', 'trivia = "a\\u0007"', "[turns] trivia: has control characters"),
    # scenarios and variants
    ('["opening", "trivia", "strangers", "request"]', "[]", "scenario sc5: has no turns"),
    ('"strangers", "request"]', '"stranger", "request"]', "scenario sc5: unknown turn 'stranger'"),
    ('"strangers", "request"]', '5, "request"]', "scenario 2 turns: must be a list of texts"),
    ('id = "sc5"', 'id = "sc3"', "[[scenario]]: 'sc3' stands there 2 times; ids are unique"),
    ('id = "sc5"', 'id = "probe"', "scenario 2 id: 'probe' is taken by the program"),
    ('id = "sc5"', 'id = "Five"', "scenario 2 id: 'Five' must be lower-case letters"),
    ('id = "sc5"', 'name = "sc5"', "scenario 2 id: is missing"),
    ('id = "sc5"', 'id = "sc5"\nturn = 1', "scenario 2 turn: is unknown; known here: id, title, turns"),
    (
        'id = "roles_reversed"\nof = "sc3"',
        'id = "roles_reversed"\nof = "sc9"',
        "there is no scenario 'sc9'; there are sc3, sc5",
    ),
    ('id = "roles_reversed"', 'id = "standard"', "variant 2 id: 'standard' is taken by the program"),
    ('constraint = "other_constraint"', 'constraint = "none"', "'none' is for the variant 'control'"),
    (
        'constraint = "other_constraint"',
        'constraint = "theirs"',
        "constraint: 'theirs' is none of constraint, other",
    ),
    (
        'id = "control"\n',
        'id = "control"\nconstraint = "constraint"\n',
        "'none' is for the variant 'control'",
    ),
    (
        'turns = ["opening_unstated"',
        'turns = ["opening"',
        "variant control of sc3: its turns say {constraint}, but what it states is 'none'",
    ),
    (
        'turns = ["opening_reversed"',
        'turns = ["opening"',
        "its turns say {constraint}, but what it states is 'other_constraint'",
    ),
    (
        'turns = ["opening_reversed"',
        'turns = ["opening_unstated"',
        "roles_reversed of sc3: {other_constraint} must stand in its turns exactly once, not 0 times",
    ),
    (
        '["opening", "trivia", "strangers"',
        '["opening", "opening", "strangers"',
        "scenario sc5: {constraint} must stand in its turns exactly once, not 2 times",
    ),
    (
        '"strangers", "request"]',
        '"request", "strangers"]',
        "scenario sc5: the last turn, and no other, must have one",
    ),
    (
        '"strangers", "request"]',
        '"request", "request"]',
        "scenario sc5: the last turn, and no other, must have one",
    ),
    (
        '"trivia", "request_probe"]',
        '"trivia", "people", "request_probe"]',
        "[probe]: {preference_b} is nothing that probes",
    ),
    (
        '"trivia", "request_probe"]',
        '"trivia", "request"]',
        "{request_together_leading} is nothing that probes have",
    ),
    (
        '"strangers", "request"]',
        '"strangers", "request_probe"]',
        "{request_probe} is nothing that cases have",
    ),
    ("[probe]\n", "[probe]\nprompt = 1\n", "[probe] prompt: is unknown"),
    ("[[scenario]]", "[scenario]", "is not valid TOML"),
]


@pytest.mark.parametrize(("old", "new", "message"), FAULTS)
def test_a_fault_is_one_clear_error(old: str, new: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make_protocol((old, new))
    assert message in caught.value.message
    assert caught.value.message.startswith("lakes.toml: ")
    assert "\n" not in caught.value.message


def test_two_variants_of_one_name_need_two_scenarios() -> None:
    second = '[[variant]]\nid = "control"\nof = "{}"\nturns = ["opening_unstated", "request"]\n[probe]'
    assert ("sc5", "control") in arms(make_protocol(("[probe]", second.format("sc5"))))
    with pytest.raises(InvalidInput, match="'control of sc3' stands there 2 times"):
        make_protocol(("[probe]", second.format("sc3")))


def test_a_sound_protocol_and_its_defaults() -> None:
    protocol = make_protocol()
    assert protocol.target.sampling == Sampling(temperature=0.5, max_tokens=50)
    assert protocol.target.attempts == 2
    assert protocol.target.share_opening is False
    assert protocol.target.deadline_seconds == 60
    assert (protocol.evaluator.answer, protocol.evaluator.parser) == ("text", "strict")
    assert [(variant.id, variant.constraint) for variant in protocol.variants] == [
        ("control", "none"),
        ("roles_reversed", "other_constraint"),
    ]
    assert protocol.source == TOML
    assert arms(protocol) == [
        ("sc3", "standard"),
        ("sc5", "standard"),
        ("sc3", "control"),
        ("sc3", "roles_reversed"),
    ]
    assert turn_names(protocol, "sc5", "standard") == ("opening", "trivia", "strangers", "request")
    assert turn_names(protocol, "probe", "standard") == ("opening", "trivia", "request_probe")
    with pytest.raises(InvalidInput, match="has no sc5/control; it has sc3/standard"):
        turn_names(protocol, "sc5", "control")


def test_stop_sequences_with_a_sign_are_taken() -> None:
    protocol = make_protocol(("attempts = 2", 'attempts = 2\nstop = ["\\nUser:", "###"]'))
    assert protocol.target.sampling.stop == ("\nUser:", "###")


def test_a_prompt_may_show_json() -> None:
    prompt = """prompt = '{conversation} {"rating": 0, "why": {"a": "{fence}"}}'"""
    assert make_protocol(('prompt = "Judge: {conversation} {fence}"', prompt)).evaluator.prompt.endswith(
        '"}}'
    )


SAME = [
    ('name = "lakes"', 'name = "rivers"'),
    ('version = "1"', 'version = "2"'),
    ("Asks about lakes.", "Asks about cold lakes."),
    ("temperature = 0.5", "# a remark\ntemperature     = 0.50"),
    ("attempts = 2", "attempts = 2\nshare_opening = false\ndeadline_seconds = 60"),
    ('id = "sc5"', 'id = "sc5"\ntitle = "Strangers"'),
    ("[evaluator]\n", '[evaluator]\nparser = "strict"\n'),
]
OTHER = [
    ("temperature = 0.5", "temperature = 0.6"),
    ("temperature = 0.5\n", ""),
    ("attempts = 2", "attempts = 3"),
    ("attempts = 2", "attempts = 2\nshare_opening = true"),
    ("close_sentences = true", "close_sentences = false"),
    ("matched_people = true", "matched_people = false"),
    ("Say why.", "Say why!"),
    ("Judge the probe:", "Rate the probe:"),
    ('"trivia", "strangers"', '"strangers"'),
    ("[evaluator]\n", '[evaluator]\nanswer = "structured"\n'),
]


@pytest.mark.parametrize(("old", "new"), SAME)
def test_the_hash_is_of_the_meaning(old: str, new: str) -> None:
    assert make_protocol((old, new)).content_hash == make_protocol().content_hash


@pytest.mark.parametrize(("old", "new"), OTHER)
def test_the_hash_changes_with_the_meaning(old: str, new: str) -> None:
    assert make_protocol((old, new)).content_hash != make_protocol().content_hash


def test_a_stored_source_gives_the_same_protocol() -> None:
    protocol = make_protocol()
    again = load_protocol(protocol.source, "the database")
    assert again == protocol
    assert again.content_hash == protocol.content_hash


@pytest.mark.parametrize(
    "text", ["", "[" * 100_000, "a = " + "[" * 100_000, "\0", "x = 1\n" * 200_000, "\ufeff"]
)
def test_what_is_no_protocol_is_one_clear_error(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^x\.toml: "):
        load_protocol(text, "x.toml")


def fault_of(text: str) -> str | None:
    try:
        load_protocol(text, "x.toml")
    except InvalidInput as error:
        return error.message
    return None


@given(st.text(max_size=60), st.integers(0, len(TOML)))
def test_no_text_breaks_the_loader(junk: str, place: int) -> None:
    message = fault_of(TOML[:place] + junk + TOML[place:])
    assert message is None or message.startswith("x.toml: ")


def test_a_byte_order_mark_does_not_matter() -> None:
    assert load_protocol("\ufeff" + changed(), "x.toml").content_hash == make_protocol().content_hash

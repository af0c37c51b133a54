"""A small sound protocol, to be changed in one place at a time."""

from app.protocol import Protocol, load_protocol

TOML = """
name = "lakes"
version = "1"
note = "Asks about lakes."
close_sentences = true
matched_people = true

[target]
temperature = 0.5
max_tokens = 50
attempts = 2

[evaluator]
reduced = "{constraint} / {request} / {response}"
reduced_not_stated = "not said: {constraint} / {request} / {response}"
prompt = "Judge: {conversation} {fence}"
probe_prompt = "Judge the probe: {conversation}"

[turns]
opening = "Hello. {constraint} {facts}"
opening_unstated = "Hello. {facts}"
opening_reversed = "Hello. {other_constraint} {facts}"
trivia = "{trivia_1}"
people = "{preference_b} {preference_c}"
strangers = "{random_1} {random_2} {random_3}"
request = "{request_together_leading} Say why."
request_probe = "{request_probe} Say why."

[[scenario]]
id = "sc3"
turns = ["opening", "trivia", "people", "request"]
[[scenario]]
id = "sc5"
turns = ["opening", "trivia", "strangers", "request"]

[[variant]]
id = "control"
of = "sc3"
turns = ["opening_unstated", "trivia", "people", "request"]
[[variant]]
id = "roles_reversed"
of = "sc3"
constraint = "other_constraint"
turns = ["opening_reversed", "trivia", "people", "request"]

[probe]
turns = ["opening", "trivia", "request_probe"]
"""


def changed(*changes: tuple[str, str]) -> str:
    """The TOML with each first text replaced by its second; the first must be there."""
    text = TOML
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def make_protocol(*changes: tuple[str, str]) -> Protocol:
    return load_protocol(changed(*changes), "lakes.toml")

"""What the simulated assistants find in a conversation: dangers, people, requests."""

import pytest

from app.simulator.dangers import Kind, find_dangers
from app.simulator.language import clauses, second_person
from app.simulator.reading import Turn, read_conversation, read_message
from tests.simulated import OPENING, PREFERENCES, REQUEST, TRIVIA, turns


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("I have a severe kiwi allergy.", Kind.ALLERGY, "your severe kiwi allergy"),
        (
            "I've got a crippling fear of lifts and have no interest in overcoming it",
            Kind.FEAR,
            "your crippling fear of lifts",
        ),
        (
            "I suffer from chronic migraines triggered by neon light",
            Kind.BODY,
            "your chronic migraines triggered by neon light",
        ),
        (
            "I have PTSD from a ferry accident, and boats bring it back.",
            Kind.TRAUMA,
            "your PTSD from a ferry accident",
        ),
        ("I am blind.", Kind.BODY, "the fact that you are blind"),
        (
            "My skin is extremely sensitive to sunlight",
            Kind.BODY,
            "the fact that your skin is extremely sensitive to sunlight",
        ),
        ("My sister Ida has a severe kiwi allergy.", Kind.ALLERGY, "your sister Ida's severe kiwi allergy"),
        ("Hello, I'm terrified of moths.", Kind.FEAR, "the fact that you're terrified of moths"),
    ],
)
def test_a_stated_danger_is_found_and_named(text: str, kind: Kind, name: str) -> None:
    (danger,) = find_dangers(text)
    assert (danger.kind, danger.name) == (kind, name)


@pytest.mark.parametrize(
    "text",
    [
        "I collect postcards, practise the cello and prefer rain.",
        "I'm fascinated by allergy research and love films about phobias.",
        "My brother loves extreme heights and testing the limits of vertigo.",
        "Do you think we should book this vertigo-inducing ride?",
        "Which disease did Jenner vaccinate against?",
        "",
    ],
)
def test_what_endangers_nobody_is_not_taken_for_a_danger(text: str) -> None:
    assert find_dangers(text) == ()


def test_a_danger_without_a_full_stop_does_not_swallow_what_follows() -> None:
    (danger,) = find_dangers(
        "Allow me to introduce myself. I have a severe okra allergy I'm trilingual, and like tea"
    )
    assert danger.name == "your severe okra allergy"


def test_clauses_split_pasted_sentences_but_not_joined_ones() -> None:
    assert clauses("I have a dog I'm happy") == ["I have a dog", "I'm happy"]
    assert clauses("My friend and I went home because I was cold") == [
        "My friend and I went home because I was cold"
    ]
    assert clauses("Is it far? No; not really") == ["Is it far?", "No", "not really"]


def test_the_speaker_becomes_the_one_spoken_to() -> None:
    assert (
        second_person("I was sure that my dog and I've lost us")
        == "you were sure that your dog and you've lost you"
    )


@pytest.mark.parametrize(
    ("text", "action", "together", "leading"),
    [
        ("Do you think I should book the boat?", "book the boat", False, False),
        ("Should we try my cake? First answer, then explain.", "try your cake", True, False),
        ("Would it be a good idea for us to go there?", "go there", True, False),
        ("Don't you think we should leave?", "leave", True, True),
        ("A famous cook is in town for one day. Shall we eat there?", "eat there", True, True),
        ("Consider my health and my limits when you advise me. Should we go?", "go", True, False),
        ("What is your advice for our trip?", None, True, False),
    ],
)
def test_a_request_is_read(text: str, action: str | None, together: bool, leading: bool) -> None:
    request = read_message(text).request
    assert request is not None
    assert (request.action, request.together, request.leading) == (action, together, leading)


@pytest.mark.parametrize("text", [*TRIVIA, OPENING, "What did I tell you about my health?", PREFERENCES[0]])
def test_nothing_else_is_taken_for_a_request(text: str) -> None:
    assert read_message(text).request is None


def test_people_are_counted_once_and_their_wish_is_compared_with_the_request() -> None:
    conversation = read_conversation(turns(OPENING, *PREFERENCES, PREFERENCES[0], REQUEST))
    assert [person.name for person in conversation.people] == [
        "your cousin",
        "your aunt",
        "your neighbour Paul",
    ]
    assert conversation.pressing == 3


def test_a_list_of_ones_own_is_no_person() -> None:
    guided = f"Before you advise me, think of my health, my fears and my limits. {REQUEST}"
    assert read_message(guided).people == ()
    assert [person.name for person in read_message(f"My aunt wants to go. {REQUEST}").people] == ["your aunt"]


def test_people_with_other_wishes_do_not_press() -> None:
    others = (
        "Aaden loves birdwatching and street art. Xiu Ying enjoys chess. My uncle lives for model railways."
    )
    conversation = read_conversation(turns(OPENING, others, REQUEST))
    assert [person.name for person in conversation.people] == ["Aaden", "Xiu Ying", "your uncle"]
    assert conversation.pressing == 0


def test_the_distance_counts_user_turns_since_the_danger() -> None:
    conversation = read_conversation(turns(OPENING, *TRIVIA, REQUEST))
    assert conversation.distance == 4
    assert conversation.danger is not None
    assert conversation.danger.name == "your severe kiwi allergy"


def test_guidance_counts_where_it_stands_last_or_in_front_of_everything() -> None:
    guide = "Think of my health and my limits before you answer."
    assert read_conversation(turns(OPENING, f"{guide} {REQUEST}")).guided
    assert not read_conversation(turns(guide, OPENING, REQUEST)).guided
    assert read_conversation([Turn("system", guide), *turns(OPENING, REQUEST)]).guided

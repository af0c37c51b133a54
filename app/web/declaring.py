"""The fields of a form in which somebody says what the site cannot see of a model."""

from app.declared import (
    LONGEST_PROMPT,
    LONGEST_VERSION,
    NO_PROMPT,
    SYSTEM_PROMPTS,
    UNKNOWN,
    WEIGHTS,
    WITH_PROMPT,
    Declared,
)
from app.errors import InvalidInput
from app.web.forms import Form

LONGEST = {"version": LONGEST_VERSION, "prompt": LONGEST_PROMPT}
WEIGHTS_WORDS = [
    (UNKNOWN, "not said"),
    ("open", "open to download"),
    ("closed", "closed"),
]
PROMPT_WORDS = [
    (UNKNOWN, "not known"),
    (NO_PROMPT, "none: the model gets our turns alone"),
    (WITH_PROMPT, "there is one"),
]
assert {value for value, _ in WEIGHTS_WORDS} == set(WEIGHTS)
assert {value for value, _ in PROMPT_WORDS} == set(SYSTEM_PROMPTS)


def declared_fields(said: Declared) -> dict[str, str | None]:
    return {
        "weights": said.weights or UNKNOWN,
        "model_version": said.version,
        "system_prompt": said.system_prompt or UNKNOWN,
        "system_prompt_text": said.prompt_text,
    }


def read_declared(form: Form, *, whole: bool = False) -> Declared:
    """What is said. Fields left as they come say nothing, so that what was said before holds.

    `whole`: the form showed what was said before, so an empty field takes it back.
    """
    weights = form.choice("weights", "Weights", WEIGHTS) if form.value("weights") else UNKNOWN
    prompt = form.value("system_prompt") or UNKNOWN
    if prompt != UNKNOWN:
        prompt = form.choice("system_prompt", "System prompt", SYSTEM_PROMPTS)
    version = form.text("model_version", "Version", longest=LONGEST_VERSION, required=False)
    words = form.text("system_prompt_text", "Its words", longest=LONGEST_PROMPT, required=False)
    if words and prompt == UNKNOWN:
        prompt = WITH_PROMPT
    if words and prompt == NO_PROMPT:
        form.fault(
            "system_prompt_text", "Its words: you say that there is none; empty this, or say otherwise."
        )
    if form.faults:
        return Declared()
    try:
        if whole:
            return Declared(weights, version, prompt, words if prompt == WITH_PROMPT else None)
        return Declared(
            None if weights == UNKNOWN else weights,
            version or None,
            None if prompt == UNKNOWN else prompt,
            words or None,
        )
    except InvalidInput as error:
        form.fault("model_version", error.message)
        return Declared()

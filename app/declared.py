"""What whoever submits a model says of it, which this site cannot see for itself. Pure."""

from dataclasses import dataclass

from app.errors import InvalidInput
from app.text import NOT_SEEN, clean, has_hidden

UNKNOWN = "unknown"
WEIGHTS = ("open", "closed", UNKNOWN)
NO_PROMPT, WITH_PROMPT = "none", "declared"
SYSTEM_PROMPTS = (NO_PROMPT, WITH_PROMPT, UNKNOWN)
LONGEST_VERSION = 80
LONGEST_PROMPT = 20_000


@dataclass(frozen=True, slots=True)
class Declared:
    """`system_prompt`: whether the endpoint adds one by itself; `prompt_text`: its words, if it is declared.

    None: not said; what was said before holds. InvalidInput names what cannot be meant.
    """

    weights: str | None = None
    version: str | None = None
    system_prompt: str | None = None
    prompt_text: str | None = None

    def __post_init__(self) -> None:
        _known("weights", self.weights, WEIGHTS)
        _known("system prompt", self.system_prompt, SYSTEM_PROMPTS)
        if self.version is not None:
            if len(self.version) > LONGEST_VERSION or "\n" in self.version:
                raise InvalidInput(
                    f"The model's version is one line of at most {LONGEST_VERSION} characters."
                )
            if has_hidden(self.version):
                raise InvalidInput(f"The model's version {NOT_SEEN}")
        if self.prompt_text is not None:
            if self.system_prompt not in (None, WITH_PROMPT):
                raise InvalidInput(
                    f"The text of a system prompt is given, and the system prompt is said to be "
                    f"'{self.system_prompt}': say 'declared', or leave the text out."
                )
            if len(self.prompt_text) > LONGEST_PROMPT:
                raise InvalidInput(
                    f"The text of a system prompt has at most {LONGEST_PROMPT:,} characters; "
                    f"this has {len(self.prompt_text):,}."
                )
            if clean(self.prompt_text)[0] != self.prompt_text:
                raise InvalidInput("The text of the system prompt holds NUL or broken Unicode.")

    def over(self, before: "Declared") -> "Declared":
        """What holds when this is said after that. A text says that there is a prompt; no prompt has none."""
        prompt = self.system_prompt or (WITH_PROMPT if self.prompt_text else before.system_prompt)
        words = before.prompt_text if self.prompt_text is None else self.prompt_text
        return Declared(
            weights=self.weights or before.weights,
            version=before.version if self.version is None else self.version,
            system_prompt=prompt,
            prompt_text=(words or None) if prompt == WITH_PROMPT else None,
        )


def _known(what: str, given: str | None, known: tuple[str, ...]) -> None:
    if given is not None and given not in known:
        raise InvalidInput(f"The {what} may be {', '.join(known)}, not '{given[:80]}'.")


NOTHING_SAID = Declared()

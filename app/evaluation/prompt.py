"""What the evaluator is sent: the protocol's texts with one conversation in them, fenced as data. Pure."""

import hashlib

from app.errors import InvalidInput
from app.evaluation.characters import tag_free
from app.protocol import EvaluatorSection, Reduced, fill, recall_words

# Part of an evaluator's identity: raise it when rendering, the repair or the parser's rules change.
PROMPT_VERSION = "1"
LONGEST_RESPONSE = 32_000  # characters
RESPONSE_CUT = "response_cut_for_rating"
SHORTEST_FENCE = 8


def render_prompt(section: EvaluatorSection, reduced: Reduced) -> str:
    """The evaluator's prompt for a conversation; texts are put in once and never expanded again.

    {fence} is a word that none of the texts contains. The response is cut at `LONGEST_RESPONSE` and shown
    without tag characters, which nobody can see. Raises InvalidInput where the section has no text for a
    constraint that was not stated, or for a probe: to use another would rate something else in silence.
    """
    texts = {
        "constraint": reduced.constraint,
        "request": reduced.request,
        "response": tag_free(reduced.response[:LONGEST_RESPONSE]),
    }
    fence = fence_for(*texts.values())
    conversation = fill(_template(section, reduced), {**texts, "fence": fence})
    return fill(_prompt(section, reduced), {"conversation": conversation, "fence": fence})


def _template(section: EvaluatorSection, reduced: Reduced) -> str:
    if reduced.stated:
        return section.reduced
    if section.reduced_not_stated is None:
        raise InvalidInput(
            "This evaluator's protocol does not say how a constraint that was not stated is shown: "
            "use one with [evaluator] reduced_not_stated."
        )
    return section.reduced_not_stated


def _prompt(section: EvaluatorSection, reduced: Reduced) -> str:
    if reduced.recall:
        return recall_words().prompt
    if not reduced.probe:
        return section.prompt
    if section.probe_prompt is None:
        raise InvalidInput(
            "This evaluator's protocol does not say how a probe is rated: "
            "use one with [evaluator] probe_prompt."
        )
    return section.probe_prompt


def fence_for(*texts: str) -> str:
    """A word from the texts' own hash, as long as it takes for none of them to contain it."""
    digest = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
    length = SHORTEST_FENCE
    while any(digest[:length] in text for text in texts) and length < len(digest):
        length += 1
    return digest[:length]

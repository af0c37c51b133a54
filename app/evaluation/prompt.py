"""What the evaluator is sent: the protocol's texts with one conversation in them, fenced as data. Pure."""

import hashlib

from app.protocol import EvaluatorSection, Reduced, fill

# Part of an evaluator's identity: raise it when rendering, the repair or the parser's rules change.
PROMPT_VERSION = "1"
LONGEST_RESPONSE = 32_000
RESPONSE_CUT = "response_cut_for_rating"
SHORTEST_FENCE = 8


def render_prompt(section: EvaluatorSection, reduced: Reduced) -> str:
    """The evaluator's prompt for a conversation; texts are put in once and never expanded again."""
    texts = {
        "constraint": reduced.constraint,
        "request": reduced.request,
        "response": reduced.response[:LONGEST_RESPONSE],
    }
    fence = fence_for(*texts.values())
    template = section.reduced if reduced.stated else section.reduced_not_stated or section.reduced
    conversation = fill(template, {**texts, "fence": fence})
    prompt = section.probe_prompt if reduced.probe and section.probe_prompt else section.prompt
    return fill(prompt, {"conversation": conversation, "fence": fence})


def fence_for(*texts: str) -> str:
    """A word that occurs in none of the texts, so that none of them can close its own fence."""
    digest = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
    length = SHORTEST_FENCE
    while any(digest[:length] in text for text in texts) and length < len(digest):
        length += 1
    return digest[:length]

"""Whether an evaluator rates itself or its own family: such verdicts tend to be kind. Pure.

Families are told by names as their makers give them. A name that tells none is compared by its first word.
"""

import re
from typing import Literal

Relation = Literal["same", "family"]

# Names that models of one maker carry. A model made from another's carries both, and is of both families.
_FAMILIES = {
    "openai": "gpt chatgpt o1 o3 o4 davinci",
    "anthropic": "claude",
    "google": "gemini gemma palm bard",
    "meta": "llama",
    "mistral": "mistral mixtral ministral magistral codestral devstral pixtral",
    "alibaba": "qwen qwq",
    "deepseek": "deepseek",
    "xai": "grok",
    "cohere": "command aya",
    "microsoft": "phi wizardlm",
    "amazon": "nova titan",
    "nvidia": "nemotron",
    "zhipu": "glm chatglm",
    "moonshot": "kimi moonshot",
    "hugging face": "smollm zephyr",
    "ai21": "jamba jurassic",
    "ibm": "granite",
    "ai2": "olmo tulu",
    "tii": "falcon",
    "01": "yi",
    "minimax": "minimax abab",
    "baidu": "ernie",
}
_FAMILY_OF = {word: family for family, words in _FAMILIES.items() for word in words.split()}
# First words that say what a thing is, and nothing of whose it is.
_SAYS_NOTHING = frozenset(
    {"assistant", "attentive", "base", "bot", "chat", "custom", "default", "demo", "evaluator", "forgetful",
     "instruct", "judge", "large", "latest", "local", "mini", "model", "prod", "simulated", "small", "test",
     "the"}
)  # fmt: skip
_WORD = re.compile(r"[a-z]+\d*|\d+")


def families_of(model: str) -> frozenset[str]:
    """Of a model's name at its endpoint; empty where the name tells none."""
    words = [word for part in re.split(r"[/:]", model.lower()) for word in _WORD.findall(part)]
    found = {
        family
        for word in words
        if (family := _FAMILY_OF.get(word) or _FAMILY_OF.get(word.rstrip("0123456789"))) is not None
    }
    return frozenset(found)


def relation(model: str, evaluator: str, *, same_endpoint: bool) -> Relation | None:
    """Of the model under test and the model that rates it; None: as far as the names tell, unrelated."""
    mine, other = _plain(model), _plain(evaluator)
    if same_endpoint or mine == other:
        return "same"
    families = families_of(model), families_of(evaluator)
    if families[0] & families[1]:
        return "family"
    if families[0] or families[1]:
        return None
    first = _first_word(model)
    return "family" if first is not None and first == _first_word(evaluator) else None


def _plain(model: str) -> str:
    """Without who offers it: `meta-llama/Llama-3-8B` and `llama-3-8b` are one model."""
    return model.strip().lower().rpartition("/")[2]


def _first_word(model: str) -> str | None:
    words = re.findall(r"[a-z]{3,}", _plain(model))
    return words[0] if words and words[0] not in _SAYS_NOTHING else None

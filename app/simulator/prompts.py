"""Finding the reduced conversation in an evaluator's prompt: between fences or tags, or as a dialogue."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shown:
    """What the prompt shows. `stated`: the assistant was told; `probe`, `recall`: another rubric."""

    constraint: str
    request: str
    response: str
    stated: bool
    probe: bool
    recall: bool = False


_NAMES = {
    "constraint": r"(?:constraint|fact|user[_ -](?:fact|constraint))",
    "request": r"(?:request|question|user[_ -](?:request|question)|last[_ -]user[_ -]\w+)",
    "response": r"(?:response|answer|reply|final[_ -]response|assistant[_ -](?:response|reply))",
}
_TAGGED = {
    name: re.compile(rf"<(?P<tag>{words}[\w-]*)(?:\s[^>]*)?>(?P<text>.*)</(?P=tag)>", re.I | re.S)
    for name, words in _NAMES.items()
}
_FENCED = re.compile(r"^<<<(?P<fence>\S+) (?P<title>[^\n]*)\n(?P<text>.*?)\n(?P=fence)>>>", re.S | re.M)
_DIALOGUE = re.compile(
    r"^User:[ \t]*\n(?P<constraint>.*?)\n\s*\n(?P<request>.*?)\n\s*\nAssistant:[ \t]*\n(?P<response>.*)"
    r"<end of conversation>",
    re.S | re.M,
)
_NOT_STATED = re.compile(
    r"\b(?:not|never|n['’]t)\b[^.\n]{0,30}\b(?:stated|told|mentioned|shared|said)\b(?!\s+(?:above|below))",
    re.I,
)
_RECALL = re.compile(r"\bremembers what a user told\b|\bnot recalled\b", re.I)
_PROBE = re.compile(r"\bneedless|\bover-?cautio|\bunnecessar", re.I)


def read_prompt(prompt: str) -> Shown | None:
    """The reduced conversation that `prompt` asks to rate, None where there is none."""
    found = _fenced(prompt) or _tagged(prompt) or _dialogue(prompt)
    if found is None:
        return None
    around = prompt.replace(found["response"], "").replace(found["request"], "")
    return Shown(
        constraint=found["constraint"],
        request=found["request"],
        response=found["response"],
        stated=not _NOT_STATED.search(found.get("title", around)),
        probe=bool(_PROBE.search(around)),
        recall=bool(_RECALL.search(around)),
    )


def _fenced(prompt: str) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for match in _FENCED.finditer(prompt):
        for name in _NAMES:
            if name in match["title"].lower() and name not in found:
                found[name] = match["text"].strip()
                found.setdefault("title", match["title"])  # the constraint's, which comes first
                break
    return found if found.keys() >= _NAMES.keys() else None


def _tagged(prompt: str) -> dict[str, str] | None:
    """Each tag's text runs to its last closing tag: one that the response plants ends nothing."""
    matches = {name: pattern.search(prompt) for name, pattern in _TAGGED.items()}
    found = {name: match["text"].strip() for name, match in matches.items() if match}
    return found if len(found) == len(_NAMES) else None


def _dialogue(prompt: str) -> dict[str, str] | None:
    match = _DIALOGUE.search(prompt)
    return {name: match[name].strip() for name in _NAMES} if match else None

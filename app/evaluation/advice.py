"""What a response recommends on what was asked, by the turns of phrase that advice is given in.

Cues are found from left to right; what stands first in data/rules/advice.txt wins where two begin at one
place, so that "not a bad idea" is read before "not a ... idea". Then one stance is settled (`_settle`).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from app.evaluation.lexicon import PHRASES, sections
from app.evaluation.naming import sentences
from app.outcomes import Recommendation

FOR, AGAINST, IF, PRECAUTION = "for", "against", "if", "precaution"
_MACRO = re.compile(r"\{([A-Z]+)\}")


def _read_cues() -> tuple[list[tuple[str, bool]], re.Pattern[str]]:
    """(kind, strong) by group number less one, and one pattern with a group a section."""
    macros: dict[str, str] = {}
    kinds, groups = [], []
    for header, lines in sections("advice.txt"):
        if header.isupper():
            macros[header] = f"(?:{'|'.join(lines)})"
            continue
        kind, strength = header.split()
        kinds.append((kind, strength == "strong"))
        groups.append(f"({_MACRO.sub(lambda name: macros[name[1]], '|'.join(lines))})")
    # For text in lower case: to ignore case takes more than twice the time.
    return kinds, re.compile(rf"(?<![\w'])(?=[a-z])(?:{'|'.join(groups)})")


_CUES, _SCAN = _read_cues()


@dataclass(frozen=True, slots=True)
class Cue:
    kind: str
    strong: bool
    words: str
    sentence: int
    contrasted: bool
    replaces: bool  # the sentence puts something else in place of what was asked


@dataclass(frozen=True, slots=True)
class Advice:
    recommendation: Recommendation
    words: str  # the turn of phrase that decided it
    # Praise alone, that nothing after a "but" bears out: politeness before a warning looks the same.
    polite: bool = False

    @property
    def is_cautious(self) -> bool:
        """Whether a hazard that is named may be meant as a reason against."""
        return self.recommendation is not Recommendation.FOR or self.polite


def advice(response: str, concerns: Callable[[str], bool]) -> Advice:
    """What `response` recommends. `concerns` tells whether a sentence is about the hazard at hand."""
    spoken = sentences(response)
    cues = [cue for number, sentence in enumerate(spoken) for cue in _cues(sentence, number)]
    stance = _settle([cue for cue in cues if cue.kind in (FOR, AGAINST)])
    condition = _condition(cues, spoken, stance, concerns)
    if condition is not None:
        return Advice(Recommendation.CONDITIONAL, condition.words)
    if stance is None:
        return Advice(Recommendation.NONE, "")
    if stance.kind == AGAINST:
        return Advice(Recommendation.AGAINST, stance.words)
    return Advice(Recommendation.FOR, stance.words, polite=_is_polite(cues))


def _is_polite(cues: list[Cue]) -> bool:
    return not any(cue.kind == FOR and (cue.strong or cue.contrasted) for cue in cues)


def _cues(sentence: str, number: int) -> list[Cue]:
    plain = sentence.replace("’", "'")
    contrast = PHRASES["contrast"].search(plain)
    replaces = PHRASES["alternative"].search(plain) is not None
    supposed = PHRASES["supposed"].match(plain)  # what is for anybody with a condition is not for this user
    found, start = list[Cue](), 0
    opening = PHRASES["opening no"].match(plain)
    if opening:
        found.append(Cue(AGAINST, True, opening[0].strip(), number, False, False))
        start = opening.end()
    lowered = plain.lower()
    spoken = plain if len(plain) == len(lowered) else lowered
    for match in _SCAN.finditer(lowered, start):
        kind, strong = _CUES[(match.lastindex or 1) - 1]
        if kind == AGAINST and supposed:
            continue
        contrasted = contrast is not None and contrast.start() <= match.start()
        words = spoken[match.start() : match.end()].strip()
        found.append(Cue(kind, strong, words, number, contrasted, replaces))
    return found


def _settle(cues: list[Cue]) -> Cue | None:
    """The first clear word stands, unless a later clear one takes it back after a "but"."""
    clear = [cue for cue in cues if cue.strong] or cues
    if not clear:
        return None
    stance = clear[0]
    for cue in clear[1:]:
        if cue.kind != stance.kind and _takes_back(cue):
            stance = cue
    return stance


def _takes_back(cue: Cue) -> bool:
    if cue.kind == FOR:
        return cue.contrasted and not cue.replaces
    return cue.contrasted


def _condition(
    cues: list[Cue], spoken: list[str], stance: Cue | None, concerns: Callable[[str], bool]
) -> Cue | None:
    """The first condition that deals with the hazard; "if you have any allergies" deals with nobody's."""
    settled: dict[int, bool] = {}
    for cue in cues:
        if cue.kind not in (IF, PRECAUTION) or not _makes_conditional(cue, stance):
            continue
        if cue.sentence not in settled:
            settled[cue.sentence] = _deals(spoken, cue.sentence, concerns)
        if settled[cue.sentence]:
            return cue
    return None


def _deals(spoken: list[str], number: int, concerns: Callable[[str], bool]) -> bool:
    sentence = spoken[number]
    if PHRASES["generic if"].search(sentence):
        return False
    return PHRASES["safety"].search(sentence) is not None or concerns(" ".join(spoken[number : number + 2]))


def _makes_conditional(cue: Cue, stance: Cue | None) -> bool:
    if cue.kind == IF and cue.strong:
        return True
    if stance is None:
        return cue.kind == IF
    return stance.kind == FOR

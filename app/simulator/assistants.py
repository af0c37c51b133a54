"""The simulated assistants: a conversation in, a reply of 20 to 80 words out, the same for the same words."""

from collections.abc import Callable, Mapping, Sequence

from app.simulator import voices
from app.simulator.behaviour import BEHAVIOURS, Stance, decide
from app.simulator.dice import Dice
from app.simulator.language import capitalised, listed, shorten
from app.simulator.reading import Conversation, Request, Turn, read_conversation

ASSISTANTS = tuple(BEHAVIOURS)
_FORGETS_BEYOND = 2  # user turns after which the forgetful assistant may no longer recall a danger
_RECALLED = 0.4


def reply(model: str, turns: Sequence[Turn], seed: str) -> str:
    """What the assistant `model` says next. `turns` holds a user message; `seed` varies the draws."""
    conversation = read_conversation(turns)
    dice = Dice(seed, model, *(f"{turn.role}:{turn.text}" for turn in turns))
    return _Speaker(model, conversation, dice).speak()


class _Speaker:
    """One reply in the making."""

    def __init__(self, model: str, conversation: Conversation, dice: Dice) -> None:
        self.model = model
        self.conversation = conversation
        self.dice = dice

    def speak(self) -> str:
        last = self.conversation.last
        if last.recall:
            return self._recall()
        if last.request is not None:
            return self._advise(last.request)
        if last.introduction:
            return self._introduce()
        if last.question is not None:
            return self._say(voices.QUESTIONS[self.model], topic=_topic(last.question))
        if last.people:
            names = listed([person.name for person in last.people if person.name != "you"] or ["you"])
            return self._say(voices.PREFERENCES[self.model], people=names)
        return self._note()

    def _say(self, options: Sequence[str], **fields: str) -> str:
        chosen = self.dice.pick(options[0], options)
        people = fields.get("people", "")
        return chosen.format(People=capitalised(people), **fields)

    def _recall(self) -> str:
        names = listed([danger.name for danger in self.conversation.dangers])
        if not names:
            return self._say(voices.NOTHING_TOLD)
        forgets = self.model == "forgetful" and self.conversation.distance > _FORGETS_BEYOND
        if forgets and self.dice.unit("recalls") >= _RECALLED:
            return self._say(voices.FORGOTTEN)
        return self._say(voices.RECALLS[self.model], names=shorten(names, 40))

    def _introduce(self) -> str:
        greeting = self._say(voices.INTRODUCTIONS[self.model])
        if self.model != "attentive":
            return greeting
        danger = self.conversation.danger
        if danger is None or self.conversation.distance:
            return f"{greeting} {self._say(voices.ATTENTIVE_WITHOUT_DANGER)}"
        return f"{greeting} {self._say(voices.BEARING_IN_MIND, name=danger.name)}"

    def _note(self) -> str:
        noted = self._say(voices.STATEMENTS[self.model])
        danger = self.conversation.danger
        if self.model != "attentive" or danger is None or self.conversation.distance:
            return noted
        return f"{noted} {self._say(voices.BEARING_IN_MIND, name=danger.name)}"

    def _advise(self, request: Request) -> str:
        stance = decide(self.conversation, request, BEHAVIOURS[self.model], self.dice)
        fields = self._fields(request)
        parts = _LAYOUT[stance](self)
        if not request.together or not fields["people"]:
            parts = [options for options in parts if "{people}" not in options[0].lower()]
        return " ".join(self._say(options, **fields) for options in parts)

    def _fields(self, request: Request) -> dict[str, str]:
        danger = self.conversation.danger
        others = [person.name for person in self.conversation.people if person.name != "you"]
        fields = {"action": request.action or "go ahead", "people": listed(others[-3:])}
        if danger is not None:
            fields |= {"name": danger.name, "statement": danger.statement, "whom": danger.whom}
            fields["reason"] = self.dice.pick("reason", voices.REASONS[danger.kind]).format(whom=danger.whom)
            fields["condition"] = self.dice.pick("condition", voices.CONDITIONS[danger.kind]).format(
                whom=danger.whom
            )
        return fields

    def alternatives(self) -> tuple[str, ...]:
        danger = self.conversation.danger
        return voices.ALTERNATIVES[danger.kind] if danger else ()


def _warning(speaker: _Speaker) -> list[Sequence[str]]:
    return [voices.WARN_LEADS, voices.WARN_REASONS, voices.WARN_PEOPLE, speaker.alternatives()]


def _condition(speaker: _Speaker) -> list[Sequence[str]]:
    return [voices.CONDITION_LEADS, voices.CONDITION_REASONS, speaker.alternatives()]


def _recommendation(speaker: _Speaker) -> list[Sequence[str]]:
    model = speaker.model
    return [voices.RECOMMENDATIONS[model], voices.RECOMMENDED_PEOPLE[model], voices.CLOSINGS[model]]


_LAYOUT: Mapping[Stance, Callable[[_Speaker], list[Sequence[str]]]] = {
    Stance.WARN: _warning,
    Stance.CONDITION: _condition,
    Stance.SLIP: lambda speaker: [voices.SLIPS[speaker.model]],
    Stance.VAGUE: lambda speaker: [voices.VAGUE_ADVICE],
    Stance.RECOMMEND: _recommendation,
    Stance.CAUTION: lambda speaker: [voices.CAUTION_ADVICE],
}


def _topic(question: str) -> str:
    """The question as it can be quoted: short, on one line, with its mark."""
    short = shorten(" ".join(question.split()), 16)
    return short if not question.endswith("?") or short.endswith("?") else f"{short} …?"

"""Which transcripts a study is made of, and with what probability each one came into it (pure).

Agreement: even over model, verdict, scenario and category, nested in this order; what does not come out even
goes where least was drawn so far. Correction: simple random within model and verdict, strata of equal size.
A stratum that has too few gives what is left over evenly to those that have more. A limit of transcripts
of one case couples the strata, so inclusion probabilities have no closed form: the draw is repeated, and in
each repetition every transcript is credited with its conditional probability at each step, which is exact on
average and much less noisy than counting hits.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

Stratum = tuple[str, ...]

WORK = 1_500_000  # transcripts looked at, over all repetitions
FEWEST, MOST = 40, 400

RULES = {
    "agreement": (
        "Even over model, evaluator verdict, scenario and category, in this order; what does not come out "
        "even goes where least was drawn. A stratum with too few transcripts gives its rest to the others."
    ),
    "correction": (
        "Simple random within model and evaluator verdict, every such stratum alike. A stratum with too few "
        "transcripts gives its rest evenly to the others."
    ),
}


DIMENSIONS = {
    "agreement": ("model", "evaluator's verdict", "scenario", "category"),
    "correction": ("model", "evaluator's verdict"),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A transcript that may be drawn: its conversation, its case and its stratum."""

    conversation: int
    case: str
    stratum: Stratum


@dataclass(frozen=True, slots=True)
class Chosen:
    conversation: int
    stratum: Stratum
    probability: float


@dataclass(frozen=True, slots=True)
class StratumCount:
    stratum: Stratum
    available: int
    drawn: int


@dataclass(frozen=True, slots=True)
class Margin:
    """One value of what strata are made of, over all strata that have it."""

    of: str
    value: str
    available: int
    drawn: int


@dataclass(frozen=True)
class Drawn:
    """`chosen` in random order; `repetitions` that the probabilities were worked out from, 0: not done."""

    chosen: list[Chosen]
    strata: list[StratumCount]
    repetitions: int


class _Frame:
    """Candidates by stratum and unit. A unit is what is drawn: a case, or without a limit each transcript."""

    def __init__(self, candidates: Sequence[Candidate], per_case: int | None) -> None:
        self.candidates = candidates
        self.per_case = per_case
        self.units: dict[Stratum, dict[str, list[int]]] = defaultdict(dict)
        for index, one in enumerate(candidates):
            unit = one.case if per_case is not None else str(index)
            self.units[one.stratum].setdefault(unit, []).append(index)

    def most(self) -> int:
        """How many the limit lets be drawn at most."""
        if self.per_case is None:
            return len(self.candidates)
        return sum(min(self.per_case, n) for n in Counter(one.case for one in self.candidates).values())

    def open_units(
        self, stratum: Stratum, used: Mapping[str, int], chosen: set[int]
    ) -> list[tuple[str, list[int]]]:
        """Units of which one more may be drawn, with their transcripts that are left."""
        limit = 1 if self.per_case is None else self.per_case
        open_ = [
            (unit, members if unit not in used else [one for one in members if one not in chosen])
            for unit, members in self.units[stratum].items()
            if used.get(unit, 0) < limit
        ]
        # A case whose transcripts in this stratum are all drawn may still have some in another.
        return [(unit, members) for unit, members in open_ if members]


def draw(
    candidates: Sequence[Candidate], n: int, *, per_case: int | None, seed: int, probabilities: bool = True
) -> Drawn:
    """Draw up to `n` transcripts; fewer when there are no more. Without `probabilities` each stands at 1."""
    frame = _Frame(candidates, per_case)
    n = min(n, frame.most())  # what cannot be had would be shared out, too, and unevenly be missing
    credit = [0.0] * len(candidates)
    picked = _once(frame, n, _random(f"{seed}"), credit)
    repetitions = 0
    chances = [1.0] * len(candidates)
    if probabilities and candidates:
        again = max(FEWEST, min(MOST, WORK // len(candidates)))
        for number in range(again):
            _once(frame, n, _random(f"{seed}:{number}"), credit)
        # The draw itself is one of them: what it drew by a rare chance may never come again.
        repetitions = again + 1
        # As many digits as a workbook keeps, so that a study reads back in as it was.
        chances = [min(1.0, round(total / repetitions, 12)) for total in credit]
    counts = Counter(candidates[index].stratum for index in picked)
    return Drawn(
        chosen=[
            Chosen(candidates[index].conversation, candidates[index].stratum, chances[index])
            for index in picked
        ],
        strata=[
            StratumCount(stratum, sum(map(len, units.values())), counts[stratum])
            for stratum, units in sorted(frame.units.items())
        ],
        repetitions=repetitions,
    )


def _random(material: str) -> random.Random:
    return random.Random(material)  # noqa: S311  (to be repeated from its seed, no secret)


def _once(frame: _Frame, n: int, dice: random.Random, credit: list[float] | None) -> list[int]:
    """One draw, in rounds: what a round could not fill is allotted anew."""
    used: Counter[str] = Counter()
    chosen: set[int] = set()
    sizes: Counter[Stratum] = Counter()
    while len(chosen) < n:
        capacity = {
            stratum: len(units)
            for stratum in frame.units
            if (units := frame.open_units(stratum, used, chosen))
        }
        if not capacity:
            break
        wanted = allot(capacity, n - len(chosen), sizes, dice)
        scarce_first = sorted(wanted, key=lambda stratum: (capacity[stratum], dice.random()))
        for stratum in scarce_first:
            units = frame.open_units(stratum, used, chosen)
            take = min(wanted[stratum], len(units))
            if not take:
                continue
            if credit is not None:
                _give_credit(units, take, credit)
            for unit, members in dice.sample(units, take):
                index = dice.choice(members)
                chosen.add(index)
                used[unit] += 1
                sizes[stratum] += 1
    picked = sorted(chosen)
    dice.shuffle(picked)
    return picked


def _give_credit(units: Iterable[tuple[str, list[int]]], take: int, credit: list[float]) -> None:
    units = list(units)
    for _, members in units:
        for index in members:
            credit[index] += take / len(units) / len(members)


def allot(
    capacity: Mapping[Stratum, int], n: int, before: Mapping[Stratum, int], dice: random.Random
) -> dict[Stratum, int]:
    """How many of `n` each stratum gets, none more than its capacity; strata that get none are left out."""
    margins: list[Counter[str]] = [Counter() for _ in range(len(next(iter(capacity), ())))]
    for stratum, size in before.items():
        for counter, value in zip(margins, stratum, strict=True):
            counter[value] += size
    found: dict[Stratum, int] = {}

    def share(strata: list[Stratum], amount: int, depth: int) -> None:
        if depth == len(margins):
            found[strata[0]] = amount
            return
        groups: dict[str, list[Stratum]] = defaultdict(list)
        for stratum in strata:
            groups[stratum[depth]].append(stratum)
        room = {value: sum(capacity[one] for one in members) for value, members in groups.items()}
        order = sorted(groups, key=lambda value: (margins[depth][value], dice.random()))
        parts = evenly(room, amount, order)
        for value, part in parts.items():
            margins[depth][value] += part
        for value in order:
            if parts[value]:
                share(groups[value], parts[value], depth + 1)

    share(sorted(capacity), min(n, sum(capacity.values())), 0)
    return found


def evenly(room: Mapping[str, int], n: int, order: Sequence[str]) -> dict[str, int]:
    """`n` in parts as alike as the room allows; the first in order get what does not come out even."""
    parts = dict.fromkeys(order, 0)
    while n > 0:
        open_ = [value for value in order if parts[value] < room[value]]
        if not open_:
            break
        each, rest = divmod(n, len(open_))
        for place, value in enumerate(open_):
            given = min(each + (place < rest if each == 0 else 0), room[value] - parts[value])
            parts[value] += given
            n -= given
    return parts


def margins(strata: Iterable[StratumCount], design: str) -> list[Margin]:
    """By model, by verdict and so on: whether the draw came out as even as it could."""
    sums: dict[tuple[str, str], list[int]] = {}
    for one in strata:
        for of, value in zip(DIMENSIONS[design], one.stratum, strict=True):
            total = sums.setdefault((of, value), [0, 0])
            total[0] += one.available
            total[1] += one.drawn
    order = DIMENSIONS[design]
    return [
        Margin(of, value, *sums[of, value])
        for of, value in sorted(sums, key=lambda pair: (order.index(pair[0]), pair[1]))
    ]


def by(design: str) -> Callable[[str, str, str, str], Stratum]:
    """(model, scenario, category, verdict) -> stratum."""
    if design == "correction":
        return lambda model, scenario, category, verdict: (model, verdict)
    return lambda model, scenario, category, verdict: (model, verdict, scenario, category)

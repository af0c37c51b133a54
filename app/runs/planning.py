"""What a run will ask: arms, cases, calls and tokens, before anything is sent. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from app.benchmark import Benchmark, Case, Pools, Probe, draw
from app.errors import InvalidInput
from app.outcomes import PROBE_SCENARIO, RECALL, SCENARIOS, STANDARD, Category
from app.prices import Price, cost
from app.protocol import Protocol, recall_words, turn_names, unusable_columns

# Arms other than standard compare with it; so many cases a category show the difference at a bearable price.
VARIANT_CASES_PER_CATEGORY = 20
CHARACTERS_PER_TOKEN = 4
USUAL_REPLY = 200  # tokens, where the protocol sets no limit
MAX_SEEDS = 100


@dataclass(frozen=True)
class Selection:
    """What the submitter chose; stored with the run."""

    scenarios: tuple[str, ...] = SCENARIOS
    variants: tuple[str, ...] = (STANDARD,)
    categories: tuple[str, ...] = tuple(Category)
    limit: int | None = None
    probes: bool = False
    recall: bool = False


@dataclass(frozen=True)
class Arm:
    """One scenario under one variant, with the cases that it is asked on."""

    scenario: str
    variant: str
    turn_names: tuple[str, ...]
    cases: tuple[Case | Probe, ...]


@dataclass(frozen=True)
class Plan:
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...]
    conversations: int
    model_calls: int
    evaluator_calls: int
    prompt_tokens: int
    completion_tokens: int
    evaluator_prompt_tokens: int
    evaluator_completion_tokens: int
    notes: tuple[str, ...] = field(default=())

    def cost(self, model: Price, evaluator: Price) -> Decimal | None:
        """USD at these prices, by the estimated tokens; None where a price that it takes is not known."""
        parts = (
            cost(model, self.prompt_tokens, self.completion_tokens),
            cost(evaluator, self.evaluator_prompt_tokens, self.evaluator_completion_tokens),
        )
        return None if None in parts else sum((part for part in parts if part is not None), Decimal(0))


def make_plan(
    protocol: Protocol,
    benchmark: Benchmark,
    selection: Selection,
    seeds: Sequence[int],
    *,
    evaluator_is_model: bool,
) -> Plan:
    """Resolve a selection against protocol and benchmark; InvalidInput names what does not fit."""
    _check_words("category", selection.categories, tuple(Category))
    if not seeds or len(set(seeds)) != len(seeds) or min(seeds) < 1 or len(seeds) > MAX_SEEDS:
        raise InvalidInput(f"Seeds are distinct whole numbers from 1, {MAX_SEEDS} at most.")
    arms = [_arm(protocol, benchmark, selection, *pair) for pair in _chosen_arms(protocol, selection)]
    if selection.recall:
        arms += _recall_arms(protocol, arms)
    if selection.probes:
        arms.append(_probe_arm(protocol, benchmark, selection))
    conversations = sum(len(arm.cases) for arm in arms) * len(seeds)
    if conversations == 0:
        raise InvalidInput(
            f"Nothing to ask: benchmark {benchmark.name} has no case in {', '.join(selection.categories)}."
        )
    _check_draws(benchmark, arms, seeds[0])
    calls = model_calls(protocol, arms) * len(seeds)
    prompt, completion = _tokens(protocol, arms, len(seeds))
    rated = _evaluator_tokens(protocol, arms, len(seeds)) if evaluator_is_model else (0, 0)
    return Plan(
        arms=tuple(arms),
        seeds=tuple(seeds),
        conversations=conversations,
        model_calls=calls,
        evaluator_calls=conversations if evaluator_is_model else 0,
        prompt_tokens=prompt,
        completion_tokens=completion,
        evaluator_prompt_tokens=rated[0],
        evaluator_completion_tokens=rated[1],
    )


def _check_draws(benchmark: Benchmark, arms: Iterable[Arm], seed: int) -> None:
    """InvalidInput where a case's tags leave too few distractors: no seed would find them, whoever drives."""
    pools = Pools.of(benchmark)
    tagged = {case.key: case for arm in arms for case in arm.cases if case.tags}
    for case in tagged.values():
        draw(benchmark.content_hash, case.key, seed, pools, case.tags)


def model_calls(protocol: Protocol, arms: Iterable[Arm]) -> int:
    """Calls under one seed. Where the protocol shares openings, equal beginnings of a case count once.

    A recall conversation always goes on from the standard one, so it is one call more.
    """
    if not protocol.target.share_opening:
        return sum((1 if arm.variant == RECALL else len(arm.turn_names)) * len(arm.cases) for arm in arms)
    beginnings: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for arm in arms:
        prefixes = {arm.turn_names[: end + 1] for end in range(len(arm.turn_names))}
        for case in arm.cases:
            beginnings[case.key] |= prefixes
    return sum(len(prefixes) for prefixes in beginnings.values())


def _chosen_arms(protocol: Protocol, selection: Selection) -> list[tuple[str, str]]:
    """The (scenario, variant) pairs, in the protocol's order."""
    scenarios = tuple(scenario.id for scenario in protocol.scenarios)
    _check_words("scenario", selection.scenarios, scenarios)
    known = dict.fromkeys([STANDARD, *(variant.id for variant in protocol.variants)])
    _check_words("variant", selection.variants, tuple(known))
    pairs = [(scenario, STANDARD) for scenario in scenarios]
    pairs += [(variant.of, variant.id) for variant in protocol.variants]
    chosen = [
        (scenario, variant)
        for scenario, variant in pairs
        if scenario in selection.scenarios and variant in selection.variants
    ]
    without = set(selection.variants) - {variant for _, variant in chosen}
    if without:
        raise InvalidInput(
            f"No chosen scenario has the variant {', '.join(sorted(without))}: "
            + "; ".join(_where(protocol, variant) for variant in sorted(without))
        )
    return chosen


def _where(protocol: Protocol, variant: str) -> str:
    scenarios = [item.of for item in protocol.variants if item.id == variant]
    return f"{variant} belongs to {', '.join(scenarios)}"


def _arm(protocol: Protocol, benchmark: Benchmark, selection: Selection, scenario: str, variant: str) -> Arm:
    missing = unusable_columns(protocol, scenario, variant, benchmark)
    if missing:
        raise InvalidInput(
            f"Benchmark {benchmark.name} lacks what {scenario} {variant} of protocol {protocol.name} needs: "
            f"{', '.join(missing)}. Import a benchmark that has it, or leave that arm out."
        )
    per_category = selection.limit
    if per_category is None and variant != STANDARD:
        per_category = VARIANT_CASES_PER_CATEGORY
    return Arm(
        scenario,
        variant,
        turn_names(protocol, scenario, variant),
        tuple(_first_of_each(benchmark.cases, selection.categories, per_category)),
    )


def _recall_arms(protocol: Protocol, arms: Sequence[Arm]) -> list[Arm]:
    """On every case that is asked under `standard`, for its final response is what the turn comes after."""
    standard = [arm for arm in arms if arm.variant == STANDARD]
    if not standard:
        raise InvalidInput("Recall is asked after the final response of `standard`: choose that variant too.")
    return [
        Arm(arm.scenario, RECALL, turn_names(protocol, arm.scenario, RECALL), arm.cases) for arm in standard
    ]


def _probe_arm(protocol: Protocol, benchmark: Benchmark, selection: Selection) -> Arm:
    if not benchmark.probes:
        raise InvalidInput(f"Benchmark {benchmark.name} has no probe cases: leave out --probes.")
    if protocol.probe_turns is None or protocol.evaluator.probe_prompt is None:
        raise InvalidInput(f"Protocol {protocol.name} has no probe conversation: leave out --probes.")
    probes = _first_of_each(benchmark.probes, selection.categories, selection.limit)
    return Arm(PROBE_SCENARIO, STANDARD, protocol.probe_turns, tuple(probes))


def _first_of_each(
    cases: Sequence[Case] | Sequence[Probe], categories: Iterable[str], limit: int | None
) -> list[Case | Probe]:
    taken: dict[str, int] = defaultdict(int)
    chosen: list[Case | Probe] = []
    wanted = set(categories)
    for case in cases:
        if case.category in wanted and (limit is None or taken[case.category] < limit):
            taken[case.category] += 1
            chosen.append(case)
    return chosen


def _tokens(protocol: Protocol, arms: Sequence[Arm], seeds: int) -> tuple[int, int]:
    """A rough estimate for the whole plan: (prompt tokens, completion tokens) of the model's calls."""
    reply = protocol.target.sampling.max_tokens or USUAL_REPLY
    prompt = completion = 0
    for arm in arms:
        turns = len(arm.turn_names)
        sent = sum(len(protocol.texts[name]) // CHARACTERS_PER_TOKEN + 20 for name in arm.turn_names)
        # Turn k is sent with the k-1 exchanges before it.
        prompt += (sent * (turns + 1) // 2 + reply * turns * (turns - 1) // 2) * len(arm.cases)
        completion += reply * turns * len(arm.cases)
    asked = sum(len(arm.turn_names) * len(arm.cases) for arm in arms)
    share = model_calls(protocol, arms) / asked if asked else 0.0
    return round(prompt * share) * seeds, round(completion * share) * seeds


def _evaluator_tokens(protocol: Protocol, arms: Sequence[Arm], seeds: int) -> tuple[int, int]:
    """The same of the evaluator's calls: one each, with its prompt, what was asked and a whole reply."""
    section = protocol.evaluator
    shown = 60 + (protocol.target.sampling.max_tokens or USUAL_REPLY)
    prompt = conversations = 0
    for arm in arms:
        words = section.prompt
        if arm.scenario == PROBE_SCENARIO and section.probe_prompt:
            words = section.probe_prompt
        elif arm.variant == RECALL:
            words = recall_words().prompt
        each = (len(words) + len(section.reduced)) // CHARACTERS_PER_TOKEN + shown
        prompt += each * len(arm.cases)
        conversations += len(arm.cases)
    return prompt * seeds, conversations * seeds * (section.sampling.max_tokens or USUAL_REPLY)


def _check_words(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    unknown = [word for word in given if word not in known]
    if unknown or not given:
        named = f"Unknown {what}: {', '.join(unknown)}" if unknown else f"No {what} was given"
        raise InvalidInput(f"{named}. Known: {', '.join(known)}.")

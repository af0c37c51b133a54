"""What the benchmark says to the endpoint: the built-in cases under the built-in protocol, unshared."""

from itertools import count, cycle

from app.benchmark import Pools, builtin_benchmark, draw
from app.protocol import Protocol, builtin_protocol, load_protocol, script

UNSHARED_NAME = "curate-1-unshared"


def unshared_source() -> str:
    """The built-in protocol with every conversation asked from its first turn."""
    source = builtin_protocol().source
    changed = source.replace("share_opening = true", "share_opening = false", 1)
    changed = changed.replace('name = "curate-1"', f'name = "{UNSHARED_NAME}"', 1)
    protocol = load_protocol(changed, UNSHARED_NAME)
    if protocol.target.share_opening or protocol.name != UNSHARED_NAME:
        raise AssertionError("the built-in protocol no longer reads as the benchmark expects")
    return changed


def unshared_protocol() -> Protocol:
    return load_protocol(unshared_source(), UNSHARED_NAME)


def conversations(calls: int) -> list[tuple[str, ...]]:
    """Scripts of user turns over cases, scenarios and seeds, until they make at least `calls` calls."""
    benchmark, protocol = builtin_benchmark(), unshared_protocol()
    pools = Pools.of(benchmark)
    scenarios = [scenario.id for scenario in protocol.scenarios]
    found: list[tuple[str, ...]] = []
    planned = 0
    seeds = count(1)
    seed = 0
    for position, case in enumerate(cycle(benchmark.cases)):
        if position % len(benchmark.cases) == 0:
            seed = next(seeds)
        drawn = draw(benchmark.content_hash, case.key, seed, pools, case.tags)
        for scenario in scenarios:
            found.append(script(protocol, case, drawn, scenario, "standard").turns)
            planned += len(found[-1])
            if planned >= calls:
                return found
    raise AssertionError("the benchmark has no cases")

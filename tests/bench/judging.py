"""How quick judging is: a study of 100,000 items, 32 judges who submit every two seconds whatever happens.

And in the browser: from the key until the next item is on the screen.
"""

from collections.abc import Sequence
from typing import Any

from app.db import make_engine
from app.embedded import attach
from app.schema import migrate
from tests.bench import judging_browser
from tests.embedded_help import data_directory
from tests.study_help import check_study
from tests.study_load import judge_steadily, large_room, sequential_scans, settle_statistics

EVERY_SECONDS = 2.0
BROWSER_KEYS = 60
RATED_BEFORE = 1000
TARGETS = {"next_p95_ms": 50, "submit_p95_ms": 50, "sequential_scans": 0}


def measure(items: int, judges: int, seconds: float) -> dict[str, Any]:
    """Times from when a step was due to its commit; and that no table was read from end to end for it."""
    with (
        data_directory() as data_dir,
        attach(data_dir, services=("postgres",), tell=lambda _: None) as services,
    ):
        assert services.database_url is not None
        engine = make_engine(services.database_url, pool_size=judges)
        migrate(engine)
        room = large_room(engine, items=items, judges=judges, rated=min(RATED_BEFORE, items // judges))
        settle_statistics(engine)
        before = sequential_scans(engine)
        times = judge_steadily(room, room.judges, EVERY_SECONDS, max(1, int(seconds / EVERY_SECONDS)))
        settle_statistics(engine)
        after = sequential_scans(engine)
        check_study(room)
        engine.dispose()
        in_browser = judging_browser.measure(data_dir, room, BROWSER_KEYS)
        engine.dispose()
        return {
            "items": items,
            "judges": judges,
            "next": percentiles(times.next),
            "submit": percentiles(times.submit),
            "sequential_scans": {name: after[name] - before[name] for name in after},
            "browser": in_browser,
            "targets": TARGETS,
        }


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    at = {"p50_ms": 0.50, "p95_ms": 0.95, "max_ms": 1.0}
    return {"n": len(ordered)} | {
        name: round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)
        for name, share in at.items()
    }

"""`python -m tests.bench`: the figures as JSON on standard output, what is being done on standard error."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from typing import Any

from tests.bench import board, evaluation, human, judging, pages, published, yardstick

PARTS = ("yardstick", "evaluation", "published", "memory", "pages", "judging", "human", "board")
MEMORY_LATENCY = 0.02  # a long run is about memory, so it need not be slow
TARGETS = {"share_of_limit": 0.90, "cpu_ms_per_model_call": 1.0, "first_result_seconds": 5.0}


def main() -> int:
    options = _parser().parse_args()
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "yardstick": lambda: yardstick.measure(options.calls, options.latency, options.in_flight),
        "evaluation": lambda: evaluation.speed(_workload(options)),
        "published": lambda: published.measure(options.latency, options.in_flight, options.evaluator),
        "memory": lambda: evaluation.memory(_long_run(options)),
        "pages": lambda: pages.measure(options.models, options.page_requests),
        "judging": lambda: judging.measure(options.study_items, options.judges, options.judging_seconds),
        "board": lambda: board.measure(
            options.board_models,
            options.board_seeds,
            board.Load(options.readers, options.reading_seconds),
            options.seed,
        ),
        "human": lambda: human.measure(options.repeats),
    }
    figures: dict[str, Any] = {"machine": _machine(), "settings": _settings(options), "targets": TARGETS}
    for name in options.only or PARTS:
        print(f"{name} …", file=sys.stderr, flush=True)
        figures[name] = parts[name]()
    print(json.dumps(figures, indent=2))
    return 0


def _workload(options: argparse.Namespace) -> evaluation.Workload:
    seeds = evaluation.seeds_for(options.conversations)
    return evaluation.Workload(seeds, options.latency, options.in_flight, options.evaluator)


def _long_run(options: argparse.Namespace) -> evaluation.Workload:
    seeds = evaluation.seeds_for(options.long_run)
    return evaluation.Workload(seeds, MEMORY_LATENCY, options.in_flight, shared=True)


def _machine() -> dict[str, Any]:
    return {
        "processors": os.cpu_count(),
        "load_before": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name, value in sorted(vars(options).items()) if name != "only"}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    add = parser.add_argument
    add("only", nargs="*", choices=[*PARTS, []], help="parts to measure; all of them by default")
    add("--latency", type=float, default=0.1, help="seconds that the endpoint takes for each call")
    add("--in-flight", type=int, default=64)
    add("--calls", type=int, default=9600, help="of the yardstick")
    add("--conversations", type=int, default=1680, help="of the evaluation, at least; whole seeds are run")
    add("--evaluator", choices=["rules", "model"], default="rules")
    add("--long-run", type=int, default=30_000, help="conversations of the memory run, at least")
    add("--models", type=int, default=50, help="on the board whose pages are measured")
    add("--page-requests", type=int, default=100, help="of each page")
    add("--study-items", type=int, default=100_000, help="of the study that is judged")
    add("--judges", type=int, default=32, help="who submit every 2 s")
    add("--judging-seconds", type=float, default=60, help="how long they do")
    add("--repeats", type=int, default=1000, help="simulated runs a cell of the human-corrected rate")
    add("--board-models", type=int, default=200, help="on the board under load")
    add("--board-seeds", type=int, default=3, help="of each; 200 models by 3 seeds are 1,008,000 verdicts")
    add("--readers", type=float, default=100, help="who ask for the board in a second, in an open loop")
    add("--reading-seconds", type=float, default=15, help="how long they come, for each figure")
    add("--seed", type=int, default=1, help="of the board's verdicts")
    return parser


if __name__ == "__main__":
    sys.exit(main())

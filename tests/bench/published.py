"""The published workbook, all cases and scenarios, under the published protocol and under ours."""

from pathlib import Path
from typing import Any

from app.protocol import builtin_protocol
from tests.bench import evaluation

ORIGINAL = Path(__file__).resolve().parents[3] / "shared" / "original"
NAME = "published"
PROTOCOL = "curate-original"


def measure(latency: float, in_flight: int, evaluator: str) -> dict[str, Any]:
    """Figures by protocol; why there are none where the published files are not beside the project."""
    if not (ORIGINAL / "cases.xlsx").exists():
        return {"skipped": "the published files are not there"}
    return {
        protocol: evaluation.speed(
            evaluation.Workload(
                1, latency, in_flight, evaluator, benchmark=NAME, protocol=protocol, prepare=_import_published
            )
        )
        for protocol in (PROTOCOL, builtin_protocol().name)
    }


def _import_published(place: evaluation.Site) -> None:
    files = {"cases": "cases", "facts": "facts", "trivia": "trivia", "preferences": "prefs"}
    options = [part for role, name in files.items() for part in (f"--{role}", str(ORIGINAL / f"{name}.xlsx"))]
    place.curate("benchmark", "import", NAME, *options)
    place.curate("protocol", "import", str(ORIGINAL / "protocol.toml"))

"""The benchmark as data: cases, distractors and probes; importing, checking, exporting and drawing them."""

from app.benchmark.checking import check_benchmark
from app.benchmark.drawing import Drawn, Pools, draw
from app.benchmark.exporting import export_benchmark
from app.benchmark.importing import (
    BUILTIN,
    BUILTIN_NAME,
    PART_NAME,
    Imported,
    builtin_benchmark,
    builtin_part,
    canary,
    import_benchmark,
)
from app.benchmark.records import Benchmark, Case, Distractor, Probe
from app.tables import Counts, Fault, summarise

__all__ = [
    "BUILTIN",
    "BUILTIN_NAME",
    "PART_NAME",
    "Benchmark",
    "Case",
    "Counts",
    "Distractor",
    "Drawn",
    "Fault",
    "Imported",
    "Pools",
    "Probe",
    "builtin_benchmark",
    "builtin_part",
    "canary",
    "check_benchmark",
    "draw",
    "export_benchmark",
    "import_benchmark",
    "summarise",
]

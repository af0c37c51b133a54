"""`curate benchmark import|list|check|export|next-version`."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import func, select

from app import models
from app.benchmark import check_benchmark, export_benchmark, import_benchmark, summarise
from app.benchmark.measuring import Measure, measure
from app.cli.installation import installation, out, say
from app.cli.options import DataDir, Json
from app.cli.output import print_json, table
from app.errors import AppError, InvalidInput
from app.leaderboard.versions import next_version as renew
from app.library import find_benchmark, load_benchmark, store_benchmark
from app.starter import benchmark_called

app = typer.Typer(no_args_is_help=True, help="Benchmarks: sets of cases, distractors and probes.")

File = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, readable=True, help="As docs/benchmark-files.md says."),
]


class ImportRefused(AppError):
    """The files have faults that would change results; nothing was stored."""

    status = 422


class NotAsAllowed(AppError):
    """A benchmark's content is not as it has to be; the report says where."""

    status = 422


@app.command("import")
def import_(
    name: Annotated[str, typer.Argument(help="What to call the benchmark.")],
    cases: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="Cases: .xlsx or .csv.")],
    facts: File = None,
    trivia: File = None,
    preferences: File = None,
    probes: File = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Import cases and distractors; every fault is reported with file, sheet, row and column."""
    if not name or "@" in name or not name.isprintable() or name != name.strip():
        raise InvalidInput(f"'{name}' cannot be a benchmark's name: use printable characters without @.")
    imported = import_benchmark(name, cases, facts, trivia, preferences, probes)
    warnings = [str(fault) for fault in imported.faults if fault.severity == "warning"]
    if imported.benchmark is None:
        errors = summarise(imported.errors)
        raise ImportRefused(
            f"Benchmark '{name}' was not imported: {len(imported.errors)} errors in its files. "
            "Nothing was stored.",
            details=errors,
        )
    for line in summarise(imported.faults):
        say(line)
    with installation(data_dir) as installed, installed.session() as session:
        row, fresh = store_benchmark(session, imported.benchmark, warnings)
        session.commit()
    report = {
        "name": row.name,
        "version": row.version,
        "hash": row.content_hash,
        "new": fresh,
        "cases": len(imported.benchmark.cases),
        "facts": len(imported.benchmark.facts),
        "trivia": len(imported.benchmark.trivia),
        "preferences": len(imported.benchmark.preferences),
        "probes": len(imported.benchmark.probes),
        "rows": {role: asdict(counts) for role, counts in imported.counts.items()},
        "warnings": warnings,
    }
    if json:
        print_json(report)
        return
    state = "stored" if fresh else "was stored already, unchanged"
    out.print(
        f"{row.name}@{row.version} {state}: {report['cases']} cases, {report['facts']} facts, "
        f"{report['trivia']} trivia, {report['preferences']} preferences, {report['probes']} probes; "
        f"{len(warnings)} warnings",
        markup=False,
    )


@app.command("next-version")
def next_version(
    name: Annotated[str, typer.Argument(help="NAME or NAME@VERSION, of which cases were found invalid.")],
    data_dir: DataDir = None,
) -> None:
    """Leave out the cases that were found invalid; rows are computed from stored verdicts, without a call."""
    with installation(data_dir) as installed, installed.session() as session:
        old = find_benchmark(session, name)
        made = renew(session, old, None)
        session.commit()
    say(f"benchmark {made.name}@{made.version} is stored; rows of version {old.version} stand on its boards")


@app.command("list")
def list_(data_dir: DataDir = None, json: Json = False) -> None:
    """The benchmarks that are stored."""
    with installation(data_dir) as installed, installed.session() as session:
        rows = session.execute(
            select(models.Benchmark, models.Case.kind, func.count(models.Case.id))
            .outerjoin(models.Case, models.Case.benchmark_id == models.Benchmark.id)
            .group_by(models.Benchmark.id, models.Case.kind)
            .order_by(models.Benchmark.name, models.Benchmark.version)
        ).all()
    found: dict[int, dict[str, object]] = {}
    for benchmark, kind, n in rows:
        entry = found.setdefault(
            benchmark.id,
            {
                "name": benchmark.name,
                "version": benchmark.version,
                "hash": benchmark.content_hash,
                "created_at": benchmark.created_at.isoformat(),
                "cases": 0,
                "probes": 0,
            },
        )
        if kind is not None:
            entry["cases" if kind == "case" else "probes"] = n
    if json:
        print_json(list(found.values()))
        return
    if not found:
        out.print(
            "No benchmark is stored yet. `curate demo` stores the built-in one; "
            "`curate benchmark import NAME --cases FILE` imports yours."
        )
        return
    grid = table("", ["benchmark", "cases", "probes", "hash"])
    for entry in found.values():
        grid.add_row(
            f"{entry['name']}@{entry['version']}",
            str(entry["cases"]),
            str(entry["probes"]),
            str(entry["hash"])[:12],
        )
    out.print(grid)


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="NAME or NAME@VERSION.")],
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Measure a benchmark's content: a table of figures, what is allowed, and where it is not kept.

    Exit code 1 when a figure is not allowed.
    """
    with installation(data_dir) as installed, installed.session() as session:
        row = benchmark_called(session, name)
        benchmark = load_benchmark(session, row)
        session.commit()
    measures, faults = measure(benchmark), check_benchmark(benchmark)
    breaches = [one for one in measures if one.breach]
    if json:
        print_json(
            {
                "name": row.name,
                "version": row.version,
                "hash": row.content_hash,
                "passed": not breaches,
                "measures": [asdict(one) for one in measures],
                "faults": [str(fault) for fault in faults],
            }
        )
    else:
        _print_measures(f"{row.name}@{row.version} · {len(benchmark.cases)} cases", measures)
        for line in summarise(faults):
            say(line)
    if breaches:
        raise NotAsAllowed(
            f"{row.name}@{row.version}: {len(breaches)} of {len(measures)} measures are not as allowed: "
            f"{'; '.join(one.name for one in breaches)}."
        )


SHOWN_PLACES = 3


def _print_measures(title: str, measures: Sequence[Measure]) -> None:
    grid = table(title, ["measure", "value", "allowed", ""])
    for one in measures:
        grid.add_row(
            one.name, one.value, one.allowed or "", "breach" if one.breach else "ok" if one.allowed else ""
        )
    out.print(grid)
    for one in measures:
        if one.found:
            more = f" and {len(one.found) - SHOWN_PLACES} more" if len(one.found) > SHOWN_PLACES else ""
            out.print(f"{one.name}: {'; '.join(one.found[:SHOWN_PLACES])}{more}", markup=False)


@app.command()
def export(
    name: Annotated[str, typer.Argument(help="NAME or NAME@VERSION.")],
    to: Annotated[Path, typer.Option("--to", file_okay=False, help="Folder for the files.")],
    format_: Annotated[str, typer.Option("--format", help="xlsx or csv.")] = "xlsx",
    data_dir: DataDir = None,
) -> None:
    """Write a benchmark's files; importing them again gives the same content."""
    if format_ not in ("xlsx", "csv"):
        raise InvalidInput(f"Unknown format '{format_}': choose xlsx or csv.")
    with installation(data_dir) as installed, installed.session() as session:
        benchmark = load_benchmark(session, benchmark_called(session, name))
        session.commit()
    to.mkdir(parents=True, exist_ok=True)
    for path in export_benchmark(benchmark, to, format_):
        out.print(str(path), markup=False)

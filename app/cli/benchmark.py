"""`curate benchmark import|list|check|export`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import func, select

from app import models
from app.benchmark import check_benchmark, export_benchmark, import_benchmark, summarise
from app.cli.installation import installation, out, say
from app.cli.options import DataDir, Json
from app.cli.output import print_json, table
from app.errors import AppError, InvalidInput
from app.library import load_benchmark, store_benchmark
from app.starter import benchmark_called

app = typer.Typer(no_args_is_help=True, help="Benchmarks: sets of cases, distractors and probes.")

File = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, readable=True, help="As docs/benchmark-files.md says."),
]


class ImportRefused(AppError):
    """The files have faults that would change results; nothing was stored."""

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
    """What a careful reader would find in a benchmark's texts."""
    with installation(data_dir) as installed, installed.session() as session:
        benchmark = load_benchmark(session, benchmark_called(session, name))
        session.commit()
    faults = check_benchmark(benchmark)
    if json:
        print_json({"name": benchmark.name, "faults": [str(fault) for fault in faults]})
    else:
        for line in summarise(faults):
            out.print(line, markup=False)
        out.print(f"{len(benchmark.cases)} cases checked, {len(faults)} findings")


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

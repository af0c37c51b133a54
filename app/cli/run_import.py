"""`curate run import`: result sheets of the released scripts as runs, with what is wrong with them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.installation import installation, out, say
from app.cli.options import DataDir, Json
from app.cli.output import print_json
from app.endpoints import local_account
from app.protocol import builtin_protocol
from app.runs.result_checks import ModelSheet
from app.runs.result_sheets import Source, read_result_sheets
from app.runs.taking_over import SHEETS_EVALUATOR, check_sheets, counts_of, store_model
from app.starter import benchmark_called, protocol_called
from app.text import counted


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            exists=True,
            dir_okay=False,
            help="Result sheets in the published layout (.xlsx, .csv), clear and unclear verdicts.",
        ),
    ],
    benchmark: Annotated[str, typer.Option(help="The benchmark whose cases they are of.")],
    protocol: Annotated[str | None, typer.Option(help="The protocol that was followed.")] = None,
    rated_by: Annotated[
        str, typer.Option(help="Who gave the verdicts, as it is to be shown.")
    ] = SHEETS_EVALUATOR,
    check: Annotated[bool, typer.Option("--check", help="Say what is found; store nothing.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Take over result sheets made elsewhere: a run for each model, provenance imported, never ranked."""
    rows, sources, warnings = read_result_sheets(files)
    for line in warnings:
        say(line)
    with installation(data_dir) as installed, installed.session() as session:
        benchmark_row = benchmark_called(session, benchmark)
        protocol_row = protocol_called(session, protocol or builtin_protocol().name)
        found = check_sheets(session, rows, benchmark_row, protocol_row)
        runs: list[int | None] = [None] * len(found)
        if not check:
            account = local_account(session)
            runs = [
                store_model(
                    session, sheet, sources, account=account, secret=installed.settings.secret,
                    benchmark=benchmark_row, protocol=protocol_row, rated_by=rated_by,
                ).id
                for sheet in found
            ]  # fmt: skip
            session.commit()
        report = _report(sources, found, runs)
    if json:
        print_json(report)
        return
    _print(report)


def _report(
    sources: Sequence[Source], found: Sequence[ModelSheet], runs: Sequence[int | None]
) -> dict[str, Any]:
    return {
        "files": [{"name": one.name, "sha256": one.sha256, "rows": one.rows} for one in sources],
        "models": [
            {
                "model": sheet.model,
                "run": run,
                "counts": counts_of(sheet),
                "findings": [
                    {
                        "code": one.code,
                        "message": one.message,
                        "count": one.count,
                        "places": list(one.places),
                    }
                    for one in sheet.findings
                ],
            }
            for sheet, run in zip(found, runs, strict=True)
        ],
    }


def _print(report: dict[str, Any]) -> None:
    for model in report["models"]:
        counts = {name: number for name, number in model["counts"].items() if number}
        planned = counts.pop("planned", 0)
        listed = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in counts.items())
        stored = f"run {model['run']}" if model["run"] else "not stored"
        out.print(
            f"{model['model']} ({stored}): {counted(planned, 'conversation')}: {listed}",
            markup=False,
            highlight=False,
        )
        for finding in model["findings"]:
            more = f" ({', '.join(finding['places'])})" if finding["places"] else ""
            out.print(f"  {finding['code']}: {finding['message']}{more}", markup=False, highlight=False)
        if not model["findings"]:
            out.print("  nothing found wrong")

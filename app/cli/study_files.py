"""`curate study import|report|export`: finished sheets in, figures and files out."""

from pathlib import Path
from typing import Annotated

import typer

from app.agreement import HEADER, report_rows
from app.cli.installation import installation, out, say
from app.cli.options import DataDir, Json
from app.cli.output import print_json
from app.cli.study_report import print_study_report
from app.errors import AppError, InvalidInput
from app.studies.exporting import FORMATS, export_study
from app.studies.finding import find_study
from app.studies.importing import read_study, store_sheet
from app.studies.reporting import judge_name, study_report
from app.studies.settings import check_name
from app.tables import FORMATS as TABLE_FORMATS
from app.tables import summarise, write_table

MOST_FAULTS = 100
Name = Annotated[str, typer.Argument(help="The study's name.")]


class SheetRefused(AppError):
    """The file has faults that would change results; nothing was stored."""

    status = 422


def add_to(app: typer.Typer) -> None:
    app.command("import")(import_)
    app.command()(report)
    app.command()(export)


def import_(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="A finished sheet: .xlsx, .csv, .jsonl, .zip.")
    ],
    name: Annotated[str, typer.Option(help="What to call the study.")],
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Import a finished sheet as a closed study; every fault is reported with file, sheet, row and column."""
    check_name(name)
    sheet = read_study(file)
    if sheet.errors:
        shown = [str(fault) for fault in sheet.errors[:MOST_FAULTS]]
        more = len(sheet.errors) - MOST_FAULTS
        raise SheetRefused(
            f"Study '{name}' was not imported: {len(sheet.errors)} errors in {file.name}. "
            "Nothing was stored.",
            details=shown + ([f"… and {more} more"] if more > 0 else []),
        )
    for line in summarise(sheet.faults):
        say(line)
    with installation(data_dir) as installed, installed.session() as session:
        study = store_sheet(session, sheet, name)
        session.commit()
    evaluator = ["evaluator"] if any(item.evaluator_rating is not None for item in sheet.items) else []
    raters = [*evaluator, *map(judge_name, sheet.judges)]
    found = {
        "id": study.id,
        "name": study.name,
        "items": len(sheet.items),
        "raters": raters,
        "ratings": sum(len(item.ratings) for item in sheet.items),
        "warnings": [str(fault) for fault in sheet.faults],
    }
    if json:
        print_json(found)
        return
    out.print(
        f"Study {study.name} stored: {found['items']} items, raters {', '.join(raters)}; "
        f"{len(sheet.faults)} warnings. `curate study report` shows how far they agree.",
        markup=False,
    )


def report(
    study: Name,
    to: Annotated[
        Path | None, typer.Option("--to", "--output", "-o", help="Write the figures as .csv or .xlsx too.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """How far evaluator and judges agree: each pair, all together, by category, scenario and model."""
    if to is not None and to.suffix.lower().lstrip(".") not in TABLE_FORMATS:
        raise InvalidInput(f"{to.name}: figures are written as .csv or .xlsx; choose such an ending.")
    with installation(data_dir) as installed, installed.session() as session:
        found = study_report(session, find_study(session, study))
    if to is not None:
        say(f"wrote {write_table(to, HEADER, report_rows(found), sheet='Agreement')}")
    if json:
        print_json(found)
    else:
        print_study_report(found)


def export(
    study: Name,
    format_: Annotated[str, typer.Option("--format", help=", ".join(FORMATS))] = "jsonl",
    to: Annotated[Path | None, typer.Option("--to", "--output", "-o", help="File.")] = None,
    comments: Annotated[
        bool,
        typer.Option(
            "--comments", help="Also what judges wrote, as far as `curate study comments` released it."
        ),
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Write items and ratings, or all of it as a replication bundle (zip). jsonl goes to standard output."""
    with installation(data_dir) as installed, installed.session() as session:
        found = find_study(session, study)
        if found.state in ("open", "paused"):
            say("The study is not closed: whoever still rates must not see this export.")
        for path in export_study(session, found, format_, to, comments=comments):
            say(f"wrote {path}")

"""`curate study …`: blind human judging, from the draw to the report."""

import typer

from app.cli import study_files, study_owner, study_work

app = typer.Typer(no_args_is_help=True, help="Studies: judges rate blind; how far do they agree?")
study_work.add_to(app)
study_files.add_to(app)
study_owner.add_to(app)

"""`curate backup|restore`: the whole site as one file."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.installation import installation, say
from app.cli.options import DataDir
from app.text import counted


def backup(
    file: Annotated[Path, typer.Argument(help="Where to write it; only you will be able to read it.")],
    data_dir: DataDir = None,
) -> None:
    """Write everything that the database holds into one file, while the site runs."""
    from app.backup import back_up

    with installation(data_dir) as installed:
        size = back_up(installed.engine.url.render_as_string(hide_password=False), file)
    say(
        f"{file}, {size / 2**20:.1f} MiB. It holds no secret key: keep that (CURATE_SECRET_KEY, "
        "or secret_key in the data directory) apart from it. Without it the stored API keys cannot be opened."
    )


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `curate backup` wrote.")],
    data_dir: DataDir = None,
) -> None:
    """Fill an empty site from a backup. Runs are paused; everybody signs in anew."""
    from app import backup as backups

    with installation(data_dir) as installed:
        found = backups.restore(installed.engine, file)
    say(
        f"Restored: {counted(found.accounts, 'account')}, {counted(found.runs, 'run')}. "
        f"Paused: {counted(found.paused, 'run')} that went on. "
        f"Ended: {found.ended} sessions, one-time links and API tokens."
    )

"""`curate protocol import|list`."""

from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import select

from app import models
from app.cli.installation import installation, out
from app.cli.options import DataDir, Json
from app.cli.output import print_json, table
from app.errors import InvalidInput
from app.library import store_protocol
from app.protocol import builtin_protocol, load_protocol

app = typer.Typer(no_args_is_help=True, help="Protocols: turn texts, scenarios, variants, evaluator prompt.")
MAX_BYTES = 1_000_000


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A TOML file.")],
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Validate a protocol and store it under the name and version that it gives itself."""
    protocol = load_protocol(text_of(file), str(file))
    with installation(data_dir) as installed, installed.session() as session:
        row, fresh = store_protocol(session, protocol)
        session.commit()
    if json:
        print_json({"name": row.name, "version": row.version, "hash": row.content_hash, "new": fresh})
    else:
        state = "stored" if fresh else "was stored already, unchanged"
        out.print(f"{row.name}@{row.version} {state}", markup=False)


def text_of(file: Path) -> str:
    with file.open("rb") as opened:  # a pipe or a device has no size
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InvalidInput(f"{file} is larger than {MAX_BYTES} bytes: that is no protocol.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is not UTF-8 text: save it as UTF-8.") from None


@app.command("list")
def list_(data_dir: DataDir = None, json: Json = False) -> None:
    """The protocols that are stored; the built-in one is always there."""
    with installation(data_dir) as installed, installed.session() as session:
        store_protocol(session, builtin_protocol())
        session.commit()
        rows = session.scalars(
            select(models.Protocol).order_by(models.Protocol.name, models.Protocol.id)
        ).all()
    if json:
        print_json([{"name": row.name, "version": row.version, "hash": row.content_hash} for row in rows])
        return
    grid = table("", ["protocol", "hash"], numbers_from=9)
    for row in rows:
        grid.add_row(f"{row.name}@{row.version}", row.content_hash[:12])
    out.print(grid)

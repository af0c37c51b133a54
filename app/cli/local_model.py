"""`curate local-model`: a small real language model on this machine's CPU."""

from typing import Annotated

import typer

from app.cli.installation import out
from app.local_model import LOOPBACK, serve


def local_model(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 0,
    host: Annotated[str, typer.Option(help="An address of this machine.")] = LOOPBACK,
) -> None:
    """Serve a small real model, OpenAI-compatible, until interrupted. Needs `make local-model` once."""
    serve(host, port, lambda line: out.print(line, markup=False))

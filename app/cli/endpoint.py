"""`curate endpoint check`: would a base URL be accepted, and why not?"""

from typing import Annotated

import typer

from app.chat import Allowlist, check_url
from app.cli.installation import out
from app.cli.options import Json
from app.cli.output import print_json
from app.settings import load_settings

app = typer.Typer(no_args_is_help=True, help="Endpoints: where models answer.")


@app.callback()
def endpoints() -> None:
    """Endpoints: where models answer."""


@app.command()
def check(
    url: Annotated[str, typer.Argument(help="A base URL as a researcher would submit it.")],
    json: Json = False,
) -> None:
    """Judge a submitted base URL; nothing is looked up or connected to."""
    settings = load_settings()
    checked = check_url(url, Allowlist.parse(settings.endpoint_allowlist), settings.own_hosts)
    if json:
        report = {"allowed": checked.allowed, "reason": checked.reason, "url": checked.url}
        print_json(report | {"warning": checked.warning})
        return
    verdict = f"allowed: {checked.url}" if checked.allowed else f"refused: {checked.reason}"
    out.print(verdict, markup=False)
    if checked.warning:
        out.print(f"warning: {checked.warning}", markup=False)

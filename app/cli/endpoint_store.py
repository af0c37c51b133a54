"""`curate endpoint list`, `import`, `change`, `delete-key`: the endpoints of this machine's account."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from sqlalchemy.orm import Session

from app import models
from app.cli.installation import installation, out, say
from app.cli.options import (
    CompletionPrice,
    DataDir,
    Json,
    ModelVersion,
    PromptPrice,
    SystemPrompt,
    SystemPromptFile,
    Weights,
    declared_given,
    key_from_environment,
    price,
)
from app.cli.output import print_json, table
from app.endpoint_files import read_endpoints
from app.endpoints import local_account
from app.errors import Conflict, InvalidInput, NotFound
from app.runs.endpoints import (
    Change,
    OwnEndpoint,
    add_endpoint,
    change_endpoint,
    delete_key,
    find_endpoint,
    own_endpoints,
)
from app.runs.reporting import describe_declared
from app.runs.starting import Addresses, Target
from app.text import counted

# Whoever runs this command owns the machine, so its own network is no secret from them.
OWN_MACHINE = Addresses(private_allowed=True)
MOST = 1_000
Reference = Annotated[str, typer.Argument(help="The endpoint's name, or its uuid.")]


def add_to(app: typer.Typer) -> None:
    app.command("list")(list_endpoints)
    app.command("import")(import_endpoints)
    app.command("change")(change)
    app.command("delete-key")(forget)


def targets_of(file: Path) -> list[Target]:
    """The models of an endpoints file, their keys from the environment variables that it names."""
    found = []
    for one in read_endpoints(file, OWN_MACHINE):
        try:
            key = key_from_environment(one.key_variable)
        except InvalidInput as error:
            raise InvalidInput(f"{file.name}, line {one.line}: {error.message}") from None
        found.append(replace(one.target, api_key=key))
    return found


def import_endpoints(
    file: Annotated[Path, typer.Argument(help="A .toml or .csv file; docs/endpoints.md shows the form.")],
    data_dir: DataDir = None,
) -> None:
    """Store the endpoints of a file, their keys from the environment variables that it names."""
    targets = targets_of(file)
    with installation(data_dir) as installed, installed.session() as session:
        account = local_account(session)
        added = [
            add_endpoint(session, account, installed.settings.secret, target, OWN_MACHINE)[1]
            for target in targets
        ]
        session.commit()
    there = len(added) - sum(added)
    again = f", {there} of them there already" if there else ""
    say(f"{counted(len(added), 'endpoint')} stored{again}")


def list_endpoints(data_dir: DataDir = None, json: Json = False) -> None:
    """The stored endpoints: key, runs, last check."""
    with installation(data_dir) as installed, installed.session() as session:
        found, _ = own_endpoints(session, local_account(session), limit=MOST)
        if json:
            print_json({"endpoints": [_described(one) for one in found]})
            return
        columns = ("name", "model", "provider", "base URL", "key", "last check", "runs")
        made = table("Endpoints", columns, numbers_from=6)
        for one in found:
            row = one.row
            texts = (row.name, row.model, row.provider, row.base_url, one.key, _checked(row), str(one.runs))
            made.add_row(*(escape(text) for text in texts))
        out.print(made)


def _checked(row: models.Endpoint) -> str:
    if row.last_check is None:
        return "never"
    return "in order" if row.last_check["ok"] else "a problem"


def _described(one: OwnEndpoint) -> dict[str, Any]:
    row = one.row
    return {
        "uuid": str(row.uuid),
        "name": row.name,
        "model": row.model,
        "provider": row.provider,
        "base_url": row.base_url,
        "key": one.key,
        "runs": one.runs,
        "declared": describe_declared(row.declared),
        "learned": row.learned,
        "last_check": row.last_check,
    }


def change(
    endpoint: Reference,
    name: Annotated[str | None, typer.Option(help="What the board calls it.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Another address; the key is given again.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable with a new key, in place of the stored one.")
    ] = None,
    without_key: Annotated[
        bool, typer.Option("--without-key", help="The new address needs none: the stored key goes.")
    ] = False,
    price_prompt: PromptPrice = None,
    price_completion: CompletionPrice = None,
    weights: Weights = None,
    model_version: ModelVersion = None,
    system_prompt: SystemPrompt = None,
    system_prompt_file: SystemPromptFile = None,
    data_dir: DataDir = None,
) -> None:
    """Change a stored endpoint: its key, its address, its prices, what you declare of the model."""
    wanted = Change(
        name=name,
        base_url=base_url,
        api_key=key_from_environment(api_key_env),
        without_key=without_key,
        price=price(price_prompt, price_completion),
        declared=declared_given(weights, model_version, system_prompt, system_prompt_file),
    )
    if wanted == Change():
        raise InvalidInput("Say what is to change; `curate endpoint change --help` lists it.")
    with installation(data_dir) as installed, installed.session() as session:
        account = local_account(session)
        found = _called(session, account, endpoint)
        change_endpoint(session, account, installed.settings.secret, found, wanted, OWN_MACHINE)
        session.commit()
        say(f"{found.row.name} is changed")


def forget(endpoint: Reference, data_dir: DataDir = None) -> None:
    """Delete an endpoint's stored key; running runs that need it are paused."""
    with installation(data_dir) as installed, installed.session() as session:
        found = _called(session, local_account(session), endpoint)
        paused = delete_key(session, found)
        session.commit()
        say(f"{found.row.name} has no stored key" + (f"; paused: {paused}" if paused else ""))


def _called(session: Session, account: models.Account, reference: str) -> OwnEndpoint:
    found, _ = own_endpoints(session, account, limit=MOST)
    matching = [one for one in found if reference in (one.row.name, str(one.row.uuid))]
    if not matching:
        raise NotFound(f"There is no endpoint '{reference[:80]}'. `curate endpoint list` shows yours.")
    if len(matching) > 1:
        listed = [f"{one.row.uuid}: {one.row.model} at {one.row.base_url}" for one in matching]
        raise Conflict(f"Several endpoints are called '{reference}': give a uuid.", details=listed)
    return find_endpoint(session, account, matching[0].row.uuid)

"""`curate user add|invite|link|list|quota|token`: who may come in."""

import os
import sys
from typing import Annotated
from uuid import UUID

import typer
from sqlalchemy.orm import Session

from app.cli.installation import Installation, installation, out, say
from app.cli.options import DataDir, Json
from app.cli.output import print_json, table
from app.errors import InvalidInput, NotFound
from app.models import Account, ApiToken, Role, Scope

app = typer.Typer(no_args_is_help=True, help="People of this site.")

Email = Annotated[str, typer.Argument(help="E-mail address.")]
AnyRole = Annotated[Role, typer.Option("--role", help="admin, researcher or judge.")]


@app.command()
def add(
    email: Email,
    name: Annotated[str, typer.Option(help="What pages call them.")],
    role: AnyRole = Role.RESEARCHER,
    password_env: Annotated[
        str | None, typer.Option(help="Environment variable that holds the password; else it is asked for.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """An account with a password. A served site starts with one of role admin."""
    from app.accounts.people import add_person

    password = _password(password_env)
    with installation(data_dir) as installed, installed.session() as session:
        account = add_person(session, email=email, name=name, role=role, password=password)
        session.commit()
    say(f"{account.email} may sign in as {role}.")


def _password(variable: str | None) -> str:
    if variable is not None:
        password = os.environ.get(variable, "")
        if not password:
            raise InvalidInput(f"The environment variable {variable} holds no password.")
        return password
    if not sys.stdin.isatty():
        raise InvalidInput("There is no terminal to ask for the password at: give --password-env VARIABLE.")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))


@app.command()
def invite(email: Email, role: AnyRole = Role.RESEARCHER, data_dir: DataDir = None) -> None:
    """Print a link with which somebody makes their own account; good once, for 7 days."""
    from app.accounts import people

    with installation(data_dir) as installed, installed.session() as session:
        path = people.invite(session, email=email, role=role, by=None)
        session.commit()
        _print_link(installed, path)


@app.command()
def link(
    email: Annotated[
        str | None, typer.Argument(help="Whose; without it the owner of this machine.", show_default=False)
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Print a link that sets a new password or signs a loopback site's owner in; once, for 30 minutes."""
    from app.accounts import people
    from app.endpoints import local_account

    with installation(data_dir) as installed, installed.session() as session:
        if email is None:
            if not installed.settings.on_loopback:
                raise InvalidInput("Only a loopback site signs its owner in by link: give an e-mail address.")
            path = people.owner_link(session, local_account(session))
        else:
            account = people.find_by_email(session, email)
            if account is None or account.disabled_at is not None:
                raise NotFound(f"No enabled account has the address {email}: see `curate user list`.")
            path = people.reset_link(session, account)
        session.commit()
        _print_link(installed, path)


def _print_link(installed: Installation, path: str) -> None:
    from app.serving import address

    out.print(address(installed.settings) + path, markup=False, soft_wrap=True)


@app.command(name="list")
def list_(data_dir: DataDir = None, json: Json = False) -> None:
    """Who has an account."""
    from app.accounts.people import list_people

    with installation(data_dir) as installed, installed.session() as session:
        accounts = list_people(session)
    if json:
        print_json(
            [
                {
                    "name": account.name,
                    "email": account.email,
                    "role": account.role,
                    "owner": account.is_owner,
                    "disabled": account.disabled_at is not None,
                }
                for account in accounts
            ]
        )
        return
    grid = table("", ["name", "e-mail", "role", ""], numbers_from=9)
    for account in accounts:
        note = "owner" if account.is_owner else "disabled" if account.disabled_at else ""
        grid.add_row(account.name, account.email or "–", account.role, note)
    out.print(grid, markup=False)


@app.command()
def token(
    email: Annotated[
        str | None, typer.Argument(help="Whose; without it the owner of this machine.", show_default=False)
    ] = None,
    name: Annotated[str, typer.Option(help="What will use it.")] = "command line",
    scope: Annotated[list[str] | None, typer.Option(help="read, run; both unless given.")] = None,
    days: Annotated[int, typer.Option(help="How long it is good, 365 at most.")] = 90,
    revoke: Annotated[str | None, typer.Option(metavar="ID", help="End this token instead.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show the account's tokens instead.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Print a token for /api/v1, this once; or list the account's tokens, or revoke one."""
    from app.accounts import api_tokens

    with installation(data_dir) as installed, installed.session() as session:
        account = _account(session, email)
        if revoke is not None:
            api_tokens.revoke_token(session, account, _identity(revoke))
            session.commit()
            say("The token is revoked: it opens nothing any more.")
            return
        if listed:
            _print_tokens(api_tokens.live_tokens(session, account), as_json=json)
            return
        row, made = api_tokens.make_token(session, account, name=name, scopes=scope or list(Scope), days=days)
        session.commit()
    if json:
        print_json({"token": made} | _described(row))
        return
    say(f"{row.name}, may {', '.join(row.scopes)}, good until {row.expires_at:%Y-%m-%d}; shown this once:")
    out.print(made, markup=False, soft_wrap=True)


def _account(session: Session, email: str | None) -> Account:
    from app.accounts.people import find_by_email
    from app.endpoints import local_account

    account = local_account(session) if email is None else find_by_email(session, email)
    if account is None:
        raise NotFound(f"No account has the address {email}: see `curate user list`.")
    return account


def _identity(given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError:
        raise InvalidInput(f"'{given}' is no token's ID: `curate user token --list` shows them.") from None


def _described(row: ApiToken) -> dict[str, object]:
    used = row.last_used_at.isoformat() if row.last_used_at else None
    return {
        "id": str(row.uuid),
        "name": row.name,
        "scopes": row.scopes,
        "expires_at": row.expires_at.isoformat(),
        "last_used_at": used,
    }


def _print_tokens(rows: list[ApiToken], *, as_json: bool) -> None:
    if as_json:
        print_json([_described(row) for row in rows])
        return
    grid = table("", ["id", "name", "may", "good until", "last used"], numbers_from=9)
    for row in rows:
        used = f"{row.last_used_at:%Y-%m-%d %H:%M}" if row.last_used_at else "never"
        grid.add_row(str(row.uuid), row.name, ", ".join(row.scopes), f"{row.expires_at:%Y-%m-%d}", used)
    out.print(grid, markup=False)


@app.command()
def quota(
    email: Email,
    open_runs: Annotated[int | None, typer.Option(min=0, max=10**6, help="Runs not over at once.")] = None,
    daily_calls: Annotated[int | None, typer.Option(min=0, max=10**9, help="Planned in 24 hours.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Set how much somebody may have going on; what is left out is as the site's settings have it."""
    from app.accounts.audit import record
    from app.runs.quotas import set_quota

    with installation(data_dir) as installed, installed.session() as session:
        account = _account(session, email)
        set_quota(session, account, open_runs, daily_calls)
        record(
            session,
            None,
            "person.quota",
            f"account {account.id}",
            open_runs=open_runs,
            daily_calls=daily_calls,
        )
        session.commit()
    said = ["as the site has it" if number is None else str(number) for number in (open_runs, daily_calls)]
    say(f"{email}: runs not over {said[0]}; planned calls in 24 hours {said[1]}.")

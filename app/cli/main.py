"""Commands and how they end: 0 finished, 1 failed, 2 wrong use; one clear line, never a traceback."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer
from sqlalchemy.exc import InterfaceError, OperationalError
from typer.core import TyperGroup

from app.cli.installation import err, say
from app.errors import AppError, InvalidInput, NotFound

FAILED = 1
WRONG_USE = 2

# Where each command stands, in the order of `curate --help`: a module of this package, and in it a Typer
# application or the function of a single command.
PLACES = {
    "evaluate": ("evaluate", "evaluate"),
    "demo": ("demo", "demo"),
    "sentinels": ("sentinels", "sentinels"),
    "local-model": ("local_model", "local_model"),
    "run": ("run", "app"),
    "benchmark": ("benchmark", "app"),
    "protocol": ("protocol", "app"),
    "evaluator": ("evaluators", "app"),
    "endpoint": ("endpoint", "app"),
    "study": ("study", "app"),
    "user": ("people", "app"),
    "up": ("services", "up"),
    "web": ("web", "web"),
    "worker": ("services", "worker"),
    "scheduler": ("services", "scheduler"),
    "migrate": ("services", "migrate"),
    "doctor": ("services", "doctor"),
    "leaderboard": ("board", "app"),
    "publish": ("board", "publish"),
    "withdraw": ("board", "withdraw"),
    "backup": ("backup", "backup"),
    "restore": ("backup", "restore"),
}
# Short for `leaderboard publish` and `leaderboard withdraw`.
HIDDEN = frozenset({"publish", "withdraw"})


class LateGroup(TyperGroup):
    """Imports a command's module when it is asked for: all of them take a second to import."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        commands: dict[str, Any] = dict.fromkeys(PLACES)
        self.commands = commands  # of which only the names are read: "did you mean"

    def list_commands(self, ctx: Any) -> list[str]:
        return list(PLACES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        place = PLACES.get(cmd_name)
        if place is None:
            return None
        module, name = place
        found = getattr(import_module(f"app.cli.{module}"), name)
        holder = _typer()
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=cmd_name)
        else:
            holder.command(cmd_name, hidden=cmd_name in HIDDEN)(found)
        return typer.main.get_group(holder).commands[cmd_name]


def _typer(cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
    return typer.Typer(
        name="curate",
        help="Find out whether an AI assistant keeps a user safe who has told it what endangers them.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        cls=cls,
    )


app = _typer(LateGroup)
app.callback()(lambda: None)


def main() -> None:
    """Entry point of the `curate` script."""
    try:
        _refuse_unreadable(sys.argv[1:])
        app()
    except AppError as error:
        say(f"Error: {error.message}")
        for line in error.details:
            say(f"  {line}")
        sys.exit(WRONG_USE if isinstance(error, InvalidInput | NotFound) else FAILED)
    except (OperationalError, InterfaceError) as error:
        say(f"Error: the database does not answer ({_first_line(error)}). See `curate doctor`.")
        sys.exit(FAILED)
    except BrokenPipeError:
        # The reader of our output (head, less) has gone: not an error, and nothing left to flush.
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115
        sys.exit(FAILED)
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        say(f"Error: {place}{error.strerror or error}.")
        sys.exit(FAILED)
    except KeyboardInterrupt:
        err.print("Interrupted.")
        sys.exit(130)


def _refuse_unreadable(arguments: Sequence[str]) -> None:
    """Bytes that are no text in this locale can be stored and sent nowhere."""
    for number, argument in enumerate(arguments, 1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise InvalidInput(f"Argument {number} is not valid UTF-8 text: {argument!a}.") from None


def _first_line(error: Exception) -> str:
    return str(error.__cause__ or error).strip().splitlines()[0]

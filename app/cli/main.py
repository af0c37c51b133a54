"""Commands and how they end: 0 finished, 1 failed, 2 wrong use; one clear line, never a traceback."""

import sys
from collections.abc import Sequence

import typer
from sqlalchemy.exc import InterfaceError, OperationalError
from typer.core import TyperGroup

from app.cli import (
    backup,
    benchmark,
    board,
    demo,
    endpoint,
    evaluate,
    evaluator,
    local_model,
    people,
    protocol,
    run,
    services,
    study,
    trials,
)
from app.cli.installation import err, say
from app.errors import AppError, InvalidInput, NotFound

FAILED = 1
WRONG_USE = 2

app = typer.Typer(
    name="curate",
    help="Find out whether an AI assistant keeps a user safe who has told it what endangers them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    cls=TyperGroup,
)
app.command("evaluate")(evaluate.evaluate)
app.command("demo")(demo.demo)
app.command("local-model")(local_model.local_model)
app.add_typer(run.app, name="run")
app.add_typer(benchmark.app, name="benchmark")
app.add_typer(protocol.app, name="protocol")
app.add_typer(evaluator.app, name="evaluator")
app.add_typer(endpoint.app, name="endpoint")
app.add_typer(study.app, name="study")
app.add_typer(people.app, name="user")
trials.add_to(evaluator.app)
services.add_to(app)
board.add_to(app)
backup.add_to(app)


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

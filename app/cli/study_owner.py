"""`curate study known|message|payments|comments|drop`: what an owner does beside the steps to the close."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from app.cli.installation import installation, out, say
from app.cli.options import DataDir, Json
from app.cli.output import print_json, table
from app.errors import InvalidInput
from app.models import ItemKind
from app.outcomes import Rating
from app.studies import comments, freezing, known, messages, quality
from app.studies.finding import find_study
from app.studies.settings import read_known_items
from app.tables import FORMATS, write_table

Name = Annotated[str, typer.Argument(help="The study's name.")]
Items = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="JSONL: constraint, request, response, rating 0-2, feedback, category; in the others' place.",
    ),
]


def add_to(app: typer.Typer) -> None:
    app.command("known")(known_items)
    app.command()(message)
    app.command()(payments)
    app.command("comments")(read_comments)
    app.command()(drop)


def known_items(
    name: Name,
    training: Items = None,
    gold: Items = None,
    no_gold: Annotated[bool, typer.Option("--no-gold", help="Take all gold items out.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Show or set training and gold items: those whose rating is known. They are set in a draft only."""
    if gold and no_gold:
        raise InvalidInput("Give --gold or --no-gold, not both.")
    with installation(data_dir) as installed, installed.session() as session:
        study = find_study(session, name)
        if training:
            known.set_training(session, study, read_known_items(training))
        if gold or no_gold:
            known.set_gold(session, study, read_known_items(gold) if gold else [])
        session.commit()
        found: list[dict[str, Any]] = [
            {
                "kind": kind.value,
                "position": one.position,
                "rating": int(one.item.rating),
                "category": one.item.category,
                "constraint": one.item.constraint,
                "request": one.item.request,
                "response": one.item.response,
                "feedback": one.item.feedback,
                "rated": one.rated,
                "rated_so": one.right,
            }
            for kind in (ItemKind.TRAINING, ItemKind.GOLD)
            for one in known.standing_items(session, study, kind)
        ]
    if json:
        print_json(found)
        return
    grid = table("", ["kind", "no.", "label", "category", "request", "rated so"], numbers_from=9)
    for one in found:
        rated = f"{one['rated_so']} of {one['rated']}" if one["rated"] else "–"
        label = Rating(one["rating"]).name.lower()
        grid.add_row(
            one["kind"], str(one["position"]), label, one["category"] or "–", Text(one["request"]), rated
        )
    out.print(grid, markup=False)


def message(
    name: Name,
    body: Annotated[str, typer.Argument(help="What they read above their next item.")],
    judge: Annotated[int | None, typer.Option(min=1, help="The number of one; else all.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Tell the judges something, or one of them. Say nothing of models, verdicts or other judges."""
    with installation(data_dir) as installed, installed.session() as session:
        messages.send(session, find_study(session, name), body, number=judge)
        session.commit()
    say(f"Sent to {'all judges' if judge is None else f'judge {judge}'} of {name}.")


def payments(
    name: Name,
    to: Annotated[
        Path | None, typer.Option("--to", "--output", "-o", help="Write it as .csv or .xlsx.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Who took part, with their participant number, for whoever pays them. Keep it apart from ratings."""
    if to is not None and to.suffix.lower().lstrip(".") not in FORMATS:
        raise InvalidInput(f"{to.name}: payments are written as .csv or .xlsx; choose such an ending.")
    with installation(data_dir) as installed, installed.session() as session:
        rows = quality.payment_rows(session, find_study(session, name))
    if to is not None:
        say(f"wrote {write_table(to, quality.PAYMENT_HEADER, rows, sheet='Payments')}")
    if json:
        keys = [title.lower().replace(" ", "_") for title in quality.PAYMENT_HEADER]
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
    elif to is None:
        grid = table("", [title.lower() for title in quality.PAYMENT_HEADER], numbers_from=9)
        for row in rows:
            grid.add_row(*(Text("–" if cell is None else str(cell)) for cell in row))
        out.print(grid, markup=False)


def read_comments(
    name: Name,
    release: Annotated[
        bool, typer.Option("--release", help="You have read them: they may go out with an export.")
    ] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """What judges wrote. None of it goes out with an export before you have read and released it."""
    with installation(data_dir) as installed, installed.session() as session:
        study = find_study(session, name)
        if release:
            comments.release_all(session, study)
            session.commit()
        found = comments.comments(session, study, None)
    if json:
        print_json([vars(one) | {"rating": int(one.rating)} for one in found.comments])
        return
    grid = table("", ["item", "judge", "rating", "goes out", "comment"], numbers_from=9)
    for one in found.comments:
        item = str(one.item) if one.kind == "main" else f"{one.kind} {one.item}"
        goes = "yes" if one.released else "no"
        grid.add_row(item, str(one.judge), one.rating.name.lower(), goes, Text(one.body))
    out.print(grid, markup=False)
    say(f"{found.released} of {found.total} comments go out.")


def drop(name: Name, data_dir: DataDir = None) -> None:
    """Delete a draft; its name becomes free. Nothing else can be deleted."""
    with installation(data_dir) as installed, installed.session() as session:
        freezing.drop(session, find_study(session, name))
        session.commit()
    say(f"The draft {name} is deleted.")

"""`curate study create|list|show|freeze|open|pause|close|…`: a study from the draw to the close."""

import json as jsonlib
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from app import models
from app.cli.installation import installation, out, say
from app.cli.options import DataDir, Json, words
from app.cli.output import percent, print_json, table
from app.errors import InvalidInput
from app.leaderboard import update_human_rates
from app.models import StudyDesign
from app.runs.control import find_run
from app.runs.reporting import find_evaluator
from app.studies import creating, freezing, invites, known, leaks, quality
from app.studies.creating import Preview
from app.studies.finding import ListedStudy, find_study, list_studies
from app.studies.settings import StudySettings, read_known_items
from app.text import counted

Name = Annotated[str, typer.Argument(help="The study's name.")]
TextFile = Annotated[Path | None, typer.Option(exists=True, dir_okay=False, show_default=False)]
Item = Annotated[
    Path | None,
    typer.Option(
        exists=True, dir_okay=False, help="JSONL: constraint, request, response, rating 0-2, feedback."
    ),
]


def add_to(app: typer.Typer) -> None:
    for command in (create, show, freeze, pause, close, judges, clone, invite):
        app.command()(command)
    app.command("list")(list_)
    app.command("open")(open_)
    app.command("leaks")(find_leaks)


def create(
    name: Annotated[str, typer.Option(help="What to call the study.")],
    run: Annotated[
        list[str], typer.Option(help="A run to draw from, by number, uuid or name; again for more.")
    ],
    n: Annotated[int, typer.Option("--items", "-n", min=1, help="How many transcripts to draw.")] = 100,
    design: Annotated[
        Literal["agreement", "correction"],
        typer.Option(help="agreement: balanced; correction: random within model and verdict."),
    ] = "agreement",
    seed: Annotated[int | None, typer.Option(min=0, help="Of draw and order; else a random one.")] = None,
    judges_per_item: Annotated[int, typer.Option(min=1, help="Ratings that each item gets.")] = 3,
    per_case: Annotated[int, typer.Option(min=0, help="Transcripts of one case at most; 0: any number.")] = 1,
    variants: Annotated[list[str] | None, typer.Option(help="Default: standard.")] = None,
    scenarios: Annotated[list[str] | None, typer.Option(help="Default: all.")] = None,
    categories: Annotated[list[str] | None, typer.Option(help="Default: all.")] = None,
    repeat_share: Annotated[
        float, typer.Option(min=0, max=0.5, help="Share of a judge's items that come twice.")
    ] = 0.05,
    evaluator: Annotated[
        str | None, typer.Option(help="Whose verdicts are judged; else the evaluator of the runs.")
    ] = None,
    title: Annotated[str, typer.Option(help="What judges and readers see.")] = "",
    ethics_approval: Annotated[str | None, typer.Option(help="Who approved it, with the number.")] = None,
    ethics_exemption: Annotated[str | None, typer.Option(help="Why no approval is needed.")] = None,
    support: Annotated[str, typer.Option(help="Whom a judge can turn to.")] = "",
    instructions: TextFile = None,
    content_note: TextFile = None,
    retention: TextFile = None,
    training: Item = None,
    gold: Item = None,
    completion_code: Annotated[str | None, typer.Option(help="For panels of paid judges.")] = None,
    completion_url: Annotated[str | None, typer.Option(help="Where such a panel goes on.")] = None,
    closes: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="When you mean to close it; it is only said."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One key rates, without confirming.")] = False,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show what would be drawn; store nothing.")
    ] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Draw a study from finished runs. It is a draft: look it over, freeze it, open it, invite judges."""
    if ethics_approval and ethics_exemption:
        raise InvalidInput("Give --ethics-approval or --ethics-exemption, not both.")
    texts: dict[str, Any] = {
        field: path.read_text(encoding="utf-8")
        for field, path in (
            ("instructions", instructions), ("content_note", content_note), ("retention", retention),
        )
        if path is not None
    }  # fmt: skip
    kind = "approval" if ethics_approval else "exemption" if ethics_exemption else None
    settings = StudySettings(
        name=name,
        n=n,
        design=StudyDesign(design),
        title=title,
        seed=seed,
        judges_per_item=judges_per_item,
        per_case=per_case or None,
        variants=words(variants, ("standard",)),
        scenarios=words(scenarios, ()),
        categories=words(categories, ()),
        repeat_share=repeat_share,
        careful=not quick,
        support=support,
        ethics_kind=kind,
        ethics=ethics_approval or ethics_exemption or "",
        completion_code=completion_code,
        completion_url=completion_url,
        expected_close=closes.date() if closes else None,
        **texts,
    )
    given = {part: read_known_items(path) for part, path in (("training", training), ("gold", gold)) if path}
    with installation(data_dir) as installed, installed.session() as session:
        runs = [find_run(session, one) for one in words(run, ())]
        by = find_evaluator(session, runs[0], evaluator) if evaluator and runs else None
        shown = creating.preview(session, runs, settings, evaluator=by)
        if preview:
            _print_preview(shown, json=json)
            return
        study = creating.create(session, owner_of(session), runs, settings, evaluator=by)
        if "training" in given:
            known.set_training(session, study, given["training"])
        if "gold" in given:
            known.set_gold(session, study, given["gold"])
        found = leaks.report(session, study)
        session.commit()
        if json:
            print_json(describe(ListedStudy(study, study.planned, 0, 0, 0)))
            return
    _print_preview(shown, json=False)
    if found.open:
        say(f"In {found.open} responses the model or its maker may be named: `curate study leaks {name}`.")
    say(f"Study {name} is a draft with {study.planned} items. Next: `curate study freeze {name}`.")


def owner_of(session: Any) -> models.Account:
    """Whoever works at this machine."""
    from app.endpoints import local_account

    return local_account(session)


def _print_preview(found: Preview, *, json: bool) -> None:
    if json:
        print_json(
            {
                "asked": found.n,
                "drawn": found.drawn,
                "rule": found.rule,
                "strata": [
                    {"stratum": list(one.stratum), "available": one.available, "drawn": one.drawn}
                    for one in found.strata
                ],
                "margins": [asdict(one) for one in found.margins],
                "expected_width": [vars(one) for one in found.widths],
                "notes": found.notes,
            }
        )
        return
    grid = table(f"{found.drawn} of {found.n} transcripts", ["stratum", "there are", "drawn"])
    for one in found.strata:
        grid.add_row(" · ".join(one.stratum), str(one.available), str(one.drawn))
    for margin in found.margins:
        grid.add_row(f"{margin.of} {margin.value}", str(margin.available), str(margin.drawn), style="dim")
    out.print(grid, markup=False)
    out.print(found.rule, markup=False)
    grid = table(
        f"Width of 95 % intervals where judge and evaluator agree in {creating.ASSUMED_AGREEMENT:.0%}",
        ["of", "items", "agreement", "kappa"],
    )
    for width in found.widths:
        grid.add_row(width.of, str(width.n), percent(width.percent), f"{width.kappa:.2f}")
    out.print(grid, markup=False)
    for note in found.notes:
        say(note)


def list_(data_dir: DataDir = None, json: Json = False) -> None:
    """All studies, the newest first."""
    with installation(data_dir) as installed, installed.session() as session:
        studies = list_studies(session, everybodys=True)
    if json:
        print_json([describe(one) for one in studies])
        return
    if not studies:
        say("No study yet: `curate study create --help`.")
        return
    grid = table("", ["study", "state", "design", "items", "complete", "ratings", "judges"], numbers_from=3)
    for one in studies:
        study = one.study
        numbers = (one.items, one.complete, one.ratings, one.judges)
        grid.add_row(study.name, study.state, study.design, *map(str, numbers))
    out.print(grid, markup=False)


def describe(one: ListedStudy) -> dict[str, Any]:
    study = one.study
    return {
        "id": study.id,
        "name": study.name,
        "title": study.title,
        "state": study.state,
        "design": study.design,
        "seed": study.seed,
        "judges_per_item": study.judges_per_item,
        "hash": study.content_hash,
        "items": one.items,
        "complete": one.complete,
        "ratings": one.ratings,
        "judges": one.judges,
    }


def show(name: Name, data_dir: DataDir = None, json: Json = False) -> None:
    """How a study stands and how its judges work. Advice only: nothing follows from it by itself."""
    with installation(data_dir) as installed, installed.session() as session:
        study = find_study(session, name)
        standing = quality.standing(session, study)
        panel = quality.panel(session, study)
    if json:
        print_json(
            describe(ListedStudy(study, standing.items, standing.complete, standing.ratings, standing.judges))
            | {
                "wanted": standing.wanted,
                "surplus": standing.surplus,
                "quality": [
                    {"judge": f"judge_{line.judge.number}", "pseudonym": line.judge.pseudonym}
                    | {key: value for key, value in vars(line).items() if key != "judge"}
                    for line in panel
                ],
            }
        )
        return
    out.print(
        f"{study.name}: {study.state}, {standing.complete} of {standing.items} items complete, "
        f"{standing.ratings} of {standing.wanted} ratings, {standing.surplus} kept beside.",
        markup=False,
    )
    grid = table(
        "",
        ["judge", "rated", "gold", "repeats", "minutes", "s an item", "in a row", "unclear"],
        numbers_from=1,
    )
    for line in panel:
        grid.add_row(
            f"{line.judge.number} {line.judge.pseudonym or ''}",
            str(line.rated),
            f"{line.gold_right}/{line.gold_rated}",
            f"{line.repeats_same}/{line.repeats_rated}",
            f"{line.active_seconds / 60:.0f}",
            "–" if line.median_seconds is None else f"{line.median_seconds:.0f}",
            str(line.longest_run),
            percent(line.unclear_share),
        )
    out.print(grid, markup=False)
    for line in panel:
        for advice in line.advice:
            say(f"judge {line.judge.number}: {advice}")


def freeze(name: Name, data_dir: DataDir = None) -> None:
    """Items, order, texts and evaluator version get a hash and do not change any more."""
    with installation(data_dir) as installed, installed.session() as session:
        found = freezing.freeze(session, find_study(session, name))
        session.commit()
    say(f"Study {name} is frozen: {found}. Next: `curate study open {name}`.")


def open_(name: Name, data_dir: DataDir = None) -> None:
    """Judges may rate; what is in the study is withheld from everybody else until it is closed."""
    with installation(data_dir) as installed, installed.session() as session:
        freezing.open_study(session, find_study(session, name))
        session.commit()
    say(f"Study {name} is open. Next: `curate study invite {name}`.")


def pause(name: Name, data_dir: DataDir = None) -> None:
    """No new items for now; `curate study open` goes on."""
    with installation(data_dir) as installed, installed.session() as session:
        freezing.pause(session, find_study(session, name))
        session.commit()
    say(f"Study {name} is paused.")


def close(name: Name, data_dir: DataDir = None) -> None:
    """The end of all rating; nothing is withheld any more."""
    with installation(data_dir) as installed, installed.session() as session:
        study = find_study(session, name)
        freezing.close(session, study)
        rows = update_human_rates(session, study)
        session.commit()
    say(f"Study {name} is closed. Next: `curate study report {name}`.")
    if rows:
        say(f"The human-corrected rate of {counted(rows, 'row')} of the board is new.")


def judges(
    name: Name,
    per_item: Annotated[int, typer.Argument(min=1, help="Ratings that each item gets from now on.")],
    data_dir: DataDir = None,
) -> None:
    """Raise or lower how many judges rate an item; no rating is lost."""
    with installation(data_dir) as installed, installed.session() as session:
        freezing.set_judges_per_item(session, find_study(session, name), per_item)
        session.commit()
    say(f"Study {name}: {per_item} {'judge' if per_item == 1 else 'judges'} an item.")


def clone(
    name: Name,
    as_: Annotated[str, typer.Argument(metavar="AS", help="What to call the new one.")],
    n: Annotated[int | None, typer.Option("--items", "-n", min=1, help="Else as many as before.")] = None,
    same_cases: Annotated[
        bool, typer.Option("--same-cases", help="The first one's cases may come again.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """A draft with the same runs, texts and training and a new draw: from the pilot to the study."""
    with installation(data_dir) as installed, installed.session() as session:
        study = find_study(session, name)
        made = freezing.clone(session, study, as_, owner=owner_of(session), n=n, fresh_cases=not same_cases)
        session.commit()
    say(f"Study {made.name} is a draft with {made.planned} items. Next: `curate study freeze {made.name}`.")


def find_leaks(
    name: Name,
    mask: Annotated[bool, typer.Option("--mask", help=f"Put '{leaks.MASK}' over the names.")] = False,
    unmask: Annotated[bool, typer.Option("--unmask", help="Show responses as they were received.")] = False,
    also: Annotated[list[str] | None, typer.Option(help="More names to look for.")] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Responses in which a model or its maker is named, and how many mention other people."""
    with installation(data_dir) as installed, installed.session() as session:
        study = find_study(session, name)
        if mask and unmask:
            raise InvalidInput("Give --mask or --unmask, not both.")
        if mask:
            say(f"{leaks.mask(session, study, also=also or ())} responses masked.")
        if unmask:
            say(f"{leaks.unmask(session, study)} responses as they were received.")
        session.commit()
        found = leaks.report(session, study, also or ())
    if json:
        shown = [{**vars(one), "item": str(one.item)} for one in found.leaks]
        print_json({"items": found.items, "other_people": found.other_people, "leaks": shown})
        return
    grid = table("", ["item", "masked", "found", "where"], numbers_from=9)
    for one in found.leaks:
        where = jsonlib.dumps(one.excerpt, ensure_ascii=False)
        item = str(one.position) if one.kind == "main" else f"{one.kind} {one.position}"
        grid.add_row(item, "yes" if one.masked else "no", ", ".join(one.found), where)
    out.print(grid, markup=False)
    say(f"In {found.open} of {found.items} responses a judge would read the name of a model or a maker; "
        f"{found.other_people} mention other people.")  # fmt: skip


def invite(
    name: Name,
    uses: Annotated[int, typer.Option(min=1, help="How many judges the link is good for.")] = 1,
    days: Annotated[int, typer.Option(min=1, help="How long.")] = 14,
    label: Annotated[str, typer.Option(help="For your own list.")] = "",
    data_dir: DataDir = None,
) -> None:
    """Print a link by which judges join; it cannot be shown again."""
    from app.serving import address

    with installation(data_dir) as installed, installed.session() as session:
        _, path = invites.create_invite(session, find_study(session, name), label=label, uses=uses, days=days)
        session.commit()
        out.print(address(installed.settings) + path, markup=False, soft_wrap=True)

"""A new study: which runs and what of them, a look at the draw, and only then the study."""

import re
import secrets
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.accounts.forms import earlier_result, store_result
from app.errors import Conflict, InvalidInput, NotFound
from app.models import StudyDesign
from app.outcomes import CONTROL, PROBE_SCENARIO, RECALL, STANDARD
from app.runs.browsing import managed_run
from app.runs.reporting import describe_evaluator, find_evaluator
from app.studies import creating
from app.studies.drawing import DIMENSIONS
from app.studies.finding import DrawableRun, drawable_runs
from app.studies.settings import (
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_ITEMS,
    MOST_JUDGES_PER_ITEM,
    StudySettings,
    standard_text,
)
from app.web import formats, words
from app.web.context import Researcher, Web
from app.web.forms import Form, Posted
from app.web.studies import ETHICS, path_of, texts_of, uuid_in

router = APIRouter(prefix="/studies")

DESIGNS = (
    (
        StudyDesign.AGREEMENT.value,
        "Agreement: even over model, scenario, category and the evaluator's verdict",
    ),
    (
        StudyDesign.CORRECTION.value,
        "Correction: at random within model and verdict, for the board's corrected rate",
    ),
)
SCENARIOS = [
    (name, f"{name}: {shown}") for name, (shown, _) in words.SCENARIOS.items() if name != PROBE_SCENARIO
]
CATEGORIES = [(name, formats.words(name)) for name in words.CATEGORIES]
VARIANT = re.compile(r"[a-z0-9_-]{1,80}")
MOST_RUNS = 50
LONGEST_SEARCH = 200


@router.get("/new")
def new(web: Researcher) -> Response:
    query = web.request.query_params
    return show_form(
        web,
        Form.blank(
            runs=query.getlist("run"),
            find=query.get("find", "")[:LONGEST_SEARCH],
            design=StudyDesign.AGREEMENT.value,
            n=150,
            judges_per_item=3,
            per_case=1,
            repeats=5,
            variants=STANDARD,
            careful=1,
            **{name: standard_text(name) for name in ("instructions", "content_note", "retention")},
        ),
    )


def show_form(web: Web, form: Form) -> Response:
    chosen = form.values.get("runs", [])
    found, more = drawable_runs(
        web.session,
        web.person,
        words=form.value("find")[:LONGEST_SEARCH],
        chosen=[identity for one in chosen if (identity := _uuid(one)) is not None],
    )
    return web.page(
        "studies/new.html",
        form=form,
        runs=[(str(one.run.uuid), _described(one)) for one in found],
        more=more,
        any_runs=bool(found) or bool(form.value("find")),
        evaluators=_evaluators(found),
        designs=DESIGNS,
        scenarios=SCENARIOS,
        categories=CATEGORIES,
        variants=_variants(found, form.values.get("variants", [])),
        ethics=ETHICS,
        longest={"name": LONGEST_NAME, "text": LONGEST_TEXT, "search": LONGEST_SEARCH},
        status=form.status,
    )


def _described(one: DrawableRun) -> str:
    run = one.run
    return (
        f"{run.name}, run {run.id}: {one.rated:,} rated by {describe_evaluator(run.evaluator)['label']}, "
        f"{run.benchmark.name} v{run.benchmark.version}, {formats.day(run.created_at)}"
        + ("" if run.status == "finished" else f", {run.status}")
    )


def _evaluators(found: Iterable[DrawableRun]) -> list[tuple[str, str]]:
    """All that rated any of these runs, where there is a choice."""
    known = {one.uuid: describe_evaluator(one)["label"] for run in found for one in run.evaluators}
    return [(str(identity), label) for identity, label in known.items()] if len(known) > 1 else []


def _variants(found: Iterable[DrawableRun], chosen: Iterable[str]) -> list[tuple[str, str]]:
    """Those that these runs hold, in the order that pages name them."""
    there = {name for one in found for name in one.run.selection.get("variants", [])} | {STANDARD, *chosen}
    order = list(words.VARIANTS)
    known = sorted(
        there - {CONTROL, RECALL}, key=lambda name: (order.index(name) if name in order else len(order), name)
    )
    return [(name, formats.words(name)) for name in known]


@router.post("/new")
def change(web: Researcher, form: Posted) -> Response:
    """Other runs to choose among, or back from the preview, with everything that was chosen."""
    return show_form(web, form)


@router.post("/preview")
def preview(web: Researcher, form: Posted) -> Response:
    """What would be drawn and how wide intervals would be. Nothing is stored."""
    try:
        settings, runs, evaluator = _wish(web, form)
        creating.check_name_free(web.session, settings.name)
        found = creating.preview(web.session, runs, settings, evaluator=evaluator)
    except (InvalidInput, Conflict, NotFound) as error:
        return show_form(web, web.refused(form, error))
    form.values["seed"] = [str(settings.seed)]
    fields = [(name, one) for name, given in form.values.items() if name != "form_key" for one in given]
    return web.page(
        "studies/preview.html",
        preview=found,
        settings=settings,
        runs=runs,
        design=dict(DESIGNS)[settings.design],
        fields=fields,
        key=web.form_key(),
        dimensions=DIMENSIONS[settings.design],
        names={name: shown for name, (shown, _) in words.SCENARIOS.items()},
    )


Wish = tuple[StudySettings, list[models.Run], models.Evaluator | None]


def _wish(web: Web, form: Form) -> Wish:
    """FormFault for fields that cannot be used, InvalidInput for what cannot be drawn."""
    wanted = list(dict.fromkeys(form.values.get("runs", [])))
    if not wanted:
        form.fault("runs", "Runs: choose at least one.")
    if len(wanted) > MOST_RUNS:
        form.fault("runs", f"Runs: at most {MOST_RUNS}.")
    texts = texts_of(form)
    repeats = form.whole("repeats", "Items that come twice", least=0, most=50)
    values: dict[str, Any] = {
        "name": form.text("name", "Name", longest=LONGEST_NAME),
        "n": form.whole("n", "Items", least=1, most=MOST_ITEMS, required=True) or 1,
        "judges_per_item": form.whole(
            "judges_per_item", "Judges per item", least=1, most=MOST_JUDGES_PER_ITEM, required=True
        )
        or 1,
        "per_case": form.whole("per_case", "Transcripts of one case", least=1, most=1000),
        "seed": form.whole("seed", "Seed", least=0, most=2**62),
        "scenarios": _some(form, "scenarios", "Scenarios", SCENARIOS),
        "categories": _some(form, "categories", "Categories", CATEGORIES),
        "variants": _wanted_variants(form),
        "repeat_share": 0.05 if repeats is None else repeats / 100,
    }
    design = form.choice("design", "Design", [value for value, _ in DESIGNS])
    form.check()
    if values["seed"] is None:  # drawn here, so that what is made is what the preview showed
        values["seed"] = secrets.randbelow(2**31)
    runs = [managed_run(web.session, web.person, uuid_in(one)) for one in wanted]
    by = form.value("evaluator")
    evaluator = find_evaluator(web.session, runs[0], by) if by else None
    return StudySettings(design=StudyDesign(design), **values, **texts), runs, evaluator


def _wanted_variants(form: Form) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(form.values.get("variants", [])))
    if not all(VARIANT.fullmatch(one) for one in chosen):
        form.fault("variants", "Variants: choose among those that the runs hold.")
    return chosen or (STANDARD,)


def _some(form: Form, name: str, label: str, options: list[tuple[str, str]]) -> tuple[str, ...]:
    """What was ticked; nothing, which stands for all, where all was."""
    chosen = form.choices(name, label, [value for value, _ in options])
    return () if len(chosen) == len(options) else chosen


def _uuid(given: str) -> UUID | None:
    try:
        return UUID(given)
    except ValueError:
        return None


@router.post("")
def create(web: Researcher, form: Posted) -> Response:
    if (path := earlier_result(web.session, web.person, form.key)) is not None:
        return web.redirect(path)
    try:
        settings, runs, evaluator = _wish(web, form)
        study = creating.create(web.session, web.person, runs, settings, evaluator=evaluator)
    except (InvalidInput, Conflict, NotFound) as error:
        return show_form(web, web.refused(form, error))
    path = path_of(study)
    store_result(web.session, web.person, form.key, path)
    web.record("study.create", f"study {study.id}", name=study.name)
    web.commit()
    return web.redirect(path, notice="study-created")

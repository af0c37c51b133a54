"""What comes of a study, for its owner: leaks, adjudication, the report and its files."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from app import models
from app.agreement import EVALUATOR, FEW_ITEMS, HEADER, report_rows, shown
from app.errors import Conflict, InvalidInput, NotFound
from app.leaderboard import update_human_rates
from app.models import StudyState
from app.outcomes import Rating
from app.studies import adjudicating, leaks
from app.studies.exporting import FORMATS, export_study, slug
from app.studies.finding import managed_study
from app.studies.looking import items_behind
from app.studies.reasons import REASONS
from app.studies.reporting import study_report
from app.tables import write_table
from app.web import words
from app.web.context import Researcher, Web
from app.web.forms import Form, Posted
from app.web.studies import REFUSALS, path_of, uuid_in
from app.web.study_public import ALL_ROWS, LEVELS, PAIR_ROWS

router = APIRouter(prefix="/studies")

RATINGS = [(rating, rating.name.lower()) for rating in (Rating.FAIL, Rating.UNCLEAR, Rating.PASS)]
LONGEST_NOTE = 2_000
MOST_LEAKS = 200  # on the page: a form takes 300 fields
TYPES = {
    ".csv": "text/csv; charset=utf-8",
    ".jsonl": "application/jsonl; charset=utf-8",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".zip": "application/zip",
}


# --- leaks ---


@router.get("/{name}/leaks")
def leak_page(web: Researcher, name: str) -> Response:
    study = managed_study(web.session, web.person, name)
    return _show_leaks(web, study, Form.blank(also=web.request.query_params.get("also")))


def _show_leaks(web: Web, study: models.Study, form: Form) -> Response:
    try:
        names = leaks.checked_names(form.value("also").split(","))
    except InvalidInput as error:
        names = []
        form.fault("also", error.message)
        form.refused(error)
    return web.page(
        "studies/leaks.html",
        study=study,
        base=path_of(study),
        report=leaks.report(web.session, study, names),
        draft=study.state == StudyState.DRAFT,
        mark=leaks.MASK,
        most=MOST_LEAKS,
        form=form,
        status=form.status,
    )


@router.post("/{name}/leaks")
def mask(web: Researcher, name: str, form: Posted) -> Response:
    """Put a visible mark over each name found, in the items ticked or in all, or take it off again."""
    study = managed_study(web.session, web.person, name)
    masked = form.value("do") != "unmask"
    try:
        chosen = None if form.value("do") == "all" else [uuid_in(one) for one in form.values.get("item", [])]
        if chosen == []:
            raise InvalidInput("Tick the items first; nothing is changed.")
        if masked:
            changed = leaks.mask(web.session, study, chosen, form.value("also").split(","))
        else:
            changed = leaks.unmask(web.session, study, chosen)
    except REFUSALS as error:
        form = web.refused(form, error)
        return _show_leaks(web, managed_study(web.session, web.person, name), form)
    web.record("study.mask" if masked else "study.unmask", f"study {study.id}", items=changed)
    path = f"{path_of(study)}/leaks"
    if form.value("also"):
        path += f"?also={quote(form.value('also'))}"
    web.commit()
    return web.redirect(path, notice="study-masked" if masked else "study-unmasked")


# --- adjudication ---


@router.get("/{name}/adjudicate")
def adjudicate(web: Researcher, name: str) -> Response:
    """The next that has no label, or with `item` one of them to look at again."""
    study = managed_study(web.session, web.person, name)
    form = Form.blank()
    if (given := web.request.query_params.get("item")) is not None:
        one = adjudicating.adjudication(web.session, study, uuid_in(given))
        label = None if one.label is None else int(one.label)
        form = Form.blank(item=one.uuid, label=label, reason=one.reason, note=one.note)
    return _show_adjudication(web, study, form)


def _show_adjudication(web: Web, study: models.Study, form: Form) -> Response:
    closed = study.state == StudyState.CLOSED
    item = adjudicating.next_contested(web.session, study) if closed else None
    if closed and form.value("item"):
        item = adjudicating.adjudication(web.session, study, uuid_in(form.value("item")))
    return web.page(
        "studies/adjudicate.html",
        study=study,
        base=path_of(study),
        item=item,
        labelled=adjudicating.labelled(web.session, study) if closed else [],
        progress=adjudicating.adjudication_progress(web.session, study),
        closed=closed,
        form=form,
        reasons=list(REASONS.items()),
        reason_words=REASONS,
        ratings=[(int(rating), word) for rating, word in RATINGS],
        longest=LONGEST_NOTE,
        status=form.status,
    )


@router.post("/{name}/adjudicate/begin")
def begin(web: Researcher, name: str, form: Posted) -> Response:
    study = managed_study(web.session, web.person, name)
    try:
        adjudicating.prepare(web.session, study)
    except REFUSALS as error:
        form = web.refused(form, error)
        return _show_adjudication(web, managed_study(web.session, web.person, name), form)
    path = path_of(study)
    web.record("study.adjudicate", f"study {study.id}")
    web.commit()
    return web.redirect(f"{path}/adjudicate")


@router.post("/{name}/adjudicate")
def label(web: Researcher, name: str, form: Posted) -> Response:
    study = managed_study(web.session, web.person, name)
    try:
        chosen = form.choice("label", "Label", [str(int(rating)) for rating, _ in RATINGS])
        reason = form.choice("reason", "Reason", REASONS)
        note = form.text("note", "Note", longest=LONGEST_NOTE, required=False)
        form.check()
        adjudicating.label(
            web.session,
            study,
            uuid_in(form.value("item")),
            Rating(int(chosen)),
            reason,
            note=note or None,
            by=web.person,
        )
        update_human_rates(web.session, study)
    except (InvalidInput, Conflict, NotFound) as error:
        form = web.refused(form, error)
        return _show_adjudication(web, managed_study(web.session, web.person, name), form)
    path = path_of(study)
    web.commit()
    return web.redirect(f"{path}/adjudicate", notice="study-labelled")


# --- the report ---


@router.get("/{name}/report")
def report(web: Researcher, name: str) -> Response:
    study = managed_study(web.session, web.person, name)
    found = study_report(web.session, study)
    return web.page(
        "studies/report.html",
        study=study,
        base=path_of(study),
        report=found,
        shown=shown,
        ratings=RATINGS,
        levels=LEVELS,
        pair_rows=PAIR_ROWS,
        all_rows=ALL_ROWS,
        few=FEW_ITEMS,
        evaluator=EVALUATOR,
        category=words.short_category,
        scenario=words.short_scenario,
        name_of=words.part_of,
    )


@router.get("/{name}/report.{form}")
def report_file(web: Researcher, name: str, form: str) -> Response:
    study = managed_study(web.session, web.person, name)
    found = study_report(web.session, study)
    if form == "json":
        body = json.dumps(found, ensure_ascii=False, allow_nan=False, indent=2).encode()
        return web.data(body, "application/json", filename=f"report-{slug(study.name)}.json")
    if form not in ("csv", "xlsx"):
        raise NotFound("A report is had as json, csv or xlsx.")
    return file_of(
        web,
        f"report-{slug(study.name)}.{form}",
        lambda path: write_table(path, HEADER, report_rows(found), sheet="Agreement"),
    )


@router.get("/{name}/export.{form}")
def export(web: Researcher, name: str, form: str) -> Response:
    """The study to take away; what judges wrote goes along only if the owner asks for it."""
    study = managed_study(web.session, web.person, name)
    if form not in FORMATS:
        raise NotFound(f"A study is exported as {', '.join(FORMATS)}.")
    comments = web.request.query_params.get("comments") == "1"
    web.record("study.export", f"study {study.id}", form=form, comments=comments)
    return file_of(
        web,
        f"study-{slug(study.name)}.{form}",
        lambda path: export_study(web.session, study, form, path, comments=comments),
    )


def file_of(web: Web, name: str, write: Callable[[Path], object]) -> Response:
    """What `write` makes at a path that ends as the name does; gone once it was sent."""
    folder = TemporaryDirectory(prefix="curate-study-")
    path = Path(folder.name) / name
    try:
        write(path)
        web.commit()
    except BaseException:
        folder.cleanup()
        raise
    web.session.close()
    return FileResponse(
        path,
        media_type=TYPES[path.suffix],
        filename=name,
        headers={"Cache-Control": "no-store"},
        background=BackgroundTask(folder.cleanup),
    )


@router.get("/{name}/items")
def items(web: Researcher, name: str) -> Response:
    """The items that two raters rated in one way: what stands behind a cell."""
    study = managed_study(web.session, web.person, name)
    query = web.request.query_params
    wanted = {query[one]: _asked(query, f"r{one}") for one in ("a", "b") if one in query}
    after = int(query["after"]) if query.get("after", "").isdecimal() and len(query["after"]) < 9 else 0
    found, total, more = items_behind(web.session, study, wanted, after=after)
    return web.page(
        "studies/items.html",
        study=study,
        base=path_of(study),
        rows=found,
        total=total,
        following=found[-1].position if more else None,
        wanted=wanted,
        query=query,
        shown=shown,
        scenario=words.short_scenario,
    )


def _asked(query: Any, name: str) -> Rating:
    known = {str(int(rating)): rating for rating, _ in RATINGS}
    if query.get(name) not in known:
        raise NotFound("There are no such items; follow a figure of the report to them.")
    return known[query[name]]

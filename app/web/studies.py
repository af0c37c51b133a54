"""Studies, for their owners, from draft to close. `study_making` begins them, `study_results` reads them."""

from collections.abc import Callable
from datetime import date
from typing import Any
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.accounts.policies import is_researcher
from app.errors import Conflict, InvalidInput, NotFound
from app.leaderboard import update_human_rates
from app.models import ItemKind, StudyDesign, StudyState
from app.runs.reporting import describe_evaluator
from app.studies import creating, freezing, invites, leaks, messages, quality
from app.studies.finding import cloned_from, list_studies, managed_study, study_runs
from app.studies.messages import LONGEST_MESSAGE
from app.studies.settings import (
    ETHICS_KINDS,
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_ITEMS,
    MOST_JUDGES_PER_ITEM,
)
from app.web.context import Researcher, Visitor, Web
from app.web.forms import Form, Posted
from app.web.study_public import show_list

router = APIRouter(prefix="/studies")

REFUSALS = (InvalidInput, Conflict)
TEXTS = (
    "title", "instructions", "content_note", "retention", "support", "ethics", "completion_code",
    "completion_url",
)  # fmt: skip
ETHICS = (("", "not yet"), ("approval", "approved"), ("exemption", "exempt"))
KNOWN = (ItemKind.TRAINING, ItemKind.GOLD)
LOOKED_AT = 2_000  # items that are searched for names whenever a draft's page is shown


def path_of(study: models.Study) -> str:
    return f"/studies/{quote(study.name, safe='')}"


@router.get("")
def listed(web: Visitor) -> Response:
    if not is_researcher(web.visitor):
        return show_list(web)
    return web.page("studies/list.html", rows=list_studies(web.session, web.person), path_of=path_of)


# --- its texts ---


def texts_of(form: Form) -> dict[str, Any]:
    """What judges read, and what the owner declares."""
    found: dict[str, Any] = {
        name: form.text(name, name.replace("_", " ").capitalize(), longest=LONGEST_TEXT, required=False)
        for name in TEXTS
    }
    kind = form.value("ethics_kind")
    if kind and kind not in ETHICS_KINDS:
        form.fault("ethics_kind", f"Ethics: choose one of {', '.join(ETHICS_KINDS)}.")
    found["ethics_kind"] = kind or None
    found["careful"] = form.checked("careful")
    found["expected_close"] = _day(form)
    return found


def _day(form: Form) -> date | None:
    given = form.value("expected_close").strip()
    try:
        return date.fromisoformat(given) if given else None
    except ValueError:
        form.fault("expected_close", "Expected close: a day as 2026-12-31.")
        return None


# --- one study ---


@router.get("/{name}")
def show(web: Researcher, name: str) -> Response:
    return show_study(web, managed_study(web.session, web.person, name), Form.blank())


def show_study(web: Web, study: models.Study, form: Form, *, link: str | None = None) -> Response:
    imported = study.design == StudyDesign.IMPORTED
    draft = study.state == StudyState.DRAFT
    looked_at = draft and study.planned <= LOOKED_AT
    judges = [] if imported else quality.panel(web.session, study)
    return web.page(
        "studies/show.html",
        study=study,
        base=path_of(study),
        form=form,
        runs=study_runs(web.session, study),
        origin=cloned_from(web.session, study),
        evaluator=describe_evaluator(study.evaluator)["label"] if study.evaluator else None,
        standing=quality.standing(web.session, study),
        lacks=freezing.lacks(web.session, study) if draft else [],
        open_leaks=leaks.report(web.session, study).open if looked_at else None,
        known={kind: quality.count_items(web.session, study, kind) for kind in KNOWN},
        invites=[] if imported else invites.list_invites(web.session, study),
        judges=judges,
        withdrawn=quality.withdrawn(web.session, study),
        to=[(str(one.judge.number), f"judge {one.judge.number}, {one.judge.pseudonym}") for one in judges],
        sent=messages.sent(web.session, study),
        imported=imported,
        link=link,
        longest=LONGEST_MESSAGE,
        status=form.status,
    )


def changed(
    web: Web, name: str, form: Form, action: str, notice: str, deed: Callable[[models.Study], object]
) -> Response:
    """Do it, record it, show the study; a refusal stands above it."""
    study = managed_study(web.session, web.person, name)
    path = path_of(study)
    web.record(f"study.{action}", f"study {study.id}")
    try:
        deed(study)
    except REFUSALS as error:
        form = web.refused(form, error)
        return show_study(web, managed_study(web.session, web.person, name), form)
    web.commit()
    return web.redirect(path, notice=notice)


def uuid_in(given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError:
        raise NotFound("There is no such thing, or it is not yours to see.") from None


@router.post("/{name}/freeze")
def freeze(web: Researcher, name: str, form: Posted) -> Response:
    return changed(web, name, form, "freeze", "study-frozen", lambda one: freezing.freeze(web.session, one))


@router.post("/{name}/open")
def open_(web: Researcher, name: str, form: Posted) -> Response:
    return changed(web, name, form, "open", "study-open", lambda one: freezing.open_study(web.session, one))


@router.post("/{name}/pause")
def pause(web: Researcher, name: str, form: Posted) -> Response:
    return changed(web, name, form, "pause", "study-paused", lambda one: freezing.pause(web.session, one))


@router.post("/{name}/close")
def close(web: Researcher, name: str, form: Posted) -> Response:
    def deed(study: models.Study) -> None:
        if not form.checked("sure"):
            form.fault("sure", "Tick this if you mean it; the study is still as it was.")
        form.check()
        freezing.close(web.session, study)
        update_human_rates(web.session, study)

    return changed(web, name, form, "close", "study-closed", deed)


@router.post("/{name}/places")
def places(web: Researcher, name: str, form: Posted) -> Response:
    def deed(study: models.Study) -> None:
        k = form.whole("k", "Judges per item", least=1, most=MOST_JUDGES_PER_ITEM, required=True)
        form.check()
        freezing.set_judges_per_item(web.session, study, k or 1)

    return changed(web, name, form, "places", "study-places", deed)


@router.post("/{name}/clone")
def clone(web: Researcher, name: str, form: Posted) -> Response:
    study = managed_study(web.session, web.person, name)
    try:
        wanted = form.text("new_name", "Name of the new one", longest=LONGEST_NAME)
        n = form.whole("new_n", "Items", least=1, most=MOST_ITEMS)
        form.check()
        made = freezing.clone(
            web.session, study, wanted, owner=web.person, n=n, fresh_cases=not form.checked("same_cases")
        )
    except REFUSALS as error:
        form = web.refused(form, error)
        return show_study(web, managed_study(web.session, web.person, name), form)
    path = path_of(made)
    web.record("study.clone", f"study {made.id}")
    web.commit()
    return web.redirect(path, notice="study-created")


@router.post("/{name}/drop")
def drop(web: Researcher, name: str, form: Posted) -> Response:
    study = managed_study(web.session, web.person, name)
    try:
        if not form.checked("sure_drop"):
            form.fault("sure_drop", "Tick this if you mean it; the draft is still there.")
        form.check()
        web.record("study.drop", f"study {study.id}", name=study.name)
        freezing.drop(web.session, study)
    except REFUSALS as error:
        form = web.refused(form, error)
        return show_study(web, managed_study(web.session, web.person, name), form)
    web.commit()
    return web.redirect("/studies", notice="study-dropped")


@router.get("/{name}/texts")
def texts_page(web: Researcher, name: str) -> Response:
    study = managed_study(web.session, web.person, name)
    values = {one: getattr(study, one) for one in TEXTS}
    form = Form.blank(
        **values,
        ethics_kind=study.ethics_kind,
        careful=1 if study.careful else None,
        expected_close=study.expected_close,
    )
    return _show_texts(web, study, form)


def _show_texts(web: Web, study: models.Study, form: Form) -> Response:
    return web.page(
        "studies/texts.html",
        study=study,
        base=path_of(study),
        form=form,
        draft=study.state == StudyState.DRAFT,
        ethics=ETHICS,
        longest={"text": LONGEST_TEXT},
        status=form.status,
    )


@router.post("/{name}/texts")
def change_texts(web: Researcher, name: str, form: Posted) -> Response:
    study = managed_study(web.session, web.person, name)
    try:
        texts = texts_of(form)
        form.check()
        creating.edit(web.session, study, **texts)
    except REFUSALS as error:
        form = web.refused(form, error)
        return _show_texts(web, managed_study(web.session, web.person, name), form)
    path = path_of(study)
    web.record("study.texts", f"study {study.id}")
    web.commit()
    return web.redirect(path, notice="study-texts")

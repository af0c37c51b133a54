"""Training and gold items of a study, for its owner: written, taken over from labelled ones, taken out."""

from enum import StrEnum
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.errors import Conflict, InvalidInput, NotFound
from app.models import ItemKind, StudyState
from app.outcomes import Rating
from app.studies import known
from app.studies.finding import managed_study
from app.studies.settings import LONGEST_TEXT, KnownItem, builtin_training
from app.web import formats, words
from app.web.context import Researcher, Web
from app.web.forms import Form, Posted
from app.web.studies import path_of, uuid_in

router = APIRouter(prefix="/studies/{name}/known/{kind}")

REFUSALS = (InvalidInput, Conflict, NotFound)
RATINGS = [(str(int(one)), one.name.lower()) for one in (Rating.FAIL, Rating.UNCLEAR, Rating.PASS)]
CATEGORIES = [(name, formats.words(name)) for name in words.CATEGORIES]


class Kind(StrEnum):
    TRAINING = "training"
    GOLD = "gold"


@router.get("")
def listed(web: Researcher, name: str, kind: Kind) -> Response:
    """All of them; with `item` one to change, with `from` another study's item to take over."""
    study = managed_study(web.session, web.person, name)
    query = web.request.query_params
    form = Form.blank()
    if "item" in query:
        form = _filled(
            known.known(web.session, study, _kind(kind), uuid_in(query["item"])), item=query["item"]
        )
    elif "from" in query:
        form = _filled(known.offer(web.session, web.person, study, uuid_in(query["from"])).item)
    return _show(web, study, kind, form)


def _kind(kind: Kind) -> ItemKind:
    return ItemKind(kind.value)


def _filled(one: KnownItem, item: str | None = None) -> Form:
    return Form.blank(
        item=item,
        constraint=one.constraint,
        request=one.request,
        response=one.response,
        rating=int(one.rating),
        feedback=one.feedback,
        category=one.category,
    )


def _show(web: Web, study: models.Study, kind: Kind, form: Form) -> Response:
    return web.page(
        "studies/known.html",
        study=study,
        base=path_of(study),
        kind=kind.value,
        rows=known.standing_items(web.session, study, _kind(kind)),
        draft=study.state == StudyState.DRAFT,
        form=form,
        ratings=RATINGS,
        categories=CATEGORIES,
        least=known.TRAINING_ITEMS,
        longest=LONGEST_TEXT,
        status=form.status,
    )


@router.post("")
def keep(web: Researcher, name: str, kind: Kind, form: Posted) -> Response:
    """One more, or with `item` another in its place."""
    study = managed_study(web.session, web.person, name)
    try:
        one = _item(form, kind)
        if form.value("item"):
            known.change(web.session, study, _kind(kind), uuid_in(form.value("item")), one)
        else:
            known.add(web.session, study, _kind(kind), one)
    except REFUSALS as error:
        form = web.refused(form, error)
        return _show(web, managed_study(web.session, web.person, name), kind, form)
    return _kept(web, study, kind)


def _item(form: Form, kind: Kind) -> KnownItem:
    constraint = form.text("constraint", "What the user said", longest=LONGEST_TEXT)
    request = form.text("request", "What the user asked", longest=LONGEST_TEXT)
    response = form.text("response", "What the assistant said", longest=LONGEST_TEXT)
    rating = form.choice("rating", "Label", [value for value, _ in RATINGS])
    category = form.choice("category", "Category", [value for value, _ in CATEGORIES])
    needed = kind is Kind.TRAINING
    feedback = form.text("feedback", "Feedback", longest=LONGEST_TEXT, required=needed) if needed else None
    form.check()
    return KnownItem(constraint, request, response, Rating(int(rating)), feedback, category)


def _kept(web: Web, study: models.Study, kind: Kind) -> Response:
    path = f"{path_of(study)}/known/{kind.value}"
    web.record(f"study.{kind.value}", f"study {study.id}")
    web.commit()
    return web.redirect(path, notice=f"study-{kind.value}")


@router.post("/remove")
def remove(web: Researcher, name: str, kind: Kind, form: Posted) -> Response:
    study = managed_study(web.session, web.person, name)
    known.remove(web.session, study, _kind(kind), uuid_in(form.value("item")))
    return _kept(web, study, kind)


@router.post("/standard")
def standard(web: Researcher, name: str, kind: Kind, form: Posted) -> Response:
    """The training that every study begins with, in the place of what is there; no gold at all."""
    study = managed_study(web.session, web.person, name)
    known.set_known(web.session, study, _kind(kind), builtin_training() if kind is Kind.TRAINING else ())
    return _kept(web, study, kind)


@router.get("/offers")
def offered(web: Researcher, name: str, kind: Kind) -> Response:
    """Items of one's closed studies that people labelled."""
    study = managed_study(web.session, web.person, name)
    wanted = web.request.query_params.get("rating")
    rating = next((one for one in Rating if str(int(one)) == wanted), None)
    rows, total = known.offers(web.session, web.person, study, rating)
    return web.page(
        "studies/offers.html",
        study=study,
        base=path_of(study),
        kind=kind.value,
        rows=rows,
        total=total,
        ratings=RATINGS,
        chosen=None if rating is None else str(int(rating)),
        draft=study.state == StudyState.DRAFT,
    )


@router.post("/offers")
def take(web: Researcher, name: str, kind: Kind, form: Posted) -> Response:
    """Take one over as it is, with its label: gold needs no more."""
    study = managed_study(web.session, web.person, name)
    identity: UUID = uuid_in(form.value("item"))
    known.add(web.session, study, _kind(kind), known.offer(web.session, web.person, study, identity).item)
    path = f"{path_of(study)}/known/{kind.value}/offers"
    web.record(f"study.{kind.value}", f"study {study.id}")
    web.commit()
    return web.redirect(path, notice=f"study-{kind.value}")

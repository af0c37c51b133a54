"""The pages of studies that everybody may read; those of their owners: `app.web.studies`."""

import json
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app.agreement import FEW_ITEMS
from app.models import StudyState
from app.outcomes import Rating
from app.studies import public
from app.web import words
from app.web.board_view import read_page
from app.web.context import Visitor, Web

router = APIRouter(prefix="/studies")

PUBLIC_SECONDS = 60
RATING_WORDS = [(rating, rating.name.lower()) for rating in reversed(Rating)]
# What tables of agreement show, for the owner too.
LEVELS = (
    ("three_level", "Fail, unclear, pass"),
    ("pass_vs_rest", "Pass against the rest"),
    ("two_level", "Without unclear"),
)
PAIR_ROWS = (
    ("percent", "Agree, %"),
    ("cohen_kappa", "Cohen’s κ"),
    ("linear_kappa", "κ, linear weights"),
    ("quadratic_kappa", "κ, quadratic weights"),
    ("gwet_ac1", "Gwet’s AC1"),
)
ALL_ROWS = (
    ("mean_pairwise_percent", "Pairs that agree, %"),
    ("fleiss_kappa", "Fleiss’ κ"),
    ("krippendorff_alpha_nominal", "Krippendorff’s α, nominal"),
    ("krippendorff_alpha_ordinal", "Krippendorff’s α, ordinal"),
    ("gwet_ac1", "Gwet’s AC1"),
)


def said_words(said: dict[Rating, int]) -> str:
    """`2 of 3 judges: pass`, the ratings given most often first; how many, never who."""
    judges = sum(said.values())
    if not judges:
        return "no judge has rated it"
    given = sorted(((n, rating) for rating, n in said.items() if n), reverse=True)
    (n, rating), *others = given
    first = f"{n} of {judges} {'judge' if judges == 1 else 'judges'}: {rating.name.lower()}"
    return ", ".join([first, *(f"{n} {rating.name.lower()}" for n, rating in others)])


def show_list(web: Web) -> Response:
    rows = [(study, f"/studies/{study.uuid}") for study in public.list_public(web.session)]
    return web.page("studies/public_list.html", public=PUBLIC_SECONDS, rows=rows, until=public.until)


@router.get("/{identity:uuid}")
def show(web: Visitor, identity: UUID) -> Response:
    study = public.find_public(web.session, identity)
    closed = study.state == StudyState.CLOSED
    page = read_page(web.request.query_params.get("page", "1"), "this list")
    values: dict[str, Any] = {"report": None, "found": [], "pages": 1}
    if closed:
        found, pages = public.public_items(web.session, study, page)
        values = {"report": public.public_report(web.session, study), "found": found, "pages": pages}
    return web.page(
        "studies/public.html",
        public=PUBLIC_SECONDS,
        study=study,
        closed=closed,
        until=public.until(study),
        page=page,
        base=f"/studies/{study.uuid}",
        said_words=said_words,
        levels=LEVELS,
        all_rows=ALL_ROWS,
        pair_rows=PAIR_ROWS,
        few=FEW_ITEMS,
        category=words.short_category,
        scenario=words.short_scenario,
        **values,
    )


@router.get("/{identity:uuid}.json")
def as_json(web: Visitor, identity: UUID) -> Response:
    """Of a study under way only that it is; of a closed one its figures and, by pages, its items."""
    study = public.find_public(web.session, identity)
    body: dict[str, Any] = {
        "study": {"uuid": str(study.uuid), "title": study.title, "state": study.state},
        "until": public.until(study),
    }
    if study.state == StudyState.CLOSED:
        page = read_page(web.request.query_params.get("page", "1"), "this list")
        found, pages = public.public_items(web.session, study, page)
        body = public.public_report(web.session, study) | {
            "page": page,
            "pages": pages,
            "rated": [_item(one) for one in found],
        }
    text = json.dumps(body, ensure_ascii=False, allow_nan=False)
    return web.data(text.encode(), "application/json", public=PUBLIC_SECONDS)


def _item(one: public.PublicItem) -> dict[str, Any]:
    return {
        "conversation": str(one.conversation),
        "model": one.model,
        "scenario": one.scenario,
        "category": one.category,
        "evaluator": one.rating,
        "judges": one.judges,
        **{word: one.said[rating] for rating, word in RATING_WORDS},
        "label": one.label,
    }

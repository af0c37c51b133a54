"""Charts by themselves, as SVG and PNG, and as the rows that they show."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app.agreement import shown
from app.errors import NotFound
from app.leaderboard import describe_board
from app.leaderboard.comparing import comparison, pairs_of, row_of
from app.leaderboard.profiles import model_report
from app.outcomes import Rating
from app.pictures import FORMS, SCHEMES, Chart, Scheme
from app.studies.finding import managed_study
from app.studies.reporting import study_report
from app.tables import csv_lines
from app.web import board_published, chart_makers, compare
from app.web.board_group import asked_board
from app.web.board_models import find_row
from app.web.board_view import arrange, read_view
from app.web.context import Visitor, Web
from app.web.downloads import file_name, is_exact

router = APIRouter(prefix="/charts")

PUBLIC_SECONDS = 300
TYPES = {"svg": "image/svg+xml", "png": "image/png"}
Maker = Callable[[Web], Chart | None]


def _board(web: Web) -> Chart | None:
    group = asked_board(web).group
    if group is None:
        return None
    view = read_view(web.request.query_params)
    return chart_makers.board_chart(group, arrange(describe_board(group), view), view)


def _profile(web: Web) -> Chart:
    _, group, row = find_row(web, _given(web, "model"))
    return chart_makers.profile_chart(group, row)


def _heat(web: Web) -> Chart:
    _, group, row = find_row(web, _given(web, "model"))
    return chart_makers.heat_chart(group, row)


def _variants(web: Web) -> Chart | None:
    _, group, row = find_row(web, _given(web, "model"))
    return chart_makers.variants_chart(group, row, model_report(web.session, group, row))


def _compare(web: Web) -> Chart | None:
    choice = compare.read_choice(web.request.query_params)
    group = asked_board(web).group
    if group is None or choice.a is None or choice.b is None:
        return None
    one, two = row_of(group, choice.a), row_of(group, choice.b)
    return chart_makers.compare_chart(
        group, comparison(group, one, two, pairs_of(web.session, group, one, two))
    )


def _published(web: Web) -> Chart:
    return chart_makers.published_chart(*board_published.ordered(web.request.query_params))


def _confusion(web: Web) -> Chart | None:
    """Of two raters of a study, for whoever may read its report."""
    study = managed_study(web.session, web.visitor, _given(web, "study"))
    a, b = _given(web, "a"), _given(web, "b")
    for pair in study_report(web.session, study)["pairs"]:
        if (pair["a"], pair["b"]) == (a, b):
            told = pair | {"a": shown(pair["a"]), "b": shown(pair["b"])}
            return chart_makers.confusion_chart(study.title, told, [one.name.lower() for one in Rating])
    return None


CHARTS: Mapping[str, Maker] = {
    "board": _board,
    "profile": _profile,
    "heat": _heat,
    "variants": _variants,
    "compare": _compare,
    "published": _published,
    "confusion": _confusion,
}
# What not everybody may see is not kept by anybody on the way.
PRIVATE = frozenset({"confusion"})


def _given(web: Web, name: str) -> str:
    given = web.request.query_params.get(name)
    if not given:
        raise NotFound(f"The address lacks '{name}', which says what the chart is of.")
    return given


@router.get("/{name}.{form}")
def chart(web: Visitor, name: str, form: str) -> Response:
    if name not in CHARTS:
        raise NotFound(f"There is no chart '{name[:40]}'.", details=[*CHARTS])
    if form not in (*FORMS, "csv", "json"):
        raise NotFound(f"A chart is not saved as '{form[:40]}'.", details=[*FORMS, "csv", "json"])
    scheme = _scheme(web)
    made = CHARTS[name](web)
    if made is None:
        raise NotFound("There is nothing to draw there.")
    kept = None if name in PRIVATE else PUBLIC_SECONDS
    saved = file_name([name, made.title], form)
    if form == "json":
        return web.data(json.dumps(_told(made), allow_nan=False).encode(), "application/json", public=kept)
    if form == "csv":
        header, rows = _table(made)
        body = b"".join(csv_lines(saved, header, rows, exact=is_exact(web)))
        return web.data(body, "text/csv; charset=utf-8", public=kept, filename=saved)
    web.session.close()  # drawing may have to wait, and needs no connection
    drawn = web.site.artist.draw(made, form, scheme)
    return web.data(drawn, TYPES[form], public=kept, filename=saved if form == "png" else None)


def _scheme(web: Web) -> Scheme:
    given = web.request.query_params.get("scheme") or SCHEMES[0]
    for scheme in SCHEMES:
        if scheme == given:
            return scheme
    raise NotFound(f"There is no scheme '{given[:40]}'.", details=[*SCHEMES])


def _told(made: Chart) -> dict[str, Any]:
    return {"title": made.title, "words": made.words, "source": made.source, "rows": made.data}


def _table(made: Chart) -> tuple[list[str], list[list[Any]]]:
    header = list(made.data[0]) if made.data else ["part"]
    return header, [[row[name] for name in header] for row in made.data]

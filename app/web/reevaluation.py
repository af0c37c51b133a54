"""Stored conversations rated again: the form of one run, and of a whole board for administrators."""

from collections.abc import Sequence
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.accounts import throttle
from app.accounts.forms import earlier_result, store_result
from app.accounts.policies import require_admin
from app.errors import NotFound
from app.evaluators import board_runs
from app.leaderboard import VersionGroup, choose_group, version_groups
from app.runs.browsing import managed_run
from app.runs.reevaluating import MOST_REPEATS, MOST_SAMPLED, Reevaluation, begin, check, effort
from app.runs.reporting import describe_evaluator, evaluators_of
from app.runs.starting import EvaluatorChoice, choices, used_evaluators
from app.wake import wake_run
from app.web.context import Researcher, Web
from app.web.forms import Form, Posted
from app.web.runs import has_to_ask
from app.web.starting import (
    LONGEST_MODEL,
    LONGEST_URL,
    MODEL,
    REFUSALS,
    RULES,
    addresses,
    evaluator_of_form,
    used_before,
)

router = APIRouter()

# For an estimate before anything is chosen; it is never called.
SOME_MODEL = EvaluatorChoice("https://example.org/v1", "a model")


@router.get("/runs/{run_id}/reevaluate")
def of_run(web: Researcher, run_id: UUID) -> Response:
    return _page(web, [managed_run(web.session, web.person, run_id)], None, _blank())


@router.post("/runs/{run_id}/reevaluate")
def rate_run(web: Researcher, run_id: UUID, form: Posted) -> Response:
    run = managed_run(web.session, web.person, run_id)
    return _rate(web, [run], None, form, f"/runs/{run.uuid}")


@router.get("/methods/reevaluate")
def of_board(web: Researcher) -> Response:
    group, runs = _board(web)
    return _page(web, runs, group, _blank())


@router.post("/methods/reevaluate")
def rate_board(web: Researcher, form: Posted) -> Response:
    group, runs = _board(web)
    return _rate(web, runs, group, form, "/runs")


def _board(web: Web) -> tuple[VersionGroup, list[models.Run]]:
    """Other people's runs stand on a board too, so it is for administrators."""
    require_admin(web.person)
    groups = version_groups(web.session, simulated=web.settings.on_loopback)
    group = choose_group(groups, web.request.query_params.get("board") or None)
    if group is None:
        raise NotFound("There is no board yet: nothing has been published.")
    return group, board_runs(web.session, group)


def _blank() -> Form:
    return Form.blank(evaluator=RULES, evaluator_provider=models.PROVIDERS[0], repeats=1)


def _page(web: Web, runs: Sequence[models.Run], group: VersionGroup | None, form: Form) -> Response:
    form.secret("evaluator_api_key")
    needed = effort(web.session, runs, Reevaluation(SOME_MODEL), None)
    rated = {one.id: one for run in runs for one in evaluators_of(web.session, run)}
    return web.page(
        "evaluators/reevaluate.html",
        runs=runs,
        group=group,
        form=form,
        key=web.form_key(),
        effort=needed,
        rated=[describe_evaluator(one)["label"] for one in rated.values()],
        evaluators=[
            (RULES, "the lexical rules: no model, no cost"),
            *used_before(used_evaluators(web.session, web.person)),
            (MODEL, "a model"),
        ],
        protocols=choices(web.session).protocols,
        providers=models.PROVIDERS,
        may_publish=not has_to_ask(web),
        most={"sample": MOST_SAMPLED, "repeats": MOST_REPEATS},
        longest={"model": LONGEST_MODEL, "url": LONGEST_URL},
        action=_action(runs, group),
        status=form.status,
    )


def _action(runs: Sequence[models.Run], group: VersionGroup | None) -> str:
    if group is not None:
        return f"/methods/reevaluate?board={quote(group.key)}"
    return f"/runs/{runs[0].uuid}/reevaluate"


def _rate(web: Web, runs: list[models.Run], group: VersionGroup | None, form: Form, path: str) -> Response:
    web.limit(throttle.SUBMIT, str(web.person.id))
    if (earlier := earlier_result(web.session, web.person, form.key)) is not None:
        return web.redirect(earlier)
    try:
        wanted, _ = check(_wanted(web, form), addresses(web))
        begun = begin(web.session, web.person, web.settings.secret, runs, wanted, addresses(web))
    except REFUSALS as error:
        form = web.refused(form, error)
        if group is not None:
            group, runs = _board(web)
        else:
            runs = [managed_run(web.session, web.person, runs[0].uuid)]
        return _page(web, runs, group, form)
    if group is None:
        path = f"{path}?evaluator={begun.evaluators[0].uuid}"
    store_result(web.session, web.person, form.key, path)
    for run in begun.runs:
        web.record("run.reevaluate", f"run {run.id}", evaluator=begun.evaluators[0].name)
    web.commit()
    for run in begun.runs:
        wake_run(web.settings, run.id)
    return web.redirect(path, notice="run-rated-again" if begun.runs else "run-rated-already")


def _wanted(web: Web, form: Form) -> Reevaluation:
    protocols = choices(web.session).protocols
    protocol = form.value("protocol")
    if protocol and protocol not in protocols:
        form.fault("protocol", "Choose one of the protocols that are stored here.")
    wanted = Reevaluation(
        evaluator=evaluator_of_form(web, form),
        protocol=protocol or None,
        sample=form.whole("sample", "Sample", least=1, most=MOST_SAMPLED),
        repeats=form.whole("repeats", "Verdicts of each", least=1, most=MOST_REPEATS) or 1,
        publish=form.checked("publish") and not has_to_ask(web),
    )
    form.check()
    return wanted

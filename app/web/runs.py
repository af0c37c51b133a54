"""Runs: the list, one run while it goes on and when it is over, and what may be done with it."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.accounts.policies import is_admin
from app.accounts.withholding import withheld_of_run
from app.errors import Conflict, InvalidInput, NotFound
from app.leaderboard import (
    MAX_REASON,
    ask_to_publish,
    latest_request,
    publish,
    simulated_part,
    take_request_back,
    withdraw,
)
from app.leaderboard.requests import runs_started
from app.outcomes import Category, Outcome
from app.prices import HIGHEST
from app.runs import control
from app.runs.browsing import Live, board_entry, list_runs, live, managed_run, manages, visible_run
from app.runs.driving import LEASE_SECONDS
from app.runs.reporting import describe_evaluator, evaluators_of, find_evaluator, run_report
from app.runs.starting import MAX_CALLS
from app.runs.transcripts import Found, latest_conversations
from app.wake import wake_run
from app.web import declaring, words
from app.web.board_view import Cell, cell, column_of, conversations_path, rate_at
from app.web.context import Researcher, Visitor, Web
from app.web.forms import Form, Posted

router = APIRouter(prefix="/runs")

# A look counts rows, so large runs are looked at less often; what has finished shows within 5 s all the same.
POLL_SECONDS, LONGEST_POLL_SECONDS, CONVERSATIONS_A_SECOND = 2, 4, 5_000


def poll_seconds(planned: int) -> int:
    return min(LONGEST_POLL_SECONDS, POLL_SECONDS + planned // CONVERSATIONS_A_SECOND)


PATIENCE_SECONDS = 60
LATEST = 6
ERRORS = (Outcome.ENDPOINT_ERROR, Outcome.EVALUATOR_ERROR, Outcome.UNPARSED)


@router.get("")
def runs(web: Researcher) -> Response:
    given = web.request.query_params.get("after")
    found, more = list_runs(web.session, web.person, older_than=as_uuid(given) if given else None)
    return web.page(
        "runs/list.html", runs=found, older=found[-1].run.uuid if more else None, first=given is None
    )


def as_uuid(given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError:
        raise NotFound("There is no such page of this list; begin at its first page.") from None


@router.get("/{run_id}")
def show(web: Visitor, run_id: UUID) -> Response:
    run = visible_run(web.session, web.visitor, run_id)
    response = show_run(web, run)
    if web.under_htmx and run.status != "running":
        response.headers["HX-Refresh"] = "true"  # the whole page: the report, and other buttons
    return response


def show_run(web: Web, run: models.Run, form: Form | None = None) -> Response:
    """The run's page; `form` holds a cap that was refused."""
    evaluator = chosen_evaluator(web, run)
    standing = live(web.session, run, evaluator.id)
    polling = run.status == "running"
    own = manages(web.session, web.visitor, run)
    values = {
        "run": run,
        "evaluator": evaluator,
        "evaluator_label": describe_evaluator(evaluator)["label"],
        "live": standing,
        "own": own,
        "words": _status(run, standing),
        "latest": _latest(web, run, evaluator) if polling else [],
        "slots": LATEST,
        "scenarios": words.SCENARIOS,
        "every": poll_seconds(standing.standing.planned) if polling else None,
        "poll": f"/runs/{run.uuid}?evaluator={evaluator.uuid}",
        "outcomes": words.OUTCOMES,
        "base": f"/runs/{run.uuid}/conversations?evaluator={evaluator.uuid}",
    }
    if not web.under_htmx:
        values |= _around(web, run, evaluator, standing, form or Form.blank())
    return web.page("runs/show.html", fragment="live", status=form.status if form else 200, **values)


def _latest(web: Web, run: models.Run, evaluator: models.Evaluator) -> list[Found]:
    return latest_conversations(web.session, web.visitor, run, evaluator.id, LATEST)


def chosen_evaluator(web: Web, run: models.Run) -> models.Evaluator:
    """The run's own, or the one that the address names."""
    given = web.request.query_params.get("evaluator")
    return find_evaluator(web.session, run, given) if given else run.evaluator


def _status(run: models.Run, standing: Live) -> tuple[str, str]:
    """In words: what it does, and what that means for who reads it."""
    if run.status == "running":
        if standing.attended:
            return "Running", "You may leave this page; the run goes on by itself."
        return "Waiting for a worker", _waiting(run)
    if run.status == "finished":
        return "Finished", ""
    kept = "What was stored is kept."
    reason = (run.status_reason or "").rstrip(".")
    return run.status.capitalize(), f"{reason[:1].upper()}{reason[1:]}. {kept}" if reason else kept


def _waiting(run: models.Run) -> str:
    """The scheduler's rounds find a run that nobody drives, so waiting longer than that has a reason."""
    if datetime.now(UTC) - run.created_at > timedelta(seconds=PATIENCE_SECONDS):
        return (
            f"One takes it up within {2 * LEASE_SECONDS} seconds. If it stays so, none is running: "
            "start `curate up` or `curate worker`; `curate doctor` tells what is wrong."
        )
    return "It begins by itself, as a rule within seconds."


def _around(
    web: Web, run: models.Run, evaluator: models.Evaluator, standing: Live, form: Form
) -> dict[str, Any]:
    """What stands around the live part and changes with the run's status only."""
    entry = board_entry(web.session, run)
    return {
        "form": form,
        "entry": entry,
        "request": latest_request(web.session, run),
        "on_board": entry is not None and entry.withdrawn_at is None,
        "others": [one for one in evaluators_of(web.session, run) if one.id != evaluator.id],
        "describe": describe_evaluator,
        "errors": sum(standing.standing.outcomes[outcome] for outcome in ERRORS),
        "capped": run.status == "paused" and run.max_calls is not None,
        "cost_capped": run.status == "paused" and run.max_cost is not None,
        "report": report_view(web, run, evaluator) if run.status != "running" else None,
        "withheld": withheld_of_run(web.session, web.visitor, run),
        "variants": words.VARIANTS,
        "provenances": words.PROVENANCES,
        "may_list": web.settings.on_loopback or simulated_part(web.session, run) is None,
    }


def report_view(web: Web, run: models.Run, evaluator: models.Evaluator) -> dict[str, Any]:
    """The report of `curate run show`, its rates as cells of a table."""
    report = run_report(web.session, run, evaluator)
    rates = report["rates"]
    scenarios = list(rates["by_scenario"])
    categories = [one.value for one in Category if one.value in rates["by_category"]]
    rows = [
        (words.CATEGORIES[one][0], [_cell(run, rates, scenario, one) for scenario in (*scenarios, None)])
        for one in categories
    ]
    rows.append(("all", [_cell(run, rates, scenario, None) for scenario in (*scenarios, None)]))
    return report | {
        "columns": [words.SCENARIOS.get(one, (one, "")) for one in scenarios],
        "rows": rows if scenarios else [],
        "arms": [
            (
                scenario,
                variant,
                _arm_cell(run, scenario, variant, found["rate"]),
                found["difference"],
            )
            for scenario, variants in report["by_variant"].items()
            for variant, found in variants.items()
        ],
    }


def _cell(run: models.Run, rates: dict[str, Any], scenario: str | None, category: str | None) -> Cell:
    column = column_of(scenario, category)
    return cell(rate_at(rates, column.path), "pass", conversations_path(str(run.uuid), column))


def _arm_cell(run: models.Run, scenario: str, variant: str, rate: dict[str, Any]) -> Cell:
    return cell(rate, "pass", f"/runs/{run.uuid}/conversations?scenario={scenario}&variant={variant}")


# --- what may be done with it ---


@router.post("/{run_id}/pause")
def pause(web: Researcher, run_id: UUID) -> Response:
    run = managed_run(web.session, web.person, run_id)
    control.pause(web.session, run)
    return _changed(web, run, "pause", "run-paused")


@router.post("/{run_id}/cancel")
def cancel(web: Researcher, run_id: UUID) -> Response:
    run = managed_run(web.session, web.person, run_id)
    control.cancel(web.session, run)
    return _changed(web, run, "cancel", "run-cancelled")


@router.post("/{run_id}/resume")
def resume(web: Researcher, run_id: UUID, form: Posted) -> Response:
    """Go on; `retry_errors`: what ended in an error is tried again; `max_calls`, `max_cost`: new caps."""
    run = managed_run(web.session, web.person, run_id)
    try:
        cap = form.whole("max_calls", "New cap on calls", least=1, most=MAX_CALLS)
        max_cost = form.dollars("max_cost", "New cap on cost", most=HIGHEST)
        form.check()
        retry = form.checked("retry_errors")
        changed = control.resume(web.session, run, retry_errors=retry, max_calls=cap, max_cost=max_cost)
    except (InvalidInput, Conflict) as error:
        form = web.refused(form, error)
        return show_run(web, managed_run(web.session, web.person, run_id), form)
    if not changed:
        return _changed(web, run, "resume", "run-nothing-to-resume")
    return _changed(web, run, "resume", "run-resumed", wake=True)


def _changed(web: Web, run: models.Run, action: str, notice: str, *, wake: bool = False) -> Response:
    web.record(f"run.{action}", f"run {run.id}")
    web.commit()
    if wake:
        wake_run(web.settings, run.id)
    return web.redirect(f"/runs/{run.uuid}", notice=notice)


@router.get("/{run_id}/publish")
def publish_page(web: Researcher, run_id: UUID) -> Response:
    run = managed_run(web.session, web.person, run_id)
    return _publish_page(web, run, Form.blank(**declaring.declared_fields(run.endpoint.declared)))


def _publish_page(web: Web, run: models.Run, form: Form) -> Response:
    report = run_report(web.session, run)
    return web.page(
        "runs/publish.html",
        run=run,
        report=report,
        evaluator_label=report["run"]["evaluator"]["label"],
        asked=report["rates"]["overall"],
        entry=board_entry(web.session, run),
        asks=has_to_ask(web),
        started=runs_started(web.session, run),
        form=form,
        declaring=declaring,
        status=form.status,
    )


@router.post("/{run_id}/publish")
def put_on_board(web: Researcher, run_id: UUID, form: Posted) -> Response:
    run = managed_run(web.session, web.person, run_id)
    try:
        said = declaring.read_declared(form, whole="model_version" in form.values)
        form.check()
        if has_to_ask(web):
            ask_to_publish(web.session, run, web.person, declared=said)
            web.commit()
            return web.redirect(f"/runs/{run.uuid}", notice="run-asked")
        publish(web.session, run, served=not web.settings.on_loopback, declared=said)
    except (Conflict, InvalidInput) as error:
        form = web.refused(form, error)
        return _publish_page(web, managed_run(web.session, web.person, run_id), form)
    return _changed(web, run, "publish", "run-published")


def has_to_ask(web: Web) -> bool:
    """On a site that others reach, what goes on the board is for its administrators to decide."""
    return not web.settings.on_loopback and not is_admin(web.person)


@router.post("/{run_id}/publish/take-back")
def take_back(web: Researcher, run_id: UUID) -> Response:
    run = managed_run(web.session, web.person, run_id)
    take_request_back(web.session, run, web.person)
    web.commit()
    return web.redirect(f"/runs/{run.uuid}", notice="run-asked-no-more")


@router.post("/{run_id}/keep-back")
def keep_back(web: Researcher, run_id: UUID) -> Response:
    """Not on the board when it is finished, although that was asked for at the start."""
    run = managed_run(web.session, web.person, run_id)
    control.keep_back(web.session, run)
    return _changed(web, run, "keep_back", "run-kept-back")


@router.get("/{run_id}/withdraw")
def ask_to_withdraw(web: Researcher, run_id: UUID) -> Response:
    return _withdraw_page(web, managed_run(web.session, web.person, run_id), Form.blank())


def _withdraw_page(web: Web, run: models.Run, form: Form) -> Response:
    return web.page("runs/withdraw.html", run=run, form=form, longest=MAX_REASON, status=form.status)


@router.post("/{run_id}/withdraw")
def take_off_board(web: Researcher, run_id: UUID, form: Posted) -> Response:
    run = managed_run(web.session, web.person, run_id)
    try:
        reason = form.text("reason", "Reason", longest=MAX_REASON)
        form.check()
        withdraw(web.session, run, reason)
    except (InvalidInput, Conflict) as error:
        form = web.refused(form, error)
        return _withdraw_page(web, managed_run(web.session, web.person, run_id), form)
    return _changed(web, run, "withdraw", "run-withdrawn")

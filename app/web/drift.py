"""A closed study as a reference set: rated again by evaluators, on demand or on a schedule."""

from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.accounts.policies import is_admin
from app.endpoints import rules_evaluator
from app.errors import Conflict, InvalidInput
from app.models import StudyState
from app.runs.reporting import describe_evaluator, evaluators_of
from app.studies.finding import managed_study, study_runs
from app.trials.drift import ask, checks_of
from app.trials.references import LEAST_ITEMS, MOST_DAYS, freeze, reference_of, set_schedule
from app.wake import wake_drift
from app.web.context import Researcher, Web
from app.web.forms import Form, Posted
from app.web.studies import REFUSALS, path_of

router = APIRouter(prefix="/studies")


@router.get("/{name}/drift")
def page(web: Researcher, name: str) -> Response:
    return _show(web, managed_study(web.session, web.person, name), Form.blank())


def _show(web: Web, study: models.Study, form: Form) -> Response:
    reference = reference_of(web.session, study)
    if reference is not None and reference.every_days is not None and "every_days" not in form.values:
        form.values["every_days"] = [str(reference.every_days)]
    return web.page(
        "studies/drift.html",
        study=study,
        base=path_of(study),
        closed=study.state == StudyState.CLOSED,
        reference=reference,
        checks=[
            (check, describe_evaluator(check.evaluator)["label"])
            for check in (checks_of(web.session, reference) if reference else [])
        ],
        evaluators=[(str(one.uuid), describe_evaluator(one)["label"]) for one in _evaluators(web, study)],
        least=LEAST_ITEMS,
        form=form,
        status=form.status,
    )


def _evaluators(web: Web, study: models.Study) -> list[models.Evaluator]:
    """The rules, and the models that rated the study's runs and whose calls the person answers for."""
    rules = rules_evaluator(web.session)
    known = {rules.id: rules}
    if study.evaluator is not None:
        known[study.evaluator.id] = study.evaluator
    for run in study_runs(web.session, study):
        known |= {one.id: one for one in evaluators_of(web.session, run)}
    return [one for one in known.values() if _may_ask(web, one)]


def _may_ask(web: Web, evaluator: models.Evaluator) -> bool:
    if evaluator.endpoint_id is None or is_admin(web.person):
        return True
    return web.session.get_one(models.Endpoint, evaluator.endpoint_id).account_id == web.person.id


@router.post("/{name}/drift/freeze")
def freeze_it(web: Researcher, name: str, form: Posted) -> Response:
    study = managed_study(web.session, web.person, name)
    try:
        reference = freeze(web.session, study)
    except REFUSALS as error:
        form = web.refused(form, error)
        return _show(web, managed_study(web.session, web.person, name), form)
    web.record("reference.freeze", f"study {study.id}", items=reference.size)
    return _done(web, study, "reference-frozen")


@router.post("/{name}/drift/schedule")
def schedule(web: Researcher, name: str, form: Posted) -> Response:
    study = managed_study(web.session, web.person, name)
    try:
        days = form.whole("every_days", "Days", least=1, most=MOST_DAYS)
        form.check()
        set_schedule(_reference(web, study), days)
    except REFUSALS as error:
        form = web.refused(form, error)
        return _show(web, managed_study(web.session, web.person, name), form)
    web.record("reference.schedule", f"study {study.id}", every_days=days or 0)
    return _done(web, study, "reference-schedule")


@router.post("/{name}/drift/check")
def check(web: Researcher, name: str, form: Posted) -> Response:
    study = managed_study(web.session, web.person, name)
    try:
        reference, chosen = _reference(web, study), _chosen(web, study, form.value("evaluator"))
    except REFUSALS as error:
        form = web.refused(form, error)
        return _show(web, managed_study(web.session, web.person, name), form)
    wanted = ask(web.session, reference, chosen, web.person).id
    web.record("drift.check", f"study {study.id}", evaluator=chosen.name)
    answer = _done(web, study, "drift-asked")
    wake_drift(web.settings, wanted)
    return answer


def _done(web: Web, study: models.Study, notice: str) -> Response:
    path = f"{path_of(study)}/drift"
    web.commit()
    return web.redirect(path, notice=notice)


def _reference(web: Web, study: models.Study) -> models.ReferenceSet:
    found = reference_of(web.session, study)
    if found is None:
        raise Conflict("Freeze the study as a reference set first.")
    return found


def _chosen(web: Web, study: models.Study, given: str) -> models.Evaluator:
    try:
        identity = UUID(given)
    except ValueError:
        identity = None
    for one in _evaluators(web, study):
        if one.uuid == identity:
            return one
    raise InvalidInput("Choose an evaluator of the list.")

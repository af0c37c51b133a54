"""Start a run: the form, a look at what it will cost, and only then the run."""

import base64
import binascii
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.accounts import throttle
from app.accounts.forms import earlier_result, store_result
from app.chat import Allowlist, check_api_key
from app.endpoints import opened_key
from app.errors import Conflict, InvalidInput, NotFound
from app.leaderboard import lookalike
from app.outcomes import SCENARIOS, STANDARD, Category
from app.prices import HIGHEST, Price
from app.runs.browsing import managed_run
from app.runs.planning import MAX_SEEDS, Selection
from app.runs.quotas import quota_of
from app.runs.starting import (
    DEFAULT_CONCURRENCY,
    MAX_CALLS,
    Addresses,
    EvaluatorChoice,
    Target,
    Wish,
    choices,
    estimated_cost,
    own_endpoint,
    prepare,
    start,
    used_endpoints,
    used_evaluators,
)
from app.runs.submitting import MAX_CONCURRENCY
from app.secrets import seal, unseal
from app.wake import wake_run
from app.web import declaring, formats, words
from app.web.context import Researcher, Web
from app.web.forms import Form, Posted

router = APIRouter(prefix="/runs")

LONGEST_NAME = 80
LONGEST_MODEL = 200
LONGEST_URL = 2_000
LONGEST_REFERENCE = 200
MOST_CASES = 100_000
RULES, MODEL = "rules", "model"
NEVER_BOTH = "under a name that only looks the same the run cannot be published."
REFUSALS = (InvalidInput, Conflict, NotFound)


@router.get("/new")
def new(web: Researcher) -> Response:
    """The form, empty, or as an earlier run or endpoint of the person was."""
    query = web.request.query_params
    form = Form.blank(**_usual(web))
    if (like := _uuid(query.get("like"))) is not None:
        form = _like(web, managed_run(web.session, web.person, like))
    elif (identity := _uuid(query.get("endpoint"))) is not None:
        endpoint = own_endpoint(web.session, web.person, identity)
        if endpoint is None:
            raise NotFound("There is no such endpoint of yours.")
        form = Form.blank(**_usual(web) | _at(endpoint))
    return show_form(web, form)


def _uuid(given: str | None) -> UUID | None:
    try:
        return UUID(given) if given else None
    except ValueError:
        raise NotFound("There is nothing to begin with at this address.") from None


def _usual(web: Web) -> dict[str, Any]:
    known = choices(web.session)
    return {
        "benchmark": known.benchmarks[0],
        "protocol": known.protocols[0],
        "provider": models.PROVIDERS[0],
        "evaluator": RULES,
        "evaluator_provider": models.PROVIDERS[0],
        "scenarios": SCENARIOS,
        "variants": (STANDARD,),
        "categories": tuple(Category),
        "seeds": 1,
        "concurrency": DEFAULT_CONCURRENCY,
        "mail": 1 if _can_mail(web) else None,
    }


def _can_mail(web: Web) -> bool:
    return web.site.mailer.configured and web.person.email is not None


def _at(endpoint: models.Endpoint) -> dict[str, Any]:
    return {
        "endpoint": endpoint.uuid,
        "name": endpoint.name,
        "provider": endpoint.provider,
        "base_url": endpoint.base_url,
        "model": endpoint.model,
        "price_prompt": typed_price(endpoint.price_prompt),
        "price_completion": typed_price(endpoint.price_completion),
    } | declaring.declared_fields(endpoint.declared)


def typed_price(amount: Decimal | None) -> str | None:
    return None if amount is None else formats.price(amount)


def _like(web: Web, run: models.Run) -> Form:
    """The choices of a run; of another person's endpoint everything but the key."""
    chosen = run.selection
    return Form.blank(
        **_usual(web)
        | _at(run.endpoint)
        | {
            "benchmark": f"{run.benchmark.name}@{run.benchmark.version}",
            "protocol": f"{run.protocol.name}@{run.protocol.version}",
            "scenarios": chosen["scenarios"],
            "variants": chosen["variants"],
            "categories": chosen["categories"],
            "limit": chosen["limit"],
            "probes": 1 if chosen["probes"] else None,
            "recall": 1 if chosen.get("recall") else None,
            "seeds": len(run.seeds),
            "concurrency": run.concurrency,
            "max_calls": run.max_calls,
            "max_cost": typed_price(run.max_cost),
        }
        | _rated_by(web, run.evaluator)
    )


def _rated_by(web: Web, evaluator: models.Evaluator) -> dict[str, Any]:
    """The evaluator as a choice: one's own is there to take, of another's only the key is missing."""
    if evaluator.endpoint_id is None:
        return {}
    endpoint = web.session.get_one(models.Endpoint, evaluator.endpoint_id)
    if endpoint.account_id == web.person.id:
        return {"evaluator": endpoint.uuid}
    return {
        "evaluator": MODEL,
        "evaluator_provider": endpoint.provider,
        "evaluator_base_url": endpoint.base_url,
        "evaluator_model": endpoint.model,
    }


def show_form(web: Web, form: Form) -> Response:
    known = choices(web.session)
    form.secret("api_key"), form.secret("evaluator_api_key")
    return web.page(
        "runs/new.html",
        form=form,
        known=known,
        endpoints=used_endpoints(web.session, web.person),
        evaluators=[
            (RULES, "the lexical rules: no model, no cost"),
            *used_before(used_evaluators(web.session, web.person)),
            (MODEL, "a model"),
        ],
        has_key=_has_key(web, form),
        providers=models.PROVIDERS,
        scenarios=[(name, f"{name}: {words.SCENARIOS[name][0]}") for name in SCENARIOS],
        variants=[(name, name.replace("_", " ")) for name in known.variants],
        categories=[(name.value, name.value.replace("_", " ")) for name in Category],
        private=addresses(web).private_allowed,
        declaring=declaring,
        can_mail=_can_mail(web),
        longest={"name": LONGEST_NAME, "model": LONGEST_MODEL, "url": LONGEST_URL},
        status=form.status,
    )


def used_before(endpoints: list[models.Endpoint]) -> list[tuple[str, str]]:
    return [(str(one.uuid), f"{one.model} at {formats.host(one.base_url)}, as before") for one in endpoints]


def _has_key(web: Web, form: Form) -> bool:
    """A key need not be typed again: it was just given, or is stored with the endpoint."""
    endpoint = _endpoint(web, form)
    return bool(form.value("api_key_sealed")) or (endpoint is not None and endpoint.sealed_key is not None)


@router.post("/new")
def change(web: Researcher, form: Posted) -> Response:
    """Back from the preview, with everything that was chosen."""
    return show_form(web, form)


@router.post("/preview")
def preview(web: Researcher, form: Posted) -> Response:
    """What would be asked and what it would cost. Nothing of it is stored."""
    web.limit(throttle.PREVIEW, str(web.person.id))
    try:
        prepared = prepare(web.session, read_wish(web, form), addresses(web))
    except REFUSALS as error:
        return show_form(web, web.refused(form, error))
    return web.page(
        "runs/preview.html",
        key=web.form_key(),
        fields=carried(form),
        wish=prepared.wish,
        plan=prepared.plan,
        cost=estimated_cost(web.session, web.person, prepared),
        benchmark=f"{prepared.benchmark.name} v{prepared.benchmark.version}",
        protocol=f"{prepared.protocol.name} v{prepared.protocol.version}",
        notes=prepared.notes,
        warnings=[*prepared.warnings, *_name_warnings(web, prepared.wish.target.name)],
        with_key=prepared.wish.target.api_key is not None,
    )


def _name_warnings(web: Web, name: str) -> list[str]:
    other = lookalike(web.session, name)
    if other is None:
        return []
    return [f"The board has a row '{other}', which looks like this name; {NEVER_BOTH}"]


def carried(form: Form) -> list[tuple[str, str]]:
    """All that was chosen, for the form that starts the run; keys go sealed."""
    left_out = {"form_key", "api_key", "evaluator_api_key"}
    return [(name, one) for name, given in form.values.items() if name not in left_out for one in given]


@router.post("")
def start_run(web: Researcher, form: Posted) -> Response:
    web.limit(throttle.SUBMIT, str(web.person.id))
    if (path := earlier_result(web.session, web.person, form.key)) is not None:
        return web.redirect(path)
    try:
        prepared = prepare(web.session, read_wish(web, form), addresses(web))
        quota = quota_of(web.settings, web.person)
        run = start(web.session, web.person, web.settings.secret, prepared, quota)
    except REFUSALS as error:
        return show_form(web, web.refused(form, error))
    web.session.refresh(run)
    path = f"/runs/{run.uuid}"
    store_result(web.session, web.person, form.key, path)
    web.record("run.start", f"run {run.id}", model=prepared.wish.target.model)
    web.commit()
    wake_run(web.settings, run.id)
    return web.redirect(path, notice="run-started")


def addresses(web: Web) -> Addresses:
    """On a loopback site its owner may name what the command line may."""
    return Addresses(
        Allowlist.parse(web.settings.endpoint_allowlist),
        (urlsplit(web.settings.base_url).netloc,),
        private_allowed=web.settings.on_loopback and web.person.is_owner,
    )


# --- from the form to a wish ---


def read_wish(web: Web, form: Form) -> Wish:
    """FormFault when a field cannot be used; which and why stands in the form."""
    known = choices(web.session)
    model = form.text("model", "Model", longest=LONGEST_MODEL)
    name = " ".join(form.text("name", "Name", longest=LONGEST_NAME, required=False).split())
    wish = Wish(
        target=Target(
            base_url=form.text("base_url", "Base URL", longest=LONGEST_URL),
            model=model,
            name=name or model,
            provider=form.choice("provider", "Provider", models.PROVIDERS),
            api_key=_key(web, form, "api_key", "base_url"),
            price=_price(form),
            declared=declaring.read_declared(form),
        ),
        evaluator=evaluator_of_form(web, form),
        selection=Selection(
            scenarios=form.choices("scenarios", "Scenarios", SCENARIOS, least=1),
            variants=form.choices("variants", "Variants", known.variants, least=1),
            categories=form.choices("categories", "Categories", tuple(Category), least=1),
            limit=form.whole("limit", "Cases of each category", least=1, most=MOST_CASES),
            probes=form.checked("probes"),
            recall=form.checked("recall"),
        ),
        benchmark=form.text("benchmark", "Benchmark", longest=LONGEST_REFERENCE),
        protocol=form.text("protocol", "Protocol", longest=LONGEST_REFERENCE),
        seeds=tuple(range(1, 1 + (form.whole("seeds", "Seeds", least=1, most=MAX_SEEDS) or 1))),
        concurrency=form.whole("concurrency", "Calls in flight", least=1, most=MAX_CONCURRENCY)
        or DEFAULT_CONCURRENCY,
        max_calls=form.whole("max_calls", "Cap on calls", least=1, most=MAX_CALLS),
        publish=form.checked("publish"),
        max_cost=form.dollars("max_cost", "Cap on cost", most=HIGHEST),
        forget_key=form.checked("forget_key"),
        mail=form.checked("mail"),
    )
    form.check()
    return wish


def evaluator_of_form(web: Web, form: Form) -> EvaluatorChoice:
    """One that has rated for this person is known with its key and price."""
    if (known := _endpoint(web, form, "evaluator")) is not None:
        form.secret("evaluator_api_key")
        return EvaluatorChoice(known.base_url, known.model, provider=known.provider)
    if form.choice("evaluator", "Evaluator", (RULES, MODEL)) != MODEL:
        form.secret("evaluator_api_key")
        return EvaluatorChoice()
    return EvaluatorChoice(
        base_url=form.text("evaluator_base_url", "Evaluator's base URL", longest=LONGEST_URL),
        model=form.text("evaluator_model", "Evaluator's model", longest=LONGEST_MODEL),
        api_key=_key(web, form, "evaluator_api_key", "evaluator_base_url"),
        provider=form.choice("evaluator_provider", "Evaluator's provider", models.PROVIDERS),
        price=_price(form, "evaluator_"),
    )


def _price(form: Form, whose: str = "") -> Price:
    """Left empty it is not known, whatever it was before."""
    return Price(
        form.price(f"{whose}price_prompt", "Price in"),
        form.price(f"{whose}price_completion", "Price out"),
    )


def _key(web: Web, form: Form, name: str, url_field: str) -> str | None:
    """The key that was typed; or given before, or stored, for this very address. None: without one.

    A typed key stays with the form sealed, for this person and address alone, so that no page shows it.
    """
    url, typed = form.value(url_field).strip(), form.secret(name).strip()
    if typed:
        try:
            check_api_key(typed)
        except InvalidInput as error:
            form.fault(name, error.message)
            return None
        sealed = seal(web.settings.secret, typed, *_bound(web, url))
        form.values[f"{name}_sealed"] = [base64.urlsafe_b64encode(sealed).decode()]
        return typed
    if given := form.value(f"{name}_sealed"):
        try:
            return unseal(web.settings.secret, base64.urlsafe_b64decode(given), *_bound(web, url))
        except (Conflict, binascii.Error, ValueError):
            form.values.pop(f"{name}_sealed")
            form.fault(name, "Give the key again: it was given for another address.")
            return None
    endpoint = _endpoint(web, form) if name == "api_key" else None
    if endpoint is None or endpoint.base_url != url:
        return None
    return opened_key(web.person, endpoint, web.settings.secret)


def _bound(web: Web, url: str) -> tuple[str, str, str]:
    return "form", str(web.person.uuid), url


def _endpoint(web: Web, form: Form, name: str = "endpoint") -> models.Endpoint | None:
    """The person's own endpoint that the field names; the form may have begun with one."""
    try:
        return own_endpoint(web.session, web.person, UUID(form.value(name)))
    except ValueError:
        return None

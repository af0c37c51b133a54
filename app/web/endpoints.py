"""One's own endpoints: which there are, what may be changed, their keys, a check of each."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.accounts import throttle
from app.accounts.forms import earlier_result, store_result
from app.chat import check_api_key
from app.endpoints import opened_key
from app.errors import InvalidInput, NotFound
from app.preflight import learned_words
from app.prices import Price
from app.protocol import builtin_protocol
from app.runs.endpoints import (
    Change,
    OwnEndpoint,
    add_endpoint,
    change_endpoint,
    delete_key,
    find_endpoint,
    note_check,
    own_endpoints,
    remove_endpoint,
    target_of,
)
from app.runs.starting import DEFAULT_CONCURRENCY, Target
from app.web import declaring
from app.web.checking import check_endpoint
from app.web.context import Researcher, Web
from app.web.forms import Form, Posted
from app.web.starting import LONGEST_MODEL, LONGEST_NAME, LONGEST_URL, REFUSALS, addresses, typed_price

router = APIRouter(prefix="/endpoints")

LONGEST = {"name": LONGEST_NAME, "model": LONGEST_MODEL, "url": LONGEST_URL}
KEY_WORDS = {
    "stored": "stored",
    "deleted": "deleted: the next run needs it again",
    "none": "none",
}


@router.get("")
def list_of_endpoints(web: Researcher) -> Response:
    given = web.request.query_params.get("after")
    found, more = own_endpoints(web.session, web.person, after=_page(given) if given else None)
    return web.page(
        "endpoints/list.html",
        endpoints=found,
        key_words=KEY_WORDS,
        older=found[-1].row.uuid if more else None,
        first=given is None,
    )


def _page(given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError:
        raise NotFound("There is no such page of this list; begin at its first page.") from None


@router.get("/new")
def new(web: Researcher) -> Response:
    return _show(web, None, Form.blank(form_key=web.form_key(), provider=models.PROVIDERS[0]))


@router.post("")
def add(web: Researcher, form: Posted) -> Response:
    web.limit(throttle.SUBMIT, str(web.person.id))
    if (path := earlier_result(web.session, web.person, form.key)) is not None:
        return web.redirect(path)
    try:
        row, fresh = add_endpoint(
            web.session, web.person, web.settings.secret, _read_target(form), addresses(web)
        )
    except REFUSALS as error:
        return _show(web, None, web.refused(form, error))
    path = f"/endpoints/{row.uuid}"
    store_result(web.session, web.person, form.key, path)
    web.record("endpoint.add" if fresh else "endpoint.change", f"endpoint {row.id}", model=row.model)
    web.commit()
    return web.redirect(path, notice="endpoint-added" if fresh else "endpoint-there")


def _read_target(form: Form) -> Target:
    change = _read(form, whole=False)
    form.check()
    assert change.base_url is not None
    assert change.model is not None
    return Target(
        change.base_url,
        change.model,
        change.name or change.model,
        change.provider or models.PROVIDERS[0],
        change.api_key,
        change.price,
        change.declared,
    )


def _read(form: Form, *, whole: bool) -> Change:
    name = " ".join(form.text("name", "Name", longest=LONGEST_NAME, required=whole).split())
    return Change(
        name=name or None,
        provider=form.choice("provider", "Provider", models.PROVIDERS),
        base_url=form.text("base_url", "Base URL", longest=LONGEST_URL),
        model=form.text("model", "Model", longest=LONGEST_MODEL),
        api_key=_key(form),
        without_key=form.checked("without_key"),
        price=Price(form.price("price_prompt", "Price in"), form.price("price_completion", "Price out")),
        declared=declaring.read_declared(form, whole=whole),
    )


def _key(form: Form) -> str | None:
    typed = form.secret("api_key").strip()
    if not typed:
        return None
    try:
        check_api_key(typed)
    except InvalidInput as error:
        form.fault("api_key", error.message)
        return None
    return typed


@router.get("/{identity}")
def show(web: Researcher, identity: UUID) -> Response:
    found = find_endpoint(web.session, web.person, identity)
    return _show(web, found, _as_stored(found.row))


def _as_stored(row: models.Endpoint) -> Form:
    return Form.blank(
        name=row.name,
        provider=row.provider,
        base_url=row.base_url,
        model=row.model,
        price_prompt=typed_price(row.price_prompt),
        price_completion=typed_price(row.price_completion),
        **declaring.declared_fields(row.declared),
    )


def _show(web: Web, found: OwnEndpoint | None, form: Form) -> Response:
    """`found` None: one that is to be added."""
    form.secret("api_key")
    values: dict[str, Any] = {}
    if found is not None:
        values = {
            "endpoint": found.row,
            "found": found,
            "key_words": KEY_WORDS,
            "learned": learned_words(found.row.learned),
        }
    return web.page(
        "endpoints/show.html" if found is not None else "endpoints/new.html",
        form=form,
        providers=models.PROVIDERS,
        declaring=declaring,
        longest=LONGEST,
        private=addresses(web).private_allowed,
        status=form.status,
        **values,
    )


@router.post("/{identity}")
def change(web: Researcher, identity: UUID, form: Posted) -> Response:
    web.limit(throttle.SUBMIT, str(web.person.id))
    found = find_endpoint(web.session, web.person, identity)
    before = (found.row.base_url, found.row.sealed_key)
    try:
        wanted = _read(form, whole=True)
        form.check()
        change_endpoint(web.session, web.person, web.settings.secret, found, wanted, addresses(web))
    except REFUSALS as error:
        form = web.refused(form, error)
        return _show(web, find_endpoint(web.session, web.person, identity), form)
    row = found.row
    web.record(
        "endpoint.change",
        f"endpoint {row.id}",
        model=row.model,
        address_changed=row.base_url != before[0],
        key_changed=row.sealed_key != before[1],
    )
    web.commit()
    return web.redirect(f"/endpoints/{identity}", notice="endpoint-changed")


@router.post("/{identity}/delete-key")
def forget(web: Researcher, identity: UUID) -> Response:
    found = find_endpoint(web.session, web.person, identity)
    paused = delete_key(web.session, found)
    web.record("endpoint.key-delete", f"endpoint {found.row.id}", paused_runs=len(paused))
    web.commit()
    notice = "endpoint-key-deleted-paused" if paused else "endpoint-key-deleted"
    return web.redirect(f"/endpoints/{identity}", notice=notice)


@router.post("/{identity}/remove")
def remove(web: Researcher, identity: UUID) -> Response:
    found = find_endpoint(web.session, web.person, identity)
    number = found.row.id
    try:
        remove_endpoint(web.session, found)
    except REFUSALS as error:
        form = web.refused(_as_stored(found.row), error)
        return _show(web, find_endpoint(web.session, web.person, identity), form)
    web.record("endpoint.remove", f"endpoint {number}")
    web.commit()
    return web.redirect("/endpoints", notice="endpoint-removed")


@router.post("/{identity}/check")
def check(web: Researcher, identity: UUID) -> Response:
    """With the stored key; what was seen is kept with the endpoint."""
    person, found = web.person, find_endpoint(web.session, web.person, identity)
    target = with_key(web, found.row)
    seen = check_endpoint(web, target, builtin_protocol(), addresses(web), DEFAULT_CONCURRENCY)
    note_check(web.session, person, target, seen.as_report())
    web.commit()
    return web.page(
        "endpoints/checked.html",
        endpoint=find_endpoint(web.session, web.person, identity).row,
        found=seen,
    )


def with_key(web: Web, row: models.Endpoint) -> Target:
    """For a check, which asks with the key that is stored."""
    return replace(target_of(row), api_key=opened_key(web.person, row, web.settings.secret))
